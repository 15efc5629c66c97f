package acp

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/google/uuid"
)

// Initialize implements sdk.Agent.
func (s *server) Initialize(_ context.Context, req sdk.InitializeRequest) (resp sdk.InitializeResponse, err error) {
	defer s.recoverPanic(&err)
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
				List:   &sdk.SessionListCapabilities{},
				Close:  &sdk.SessionCloseCapabilities{},
				Resume: &sdk.SessionResumeCapabilities{},
			},
		},
	}, nil
}

// Authenticate implements sdk.Agent: who can start this program may use it.
func (*server) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, wrongRequest(
		"there is nothing to sign in to: keys of models are in the configuration",
	)
}

// NewSession implements sdk.Agent.
func (s *server) NewSession(ctx context.Context, req sdk.NewSessionRequest) (resp sdk.NewSessionResponse, err error) {
	defer s.recoverPanic(&err)
	p := params{dir: req.Cwd, servers: req.McpServers}
	sess, err := s.openSession(ctx, uuid.Must(uuid.NewV7()).String(), p, true)
	if err != nil {
		return resp, err
	}
	s.announceLater(sess)
	return sdk.NewSessionResponse{SessionId: sdk.SessionId(sess.id), Modes: sess.listModes()}, nil
}

// LoadSession implements sdk.AgentLoader: what was said is shown again, and the conversation goes on.
func (s *server) LoadSession(
	ctx context.Context, req sdk.LoadSessionRequest,
) (resp sdk.LoadSessionResponse, err error) {
	defer s.recoverPanic(&err)
	sess, err := s.openSession(ctx, string(req.SessionId), params{dir: req.Cwd, servers: req.McpServers}, false)
	if err != nil {
		return resp, err
	}
	if err := sess.replayJournal(ctx); err != nil {
		return resp, err
	}
	sess.sendCommands()
	sess.sendUsage(ctx)
	return sdk.LoadSessionResponse{Modes: sess.listModes()}, nil
}

// ResumeSession implements sdk.Agent: like LoadSession, without showing anything.
func (s *server) ResumeSession(
	ctx context.Context, req sdk.ResumeSessionRequest,
) (resp sdk.ResumeSessionResponse, err error) {
	defer s.recoverPanic(&err)
	sess, err := s.openSession(ctx, string(req.SessionId), params{dir: req.Cwd, servers: req.McpServers}, false)
	if err != nil {
		return resp, err
	}
	sess.sendCommands()
	sess.sendUsage(ctx)
	return sdk.ResumeSessionResponse{Modes: sess.listModes()}, nil
}

// ListSessions implements sdk.Agent: those of a directory, or of all directories that are open, newest first.
func (s *server) ListSessions(
	ctx context.Context, req sdk.ListSessionsRequest,
) (resp sdk.ListSessionsResponse, err error) {
	defer s.recoverPanic(&err)
	resp.Sessions = []sdk.SessionInfo{}
	var projects []*Project
	if req.Cwd != nil {
		p, err := s.projectOf(ctx, *req.Cwd)
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
		list, err := p.listSaved(ctx)
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
func (s *server) CloseSession(
	ctx context.Context, req sdk.CloseSessionRequest,
) (resp sdk.CloseSessionResponse, err error) {
	defer s.recoverPanic(&err)
	leave, err := s.enterSessions(ctx)
	if err != nil {
		return resp, err
	}
	defer leave()
	sess, err := s.findOpen(string(req.SessionId))
	if err != nil {
		return resp, err
	}
	s.forgetSession(sess)
	sess.closeSession()
	return resp, nil
}

// SetSessionMode implements sdk.Agent.
func (s *server) SetSessionMode(
	ctx context.Context, req sdk.SetSessionModeRequest,
) (resp sdk.SetSessionModeResponse, err error) {
	defer s.recoverPanic(&err)
	sess, err := s.sessionOf(ctx, string(req.SessionId))
	if err != nil {
		return resp, err
	}
	return resp, sess.setMode(ctx, string(req.ModeId))
}

// SetSessionConfigOption implements sdk.Agent: there are none besides the modes.
func (*server) SetSessionConfigOption(
	context.Context, sdk.SetSessionConfigOptionRequest,
) (sdk.SetSessionConfigOptionResponse, error) {
	return sdk.SetSessionConfigOptionResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionSetConfigOption)
}

// Cancel implements sdk.Agent.
func (s *server) Cancel(_ context.Context, n sdk.CancelNotification) (err error) {
	defer s.recoverPanic(&err)
	sess, err := s.findOpen(string(n.SessionId))
	if err != nil {
		return err
	}
	sess.cancelTurn()
	return nil
}

// projectOf returns the project of a directory, and opens it if necessary.
func (s *server) projectOf(ctx context.Context, dir string) (*Project, error) {
	s.mu.Lock()
	greeted := s.greeted
	s.mu.Unlock()
	if !greeted {
		return nil, sdk.NewInvalidRequest(map[string]any{"error": "initialize comes first"})
	}
	if !filepath.IsAbs(dir) {
		return nil, wrongRequest("cwd %q is not an absolute path", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, wrongRequest("cwd %s cannot be used: %v", dir, err)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return nil, wrongRequest("cwd %s is not a directory", dir)
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
