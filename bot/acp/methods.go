package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/google/uuid"
)

// Initialize implements sdk.Agent.
func (s *Server) Initialize(_ context.Context, req sdk.InitializeRequest) (resp sdk.InitializeResponse, err error) {
	defer s.recovered(&err)
	s.mu.Lock()
	s.client, s.greeted = req.ClientCapabilities, true
	s.mu.Unlock()
	title := "zephbot"
	return sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber, // an editor that does not know it says so
		AgentInfo:       &sdk.Implementation{Name: title, Title: &title, Version: s.opts.Version},
		AuthMethods:     []sdk.AuthMethod{},
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession:        true,
			PromptCapabilities: sdk.PromptCapabilities{Image: true, Audio: true, EmbeddedContext: true},
			McpCapabilities:    sdk.McpCapabilities{Http: true},
			SessionCapabilities: sdk.SessionCapabilities{
				List: &sdk.SessionListCapabilities{}, Close: &sdk.SessionCloseCapabilities{}, Resume: &sdk.SessionResumeCapabilities{},
			},
		},
	}, nil
}

// Authenticate implements sdk.Agent: who can start this program may use it.
func (*Server) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, wrong("there is nothing to sign in to: keys of models are in the configuration")
}

// NewSession implements sdk.Agent.
func (s *Server) NewSession(ctx context.Context, req sdk.NewSessionRequest) (resp sdk.NewSessionResponse, err error) {
	defer s.recovered(&err)
	p := params{dir: req.Cwd, servers: req.McpServers}
	sess, err := s.open(ctx, uuid.Must(uuid.NewV7()).String(), p, true)
	if err != nil {
		return resp, err
	}
	return sdk.NewSessionResponse{SessionId: sdk.SessionId(sess.id), Modes: sess.modes()}, nil
}

// LoadSession implements sdk.AgentLoader: what was said is shown again, and the conversation goes on.
func (s *Server) LoadSession(ctx context.Context, req sdk.LoadSessionRequest) (resp sdk.LoadSessionResponse, err error) {
	defer s.recovered(&err)
	sess, err := s.open(ctx, string(req.SessionId), params{dir: req.Cwd, servers: req.McpServers}, false)
	if err != nil {
		return resp, err
	}
	if err := sess.replay(ctx); err != nil {
		return resp, err
	}
	return sdk.LoadSessionResponse{Modes: sess.modes()}, nil
}

// ResumeSession implements sdk.Agent: like LoadSession, without showing anything.
func (s *Server) ResumeSession(ctx context.Context, req sdk.ResumeSessionRequest) (resp sdk.ResumeSessionResponse, err error) {
	defer s.recovered(&err)
	sess, err := s.open(ctx, string(req.SessionId), params{dir: req.Cwd, servers: req.McpServers}, false)
	if err != nil {
		return resp, err
	}
	return sdk.ResumeSessionResponse{Modes: sess.modes()}, nil
}

// ListSessions implements sdk.Agent: those of a directory, or of all directories that are open, newest first.
func (s *Server) ListSessions(ctx context.Context, req sdk.ListSessionsRequest) (resp sdk.ListSessionsResponse, err error) {
	defer s.recovered(&err)
	resp.Sessions = []sdk.SessionInfo{}
	var projects []*Project
	if req.Cwd != nil {
		p, err := s.project(ctx, *req.Cwd)
		if err != nil {
			return resp, err
		}
		projects = []*Project{p}
	} else {
		s.mu.Lock()
		for _, p := range s.projects {
			projects = append(projects, p)
		}
		s.mu.Unlock()
	}
	for _, p := range projects {
		list, err := p.list(ctx)
		if err != nil {
			return resp, err
		}
		resp.Sessions = append(resp.Sessions, list...)
	}
	slices.SortFunc(resp.Sessions, func(a, b sdk.SessionInfo) int { return -cmpText(a.UpdatedAt, b.UpdatedAt) })
	return resp, nil
}

func cmpText(a, b *string) int {
	switch {
	case a == nil || b == nil || *a == *b:
		return 0
	case *a < *b:
		return -1
	default:
		return 1
	}
}

// CloseSession implements sdk.Agent. The conversation stays stored.
func (s *Server) CloseSession(ctx context.Context, req sdk.CloseSessionRequest) (resp sdk.CloseSessionResponse, err error) {
	defer s.recovered(&err)
	leave, err := s.enter(ctx)
	if err != nil {
		return resp, err
	}
	defer leave()
	sess, err := s.find(string(req.SessionId))
	if err != nil {
		return resp, err
	}
	s.forget(sess)
	sess.close()
	return resp, nil
}

// SetSessionMode implements sdk.Agent.
func (s *Server) SetSessionMode(ctx context.Context, req sdk.SetSessionModeRequest) (resp sdk.SetSessionModeResponse, err error) {
	defer s.recovered(&err)
	sess, err := s.session(ctx, string(req.SessionId))
	if err != nil {
		return resp, err
	}
	return resp, sess.setMode(ctx, string(req.ModeId))
}

// SetSessionConfigOption implements sdk.Agent: there are none besides the modes.
func (*Server) SetSessionConfigOption(context.Context, sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	return sdk.SetSessionConfigOptionResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionSetConfigOption)
}

// Cancel implements sdk.Agent.
func (s *Server) Cancel(_ context.Context, n sdk.CancelNotification) (err error) {
	defer s.recovered(&err)
	sess, err := s.find(string(n.SessionId))
	if err != nil {
		return err
	}
	sess.cancel()
	return nil
}

// project returns the project of a directory, and opens it if necessary.
func (s *Server) project(ctx context.Context, dir string) (*Project, error) {
	s.mu.Lock()
	greeted := s.greeted
	s.mu.Unlock()
	if !greeted {
		return nil, sdk.NewInvalidRequest(map[string]any{"error": "initialize comes first"})
	}
	if !filepath.IsAbs(dir) {
		return nil, wrong("cwd %q is not an absolute path", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, wrong("cwd %s cannot be used: %v", dir, err)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return nil, wrong("cwd %s is not a directory", dir)
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	p := s.projects[real]
	s.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p = &Project{server: s, dir: real, sessions: map[string]*session{}, owners: map[string]string{}}
	back, err := s.opts.Open(ctx, real, p)
	if err != nil {
		return nil, sdk.NewInternalError(map[string]any{"error": err.Error()})
	}
	p.mu.Lock()
	p.back = back
	p.mu.Unlock()
	s.mu.Lock()
	s.projects[real] = p
	s.mu.Unlock()
	return p, nil
}

// enter waits until nobody else opens or closes sessions, or ctx ends.
func (s *Server) enter(ctx context.Context) (leave func(), err error) {
	select {
	case s.turnover <- struct{}{}:
		return func() { <-s.turnover }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// open opens a session that is new, or one that is stored.
func (s *Server) open(ctx context.Context, id string, with params, fresh bool) (*session, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.openNext(ctx, id, with, fresh)
}

// openNext is open for a caller that holds turnover: of two requests with one session, the second sees what the first
// has opened, and ends its servers.
func (s *Server) openNext(ctx context.Context, id string, with params, fresh bool) (*session, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(s.life, end)()
	p, err := s.project(ctx, with.dir)
	if err != nil {
		return nil, err
	}
	was := saved{Dir: with.dir, Mode: modeAsk}
	if !fresh {
		var ok bool
		if was, ok, err = p.saved(ctx, id); err != nil {
			return nil, err
		}
		if !ok {
			return nil, missing(id, with.dir)
		}
		if old, err := s.find(id); err == nil { // opened once more: with the servers that are given now
			s.forget(old)
			old.close()
		}
	}
	if err := s.makeRoom(); err != nil {
		return nil, err
	}
	sess, err := newSession(s, p, id, with, was)
	if err != nil {
		return nil, err
	}
	sess.connect(ctx, with.servers)
	if fresh {
		if err := sess.save(ctx); err != nil {
			sess.close()
			return nil, err
		}
	}
	s.mu.Lock()
	s.sessions[id] = sess
	delete(s.resting, id)
	s.mu.Unlock()
	p.add(sess)
	return sess, nil
}

// missing is the error for a session that is not stored.
func missing(id, dir string) error {
	return &sdk.RequestError{
		Code: -32002, Message: "Resource not found",
		Data: map[string]any{"error": fmt.Sprintf("there is no session %q of the directory %s here", id, dir)},
	}
}

// find returns a session that is open.
func (s *Server) find(id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess := s.sessions[id]; sess != nil {
		return sess, nil
	}
	return nil, &sdk.RequestError{
		Code: -32002, Message: "Resource not found",
		Data: map[string]any{"error": fmt.Sprintf("session %q is not open: begin one with session/new or session/load", id)},
	}
}

// session is find, but opens a session again that was closed because it was idle.
func (s *Server) session(ctx context.Context, id string) (*session, error) {
	if sess, err := s.find(id); err == nil {
		return sess, nil // without waiting for servers of others that connect
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	s.mu.Lock()
	with, rests := s.resting[id]
	s.mu.Unlock()
	if rests { // another request that opens it would have taken it out
		return s.openNext(ctx, id, with, false)
	}
	return s.find(id)
}

// claim claims a session for a prompt, also if it is closed as idle at this moment.
func (s *Server) claim(ctx context.Context, id string) (*session, *prompt, error) {
	for {
		sess, err := s.session(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		p, err := sess.begin()
		if !errors.Is(err, errOver) {
			return sess, p, err
		}
		leave, err := s.enter(ctx) // whoever closes it has the turnover
		if err != nil {
			return nil, nil, err
		}
		s.forget(sess)
		leave()
	}
}

// makeRoom closes the session that was idle for the longest time if there are as many as there may be. The caller holds
// turnover.
func (s *Server) makeRoom() error {
	for {
		s.mu.Lock()
		var oldest *session
		var unused time.Time
		n := len(s.sessions)
		for _, sess := range s.sessions {
			if since, idle := sess.idleSince(); idle && (oldest == nil || since.Before(unused)) {
				oldest, unused = sess, since
			}
		}
		s.mu.Unlock()
		switch {
		case n < MaxSessions:
			return nil
		case oldest == nil:
			return sdk.NewInvalidRequest(map[string]any{"error": fmt.Sprintf("%d sessions are at work, and no more than %d may be open: end one first", n, MaxSessions)})
		}
		s.rest(oldest, unused) // another one is looked for if it was used meanwhile
	}
}

// closeIdle closes sessions that were idle since before a time.
func (s *Server) closeIdle(before time.Time) {
	leave, err := s.enter(s.life)
	if err != nil {
		return // all are closed now
	}
	defer leave()
	old := map[*session]time.Time{}
	s.mu.Lock()
	for _, sess := range s.sessions {
		if since, idle := sess.idleSince(); idle && since.Before(before) {
			old[sess] = since
		}
	}
	s.mu.Unlock()
	for sess, since := range old {
		s.rest(sess, since)
	}
}

// rest closes a session in such a way that its next prompt opens it again, unless it was used since it was found idle.
// The caller holds turnover.
func (s *Server) rest(sess *session, since time.Time) {
	if !sess.retire(since) {
		return
	}
	s.forget(sess)
	s.mu.Lock()
	s.resting[sess.id] = sess.with
	s.mu.Unlock()
	sess.close()
}

// forget takes a session out of those that are open.
func (s *Server) forget(sess *session) {
	s.mu.Lock()
	if s.sessions[sess.id] == sess {
		delete(s.sessions, sess.id)
	}
	s.mu.Unlock()
	sess.project.remove(sess)
}

// closeAll closes all sessions.
func (s *Server) closeAll() {
	s.mu.Lock()
	list := s.sessions
	s.sessions = map[string]*session{}
	s.mu.Unlock()
	for _, sess := range list {
		sess.project.remove(sess)
		sess.close()
	}
}
