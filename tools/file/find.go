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
	Pattern    string `json:"pattern" jsonschema:"glob, for example **/*.go; * stops at /, ** does not; {a,b} and [a-z] are known"`
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
			Description: fmt.Sprintf("Finds files and directories by a glob pattern, one path a line, sorted; at most max_results (%d when not given). Use **/name to look in all directories.", t.MaxResults),
		},
		Adjust: func(s *jsonschema.Schema) { atLeast(s, "max_results", 1) },
		Describe: func(ctx context.Context, call *tools.Call, in findArgs) (tools.Subject, error) {
			s, err := t.enter(ctx, call.Origin, false)
			if err != nil {
				return tools.Subject{}, err
			}
			defer s.close()
			base, pattern := in.split()
			p, err := s.resolve(base, true)
			if err != nil {
				// A path outside has no result. The policy gets the path as it was written.
				abs, bad := s.absolute(base)
				if !isRefused(err) || bad != nil {
					return tools.Subject{}, err
				}
				p.abs = abs
			}
			paths := []string{p.abs}
			return tools.Subject{
				Inputs: paths, Paths: paths,
				Show: "find " + show(pattern) + " in " + show(s.display(p.abs)), Note: s.note(p),
			}, nil
		},
		Check: func(ctx context.Context, call *tools.Call, in findArgs) error {
			s, err := t.enter(ctx, call.Origin, false)
			if err != nil {
				return err
			}
			defer s.close()
			return mayFind(s, in)
		},
		Run: func(ctx context.Context, call *tools.Call, in findArgs) (*tools.Result, error) {
			s, err := t.enter(ctx, call.Origin, true)
			if err != nil {
				return nil, err
			}
			defer s.close()
			return find(s, in)
		},
	})
}

// split returns the directory to search and the pattern below it. The directory is what comes before the first
// wildcard.
func (in findArgs) split() (base, pattern string) {
	base, pattern = doublestar.SplitPattern(filepath.Clean(in.Pattern))
	if !strings.HasPrefix(base, "/") && in.Path != "" {
		base = strings.TrimSuffix(in.Path, "/") + "/" + base
	}
	return base, pattern
}

func isRefused(err error) bool {
	var e *tools.Error
	return errors.As(err, &e) && e.Denied
}

func (in findArgs) validate() error {
	switch {
	case in.Pattern == "":
		return wrong("For example **/*.go", "pattern is empty")
	case len(in.Pattern) > maxPattern || strings.Count(in.Pattern, "**") > maxDoubling:
		return wrong("", "the pattern is too long, or has more than %d **", maxDoubling)
	case !doublestar.ValidatePattern(in.Pattern):
		return wrong("Close every [ and {.", "%s is not a valid pattern", quote(in.Pattern))
	case in.MaxResults != nil && *in.MaxResults < 1:
		return wrong("", "max_results must be 1 or more")
	}
	return nil
}

// mayFind returns why a search cannot be made. A path outside has no result, which is not an error.
func mayFind(s *scope, in findArgs) error {
	if err := in.validate(); err != nil || in.Path == "" {
		return err
	}
	base, _ := in.split()
	p, err := s.resolve(base, true)
	switch {
	case isRefused(err) || err == nil && (p.exists() || p.isRoot()):
		return nil
	case err != nil:
		return err
	}
	if top, err := s.resolve(in.Path, true); err == nil && !top.exists() {
		return s.missing(top)
	}
	return nil
}

func find(s *scope, in findArgs) (*tools.Result, error) {
	if err := mayFind(s, in); err != nil {
		return nil, err
	}
	none := &tools.Result{Text: "No files matching " + show(in.Pattern)}
	base, pattern := in.split()
	p, err := s.resolve(base, true)
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
	w := &walker{s: s, visit: func(d *shared, rel string, e fs.DirEntry) error {
		if ok, _ := doublestar.Match(pattern, rel); !ok { // the pattern was validated before
			return nil
		}
		if len(found) == limit {
			more = true
			return errStop
		}
		found = append(found, show(s.display(d.join(e.Name()))))
		return nil
	}}
	if err := w.run(p); err != nil {
		return nil, because(err, "search", p.given)
	}
	return answer(found, none.Text, more, w, nil), nil
}

// answer joins what was found with remarks about the search.
func answer(found []string, none string, more bool, w *walker, notes []string) *tools.Result {
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
		lines = append(lines, "["+count(w.locked, "directory", "directories")+" could not be opened]")
	}
	return &tools.Result{Text: strings.Join(append(lines, notes...), "\n"), Truncated: more || w.stopped != ""}
}
