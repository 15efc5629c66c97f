package command

import (
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
	if whyUnreadable(text) != "" || !utf8.ValidString(text) {
		return nil, false
	}
	p := plainScript{walker: walker{src: text}}
	err := parseFor(text, func(file *syntax.File) {
		p.ok = len(file.Last) == 0
		if len(file.Stmts) == 1 {
			p.dir = p.leadingDir(file.Stmts[0])
		}
		for _, stmt := range file.Stmts {
			p.addStatement(stmt, nil)
		}
	})
	if err != nil || !p.ok || len(p.units) == 0 {
		return nil, false
	}
	return p.units, true
}

// plainScript collects the units of one text.
type plainScript struct {
	walker
	dir   string
	first *syntax.Stmt // the leading cd, which is not a unit
	units []Unit
	ok    bool
}

// leadingDir returns the directory of a leading "cd DIR &&" on which everything after it depends.
func (p *plainScript) leadingDir(stmt *syntax.Stmt) string {
	and := false
	for isBare(stmt) {
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
	if !and || !ok || !isBare(stmt) || len(call.Assigns) > 0 || len(call.Args) != 2 || call.Args[0].Lit() != "cd" {
		return ""
	}
	to, ok := p.literalValue(call.Args[1])
	if !ok || to == "" || to[0] == '-' || slices.Contains(strings.Split(to, "/"), "..") {
		return ""
	}
	p.first = stmt
	return to
}

// isBare reports whether a statement consists only of its command.
func isBare(stmt *syntax.Stmt) bool {
	return len(stmt.Redirs) == 0 && len(stmt.Comments) == 0 && !stmt.Negated && !stmt.Background && !stmt.Coprocess
}

func (p *plainScript) addStatement(stmt *syntax.Stmt, feed []Unit) {
	if stmt == p.first {
		return
	}
	if stmt.Background || stmt.Coprocess || len(stmt.Comments) > 0 {
		p.ok = false
		return
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		p.addCall(stmt, cmd, feed)
	case *syntax.BinaryCmd:
		from := len(p.units)
		p.ok = p.ok && len(stmt.Redirs) == 0
		switch {
		case cmd.Op == syntax.AndStmt || cmd.Op == syntax.OrStmt:
			// A list that reads from a pipe is a group, which is not plain.
			p.addStatement(cmd.X, feed)
			p.addStatement(cmd.Y, feed)
		case cmd.Op == syntax.Pipe:
			p.addStatement(cmd.X, feed)
			p.addStatement(cmd.Y, append(slices.Clip(feed), p.units[from:]...))
		default:
			p.ok = false
		}
	default:
		p.ok = false
	}
}

func (p *plainScript) addCall(stmt *syntax.Stmt, cmd *syntax.CallExpr, feed []Unit) {
	if len(cmd.Assigns) > 0 || len(cmd.Args) == 0 {
		p.ok = false
		return
	}
	u := Unit{Dir: p.dir}
	end := cmd.End().Offset()
	begin := cmd.Pos().Offset()
	name, ok := p.literalValue(cmd.Args[0])
	p.ok = p.ok && ok && name != "" && !isOfKind("state", name)
	for _, arg := range cmd.Args {
		u.Words = append(u.Words, p.normalForm(arg))
	}
	for _, r := range stmt.Redirs {
		p.ok = p.ok && p.acceptRedirect(&u, r)
		begin, end = min(begin, r.Pos().Offset()), max(end, r.End().Offset())
	}
	u.Text = p.src[begin:end]
	for i := range feed {
		u.Feed, u.Fed = append(u.Feed, feed[i].Words), append(u.Fed, feed[i].Text)
		u.Stdin = append(u.Stdin, feed[i].Stdin...)
	}
	p.units = append(p.units, u)
}

// acceptRedirect accepts a redirection that only reads a named file, copies a descriptor or drops output.
func (p *plainScript) acceptRedirect(u *Unit, r *syntax.Redirect) bool {
	if r.Word == nil || r.Hdoc != nil || r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
		return false
	}
	to, ok := p.literalValue(r.Word)
	if !ok {
		return false
	}
	switch r.Op {
	case syntax.RdrIn:
		u.Stdin = append(u.Stdin, to)
		return true
	case syntax.DplIn, syntax.DplOut:
		return to != "" && strings.Trim(strings.TrimSuffix(to, "-"), "0123456789") == ""
	case syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll:
		return to == "/dev/null"
	default:
		return false
	}
}

// literalValue returns the value of a word that bash does not change; ok is false for others.
func (p *plainScript) literalValue(n *syntax.Word) (value string, ok bool) {
	w := p.singleWord(n)
	ok = w.mark == 0
	for _, part := range n.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			ok = ok && !strings.ContainsAny(part.Value, "{[")
		case *syntax.DblQuoted:
			ok = ok && !part.Dollar
		}
	}
	return w.text, ok
}

// normalForm returns the normal form of a word: its value in quotes if it needs them, or its source if bash may expand
// it to names of files. Others are not plain.
func (p *plainScript) normalForm(n *syntax.Word) string {
	value, ok := p.literalValue(n)
	switch {
	case !ok:
		value = p.nodeText(n)
		p.ok = p.ok && !p.singleWord(n).isDynamic() && !strings.ContainsAny(value, "\n\"")
	case value == "" || strings.Trim(value, wordSafe) != "":
		value = "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
	}
	return value
}

// wordSafe are the characters that need no quotes.
const wordSafe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-"
