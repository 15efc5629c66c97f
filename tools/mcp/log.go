package mcp

import (
	"context"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	maxLogged     = 500 // bytes of a server's log message
	logsPerSecond = 5
	logsBurst     = 50
)

// logMessage writes a log message of the server into our log, up to a limited rate.
func (c *conn) logMessage(_ context.Context, req *sdk.LoggingMessageRequest) {
	if req == nil || req.Params == nil {
		return
	}
	c.mu.Lock()
	ok := c.logs.takeTokens(c.s.m.o.Now(), 1)
	lost := c.lost
	if ok {
		c.lost = 0
	} else {
		c.lost++
	}
	c.mu.Unlock()
	if !ok {
		return
	}
	text, isText := req.Params.Data.(string)
	if !isText {
		data, err := json.Marshal(req.Params.Data)
		if err != nil {
			return
		}
		text = string(data)
	}
	text = guard.Line(c.s.m.o.Redact(cutText(text, 4*maxLogged)), maxLogged)
	c.s.log.WithLevel(levelOf(req.Params.Level)).Str("logger", guard.Line(req.Params.Logger, 80)).Int("lost", lost).
		Str("text", text).Msg("mcp server logs")
}

// levelOf returns our level for a server's level: one below, because its errors are not errors of the service.
func levelOf(l sdk.LoggingLevel) zerolog.Level { //nolint:staticcheck // most servers speak an older revision
	switch l {
	case "emergency", "alert", "critical", "error":
		return zerolog.WarnLevel
	case "warning", "notice":
		return zerolog.InfoLevel
	default:
		return zerolog.DebugLevel
	}
}
