package command

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Unit is one simple command of a plain script, in the form that standing approvals compare.
type Unit struct {
	// Text is its source, including redirections.
	Text string
	// Words are its words in a normal form: two words are equal only if bash reads them in the same way. A quoted *
	// differs from an unquoted one.
	Words []string
	// Feed are the words of the commands whose output it reads through a pipe, in the order of the pipe.
	Feed [][]string
	// Fed is Feed as source text.
	Fed []string
	// Stdin are the files that are redirected to its input.
	Stdin []string
	// Dir is the directory in which it runs: that of a leading "cd DIR &&"; "" for the script's own.
	Dir string
}

// Units splits a plain script into its commands. Plain means simple commands with literal words, joined by ; && || or
// |, after at most one "cd DIR &&". ok is false for everything else: an assignment, an expansion, a here-document, a
// redirection that writes, a loop, a function, a builtin that changes the meaning of later commands.
func Units(text string) (units []Unit, ok bool) {
	if unreadable(text) != "" || !utf8.ValidString(text) {
		return nil, false
	}
	file, err := parsed(text)
	if err != nil || len(file.Last) > 0 || len(file.Stmts) == 0 {
		return nil, false
	}
	p := plainScript{src: text, ok: true}
	if len(file.Stmts) == 1 {
		p.dir = p.leave(file.Stmts[0])
	}
	for _, stmt := range file.Stmts {
		p.statement(stmt, nil)
	}
	if !p.ok || len(p.units) == 0 {
		return nil, false
	}
	return p.units, true
}

// parsed returns the syntax tree of a text. It converts panics of the parser to errors.
func parsed(text string) (file *syntax.File, err error) {
	defer func() { err = cmp.Or(panicked(recover()), err) }()
	parser := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	return parser.Parse(strings.NewReader(text), "")
}

// panicked returns the error for a recovered value; nil for none.
func panicked(value any) error {
	if value == nil {
		return nil
	}
	return errors.New("the shell parser gave up")
}

// plainScript collects the units of one text.
type plainScript struct {
	src   string
	dir   string
	first *syntax.Stmt // the leading cd, which is not a unit
	units []Unit
	ok    bool
}

// leave returns the directory of a leading "cd DIR &&" on which everything after it depends.
func (p *plainScript) leave(stmt *syntax.Stmt) string {
	and := false
	for bare(stmt) {
		binary, ok := stmt.Cmd.(*syntax.BinaryCmd)
		if !ok {
			break
		}
		if binary.Op != syntax.AndStmt {
			return ""
		}
		and, stmt = true, binary.X
	}
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !and || !ok || !bare(stmt) || len(call.Assigns) > 0 || len(call.Args) != 2 || call.Args[0].Lit() != "cd" {
		return ""
	}
	to, ok := p.word(call.Args[1])
	if !ok || to.open || to.value == "" || to.value[0] == '-' || slices.Contains(strings.Split(to.value, "/"), "..") {
		return ""
	}
	p.first = stmt
	return to.value
}

// bare reports whether a statement consists only of its command.
func bare(stmt *syntax.Stmt) bool {
	return len(stmt.Redirs) == 0 && len(stmt.Comments) == 0 && !stmt.Negated && !stmt.Background && !stmt.Coprocess
}

func (p *plainScript) statement(stmt *syntax.Stmt, feed []Unit) {
	if stmt == p.first {
		return
	}
	if stmt.Background || stmt.Coprocess || len(stmt.Comments) > 0 {
		p.ok = false
		return
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		p.call(stmt, cmd, feed)
	case *syntax.BinaryCmd:
		from := len(p.units)
		p.ok = p.ok && len(stmt.Redirs) == 0
		switch {
		case cmd.Op == syntax.AndStmt || cmd.Op == syntax.OrStmt:
			// A list that reads from a pipe is a group, which is not plain.
			p.statement(cmd.X, feed)
			p.statement(cmd.Y, feed)
		case cmd.Op == syntax.Pipe:
			p.statement(cmd.X, feed)
			p.statement(cmd.Y, append(slices.Clip(feed), p.units[from:]...))
		default:
			p.ok = false
		}
	default:
		p.ok = false
	}
}

func (p *plainScript) call(stmt *syntax.Stmt, cmd *syntax.CallExpr, feed []Unit) {
	if len(cmd.Assigns) > 0 || len(cmd.Args) == 0 {
		p.ok = false
		return
	}
	u := Unit{Dir: p.dir}
	end := cmd.End().Offset()
	begin := cmd.Pos().Offset()
	for i, arg := range cmd.Args {
		w, ok := p.word(arg)
		if !ok || i == 0 && (w.open || w.value == "" || changesState(w.value)) {
			p.ok = false
			return
		}
		u.Words = append(u.Words, w.text())
	}
	for _, r := range stmt.Redirs {
		if !p.redirect(&u, r) {
			p.ok = false
			return
		}
		begin, end = min(begin, r.Pos().Offset()), max(end, r.End().Offset())
	}
	u.Text = p.src[begin:end]
	for i := range feed {
		u.Feed, u.Fed = append(u.Feed, feed[i].Words), append(u.Fed, feed[i].Text)
		u.Stdin = append(u.Stdin, feed[i].Stdin...)
	}
	p.units = append(p.units, u)
}

// redirect accepts a redirection that only reads a named file, copies a descriptor or drops output.
func (p *plainScript) redirect(u *Unit, r *syntax.Redirect) bool {
	if r.Word == nil || r.Hdoc != nil || r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
		return false
	}
	to, ok := p.word(r.Word)
	if !ok || to.open {
		return false
	}
	switch r.Op {
	case syntax.RdrIn:
		u.Stdin = append(u.Stdin, to.value)
		return true
	case syntax.DplIn, syntax.DplOut:
		return to.value != "" && strings.Trim(strings.TrimSuffix(to.value, "-"), "0123456789") == ""
	case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll:
		return to.value == "/dev/null"
	default:
		return false
	}
}

// changesState reports whether a builtin may change the meaning of the same words after it.
func changesState(name string) bool {
	switch name {
	case "cd", "pushd", "popd", "export", "declare", "typeset", "local", "readonly", "set", "unset", "shopt", "alias",
		"unalias", "enable", "hash", "trap", "umask", "ulimit", "exec", "source", ".", "eval", "read", "mapfile",
		"readarray", "getopts", "printf", "let", "wait", "builtin", "command", "bind", "complete", "compopt", "fc",
		"coproc", "suspend":
		return true
	}
	return false
}

// plainWord is a word that bash can only expand to file names.
type plainWord struct {
	value string // with quotes undone
	exact string // each character with its quoting, for an open word
	open  bool   // an unquoted character that bash may expand
}

// text returns the normal form of the word.
func (w plainWord) text() string {
	if w.open {
		return w.exact
	}
	if w.value != "" && strings.Trim(w.value, wordSafe) == "" {
		return w.value
	}
	return "'" + strings.ReplaceAll(w.value, "'", `'\''`) + "'"
}

// wordSafe are the characters that need no quotes.
const wordSafe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-"

// word converts a literal word; ok is false if it is not literal.
func (p *plainScript) word(n *syntax.Word) (w plainWord, ok bool) {
	var value, exact strings.Builder
	quoted := func(s string) {
		value.WriteString(s)
		for _, r := range s {
			if r > 'z' || !isAlnum(byte(r)) {
				exact.WriteByte('\\')
			}
			exact.WriteRune(r)
		}
	}
	for _, part := range n.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			w.open = literal(part.Value, &value, &exact, quoted) || w.open
		case *syntax.SglQuoted:
			if part.Dollar {
				quoted(ansi(part.Value))
			} else {
				quoted(part.Value)
			}
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				lit, plain := inner.(*syntax.Lit)
				if !plain || part.Dollar {
					return w, false
				}
				quoted(unescapeQuoted(lit.Value))
			}
		default:
			return w, false
		}
	}
	w.value, w.exact = value.String(), exact.String()
	return w, !w.open || !strings.Contains(w.value, "\n")
}

// literal reads the unquoted part of a word. open reports a character that bash may expand.
func literal(text string, value, exact *strings.Builder, quoted func(string)) (open bool) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] != '\n' {
				_, size := utf8.DecodeRuneInString(text[i:])
				quoted(text[i : i+size])
				i += size - 1
			}
		case strings.IndexByte("*?[]{}", c) >= 0, c == '~' && homeMayStart(value.String()):
			open = true
			value.WriteByte(c)
			exact.WriteByte(c)
		default:
			value.WriteByte(c)
			exact.WriteByte(c)
		}
	}
	return open
}

// homeMayStart reports whether an unquoted ~ after before may expand to a home directory.
func homeMayStart(before string) bool {
	return before == "" || strings.HasSuffix(before, ":") || strings.HasSuffix(before, "=")
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
