package telegramtest

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
)

// FaultKind names what goes wrong.
type FaultKind = string

// Kinds of faults. Only FaultCut, FaultStall and FaultSlow let the call have its effect.
const (
	Fault429   FaultKind = "429"     // refused with RetryAfter (default 1)
	Fault500   FaultKind = "500"     // refused, JSON body
	Fault502   FaultKind = "502html" // a proxy's HTML page
	Fault400   FaultKind = "400"     // refused with Description
	Fault403   FaultKind = "403"     // refused with Description, default: blocked by the user
	Fault409   FaultKind = "409"     // refused as by another poller
	FaultHang  FaultKind = "hang"    // not executed, no answer until ClearFaults or the client gives up
	FaultStall FaultKind = "stall"   // executed, then as FaultHang
	FaultCut   FaultKind = "cut"     // executed, connection cut before the answer
	FaultDrop  FaultKind = "drop"    // not executed, connection cut
	FaultSlow  FaultKind = "slow"    // executed after Delay of real time
)

// Fault makes matching calls go wrong. The first fault that matches a call is the one that hits it.
type Fault struct {
	// glob, case-insensitive; "" is every method, getUpdates included
	Method string `json:"method"`
	Chat   int64  `json:"chat,omitempty"` // 0 = any
	// name of a parameter that the call must have, with a value; "" = any call
	Has         string        `json:"has,omitempty"`
	Kind        FaultKind     `json:"kind"`            // see the constants
	RetryAfter  int           `json:"retry_after"`     // seconds, Fault429
	Delay       time.Duration `json:"delay,omitempty"` // before whatever the kind does
	Count       int           `json:"count,omitempty"` // calls to hit; 0 = until cleared
	Description string        `json:"description,omitempty"`
}

// AddFault arms a fault. An unknown kind or a broken glob is reported by Problems and not armed.
func (s *Server) AddFault(f Fault) {
	if err := f.validate(); err != nil {
		s.misuse(err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
	s.touch()
}

// ClearFaults disarms all faults and cuts the calls that hang in one.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
	close(s.unhang)
	s.unhang = make(chan struct{})
	s.touch()
}

// Faults returns the armed faults; Count is what is left.
func (s *Server) Faults() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Fault, len(s.faults))
	for i, f := range s.faults {
		out[i] = *f
	}
	return out
}

func (f *Fault) validate() error {
	kinds := []FaultKind{
		Fault429, Fault500, Fault502, Fault400, Fault403, Fault409, FaultHang, FaultStall, FaultCut, FaultDrop,
		FaultSlow,
	}
	if !slices.Contains(kinds, f.Kind) {
		return misusef("add fault: unknown kind %q, want one of %s", f.Kind, strings.Join(kinds, ", "))
	}
	if _, err := path.Match(f.Method, ""); err != nil {
		return misusef("add fault: method %q: %w", f.Method, err)
	}
	return nil
}

func (f *Fault) matches(call *Call) bool {
	if f.Chat != 0 && f.Chat != call.Chat {
		return false
	}
	if f.Has != "" && slices.Contains([]string{"", "[]", "null"}, call.Params[f.Has]) {
		return false
	}
	if f.Method == "" {
		return true
	}
	// The pattern was checked by validate.
	ok, _ := path.Match(strings.ToLower(f.Method), strings.ToLower(call.Method))
	return ok
}

// hit is what a fault does to one call.
type hit struct {
	ended  bool // the call is not executed; answer says what the client gets
	answer func(http.ResponseWriter)
	cut    bool            // executed, no answer
	stall  <-chan struct{} // executed, no answer until it is closed
}

// prepare runs the "before" hook and the faults.
func (s *Server) prepare(ctx context.Context, call *Call) hit {
	s.around(ctx, *call, "before")
	if ctx.Err() != nil {
		return hit{ended: true, answer: cut}
	}
	f, unhang := s.takeFault(call)
	if f == nil {
		return hit{}
	}
	call.Fault = f.Kind
	if !pause(ctx, f.Delay) {
		return hit{ended: true, answer: cut}
	}
	switch f.Kind {
	case FaultSlow:
		return hit{}
	case FaultCut:
		return hit{cut: true}
	case FaultStall:
		return hit{cut: true, stall: unhang}
	case FaultHang:
		hang(ctx, unhang)
		return hit{ended: true, answer: cut}
	case FaultDrop:
		return hit{ended: true, answer: cut}
	}
	e := f.refusal()
	call.Status, call.Error, call.RetryAfter = e.code, e.text, e.retryAfter
	if f.Kind == Fault502 {
		return hit{ended: true, answer: badGateway}
	}
	return hit{ended: true, answer: func(w http.ResponseWriter) { refuse(w, e) }}
}

func (s *Server) takeFault(call *Call) (*Fault, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if !f.matches(call) {
			continue
		}
		got := *f
		if f.Count > 0 {
			f.Count--
			if f.Count == 0 {
				s.faults = slices.Delete(s.faults, i, i+1)
			}
		}
		return &got, s.unhang
	}
	return nil, nil
}

func (f *Fault) refusal() *apiError {
	var e *apiError
	switch f.Kind {
	case Fault429:
		return tooMany(max(1, f.RetryAfter))
	case Fault400:
		e = badRequest(notEnoughRights + " to send text messages to the chat")
	case Fault403:
		e = forbidden(userBlocked)
	case Fault409:
		e = conflict(otherPoller)
	case Fault502:
		e = &apiError{code: http.StatusBadGateway, text: "Bad Gateway"}
	default:
		e = &apiError{code: http.StatusInternalServerError, text: "Internal Server Error"}
	}
	if f.Description != "" {
		e.text = f.Description
	}
	return e
}

func badGateway(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(http.StatusBadGateway)
	_, _ = w.Write([]byte("<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad " +
		"Gateway</h1></center>\r\n</body>\r\n</html>\r\n"))
}

func hang(ctx context.Context, unhang <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-unhang:
	}
}
