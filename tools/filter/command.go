package filter

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/zephbot/zephbot/policy/command"
)

const (
	// maxCommand is the maximum length of a command in bytes; a longer one matches no rule.
	maxCommand = command.MaxText
	// maxShells is how many levels of bash -c "…" are followed.
	maxShells = 4
	// maxProducers is how many printing commands are examined.
	maxProducers = 64
)

// reading is what a command line tells about the text that it printed.
type reading struct {
	whole     string     // the command line itself, for exact rules
	producers [][]string // each command that prints something, in the spellings that rules match
	echoes    []string   // prefixes of lines that echo and printf wrote in between
	loose     bool       // an echo printed a text that is not known
	opaque    bool       // an unknown command made the text, or the command line cannot be parsed
	speaks    bool       // a program other than a search program printed something
	masked    bool       // exit code 0 does not say that the first producer succeeded
}

// readCommand analyses a command line. It never fails: what it cannot parse is opaque.
func readCommand(text string) reading {
	r := &reader{out: reading{whole: strings.TrimSpace(text)}}
	if len(text) > maxCommand {
		r.out.opaque = true
		return r.out
	}
	r.readScript(text, 0)
	return r.out
}

type reader struct {
	out      reading
	pipefail bool
}

func (r *reader) readScript(text string, depth int) {
	defer func() {
		if recover() != nil { // a bug of the parser must not cost the output
			r.out.opaque = true
		}
	}()
	if depth > maxShells || nestsTooDeep(text) {
		r.out.opaque = true
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		r.out.opaque = true
		return
	}
	r.readList(file.Stmts, text, depth)
}

// nestsTooDeep reports whether brackets are nested too deeply for the parser.
func nestsTooDeep(text string) bool {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[', '`':
			if open++; open > 200 {
				return true
			}
		case ')', '}', ']':
			open = max(open-1, 0)
		}
	}
	return false
}

func (r *reader) readList(stmts []*syntax.Stmt, text string, depth int) {
	for _, s := range stmts {
		before := len(r.out.producers)
		r.readStatement(s, text, depth)
		if s.Background || s.Negated || before > 0 && s != stmts[0] {
			r.out.masked = true
		}
	}
}

// readStatement records what a statement prints.
func (r *reader) readStatement(s *syntax.Stmt, text string, depth int) {
	if len(r.out.producers) >= maxProducers {
		r.out.opaque = true
		return
	}
	if toFile(s.Redirs) {
		r.out.masked = r.out.masked || len(r.out.producers) > 0
		return
	}
	switch c := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		r.readCall(c, text, depth)
	case *syntax.BinaryCmd:
		r.readBinary(c, text, depth)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			r.readStatement(c.Stmt, text, depth)
		}
	case *syntax.DeclClause, *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		r.out.masked = r.out.masked || len(r.out.producers) > 0
	default:
		r.readCompound(c, text, depth)
	}
}

// readCompound reads commands that contain lists of statements.
func (r *reader) readCompound(cmd syntax.Command, text string, depth int) {
	switch c := cmd.(type) {
	case *syntax.Block:
		r.readList(c.Stmts, text, depth)
		return
	case *syntax.Subshell:
		r.readList(c.Stmts, text, depth)
		return
	case *syntax.IfClause:
		for clause := c; clause != nil; clause = clause.Else {
			r.readList(clause.Cond, text, depth)
			r.readList(clause.Then, text, depth)
		}
	case *syntax.WhileClause:
		r.readList(append(slices.Clone(c.Cond), c.Do...), text, depth)
	case *syntax.ForClause:
		r.readList(c.Do, text, depth)
	default: // functions, case, coprocesses
		r.out.opaque = true
	}
	r.out.masked = true
}

// readBinary reads a && b, a || b and pipes.
func (r *reader) readBinary(c *syntax.BinaryCmd, text string, depth int) {
	if c.Op != syntax.Pipe && c.Op != syntax.PipeAll {
		r.readStatement(c.X, text, depth)
		before := len(r.out.producers)
		r.readStatement(c.Y, text, depth)
		if c.Op == syntax.OrStmt && before > 0 {
			r.out.masked = true
		}
		return
	}
	r.readStatement(c.X, text, depth)
	if !r.passesOn(c.Y, text) {
		r.out.opaque = true
	}
	if !r.pipefail {
		r.out.masked = true
	}
}

// passesOn reports whether a stage of a pipe passes lines through unchanged.
func (r *reader) passesOn(s *syntax.Stmt, text string) bool {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || toFile(s.Redirs) {
		return false
	}
	words := simpleWords(sourceText(call, text))
	return len(words) > 0 && lineStage(words)
}

// toFile reports whether standard output is redirected.
func toFile(redirects []*syntax.Redirect) bool {
	for _, rd := range redirects {
		switch rd.Op {
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
			if rd.N == nil || rd.N.Value == "1" {
				return true
			}
		}
	}
	return false
}

func sourceText(n syntax.Node, text string) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(text) || from > to {
		return ""
	}
	return text[from:to]
}

// simpleWords returns the words of a simple command without its wrappers; nil when it cannot be parsed.
func simpleWords(text string) []string {
	s := command.Parse(text)
	if s.Problem != "" || len(s.Commands) == 0 {
		return nil
	}
	at := 0
	for at+1 < len(s.Commands) && isTransparent(s.Commands[at].Name) &&
		len(s.Commands[at+1].Via) > len(s.Commands[at].Via) {
		at++
	}
	words := slices.Clone(s.Commands[at].Words)
	if len(words) > 0 && s.Commands[at].Name != "" {
		words[0] = s.Commands[at].Name
	}
	return words
}

// readCall records what a simple command prints.
func (r *reader) readCall(c *syntax.CallExpr, text string, depth int) {
	if len(c.Args) == 0 { // assignments alone
		return
	}
	own := sourceText(c, text)
	words := simpleWords(own)
	if len(words) == 0 {
		r.out.opaque = true
		return
	}
	name := words[0]
	switch {
	case name == "set":
		r.readSet(words)
	case isSilent(words):
		r.out.masked = r.out.masked || len(r.out.producers) > 0
	case name == "echo" || name == "printf":
		r.readEcho(words)
		r.out.masked = r.out.masked || len(r.out.producers) > 0
	case isShell(name):
		script, ok := shellScript(words)
		if !ok {
			r.out.opaque = true
			return
		}
		r.readScript(script, depth+1)
	default:
		r.out.producers = append(r.out.producers, commandSpellings(own, words))
		r.out.speaks = r.out.speaks || !isSearch(words)
	}
}

// readSet reads the shell options that matter here.
func (r *reader) readSet(words []string) {
	r.pipefail = r.pipefail || slices.Contains(words, "pipefail")
	if len(words) > 1 && strings.HasPrefix(words[1], "-") && strings.Contains(words[1], "x") {
		r.out.echoes = append(r.out.echoes, "+ ") // the shell prints the commands that it runs
	}
}

// readEcho records the prefixes of the lines that echo writes.
func (r *reader) readEcho(words []string) {
	at := 1
	for at < len(words) && (words[at] == "-e" || words[at] == "-n" || words[at] == "-ne" || words[at] == "-en" ||
		words[at] == "--") {
		at++
	}
	known, _, whole := cutAny(strings.Join(words[at:], " "), "$`\\%*?")
	for i, one := range strings.Split(known, "\n") {
		if one = strings.TrimSpace(one); one != "" {
			r.out.echoes = append(r.out.echoes, one)
		} else if i == 0 && !whole {
			r.out.loose = true
		}
	}
	if !whole && strings.Contains(strings.Join(words[at:], " "), "\\n") {
		r.out.loose = true
	}
}

// cutAny cuts before the first occurrence of any of the bytes. whole reports that there was none.
func cutAny(s, bytes string) (before, after string, whole bool) {
	if i := strings.IndexAny(s, bytes); i >= 0 {
		return s[:i], s[i:], false
	}
	return s, "", true
}

// shellScript returns the text of bash -c "text".
func shellScript(words []string) (string, bool) {
	for i, w := range words[1:] {
		if strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.HasSuffix(w, "c") && i+2 < len(words) {
			return words[i+2], true
		}
		if !strings.HasPrefix(w, "-") {
			return "", false
		}
	}
	return "", false
}

// commandSpellings returns the forms of a command that rules are matched with: as written; without assignments,
// wrappers and path; and without runner and global options.
func commandSpellings(own string, words []string) []string {
	out := []string{strings.TrimSpace(own), strings.Join(words, " ")}
	inner := words
	for range 4 {
		next := unwrapRunner(inner)
		if next == nil {
			break
		}
		inner = next
		out = append(out, strings.Join(inner, " "))
	}
	if short := withoutGlobals(inner); short != nil {
		out = append(out, strings.Join(short, " "))
	}
	return slices.Compact(out)
}
