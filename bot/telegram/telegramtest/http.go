package telegramtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxBody is Telegram's upload limit of 50 MB with room for the other fields.
const maxBody = 51 << 20

// response is the envelope of every answer.
type response struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result,omitempty"`
	ErrorCode   int             `json:"error_code,omitempty"`
	Description string          `json:"description,omitempty"`
	Parameters  *parameters     `json:"parameters,omitempty"`
}

type parameters struct {
	RetryAfter      int   `json:"retry_after,omitempty"`
	MigrateToChatID int64 `json:"migrate_to_chat_id,omitempty"`
}

// method is one Bot API method. run is called with the lock held; wait, for getUpdates, without it.
type method struct {
	name     string
	run      func(*Server, *request) (any, *apiError)
	wait     func(context.Context, *Server, *request) (any, *apiError)
	budgeted bool // counts against Budgets
}

// Handler serves /bot<token>/<method> and /file/bot<token>/<path>.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(s.serve)
}

func (s *Server) serve(w http.ResponseWriter, req *http.Request) {
	ctx, leave, ok := s.enter(req.Context())
	if !ok {
		cut(w)
		return
	}
	defer leave()
	if path, found := strings.CutPrefix(req.URL.Path, "/file/bot"); found {
		s.serveFile(ctx, w, path)
		return
	}
	path, found := strings.CutPrefix(req.URL.Path, "/bot")
	token, name, named := strings.Cut(path, "/")
	switch {
	case !found || !named:
		refuse(w, &apiError{code: http.StatusNotFound, text: "Not Found"})
		return
	case token != s.opt.Token:
		refuse(w, &apiError{code: http.StatusUnauthorized, text: "Unauthorized"})
		return
	}
	r, bad := parseRequest(w, req)
	s.handle(ctx, w, name, r, bad)
}

// handle takes one call through hook, faults, budgets, execution and answer. bad is the parse error of the body, told
// after the method was found, as Telegram does.
func (s *Server) handle(ctx context.Context, w http.ResponseWriter, name string, r *request, bad *apiError) {
	m, known := s.methods[strings.ToLower(name)]
	if !known {
		m = method{name: name}
	}
	call := s.begin(m.name, r)
	fault := s.prepare(ctx, call)
	if fault.ended {
		s.finish(call)
		fault.answer(w)
		return
	}
	var result json.RawMessage
	fail := bad
	switch {
	case !known:
		fail = &apiError{code: http.StatusNotFound, text: "Not Found"}
	case bad == nil:
		result, fail = s.execute(ctx, m, r, call)
	}
	if call.Executed = fail == nil; call.Executed && !s.opt.Unchecked {
		s.fits(m.name, r)
	}
	call.Status = http.StatusOK
	if fail != nil {
		call.Status, call.Error, call.RetryAfter = fail.code, fail.text, fail.retryAfter
	}
	s.around(ctx, *call, "after")
	if fault.stall != nil {
		hang(ctx, fault.stall)
	}
	switch {
	case ctx.Err() != nil, fault.cut:
		call.Status = 0
		s.finish(call)
		cut(w)
	case fail != nil:
		s.finish(call)
		refuse(w, fail)
	default:
		s.finish(call)
		write(w, http.StatusOK, response{OK: true, Result: result})
	}
}

// execute runs the method. Budgets are charged first: a call over the budget has no effect.
func (s *Server) execute(ctx context.Context, m method, r *request, call *Call) (json.RawMessage, *apiError) {
	if m.wait != nil {
		out, fail := m.wait(ctx, s, r)
		call.Returned = r.returned
		if fail != nil {
			return nil, fail
		}
		return encode(out)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loggedOut {
		return nil, badRequest("Logged out")
	}
	if m.budgeted {
		if fail := s.budgets.charge(s.opt.Budgets, call.Chat, call.At); fail != nil {
			return nil, fail
		}
	}
	out, fail := m.run(s, r)
	if r.made != 0 {
		call.Message = r.made
	}
	if fail != nil {
		return nil, fail
	}
	s.touch()
	return encode(out)
}

func (s *Server) begin(name string, r *request) *Call {
	call := &Call{Method: name, At: s.opt.Now(), Params: r.params}
	if id, err := r.integer("chat_id"); err == nil {
		call.Chat = id
	}
	if id, err := r.integer("message_id"); err == nil {
		call.Message = int(id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callCount++
	call.N = s.callCount
	s.inFlight++
	s.touch()
	return call
}

func (s *Server) finish(call *Call) {
	s.mu.Lock()
	s.inFlight--
	s.logCall(*call)
	s.mu.Unlock()
	if s.opt.Log != nil {
		s.opt.Log(*call)
	}
}

func (s *Server) around(ctx context.Context, call Call, phase string) {
	if s.opt.OnCall == nil {
		return
	}
	call.Phase = phase
	s.opt.OnCall(ctx, call)
}

func refuse(w http.ResponseWriter, e *apiError) {
	out := response{ErrorCode: e.code, Description: e.text}
	if e.retryAfter != 0 || e.migrateTo != 0 {
		out.Parameters = &parameters{RetryAfter: e.retryAfter, MigrateToChatID: e.migrateTo}
	}
	if e.retryAfter != 0 {
		w.Header().Set("Retry-After", fmt.Sprint(e.retryAfter))
	}
	write(w, e.code, out)
}

func write(w http.ResponseWriter, status int, out response) {
	raw, fail := encode(out)
	if fail != nil {
		status, raw = fail.code, json.RawMessage(`{"ok":false,"error_code":500,"description":"Internal Server Error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that went away is no error of the server's.
	_, _ = w.Write(raw)
}

// cut closes the connection without an answer. Where the connection cannot be taken over (HTTP/2, a recorder), an empty
// 502 is the nearest thing.
func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	_ = conn.Close()
}

// FileMethod is the name under which downloads are in the call log and hit by faults; they are no method of the API.
const FileMethod = "file"

// serveFile sends the bytes behind a file_path of getFile.
func (s *Server) serveFile(ctx context.Context, w http.ResponseWriter, path string) {
	token, name, _ := strings.Cut(path, "/")
	if token != s.opt.Token {
		refuse(w, &apiError{code: http.StatusUnauthorized, text: "Unauthorized"})
		return
	}
	call := s.begin(FileMethod, &request{params: map[string]string{"file_path": name}})
	fault := s.prepare(ctx, call)
	if fault.ended {
		s.finish(call)
		fault.answer(w)
		return
	}
	s.mu.Lock()
	f := s.fileAt(name)
	s.mu.Unlock()
	if f == nil {
		call.Status = http.StatusNotFound
		s.finish(call)
		refuse(w, &apiError{code: http.StatusNotFound, text: "Not Found: file not found"})
		return
	}
	call.Status, call.Executed = http.StatusOK, true
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", fmt.Sprint(len(f.data)))
	data := f.data
	if fault.cut { // in the middle of it
		data = data[:len(data)/2]
	}
	_, _ = w.Write(data)
	s.around(ctx, *call, "after")
	if fault.stall != nil {
		_ = http.NewResponseController(w).Flush()
		hang(ctx, fault.stall)
	}
	s.finish(call)
	if fault.cut {
		cut(w)
	}
}

// readBody reads a bounded body.
func readBody(w http.ResponseWriter, req *http.Request) ([]byte, *apiError) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &apiError{code: http.StatusRequestEntityTooLarge, text: "Request Entity Too Large"}
	case err != nil:
		return nil, badRequest("failed to read the request body")
	}
	return raw, nil
}

// pause waits in real time; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
