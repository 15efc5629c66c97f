package skill

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
)

// Verdict is what an admin has decided about exactly one content of a folder.
type Verdict string

// Verdicts.
const (
	Accepted Verdict = "accepted"
	Limited  Verdict = "limited" // accepted, but a turn that uses it may only use tools that read
	Refused  Verdict = "refused"
)

// Known reports whether v is one of the verdicts.
func (v Verdict) Known() bool { return v == Accepted || v == Limited || v == Refused }

// Decision is the latest decision about a skill's name.
type Decision struct {
	Verdict Verdict   `json:"verdict"`
	Hash    string    `json:"hash"`    // of the folder that was decided about
	By      string    `json:"by"`      // caller id
	ByName  string    `json:"by_name"` // as the person calls themselves
	At      time.Time `json:"at"`
}

// State is what may be done with a skill.
type State string

// States of a skill.
const (
	Waiting  State = "waiting" // nobody has decided about it
	Changed  State = "changed" // it was accepted, and its folder holds something else now
	InUse    State = "accepted"
	ReadOnly State = "limited"
	Rejected State = "refused"
)

// Usable reports whether conversations may use a skill in this state.
func (s State) Usable() bool { return s == InUse || s == ReadOnly }

// Entry is a skill with what was decided about it.
type Entry struct {
	*Skill
	State    State
	Decision Decision // zero if there is none
}

// Options configure a Library.
type Options struct {
	// Roots are folders of skills, or folders with folders of skills. Of two skills with the same name, the one in the
	// earlier root counts.
	Roots []string
	// Allows reports whether a conversation may use a skill. nil = any may use all.
	Allows func(o tools.Origin, name string) bool
	Log    zerolog.Logger
}

// Library is the skills of a program. It is safe for concurrent use and starts no goroutines.
type Library struct {
	o Options

	syncing sync.Mutex // one Sync at a time

	mu        sync.Mutex
	stamp     string // of the folders, when they were read
	skills    []*Skill
	problems  []*Problem
	decisions map[string]Decision
	told      map[string]bool // what the log has said
}

// NewLibrary returns a Library that has read nothing yet.
func NewLibrary(o Options) *Library {
	return &Library{o: o, decisions: map[string]Decision{}, told: map[string]bool{}}
}

// Sync reads the folders again if something about them has changed: names, sizes, times or modes of files. What a read
// folder holds is checked again whenever it is used, so a change that leaves all of these as they were is noticed too.
func (l *Library) Sync() {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	stamp := stampOf(l.o.Roots)
	l.mu.Lock()
	same := stamp == l.stamp
	l.mu.Unlock()
	if same {
		return
	}
	skills, problems := Find(l.o.Roots)
	l.mu.Lock()
	l.stamp, l.skills, l.problems = stamp, skills, problems
	l.mu.Unlock()
	l.tell()
}

// reread makes the next Sync read everything.
func (l *Library) reread() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stamp = ""
}

// Decide replaces the decisions, by name.
func (l *Library) Decide(decisions map[string]Decision) {
	l.mu.Lock()
	l.decisions = decisions
	l.mu.Unlock()
	l.tell()
}

// tell logs, once each, what is wrong and what waits.
func (l *Library) tell() {
	list, problems := l.Entries()
	l.mu.Lock()
	defer l.mu.Unlock()
	once := func(key string) bool {
		said := l.told[key]
		l.told[key] = true
		return !said
	}
	for _, p := range problems {
		if once(p.Error()) {
			l.o.Log.Warn().Str("skill", p.Error()).Msg("not a skill")
		}
	}
	for i := range list {
		if e := &list[i]; !e.State.Usable() && e.State != Rejected && once(e.Name+e.Hash) {
			l.o.Log.Info().Str("skill", e.Name).Str("dir", e.Dir).Str("hash", e.Brief()).Str("state", string(e.State)).
				Msg("a skill waits for an admin: /skills")
		}
	}
}

// Entries lists the skills by name, and what is wrong with other folders.
func (l *Library) Entries() ([]Entry, []*Problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Entry, len(l.skills))
	for i, s := range l.skills {
		list[i] = l.entry(s)
	}
	return list, l.problems
}

// entry adds to a skill what was decided about it. The caller holds the lock.
func (l *Library) entry(s *Skill) Entry {
	e := Entry{Skill: s, State: Waiting}
	d, decided := l.decisions[s.Name]
	if !decided {
		return e
	}
	e.Decision = d
	switch {
	case d.Hash != s.Hash && d.Verdict != Refused:
		e.State = Changed
	case d.Hash != s.Hash:
	case d.Verdict == Accepted:
		e.State = InUse
	case d.Verdict == Limited:
		e.State = ReadOnly
	default:
		e.State = Rejected
	}
	return e
}

// Any reports whether any conversation may have a skill to use.
func (l *Library) Any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.skills, func(s *Skill) bool { return l.entry(s).State.Usable() })
}

// Usable lists the skills that a conversation may use, by name. They are those of the last Sync.
func (l *Library) Usable(o tools.Origin) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Entry
	for _, s := range l.skills {
		if l.o.Allows != nil && !l.o.Allows(o, s.Name) {
			continue
		}
		if e := l.entry(s); e.State.Usable() {
			list = append(list, e)
		}
	}
	return list
}

// Folders lists the folders that commands of a conversation may read.
func (l *Library) Folders(o tools.Origin) []string {
	var dirs []string
	for _, e := range l.Usable(o) {
		dirs = append(dirs, e.Dir)
	}
	return dirs
}

// Trust returns how far a skill is trusted.
func (l *Library) Trust(name string) policy.Trust {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.skills {
		if s.Name != name {
			continue
		}
		switch l.entry(s).State {
		case InUse:
			return policy.Verified
		case Rejected:
			return policy.Blocked
		}
	}
	return policy.Quarantined
}

// errChanged is the error for a folder that holds something else than what was accepted.
var errChanged = errors.New("the folder has changed")

// fresh reads a skill again, and returns it with its files if they are what was accepted.
func (l *Library) fresh(e Entry) (*Skill, map[string][]byte, error) {
	s, contents, p := read(e.Dir)
	if p == nil && s.Hash == e.Hash {
		return s, contents, nil
	}
	l.reread()
	l.Sync()
	if p != nil {
		return nil, nil, errors.Join(errChanged, p)
	}
	return nil, nil, errChanged
}

// Find reads all skills in a list of folders. The skills are sorted by name.
func Find(roots []string) (skills []*Skill, problems []*Problem) {
	places := map[string]string{}
	for _, root := range roots {
		dirs, p := folders(root)
		if p != nil {
			problems = append(problems, p)
		}
		for _, dir := range dirs {
			if len(skills) == maxSkills {
				problems = append(problems, &Problem{
					Path: root,
					Text: fmt.Sprintf("there are more than %d skills; the rest is left out", maxSkills),
				})
				break
			}
			s, _, p := read(dir)
			switch {
			case p != nil:
				problems = append(problems, p)
			case places[s.Name] != "":
				problems = append(problems, &Problem{
					Path: filepath.Join(s.Dir, Document),
					Text: fmt.Sprintf("name %q is taken by %s; give one of them another name", s.Name, places[s.Name]),
				})
			default:
				places[s.Name] = s.Dir
				skills = append(skills, s)
			}
		}
	}
	slices.SortFunc(skills, func(a, b *Skill) int { return cmp.Compare(a.Name, b.Name) })
	return skills, problems
}

// folders lists the folders of skills in a root: itself, or every folder in it that has a SKILL.md.
func folders(root string) (dirs []string, p *Problem) {
	if _, err := os.Lstat(filepath.Join(root, Document)); err == nil {
		return []string{root}, nil
	}
	list, err := os.ReadDir(root)
	if err != nil {
		return nil, &Problem{
			Path: root,
			Text: "cannot be read: " + plain(err) + "; make the folder, or correct skills.paths",
		}
	}
	for _, e := range list {
		dir := filepath.Join(root, e.Name())
		if _, err := os.Stat(filepath.Join(dir, Document)); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// stampOf describes the folders without reading files.
func stampOf(roots []string) string {
	h := sha256.New()
	for _, root := range roots {
		dirs, p := folders(root)
		fmt.Fprintf(h, "%q %v\n", root, p)
		for _, dir := range dirs[:min(len(dirs), maxSkills+1)] {
			stampFolder(dir, func(format string, values ...any) { fmt.Fprintf(h, format, values...) })
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func stampFolder(dir string, add func(format string, values ...any)) {
	n := 0
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error { // errors are part of the stamp
		if n++; n > MaxFiles+1 || e == nil {
			return fs.SkipAll
		}
		info, statErr := e.Info()
		if err != nil || statErr != nil {
			add("%q %v\n", path, errors.Join(err, statErr))
			return nil
		}
		add("%q %s %d %d\n", path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		return nil
	})
}

// Follow calls Sync and then at once and at every tick, until ctx ends. It always returns nil.
func (l *Library) Follow(ctx context.Context, every time.Duration, then func(ctx context.Context)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		l.Sync()
		then(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// list writes names in a sentence.
func list(entries []Entry) string {
	names := make([]string, len(entries))
	for i := range entries {
		names[i] = entries[i].Name
	}
	return strings.Join(names, ", ")
}
