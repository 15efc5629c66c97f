package acp

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// connectTime is how long a session waits for the servers that the editor gave.
const connectTime = 15 * time.Second

// connectServers connects the MCP servers that the editor gave, for this session only. One that cannot be
// connected is named at the next prompt.
func (s *session) connectServers(ctx context.Context, servers []sdk.McpServer) {
	ctx, done := context.WithTimeout(ctx, connectTime)
	defer done()
	var connecting sync.WaitGroup
	for i := range servers {
		cfg, err := s.serverOf(&servers[i])
		if err != nil {
			s.sayLater(err.Error())
			continue
		}
		connecting.Go(func() {
			id, err := s.attachServer(ctx, cfg)
			if err != nil {
				s.sayLater(fmt.Sprintf("The MCP server %s is not connected: %s", cfg.ID, s.redactText(reasonOf(err))))
				return
			}
			s.mu.Lock()
			s.servers = append(s.servers, id)
			s.mu.Unlock()
		})
	}
	connecting.Wait()
}

// maxSame is how many servers may have the same name.
const maxSame = 16

// attachServer connects a server, under a name with a number if another session has one of its name.
func (s *session) attachServer(ctx context.Context, cfg mcp.Server) (id string, err error) {
	name := cfg.ID
	err = mcp.ErrTaken
	for n := 1; n <= maxSame; n++ {
		if n > 1 {
			cfg.ID = fmt.Sprintf("%s-%d", name, n)
		}
		if !s.project.ownServer(cfg.ID, s) {
			continue
		}
		if _, err = s.project.currentBackend().Servers.Attach(ctx, cfg); err == nil {
			return cfg.ID, nil
		}
		s.project.disownServer(cfg.ID)
		if !errors.Is(err, mcp.ErrTaken) {
			break
		}
	}
	return "", err
}

// reasonOf returns why a server is not connected, for people.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*guard.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// programName returns the bare name of a program if that is what an absolute path means:
// mcp.allowed_commands has names.
func programName(command string) string {
	if !filepath.IsAbs(command) {
		return command
	}
	name := filepath.Base(command)
	if found, err := exec.LookPath(name); err == nil && filepath.Clean(found) == filepath.Clean(command) {
		return name
	}
	return command
}

// sayLater says something at the next prompt.
func (s *session) sayLater(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notice = append(s.notice, text)
}

// serverOf converts what an editor says about a server. Its id is the name that the editor gave it.
func (s *session) serverOf(m *sdk.McpServer) (mcp.Server, error) {
	var cfg mcp.Server
	name := ""
	switch {
	case m.Stdio != nil:
		name, cfg.Command, cfg.Args, cfg.Dir, cfg.Env = m.Stdio.Name, programName(m.Stdio.Command), m.Stdio.Args, s.project.dir, map[string]string{}
		for _, v := range m.Stdio.Env {
			cfg.Env[v.Name] = v.Value
		}
	case m.Http != nil:
		name, cfg.URL, cfg.Headers = m.Http.Name, m.Http.Url, map[string]string{}
		for _, h := range m.Http.Headers {
			cfg.Headers[h.Name] = h.Value
		}
	case m.Sse != nil:
		//nolint:staticcheck // a sentence for people
		return cfg, fmt.Errorf(
			"The MCP server %s is not connected: the transport sse is not supported, http is", cleanName(m.Sse.Name),
		)
	default:
		//nolint:staticcheck // as above
		return cfg, fmt.Errorf("An MCP server of the editor is not connected: only stdio and http are supported")
	}
	cfg.ID = cleanName(name)
	return cfg, nil
}

// maxServerName is how many characters of a server's name are used.
const maxServerName = 24

// cleanName returns a name with the characters that the id of a server may have.
func cleanName(name string) string {
	id := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		default:
			return '-'
		}
	}, name), "-")
	if len(id) > maxServerName {
		id = strings.Trim(id[:maxServerName], "-")
	}
	if id == "" {
		return "server"
	}
	return id
}
