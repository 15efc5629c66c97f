package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	wordsKey   = "(instructions)" // key of the instructions among the accepted tools; no tool can have this name
	noteKey    = "(accepted by)"  // key of the note of the latest Accept; no tool can have this name
	maxKept    = 8 << 10          // bytes of a schema that are stored to show what changed
	codeLength = 8                // hex digits of Pending.Code
)

// seen is a tool, or the instructions, as somebody accepted it.
type seen struct {
	Print       string          `json:"print"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"` // stored only when it is short enough to be shown
	Output      json.RawMessage `json:"output,omitempty"`
	Hints       string          `json:"hints,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler. It also reads the format of an earlier version, which stored only the
// fingerprint.
func (s *seen) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &s.Print)
	}
	type plain seen
	return json.Unmarshal(data, (*plain)(s))
}

func seenOf(t guard.Tool) seen {
	kept := func(raw json.RawMessage) json.RawMessage {
		if len(raw) > maxKept {
			return nil
		}
		return raw
	}
	return seen{
		Print: t.Fingerprint, Title: t.Display(), Description: t.Description, Input: kept(t.Input),
		Output: kept(t.Output), Hints: t.Annotations.Note(guard.Trusted).String(),
	}
}

// Change is one thing about a server that waits for an admin: a tool, or its instructions.
type Change struct {
	Tool     string // qualified; "" for the instructions
	New      bool   // it was not there before
	Old, Now Shown  // Old is empty when its text was not stored
}

// Shown is what a person compares. Everything is the server's words, sanitised.
type Shown struct {
	Title, Description, Input, Output, Hints string
}

func (s seen) asShown() Shown {
	return Shown{
		Title: s.Title, Description: s.Description, Input: string(s.Input), Output: string(s.Output),
		Hints: s.Hints,
	}
}

// Pending is everything about a server that waits for an admin. Code identifies exactly this state: Accept refuses any
// other.
type Pending struct {
	Code    string
	Changes []Change
}

func (s *server) storeKey() string { return "mcp/tools/" + s.cfg.ID }

// loadAccepted loads what was accepted of the server. It returns nil when the server was never seen.
func (s *server) loadAccepted(ctx context.Context) (map[string]seen, error) {
	text, err := s.m.o.Store.Load(ctx, s.storeKey())
	if err != nil {
		return nil, fmt.Errorf("load the accepted tools of server %s: %w", s.cfg.ID, err)
	}
	if text == "" {
		return nil, nil
	}
	list := map[string]seen{}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("read the accepted tools of server %s: %w", s.cfg.ID, err)
	}
	return list, nil
}

func (s *server) storeAccepted(ctx context.Context, list map[string]seen) error {
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if err := s.m.o.Store.Save(ctx, s.storeKey(), string(data)); err != nil {
		return fmt.Errorf("store the accepted tools of server %s: %w", s.cfg.ID, err)
	}
	return nil
}

// compareOffer decides which parts of an offer have to wait for an admin: tools that changed, tools that appeared after
// the first connect and are on no allowlist, and changed instructions. It applies to servers that are not trusted;
// everything that they offer on the first connect is accepted. The record of a tool that disappeared is kept, so that
// it cannot come back with a different definition.
func (s *server) compareOffer(ctx context.Context, o *offer) error {
	old, err := s.loadAccepted(ctx)
	if err != nil {
		return &guard.Error{
			Code: guard.Transient, Server: s.cfg.ID,
			Message: "what was accepted of the server's tools cannot be read at the moment", Err: err,
		}
	}
	next := maps.Clone(old)
	if next == nil {
		next = map[string]seen{}
	}
	s.sortOffer(o, old, next)
	words, known := old[wordsKey]
	if known && words.Print != o.words && s.cfg.Trust != guard.Trusted {
		o.held = o.words != ""
	} else {
		next[wordsKey] = seen{Print: o.words, Description: o.instructions}
	}
	if maps.EqualFunc(old, next, func(a, b seen) bool { return a.Print == b.Print && a.Description == b.Description }) {
		return nil
	}
	if err := s.storeAccepted(ctx, next); err != nil {
		return &guard.Error{
			Code: guard.Transient, Server: s.cfg.ID,
			Message: "what was accepted of the server's tools cannot be stored at the moment", Err: err,
		}
	}
	return nil
}

// sortOffer moves the accepted tools of an offer into next and lists the others as waiting.
func (s *server) sortOffer(o *offer, old, next map[string]seen) {
	for _, name := range o.order {
		t := o.known[name]
		was, ok := old[name]
		switch same := ok && was.Print == t.Fingerprint; {
		case same && was.Description != "":
		case same || s.acceptsUnseen(old, name, ok):
			next[name] = seenOf(t)
		case ok:
			o.withdrawn = append(o.withdrawn, name)
		default:
			o.fresh = append(o.fresh, name)
		}
	}
	slices.Sort(o.withdrawn)
	slices.Sort(o.fresh)
}

// acceptsUnseen reports whether a tool is accepted without an admin having looked at it.
func (s *server) acceptsUnseen(old map[string]seen, name string, ok bool) bool {
	switch {
	case old == nil, s.cfg.Trust == guard.Trusted:
		return true
	case ok:
		return false
	}
	return s.cfg.Allowlist != nil && slices.Contains(*s.cfg.Allowlist, name)
}

// currentOffer returns the offer of a server, or an error when the server is not connected.
func (s *server) currentOffer() (*offer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offered == nil || s.main == nil {
		return nil, &guard.Error{
			Code: guard.Transient, Server: s.cfg.ID,
			Message: "the server " + s.cfg.ID + " is not connected; its tools can be accepted when it is back",
		}
	}
	return s.offered, nil
}

// offerCode returns a short name for what waits, derived from the fingerprints that would be accepted.
func (o *offer) offerCode() string {
	names := slices.Concat(o.withdrawn, o.fresh)
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "%s %s\n", name, o.known[name].Fingerprint)
	}
	if o.held {
		fmt.Fprintf(&b, "%s %s\n", wordsKey, o.words)
	}
	if b.Len() == 0 {
		return ""
	}
	return guard.Digest(b.String())[:codeLength]
}

// Pending returns what waits for an admin. Code is "" when nothing does.
func (m *Manager) Pending(ctx context.Context, id string) (Pending, error) {
	s, err := m.lookupServer(id)
	if err != nil {
		return Pending{}, err
	}
	o, err := s.currentOffer()
	if err != nil {
		return Pending{}, err
	}
	old, err := s.loadAccepted(ctx)
	if err != nil {
		return Pending{}, err
	}
	p := Pending{Code: o.offerCode()}
	for _, name := range o.withdrawn {
		p.Changes = append(p.Changes, Change{
			Tool: guard.Qualified(id, name), Old: old[name].asShown(),
			Now: seenOf(o.known[name]).asShown(),
		})
	}
	for _, name := range o.fresh {
		p.Changes = append(p.Changes, Change{
			Tool: guard.Qualified(id, name), New: true,
			Now: seenOf(o.known[name]).asShown(),
		})
	}
	if o.held {
		p.Changes = append(p.Changes, Change{
			New: old[wordsKey].Print == "", Old: old[wordsKey].asShown(),
			Now: Shown{Description: o.instructions},
		})
	}
	return p, nil
}

// Accept accepts what Pending returned under code, and returns the qualified names of those tools, sorted. If the
// server offers something else by now, Accept changes nothing and returns an error. The note is stored with the
// accepted definitions, and AcceptedBy returns it; "" stores none.
func (m *Manager) Accept(ctx context.Context, id, code, note string) ([]string, error) {
	s, err := m.lookupServer(id)
	if err != nil {
		return nil, err
	}
	s.listing.Lock()
	defer s.listing.Unlock()
	was, err := s.currentOffer()
	if err != nil {
		return nil, err
	}
	switch now := was.offerCode(); {
	case now == "":
		return nil, nil
	case now != code:
		return nil, &guard.Error{
			Code: guard.InvalidInput, Server: id,
			Message: "what the server " + id +
				" offers is not what was shown under this code; look at it again with /mcp accept " + id,
		}
	}
	list, err := s.loadAccepted(ctx)
	if err != nil {
		return nil, err
	}
	if list == nil {
		list = map[string]seen{}
	}
	names := slices.Concat(was.withdrawn, was.fresh)
	slices.Sort(names)
	for _, name := range names {
		list[name] = seenOf(was.known[name])
	}
	if note != "" {
		list[noteKey] = seen{Print: note}
	}
	if was.held {
		list[wordsKey] = seen{Print: was.words, Description: was.instructions}
	}
	if err := s.storeAccepted(ctx, list); err != nil {
		return nil, err
	}
	next := *was
	next.withdrawn, next.fresh, next.held = nil, nil, false
	s.buildTools(&next)
	if err := s.registerLocked(&next); err != nil {
		return nil, err
	}
	return s.qualifiedNames(names), nil
}

// AcceptedBy returns the note of the latest Accept; "" when there was none.
func (m *Manager) AcceptedBy(ctx context.Context, id string) (string, error) {
	s, err := m.lookupServer(id)
	if err != nil {
		return "", err
	}
	list, err := s.loadAccepted(ctx)
	return list[noteKey].Print, err
}
