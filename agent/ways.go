package agent

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools"
)

// sites counts of which sites the calls of a turn, with those of its sub-agents, have opened addresses because they
// were found. It is read from the journal when it is first used. Safe for concurrent use.
type sites struct {
	mu     sync.Mutex
	by     map[string][]string // by call
	counts map[string]int
}

// addresses is what a conversation knows of web addresses, for one call (tools.Addresses).
type addresses struct {
	said, seen netrule.Keys
	call       string
	sites      *sites
}

// Origin implements tools.Addresses.
func (a *addresses) Origin(normal string) netrule.Origin {
	switch {
	case a.said.Has(normal):
		return netrule.Given
	case a.seen.Has(normal):
		return netrule.Found
	}
	return netrule.Built
}

// Take implements tools.Addresses.
func (a *addresses) Take(site string) bool {
	s := a.sites
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case slices.Contains(s.by[a.call], site):
		return true
	case s.counts[site] >= netrule.MostOpened:
		return false
	}
	s.takeSite(a.call, site)
	return true
}

// takeSite counts a site. s.mu must be held.
func (s *sites) takeSite(call, site string) {
	s.by[call] = append(s.by[call], site)
	s.counts[site]++
}

// Leave implements tools.Addresses.
func (a *addresses) Leave() {
	s := a.sites
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, site := range s.by[a.call] {
		s.counts[site]--
	}
	delete(s.by, a.call)
}

// takenSites returns the sites that a call has taken.
func (s *sites) takenSites(call string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.by[call])
}

// openedSites returns the sites of the turn.
func (s *state) openedSites() *sites {
	s.mu.Lock()
	known := s.sites
	s.mu.Unlock()
	if known != nil {
		return known
	}
	fresh := &sites{by: map[string][]string{}, counts: map[string]int{}}
	for _, e := range s.turnEntries() {
		for _, site := range e.Opened {
			fresh.takeSite(e.Call, site)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sites == nil {
		s.sites = fresh
	}
	return s.sites
}

// foundAddresses returns the addresses that the result of a call brings: of a page, a search, or a file, but none that
// it repeats from its own arguments or those of an earlier call of the turn.
func foundAddresses(call *tools.Call, result *tools.Result) netrule.Keys {
	does := call.Def.Stated().Act
	// a long page or search that was put aside, and is read on
	again := does == act.Recalls && result.Untrusted.Kind() == source.Search.Kind()
	if does != act.ReadsWeb && does != act.ReadsFile && !again {
		return nil
	}
	inputs := argumentTexts(call.Args)
	for i := range call.Earlier {
		inputs = append(inputs, argumentTexts(call.Earlier[i].Args)...)
	}
	list := netrule.Find(result.Text, journal.MostFound, false)
	for _, link := range result.Links {
		if normal, ok := netrule.Plain(link); ok {
			list = append(list, normal)
		}
	}
	return netrule.KeysOf(slices.DeleteFunc(list, func(normal string) bool {
		return netrule.Repeats(normal, inputs)
	})...)
}

// argumentTexts returns the texts in the arguments of a call.
func argumentTexts(args json.RawMessage) (list []string) {
	var v map[string]any
	if json.Unmarshal(args, &v) != nil {
		return nil
	}
	for _, one := range v {
		if text, ok := one.(string); ok {
			list = append(list, text)
		} else if raw, err := json.Marshal(one); err == nil {
			list = append(list, string(raw))
		}
	}
	return list
}

// mayWrite reports whether a call may have changed files.
func mayWrite(call *tools.Call) bool {
	switch does := call.Def.Stated().Act; does {
	case act.Runs:
		return call.Trail.Started && !call.Trail.Reading
	case act.WritesFile, act.MovesPath, act.CopiesPath:
		return call.Trail.Started
	case act.Unknown:
		return call.Trail.Started && !call.Def.ReadOnly
	default:
		return false
	}
}
