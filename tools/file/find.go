package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zephbot/zephbot/tools"
)

type findArgs struct {
	Pattern    string `json:"pattern" jsonschema:"glob, for example **/*.go; * stops at /, ** does not; {a,b} and [a-z] are known, and names that have such brackets are found too"`
	Path       string `json:"path,omitempty" jsonschema:"directory to start in; without it the working directory"`
	MaxResults *int   `json:"max_results,omitempty" jsonschema:"how many paths to give at most"`
}

// Limits of find_path.
const (
	maxResults  = 10_000
	maxPattern  = 1024
	maxDoubling = 8 // number of "**" in a pattern: each one multiplies the work
)

func (t *toolset) findPath() (tools.Tool, error) {
	return tools.New(tools.Typed[findArgs]{
		Definition: tools.Definition{
			Name: "find_path", ReadOnly: true,
			Description: fmt.Sprintf("Finds files and directories by a glob pattern, one path a line, sorted; at "+
				"most max_results (%d when not given). Use **/name to look in all directories.", t.MaxResults),
		},
		Adjust: func(s *jsonschema.Schema) { atLeast(s, "max_results", 1) },
		Describe: func(ctx context.Context, call *tools.Call, in findArgs) (tools.Subject, error) {
			s, err := t.enterScope(ctx, call.Origin, false)
			if err != nil {
				return tools.Subject{}, err
			}
			defer s.close()
			base, pattern := in.splitPattern()
			p, err := s.resolvePlace(base, true)
			if err != nil {
				// A path outside has no result. The policy gets the path as it was written.
				abs, bad := s.absolutePath(base)
				if !isRefused(err) || bad != nil {
					return tools.Subject{}, err
				}
				p.abs = abs
			}
			paths := []string{p.abs}
			return tools.Subject{
				Inputs: paths, Paths: paths,
				Show: showName(pattern) + " · " + showName(s.displayPath(p.abs)), Note: s.locationNote(p),
			}, nil
		},
		Check: func(ctx context.Context, call *tools.Call, in findArgs) error {
			s, err := t.enterScope(ctx, call.Origin, false)
			if err != nil {
				return err
			}
			defer s.close()
			return mayFind(s, in)
		},
		Run: func(ctx context.Context, call *tools.Call, in findArgs) (*tools.Result, error) {
			s, err := t.enterScope(ctx, call.Origin, true)
			if err != nil {
				return nil, err
			}
			defer s.close()
			return findFiles(s, in)
		},
	})
}

// splitPattern returns the directory to search and the pattern below it. The directory is what comes before the first
// wildcard.
func (in findArgs) splitPattern() (base, pattern string) {
	base, pattern = doublestar.SplitPattern(filepath.Clean(in.Pattern))
	if !strings.HasPrefix(base, "/") && in.Path != "" {
		base = strings.TrimSuffix(in.Path, "/") + "/" + base
	}
	return base, pattern
}

func isRefused(err error) bool {
	var e *tools.Error
	return errors.As(err, &e) && e.Denied()
}

func (in findArgs) checkArgs() error {
	switch {
	case in.Pattern == "":
		return argumentError("For example **/*.go", "pattern is empty")
	case len(in.Pattern) > maxPattern || strings.Count(in.Pattern, "**") > maxDoubling:
		return argumentError("", "the pattern is too long, or has more than %d **", maxDoubling)
	case !doublestar.ValidatePattern(in.Pattern):
		return argumentError("Close every [ and {.", "%s is not a valid pattern", quoteName(in.Pattern))
	case in.MaxResults != nil && *in.MaxResults < 1:
		return argumentError("", "max_results must be 1 or more")
	}
	return nil
}

// mayFind returns why a search cannot be made. A path outside has no result, which is not an error.
func mayFind(s *scope, in findArgs) error {
	if err := in.checkArgs(); err != nil || in.Path == "" {
		return err
	}
	base, _ := in.splitPattern()
	p, err := s.resolvePlace(base, true)
	switch {
	case isRefused(err) || err == nil && (p.doesExist() || p.isRoot()):
		return nil
	case err != nil:
		return err
	}
	if top, err := s.resolvePlace(in.Path, true); err == nil && !top.doesExist() {
		return s.missingError(top)
	}
	return nil
}

func findFiles(s *scope, in findArgs) (*tools.Result, error) {
	if err := mayFind(s, in); err != nil {
		return nil, err
	}
	none := &tools.Result{Text: "No files matching " + showName(in.Pattern)}
	base, pattern := in.splitPattern()
	p, err := s.resolvePlace(base, true)
	switch {
	case isRefused(err):
		return none, nil
	case err != nil:
		return nil, err
	case !p.isDir():
		return none, nil
	}
	limit := s.MaxResults
	if in.MaxResults != nil {
		limit = min(*in.MaxResults, maxResults)
	}
	var found []string
	more := false
	literal := literalBrackets(pattern)
	w := &walker{s: s, visit: func(d *shared, rel string, e fs.DirEntry) error {
		ok, _ := doublestar.Match(pattern, rel) // the pattern was validated before
		if !ok && literal != pattern {
			ok, _ = doublestar.Match(literal, rel)
		}
		if !ok {
			return nil
		}
		if len(found) == limit {
			more = true
			return errStop
		}
		found = append(found, showName(s.displayPath(d.joinName(e.Name()))))
		return nil
	}}
	if err := w.walkPlace(p); err != nil {
		return nil, systemError(err, "search", p.given)
	}
	return answerFound(found, none.Text, more, w, nil), nil
}

// literalBrackets returns the pattern that takes brackets and braces as letters, as in the name [slug].tsx.
func literalBrackets(pattern string) string {
	if strings.Contains(pattern, `\`) { // somebody knows how to write it
		return pattern
	}
	return strings.NewReplacer("[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`).Replace(pattern)
}

// answerFound joins what was found with remarks about the search.
func answerFound(found []string, none string, more bool, w *walker, notes []string) *tools.Result {
	lines := found
	if len(found) == 0 {
		lines = []string{none}
	}
	if more {
		lines = append(lines, fmt.Sprintf("[more results: only the first %d are shown; narrow the pattern or the path]",
			len(found)))
	}
	if w.stopped != "" {
		lines = append(lines, "[the search is not complete, because "+w.stopped+": narrow the path]")
	}
	if w.locked > 0 {
		lines = append(lines, "["+countNoun(w.locked, "directory", "directories")+" could not be opened]")
	}
	return &tools.Result{Text: strings.Join(append(lines, notes...), "\n"), Truncated: more || w.stopped != ""}
}
