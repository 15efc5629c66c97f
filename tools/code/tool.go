package code

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// ToolName is the name of the tool.
const ToolName = "search_code"

type searchArgs struct {
	Query             string `json:"query,omitempty" jsonschema:"what to look for, in words: where is the authentication middleware"`
	Symbol            string `json:"symbol,omitempty" jsonschema:"name of a function, method, type or constant, or a part of it; Type.Method is possible"`
	FilePattern       string `json:"file_pattern,omitempty" jsonschema:"glob over paths, for example **/*.go or internal/**; * stops at /, ** does not"`
	IncludeReferences bool   `json:"include_references,omitempty" jsonschema:"true: also where the symbol is used"`
	MaxResults        *int   `json:"max_results,omitempty" jsonschema:"how many results to give at most, from 1 to 50; 10 when not given"`
}

// Limits of the arguments.
const (
	defaultResults = 10
	mostResults    = 50
	maxQuery       = 1000
	maxSymbol      = 300
	maxPattern     = 1024
	maxDoubling    = 8 // number of "**" in a pattern: each one multiplies the work
)

// resultLimit returns how many results are wanted.
func (in searchArgs) resultLimit() int {
	if in.MaxResults == nil {
		return defaultResults
	}
	return min(max(*in.MaxResults, 1), mostResults)
}

// Says returns the statement of the tool for the policy.
func Says() []act.Tool {
	return []act.Tool{{Name: ToolName, Statement: act.Statement{
		Act: act.Inspects, Verb: act.Search, Cache: act.Files, Gain: 0.65,
	}}}
}

// Tool returns search_code.
func (x *Index) Tool() (tools.Tool, error) {
	t, err := tools.New(tools.Typed[searchArgs]{
		Definition: tools.Definition{
			Name: ToolName, ReadOnly: true,
			Description: "Finds code by what it is called or what it does: functions, types, constants, sections and " +
				"configuration keys in Go, Rust, Python, JavaScript, TypeScript, Java, C, C++, Ruby, Bash, TOML, " +
				"JSON, YAML and Markdown. Give a query in words, a symbol, or both. Gives path:first-last line, the " +
				"line, where it was found and a score. Use it before grep when you do not know the exact text.",
		},
		Adjust: func(s *jsonschema.Schema) {
			if p := s.Properties["max_results"]; p != nil {
				p.Type, p.Types = "integer", nil
			}
		},
		Describe: x.describeCall,
		Check:    func(_ context.Context, _ *tools.Call, in searchArgs) error { return in.checkArgs() },
		Run:      x.runSearch,
	})
	if err != nil {
		return t, err
	}
	list, err := tools.State([]tools.Tool{t}, Says())
	if err != nil {
		return t, err
	}
	return list[0], nil
}

// describeCall returns the directories that are searched.
func (x *Index) describeCall(ctx context.Context, call *tools.Call, in searchArgs) (tools.Subject, error) {
	if err := in.checkArgs(); err != nil {
		return tools.Subject{}, err
	}
	view, err := x.Sources.For(ctx, call.Origin)
	if err != nil {
		return tools.Subject{}, err
	}
	defer view.Close()
	roots, err := x.searchedDirs(view, call.Origin)
	if err != nil {
		return tools.Subject{}, err
	}
	what := in.Symbol
	if strings.TrimSpace(what) == "" {
		what = in.Query
	}
	return tools.Subject{Inputs: roots, Paths: roots, Show: oneLine(what)}, nil
}

func argumentError(suggestion, format string, args ...any) *tools.Error {
	return &tools.Error{
		Category:   tools.InvalidParameters,
		Message:    fmt.Sprintf(format, args...),
		Suggestion: suggestion,
	}
}

func (in searchArgs) checkArgs() error {
	pattern := in.FilePattern
	switch {
	case strings.TrimSpace(in.Query) == "" && strings.TrimSpace(in.Symbol) == "":
		return argumentError("For example {\"query\": \"where is the login checked\"} or {\"symbol\": \"NewServer\"}.",
			"give query, symbol, or both: there is nothing to look for")
	case len(in.Query) > maxQuery:
		return argumentError(
			"Say it in a sentence.", "query has %d bytes; at most %d are possible", len(in.Query), maxQuery,
		)
	case len(in.Symbol) > maxSymbol:
		return argumentError("Give a name.", "symbol has %d bytes; at most %d are possible", len(in.Symbol), maxSymbol)
	case len(pattern) > maxPattern || strings.Count(pattern, "**") > maxDoubling:
		return argumentError("", "file_pattern is too long, or has more than %d **", maxDoubling)
	case pattern != "" && !doublestar.ValidatePattern(pattern):
		return argumentError("Close every [ and {.", "file_pattern %q is not a valid pattern", pattern)
	}
	return nil
}

// pathMatcher returns whether a path fits file_pattern. A pattern without a slash is about the name of the file.
func (in searchArgs) pathMatcher() func(string) bool {
	pattern := strings.TrimPrefix(in.FilePattern, "./")
	switch {
	case pattern == "":
		return func(string) bool { return true }
	case !strings.Contains(pattern, "/"):
		return func(p string) bool {
			ok, _ := doublestar.Match(pattern, path.Base(p)) // the pattern was validated before
			return ok
		}
	}
	return func(p string) bool {
		ok, _ := doublestar.Match(pattern, p) // the pattern was validated before
		return ok
	}
}

// runSearch executes a call.
func (x *Index) runSearch(ctx context.Context, call *tools.Call, in searchArgs) (*tools.Result, error) {
	if err := in.checkArgs(); err != nil {
		return nil, err
	}
	view, err := x.Sources.For(ctx, call.Origin)
	if err != nil {
		return nil, err
	}
	defer view.Close()
	s := &search{
		x: x, ctx: ctx, call: call, view: view, args: in, pages: &pages{view: view, read: map[string]*page{}},
		want: newWanted(in.Query, in.Symbol, in.pathMatcher(), in.resultLimit()),
	}
	roots, err := x.searchedDirs(view, call.Origin)
	if err != nil {
		return nil, err
	}
	for _, path := range roots {
		s.roots = append(s.roots, x.loadRoot(path))
	}
	if len(s.roots) == 0 {
		return nil, tools.Refused(
			reason.New(reason.IndexUnreadable), "Use grep and find_path in the working directory.",
		)
	}
	if err := s.runLayers(); err != nil {
		return nil, err
	}
	return s.renderHits(), nil
}

// renderHits renders the hits.
func (s *search) renderHits() *tools.Result {
	var b strings.Builder
	for i, h := range s.hits {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "[%d] %s:%d-%d\n    %s\n", i+1, h.Path, h.Start, h.End, h.Snippet)
		if h.Hover != "" {
			fmt.Fprintf(&b, "    hover: %s\n", h.Hover)
		}
		fmt.Fprintf(&b, "    source: %s\n    score: %.2f\n", h.Source, h.Score)
	}
	if len(s.hits) == 0 {
		b.WriteString("No code matches found\n")
	}
	for _, note := range s.notes {
		b.WriteString(note + "\n")
	}
	raw := searchResult{Results: s.hits, Locations: []string{}}
	if raw.Results == nil {
		raw.Results = []hit{}
	}
	for _, h := range s.hits {
		raw.Locations = append(raw.Locations, h.Path)
	}
	return &tools.Result{Text: strings.TrimSuffix(b.String(), "\n"), Raw: raw, Truncated: len(s.notes) > 0}
}

// searchResult is the raw form of a result.
type searchResult struct {
	Results   []hit    `json:"results"`
	Locations []string `json:"locations"`
}
