package acp

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
)

// Project is the channel of one directory: the conversations that an editor has open there. Its methods are safe for
// concurrent use. For a conversation that is not open it shows nothing, and permits nothing.
type Project struct {
	server *server
	dir    string

	mu       sync.Mutex
	back     Backend
	sessions map[string]*session
	owners   map[string]string // ids of sessions by id of the MCP server that was given for them
}

func (p *Project) currentBackend() Backend {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.back
}

func (p *Project) addSession(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions[s.id] = s
}

func (p *Project) removeSession(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions[s.id] == s {
		delete(p.sessions, s.id)
	}
}

// openSession returns an open session by the id of its chat; nil = it is not open.
func (p *Project) openSession(chat string) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessions[chat]
}

// sessionOf returns the session of a call.
func (p *Project) sessionOf(o tools.Origin) *session {
	return p.openSession(bot.SessionKey(o.Session).Chat())
}

// readSaved reads what is stored of a session.
func (p *Project) readSaved(ctx context.Context, id string) (savedSession, bool, error) {
	text, err := p.currentBackend().Store.Fact(ctx, sessionBucket, id, p.server.opts.Now())
	if err != nil || text == "" {
		return savedSession{}, false, err
	}
	var was savedSession
	if err := json.Unmarshal([]byte(text), &was); err != nil {
		return savedSession{}, false, err
	}
	return was, true, nil
}

// listSaved lists the sessions that are stored.
func (p *Project) listSaved(ctx context.Context) ([]sdk.SessionInfo, error) {
	facts, err := p.currentBackend().Store.FactsOf(ctx, sessionBucket, "", p.server.opts.Now())
	if err != nil {
		return nil, err
	}
	var list []sdk.SessionInfo
	for i := range facts {
		var was savedSession
		if json.Unmarshal([]byte(facts[i].Value), &was) != nil {
			continue // of another version
		}
		at := was.Updated.Format(time.RFC3339Nano)
		info := sdk.SessionInfo{SessionId: sdk.SessionId(facts[i].Key), Cwd: was.Dir, UpdatedAt: &at}
		if was.Title != "" {
			info.Title = &was.Title
		}
		list = append(list, info)
	}
	return list, nil
}

// Admit implements turn.Guard: a person who starts the editor may do what their account may do.
func (*Project) Admit(context.Context, *bot.Message) (turn.Verdict, error) {
	return turn.Verdict{OK: true, Admin: true}, nil
}

// Rules implements turn.Guard: the tools that the editor replaces, without the servers of other sessions.
func (p *Project) Rules(place bot.Place) turn.Rules {
	s := p.openSession(place.Chat)
	if s == nil {
		return turn.Rules{Allowed: func(string) bool { return false }}
	}
	reading := s.autonomyLevel() == policy.ReadOnly
	back := p.currentBackend()
	rules := turn.Rules{Allowed: func(tool string) bool {
		if server, _, ok := strings.Cut(tool, ":"); ok && p.isForeign(server, s) {
			return false
		}
		if !reading {
			return true
		}
		t, ok := back.Tools.Lookup(tool)
		return ok && t.Definition.Stated().Act.OnlyReads()
	}}
	for _, t := range s.added {
		if !reading || t.Definition.Stated().Act.OnlyReads() {
			rules.Added = append(rules.Added, t)
		}
	}
	return rules
}

// ownServer notes for which session a server is connected, before it is; false = it is noted for a session already.
func (p *Project) ownServer(server string, s *session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.owners[server] != "" {
		return false
	}
	p.owners[server] = s.id
	return true
}

// disownServer forgets for which session a server was connected, once it is gone.
func (p *Project) disownServer(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.owners, server)
}

// isForeign reports whether a server was given for another session, also while it is connected or ended.
func (p *Project) isForeign(server string, own *session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	owner := p.owners[server]
	return owner != "" && owner != own.id
}

// Level returns the autonomy level of a call's session (rulebook.Deps.Level).
func (p *Project) Level(call *tools.Call) policy.Level {
	s := p.sessionOf(call.Origin)
	if s == nil {
		return policy.ReadOnly
	}
	return s.autonomyLevel()
}

// Compose implements bot.Composer: an editor shows Markdown as it is.
func (*Project) Compose(markdown string, _ bot.Place, _ string) []bot.Content {
	if strings.TrimSpace(markdown) == "" {
		return nil
	}
	return []bot.Content{{Text: markdown}}
}

// Divide implements bot.Composer: an editor shows any length.
func (*Project) Divide(content bot.Content, _ bot.Place, _ string) []bot.Content {
	return []bot.Content{content}
}

// Watch shows the progress of a turn (turn.Progress).
func (p *Project) Watch(w turn.Watched) turn.Progress {
	return &progress{project: p, chat: w.Place.Chat, done: make(chan struct{})}
}

var (
	_ bot.Sender   = (*Project)(nil)
	_ bot.Composer = (*Project)(nil)
	_ bot.Files    = (*Project)(nil)
	_ turn.Guard   = (*Project)(nil)
)
