package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/tools"
)

// dueBucket holds lines of the audit log that are stored with what they are about, until they are in the log: neither
// is there without the other. Keys are a time, the process, and an id that the line gets.
const dueBucket = "audit_due"

// dueLine is a line that is not in the log yet.
type dueLine struct {
	Call       string          `json:"call"`
	Tool       string          `json:"tool"`
	Args       json.RawMessage `json:"args,omitempty"`
	Channel    string          `json:"channel"`
	Session    string          `json:"session"`
	Chat       string          `json:"chat"`
	Caller     string          `json:"caller"`
	Admin      bool            `json:"admin,omitempty"`
	ApprovedBy string          `json:"approved_by,omitempty"`
	Rule       string          `json:"rule,omitempty"`
	Server     string          `json:"server,omitempty"`
	Code       string          `json:"code,omitempty"` // of the server's error
	Failed     bool            `json:"failed,omitempty"`
	Category   tools.Category  `json:"category,omitempty"`
	Message    string          `json:"message,omitempty"`
	Denied     bool            `json:"denied,omitempty"`
}

// due makes a fact of the line about a call that is no call of a tool; none when there is no log.
func (c *Core) due(call *tools.Call, err error) []bot.Fact {
	if c.audit == nil {
		return nil
	}
	o, t := call.Origin, call.Trail
	line := dueLine{
		Call: call.ID, Tool: call.Tool, Args: call.Args, Channel: o.Channel, Session: o.Session, Chat: o.Chat, Caller: o.Caller, Admin: o.Admin,
		ApprovedBy: t.ApprovedBy, Rule: t.Rule, Server: t.MCPServer, Code: t.MCPErrorCode,
	}
	if err != nil {
		e := tools.AsError(err)
		line.Failed, line.Category, line.Message, line.Denied = true, e.Category, e.Message, e.Denied
	}
	raw, err := json.Marshal(line)
	if err != nil {
		c.log.Error().Err(err).Str("tool", call.Tool).Msg("audit line not kept")
		return nil
	}
	key := fmt.Sprintf("%020d/%s/%s", c.now().UnixNano(), c.owner, uuid.NewString())
	return []bot.Fact{{Bucket: dueBucket, Key: key, Value: string(raw)}}
}

// settleAudit writes the lines that are due. A line that another process wrote, and died before it could say so, is not
// written again.
func (c *Core) settleAudit(ctx context.Context) {
	c.settling.Lock()
	defer c.settling.Unlock()
	facts, err := c.stores.Bot.FactsOf(ctx, dueBucket, "", c.now())
	if err != nil {
		c.log.Error().Err(err).Msg("audit lines that are due not read; they are written later")
		return
	}
	for _, f := range facts {
		_, rest, _ := strings.Cut(f.Key, "/")
		owner, id, _ := strings.Cut(rest, "/")
		if owner != c.owner && (c.lives(owner) || !c.eldest()) {
			continue // another process has it in its log, or writes it
		}
		if owner == c.owner || !c.audit.Has(id) {
			if err := c.settle(f.Value, id); err != nil {
				c.log.Error().Err(err).Msg("audit line not written; it is tried again later")
				return // what comes later stays behind it
			}
		}
		if err := c.keeper().Keep(ctx, &bot.Change{Facts: []bot.Fact{{Bucket: f.Bucket, Key: f.Key}}}); err != nil {
			c.log.Error().Err(err).Msg("an audit line that was written is still noted as due")
			return
		}
	}
}

func (c *Core) settle(value, id string) error {
	var line dueLine
	if err := json.Unmarshal([]byte(value), &line); err != nil {
		c.log.Error().Err(err).Msg("audit line that was due is not readable")
		return nil
	}
	call := &tools.Call{
		ID: line.Call, Tool: line.Tool, Args: line.Args,
		Trail:  &tools.Trail{ApprovedBy: line.ApprovedBy, Rule: line.Rule, MCPServer: line.Server, MCPErrorCode: line.Code, Correlation: id},
		Origin: tools.Origin{Channel: line.Channel, Session: line.Session, Chat: line.Chat, Caller: line.Caller, Admin: line.Admin},
	}
	if !line.Failed {
		return c.audit.Keep(call, &tools.Result{}, nil)
	}
	return c.audit.Keep(call, nil, &tools.Error{Category: line.Category, Message: line.Message, Denied: line.Denied, Err: errors.New(line.Message)})
}
