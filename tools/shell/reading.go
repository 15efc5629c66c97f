package shell

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// A command that nobody was asked about because it only reads runs where it can do nothing else (sandbox.Spec.Reading).
// If it fails after it tried more, nothing has happened, and a person is asked.

// isReading reports whether a call is permitted only where it can change nothing.
func isReading(call *tools.Call) bool { return call.Trail != nil && call.Trail.Reading }

// readingEnvironment returns the environment of a reading command: what the output of programs depends on, and what
// keeps them from trying to write without need. The sandbox adds HOME and TMPDIR.
func (r *Runner) readingEnvironment(j job) []string {
	env := []string{
		"PWD=" + j.ws, "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
		"HISTFILE=/dev/null", "PYTHONDONTWRITEBYTECODE=1",
	}
	language := "LANG=C.UTF-8"
	for _, kv := range r.opts.Environ() {
		switch name, value, _ := strings.Cut(kv, "="); {
		case name == "LANG" && value != "":
			language = kv
		case name == "TZ" || name == "LANGUAGE" || strings.HasPrefix(name, "LC_"):
			env = append(env, kv)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.opts.Toolchains.Env)) {
		env = append(env, name+"="+r.opts.Toolchains.Env[name])
	}
	return append(env, "PATH="+r.searchPath(), language)
}

// refusals are how programs say that the kernel has refused something, where it does not tell what they tried.
var refusals = []string{ //nolint:gochecknoglobals // a table
	"Read-only file system", "Permission denied", "Operation not permitted",
}

// tooLittle says what a reading command wanted besides reading; none if it ended well or for another reason.
func (o *outcome) tooLittle(ws string) reason.Reason {
	s := &o.status
	switch {
	case s.Hit != "":
		return triedReason(reason.New(reason.WantedMore))
	case o.ending != ended || s.Signal == "" && s.Code == 0:
		return reason.Reason{}
	case s.Blind && containsAny(o.stderr, refusals):
		return triedReason(reason.New(reason.WantedRefused))
	case strings.Contains(o.stderr, "No space left on device"):
		return triedReason(reason.New(reason.WantedMore))
	}
	if wanted := o.wantedBesides(ws); wanted.Code != "" {
		return triedReason(wanted)
	}
	return reason.Reason{}
}

func triedReason(what reason.Reason) reason.Reason { return reason.New(reason.Tried).With(what) }

// wantedBesides says what a reading command tried besides reading; none if that was nothing.
func (o *outcome) wantedBesides(ws string) reason.Reason {
	s := &o.status
	switch {
	case len(s.Tried) == 0:
		return reason.Reason{}
	case s.Tried[0].Verb == sandbox.Connects:
		return reason.New(reason.WantedNetwork)
	}
	verb := s.Tried[0].Verb
	const most = 3
	var names []string
	for _, a := range s.Tried {
		if a.Verb == verb && a.Path != "" && len(names) <= most {
			names = append(names, "`"+insidePath(ws, a.Path)+"`")
		}
	}
	if len(names) > most {
		names = append(names[:most], "…")
	}
	if len(names) == 0 {
		names = []string{"a file"}
	}
	return reason.New(wants[verb], strings.Join(names, ", "))
}

// hushedNote is a note for the model about a reading command that ended with exit code 0 although it was
// refused something; "" if it was not.
func (o *outcome) hushedNote(ws string) string {
	wanted := o.wantedBesides(ws)
	if wanted.Code == "" || o.ending != ended || o.status.Signal != "" || o.status.Code != 0 {
		return ""
	}
	return "[note] it ran where nothing can be changed, and " +
		wanted.String() + ", which was refused. If that is needed, run it " +
		"so that it fails then (set -eo pipefail, no || true), and a person is asked"
}

// insidePath returns a path relative to the workspace, if it is there.
func insidePath(ws, path string) string {
	if rel, err := filepath.Rel(ws, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

func containsAny(text string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// wants are the reasons why a command that may only read is asked about, by what it tried first.
var wants = map[sandbox.Verb]reason.Code{ //nolint:gochecknoglobals // a table
	sandbox.Writes: reason.WantedWrite, sandbox.Creates: reason.WantedCreate, sandbox.Deletes: reason.WantedDelete,
	sandbox.Moves: reason.WantedMove, sandbox.Alters: reason.WantedProperties,
}
