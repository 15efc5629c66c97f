package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
)

// sessionBucket holds the sessions of editors: directory, title, mode and the time of the last prompt, by id.
const sessionBucket = "acp_session"

// The modes. A mode can only restrict what the configuration allows.
const (
	modeAsk       = "ask"       // at most supervised
	modeCode      = "code"      // as configured
	modeArchitect = "architect" // files and web pages are read, nothing else
)

// savedSession is what is stored of a session besides its conversation.
type savedSession struct {
	Dir     string    `json:"dir"`
	Title   string    `json:"title,omitempty"`
	Mode    string    `json:"mode"`
	Updated time.Time `json:"updated"`
}

// session is a conversation that an editor has open.
type session struct {
	server  *server
	project *Project
	id      string
	with    params
	added   []tools.Tool // that replace ours
	servers []string     // ids of the MCP servers that the editor gave

	handing sync.Mutex // serialises a prompt's message and its end; locked before mu
	mu      sync.Mutex
	saved   savedSession
	prompt  *prompt // under way; nil = none
	used    time.Time
	over    bool
	notice  []string // to be said at the next prompt
	voice
	calls map[string]*shownCall // calls of the prompt, by id
}

func newSession(s *server, p *Project, id string, with params, was savedSession) (*session, error) {
	sess := &session{
		server: s, project: p, id: id, with: with, saved: was, used: s.opts.Now(), calls: map[string]*shownCall{},
	}
	var err error
	if sess.added, err = sess.editorTools(); err != nil {
		return nil, fmt.Errorf("tools of the editor: %w", err)
	}
	return sess, nil
}

func (s *session) placeOf() bot.Place {
	return bot.Place{Channel: Name, Bot: BotID, Surface: bot.SurfaceBot, Chat: s.id}
}

// sessionKey returns the key of the conversation.
func (s *session) sessionKey() bot.SessionKey { return s.placeOf().SessionKey("") }

// newMessage returns an empty message of the person.
func (s *session) newMessage(id string) bot.Message {
	o := &s.server.opts
	return bot.Message{
		ID:        id,
		Kind:      bot.Text,
		Place:     s.placeOf(),
		Caller:    Name + ":" + o.Caller,
		Person:    o.Caller,
		Name:      o.Caller,
		Language:  o.Language,
		Addressed: true,
		Message:   id,
		At:        o.Now(),
	}
}

// handMessage stores a message.
func (s *session) handMessage(ctx context.Context, m bot.Message) error {
	raw, err := bot.EncodeMessage(&m)
	if err != nil {
		return err
	}
	return s.project.currentBackend().Accept(ctx, []turn.Raw{{ID: m.ID, Source: bot.FromACP, Body: raw}})
}

// sendUpdate sends an update to the editor. What cannot be sent is in the journal.
func (s *session) sendUpdate(u sdk.SessionUpdate) {
	_ = s.server.conn.SessionUpdate(context.WithoutCancel(s.server.life), sdk.SessionNotification{
		SessionId: sdk.SessionId(s.id),
		Update:    u,
	})
}

// saveSession stores what is known of the session.
func (s *session) saveSession(ctx context.Context) error {
	s.mu.Lock()
	s.saved.Updated = s.server.opts.Now().UTC()
	raw, err := json.Marshal(s.saved)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = s.project.currentBackend().Store.Apply(ctx, &bot.Change{
		Facts: []bot.Fact{{Bucket: sessionBucket, Key: s.id, Value: string(raw)}},
	})
	return err
}

// listModes lists the modes and the one that holds.
func (s *session) listModes() *sdk.SessionModeState {
	state := &sdk.SessionModeState{CurrentModeId: sdk.SessionModeId(s.currentMode())}
	for _, id := range []string{modeAsk, modeCode, modeArchitect} {
		name, about := texts.Words{}.EditorMode(s.server.opts.Language, id)
		state.AvailableModes = append(state.AvailableModes, sdk.SessionMode{
			Id:          sdk.SessionModeId(id),
			Name:        name,
			Description: &about,
		})
	}
	return state
}

func (s *session) currentMode() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved.Mode
}

// autonomyLevel returns the autonomy level that the mode stands for; "" = as configured.
func (s *session) autonomyLevel() policy.Level {
	switch s.currentMode() {
	case modeCode:
		return ""
	case modeAsk:
		return policy.Supervised
	default:
		return policy.ReadOnly
	}
}

func (s *session) setMode(ctx context.Context, mode string) error {
	switch mode {
	case modeAsk, modeCode, modeArchitect:
	default:
		return wrongRequest("there is no mode %q; there are %s, %s and %s", mode, modeAsk, modeCode, modeArchitect)
	}
	s.mu.Lock()
	s.saved.Mode = mode
	s.mu.Unlock()
	if err := s.saveSession(ctx); err != nil {
		return err
	}
	s.sendUpdate(sdk.SessionUpdate{
		CurrentModeUpdate: &sdk.SessionCurrentModeUpdate{CurrentModeId: sdk.SessionModeId(mode)},
	})
	return nil
}

// idleSince returns since when nothing was asked; idle is false while a prompt is under way, and at the end.
func (s *session) idleSince() (since time.Time, idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.prompt == nil && !s.over
}

// retireIdle ends a session for prompts if it was idle since a time, and reports whether it has.
func (s *session) retireIdle(since time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prompt != nil || s.over || !s.used.Equal(since) {
		return false
	}
	s.over = true
	return true
}

// closeSession ends the prompt that is under way and the servers of the session.
func (s *session) closeSession() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.cancelTurn()
	ctx, done := context.WithTimeout(context.WithoutCancel(s.server.life), leaveTime)
	defer done()
	for _, id := range s.servers {
		if err := s.project.currentBackend().Servers.Detach(ctx, id); err != nil {
			s.server.opts.Log.Warn().Err(err).Str("server", id).
				Msg("an MCP server of an editor's session was not ended")
			continue // nobody else gets to see it
		}
		s.project.disownServer(id)
	}
}
