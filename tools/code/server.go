package code

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/tools"
)

// Server asks a language server through the tools of an MCP server. Safe for concurrent use.
type Server interface {
	// Ask calls a tool of the server on behalf of a call of search_code, under the same policy as any call of that
	// tool; what would need an approval is an error.
	Ask(ctx context.Context, call *tools.Call, tool string, args json.RawMessage) (string, error)
}

// Asks says how a language server is asked: the name of a tool, followed by its arguments as a JSON object, in which
// $symbol (qualified, as Type.Method, where it is known), $name (its last part), $file (absolute), $line and $column
// (from 1) are replaced. Empty = it is not asked that.
type Asks struct{ Symbols, References, Definition, Hover string }

// Validate returns what is wrong with a question to a language server; nil = nothing.
func Validate(ask string) error {
	_, _, err := prepareQuestion(ask, position{})
	return err
}

// position is what a language server is asked about.
type position struct {
	symbol, file string
	line, column int
}

// prepareQuestion returns the tool and the arguments of a question.
func prepareQuestion(ask string, at position) (tool string, args json.RawMessage, err error) {
	tool, template, _ := strings.Cut(strings.TrimSpace(ask), " ")
	if template = strings.TrimSpace(template); template == "" {
		template = "{}"
	}
	var values map[string]any
	if err := json.Unmarshal([]byte(template), &values); err != nil {
		return "", nil, fmt.Errorf(
			"want the name of a tool and a JSON object, such as go_search {\"query\": \"$symbol\"}: %w", err,
		)
	}
	for key, value := range values {
		text, ok := value.(string)
		switch {
		case !ok:
		case text == "$line":
			values[key] = at.line
		case text == "$column":
			values[key] = at.column
		default:
			values[key] = strings.NewReplacer("$symbol", at.symbol, "$name", lastPart(at.symbol), "$file", at.file).
				Replace(text)
		}
	}
	args, err = json.Marshal(values)
	return tool, args, err
}

// maxServerHits limits what is used of one answer of a language server.
const maxServerHits = 200

// searchServer asks the language server about the symbol. Its errors cost nothing but its hits.
func (s *search) searchServer() {
	name := s.want.askedName()
	if s.x.Server == nil || name == "" {
		return
	}
	at := position{symbol: name}
	if text, ok := s.askServer(s.x.Asks.Symbols, at); ok {
		s.addSymbols(text, name)
	}
	best := slices.IndexFunc(s.hits, func(h hit) bool {
		return h.Symbol == name || strings.HasSuffix(h.Symbol, "."+name)
	})
	if best < 0 && s.x.Asks.Definition != "" {
		best = s.askDefinition(name)
	}
	if best < 0 {
		return
	}
	h := s.hits[best]
	at.symbol, at.file, at.line, at.column = cmp.Or(h.Symbol, name), h.abs, h.line, s.columnOf(h, name)
	if text, ok := s.askServer(s.x.Asks.Hover, at); ok {
		s.hits[best].Hover = oneLine(text)
	}
	if !s.args.IncludeReferences {
		return
	}
	if text, ok := s.askServer(s.x.Asks.References, at); ok {
		s.addUses(text, h)
	}
}

// addUses adds the references in an answer about the symbol of a hit.
func (s *search) addUses(text string, of hit) {
	for _, l := range s.answeredPlaces(text, lastPart(of.Symbol)) {
		if r, ok := s.locatedHit(l, lastPart(of.Symbol), lspRefs, fromServer); ok &&
			(r.abs != of.abs || r.line != of.line) {
			s.hits = append(s.hits, r)
		}
	}
}

// lastPart returns the name of a symbol without its container.
func lastPart(symbol string) string { return symbol[strings.LastIndexByte(symbol, '.')+1:] }

// askedName returns the name that a language server is asked for; "" = none.
func (w *wanted) askedName() string {
	if w.name == "" && len(w.identifiers) > 0 {
		return w.identifiers[0]
	}
	return w.name
}

// addSymbols adds the symbols in an answer.
func (s *search) addSymbols(text, name string) {
	for _, l := range s.answeredPlaces(text, name) {
		if h, ok := s.locatedHit(l, name, lspSymbol, fromSymbols); ok && containsFold(cmp.Or(l.symbol, name), name) {
			s.hits = append(s.hits, h)
		}
	}
}

// columnOf returns where a name is in the line of a hit, from 1.
func (s *search) columnOf(h hit, name string) int {
	p := s.pages.pageOf(h.abs)
	if p == nil {
		return 1
	}
	return 1 + max(0, strings.Index(p.line(h.line), name))
}

// askDefinition asks for the definition of a symbol at the first place where it is used.
// It returns the index of the hit.
func (s *search) askDefinition(name string) int {
	before := len(s.hits)
	s.searchText(name, true)
	used := slices.Clone(s.hits[before:])
	s.hits = s.hits[:before]
	for _, u := range used[:min(len(used), 1)] {
		text, ok := s.askServer(s.x.Asks.Definition, position{name, u.abs, u.line, s.columnOf(u, name)})
		if !ok {
			return -1
		}
		for _, l := range s.answeredPlaces(text, name) {
			if h, ok := s.locatedHit(l, name, lspSymbol, fromSymbols); ok {
				h.Symbol = name
				s.hits = append(s.hits, h)
				return len(s.hits) - 1
			}
		}
	}
	return -1
}

// askServer asks the language server; false = it gave no answer.
func (s *search) askServer(ask string, at position) (string, bool) {
	if ask == "" || s.ctx.Err() != nil {
		return "", false
	}
	tool, args, err := prepareQuestion(ask, at)
	if err == nil {
		var text string
		if text, err = s.x.Server.Ask(s.ctx, s.call, tool, args); err == nil {
			return text, true
		}
	}
	if s.ctx.Err() == nil {
		s.x.logOnce(err, "code index: the language server did not answer; the other layers do")
	}
	return "", false
}

// answeredPlaces returns the places in an answer about a symbol, with lines from 1. Servers count from 0 or from 1:
// what fits the content of more lines is right, and 0, as the protocol has it, if that does not tell.
func (s *search) answeredPlaces(text, name string) []location {
	list := parseLocations(text)
	fits := func(l location, line int) int {
		abs, ok := s.canonicalPath(l.path)
		if !ok || l.line < 0 {
			return 0
		}
		p := s.pages.pageOf(abs)
		if p == nil || !wholeWord([]byte(p.line(line)), name) ||
			l.content != "" && strings.TrimSpace(p.line(line)) != l.content {
			return 0
		}
		return 1
	}
	asGiven, oneMore := 0, 0
	for _, l := range list {
		asGiven += fits(l, l.line)
		oneMore += fits(l, l.line+1)
	}
	if asGiven > oneMore {
		return list
	}
	for i := range list {
		if list[i].line >= 0 {
			list[i].line++
		}
	}
	return list
}

// locatedHit turns a place into a hit, if the conversation may read it and the symbol is there.
func (s *search) locatedHit(l location, name string, score float64, source string) (hit, bool) {
	abs, ok := s.canonicalPath(l.path)
	if !ok {
		return hit{}, false
	}
	p := s.pages.pageOf(abs)
	if p == nil {
		return hit{}, false
	}
	line, end := 0, l.end
	if l.line < 0 { // the server names the file only
		if f, ok := s.symbolIn(abs, cmp.Or(l.symbol, name)); ok {
			line, end = int(f.line), int(f.end)
		}
	}
	if strings.Contains(p.line(l.line), name) {
		line = l.line
	}
	if line == 0 {
		return hit{}, false
	}
	h := s.newHit(abs, line, max(end, line), line, cmp.Or(l.symbol, name), score, source)
	if source == fromServer {
		h.End = line
	}
	return h, true
}

// canonicalPath returns the path of a file that a server names, if it is in a directory that is searched.
func (s *search) canonicalPath(path string) (string, bool) {
	abs, ok := s.view.Canonical(path)
	if !ok {
		return "", false
	}
	for _, r := range s.roots {
		if rel, inside := strings.CutPrefix(abs, strings.TrimSuffix(r.path, "/")+"/"); inside {
			return abs, s.want.match(rel)
		}
	}
	return "", false
}

// symbolIn returns a symbol of a file that is indexed.
func (s *search) symbolIn(abs, name string) (entry, bool) {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	for _, r := range s.roots {
		rel, ok := strings.CutPrefix(abs, strings.TrimSuffix(r.path, "/")+"/")
		if !ok {
			continue
		}
		r.mu.RLock()
		defer r.mu.RUnlock()
		if f := r.files[rel]; f != nil {
			if i := slices.IndexFunc(f.entries, func(e entry) bool { return e.name == name }); i >= 0 {
				return f.entries[i], true
			}
		}
	}
	return entry{}, false
}
