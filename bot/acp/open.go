package acp

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// enter waits until nobody else opens or closes sessions, or ctx ends.
func (s *server) enter(ctx context.Context) (leave func(), err error) {
	select {
	case s.turnover <- struct{}{}:
		return func() { <-s.turnover }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// open opens a session that is new, or one that is stored.
func (s *server) open(ctx context.Context, id string, with params, fresh bool) (*session, error) {
	leave, err := s.enter(ctx)
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
func (s *server) find(id string) (*session, error) {
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
func (s *server) session(ctx context.Context, id string) (*session, error) {
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
func (s *server) claim(ctx context.Context, id string) (*session, *prompt, error) {
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
			return sdk.NewInvalidRequest(map[string]any{"error": fmt.Sprintf("%d sessions are at work, and no more than %d may be open: end one first", n, maxSessions)})
		}
		s.rest(oldest, unused) // another one is looked for if it was used meanwhile
	}
}

// closeIdle closes sessions that were idle since before a time.
func (s *server) closeIdle(before time.Time) {
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
func (s *server) rest(sess *session, since time.Time) {
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
func (s *server) forget(sess *session) {
	s.mu.Lock()
	if s.sessions[sess.id] == sess {
		delete(s.sessions, sess.id)
	}
	s.mu.Unlock()
	sess.project.remove(sess)
}

// closeAll closes all sessions.
func (s *server) closeAll() {
	s.mu.Lock()
	list := s.sessions
	s.sessions = map[string]*session{}
	s.mu.Unlock()
	for _, sess := range list {
		sess.project.remove(sess)
		sess.close()
	}
}
