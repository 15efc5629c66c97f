package acp

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// enterSessions waits until nobody else opens or closes sessions, or ctx ends.
func (s *server) enterSessions(ctx context.Context) (leave func(), err error) {
	select {
	case s.turnover <- struct{}{}:
		return func() { <-s.turnover }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// openSession opens a session that is new, or one that is stored.
func (s *server) openSession(ctx context.Context, id string, with params, fresh bool) (*session, error) {
	leave, err := s.enterSessions(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.openNext(ctx, id, with, fresh)
}

// openNext is open for a caller that holds turnover: of two requests with one session, the second sees what the first
// has opened, and ends its servers.
func (s *server) openNext(ctx context.Context, id string, with params, fresh bool) (*session, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(s.life, end)()
	p, err := s.projectOf(ctx, with.dir)
	if err != nil {
		return nil, err
	}
	was := savedSession{Dir: with.dir, Mode: modeAsk}
	if !fresh {
		var ok bool
		if was, ok, err = p.readSaved(ctx, id); err != nil {
			return nil, err
		}
		if !ok {
			return nil, missingSession(id, with.dir)
		}
		if old, err := s.findOpen(id); err == nil { // opened once more: with the servers that are given now
			s.forgetSession(old)
			old.closeSession()
		}
	}
	if err := s.makeRoom(); err != nil {
		return nil, err
	}
	sess, err := newSession(s, p, id, with, was)
	if err != nil {
		return nil, err
	}
	sess.connectServers(ctx, with.servers)
	if fresh {
		if err := sess.saveSession(ctx); err != nil {
			sess.closeSession()
			return nil, err
		}
	}
	s.mu.Lock()
	s.sessions[id] = sess
	delete(s.resting, id)
	s.mu.Unlock()
	p.addSession(sess)
	return sess, nil
}

// missingSession is the error for a session that is not stored.
func missingSession(id, dir string) error {
	return &sdk.RequestError{
		Code: -32002, Message: "Resource not found",
		Data: map[string]any{"error": fmt.Sprintf("there is no session %q of the directory %s here", id, dir)},
	}
}

// findOpen returns a session that is open.
func (s *server) findOpen(id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess := s.sessions[id]; sess != nil {
		return sess, nil
	}
	return nil, &sdk.RequestError{
		Code: -32002, Message: "Resource not found",
		Data: map[string]any{
			"error": fmt.Sprintf("session %q is not open: begin one with session/new or session/load", id),
		},
	}
}

// sessionOf is find, but opens a session again that was closed because it was idle.
func (s *server) sessionOf(ctx context.Context, id string) (*session, error) {
	if sess, err := s.findOpen(id); err == nil {
		return sess, nil // without waiting for servers of others that connect
	}
	leave, err := s.enterSessions(ctx)
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
	return s.findOpen(id)
}

// claimSession claims a session for a prompt, also if it is closed as idle at this moment.
func (s *server) claimSession(ctx context.Context, id string) (*session, *prompt, error) {
	for {
		sess, err := s.sessionOf(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		p, err := sess.beginPrompt()
		if !errors.Is(err, errOver) {
			return sess, p, err
		}
		leave, err := s.enterSessions(ctx) // the goroutine that closes it has the turnover
		if err != nil {
			return nil, nil, err
		}
		s.forgetSession(sess)
		leave()
	}
}

// makeRoom closes the session that was idle for the longest time if there are as many as there may be. The caller holds
// turnover.
func (s *server) makeRoom() error {
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
		case n < maxSessions:
			return nil
		case oldest == nil:
			return sdk.NewInvalidRequest(map[string]any{
				"error": fmt.Sprintf(
					"%d sessions are at work, and no more than %d may be open: end one first", n, maxSessions,
				),
			})
		}
		s.restSession(oldest, unused) // another one is looked for if it was used meanwhile
	}
}

// closeIdle closes sessions that were idle since before a time.
func (s *server) closeIdle(before time.Time) {
	leave, err := s.enterSessions(s.life)
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
		s.restSession(sess, since)
	}
}

// restSession closes a session in such a way that its next prompt opens it again, unless it was used since it was found
// idle. The caller holds turnover.
func (s *server) restSession(sess *session, since time.Time) {
	if !sess.retireIdle(since) {
		return
	}
	s.forgetSession(sess)
	s.mu.Lock()
	s.resting[sess.id] = sess.with
	s.mu.Unlock()
	sess.closeSession()
}

// forgetSession takes a session out of those that are open.
func (s *server) forgetSession(sess *session) {
	s.mu.Lock()
	if s.sessions[sess.id] == sess {
		delete(s.sessions, sess.id)
	}
	s.mu.Unlock()
	sess.project.removeSession(sess)
}

// closeAll closes all sessions.
func (s *server) closeAll() {
	s.mu.Lock()
	list := s.sessions
	s.sessions = map[string]*session{}
	s.mu.Unlock()
	for _, sess := range list {
		sess.project.removeSession(sess)
		sess.closeSession()
	}
}
