package command

import (
	"slices"

	"github.com/zephbot/zephbot/policy/reason"

	"mvdan.cc/sh/v3/syntax"
)

// reasonArithmetic is why arithmetic with anything but numbers is not certain.
const reasonArithmetic = "arithmetic may run code that is hidden in a value"

// compareWithPlain compares what the parser found in the text of w with what the plain grammar finds, and records why
// bash may run something else. doubt reports that commands other than those in the tree may run, so that the text
// must be searched for names again.
func (w *walker) compareWithPlain() (doubt bool) {
	plain := readPlain(w.src, make([]token, 0, len(w.tokens)))
	why, doubt := plain.differsFrom(w.tokens)
	if why.Code != "" {
		w.addIndirect(why)
	}
	return doubt
}

// differsFrom returns why a text is not plain, or how its tokens differ from those of another reading; none if it is
// plain and they are equal. It sorts both lists.
func (r *plainReader) differsFrom(tokens []token) (why reason.Reason, doubt bool) {
	if r.reason != "" {
		return notPlain(r.reason), r.doubt
	}
	slices.Sort(r.tokens)
	slices.Sort(tokens)
	if !slices.Equal(r.tokens, tokens) {
		return reason.New(reason.TextReadings), true
	}
	return reason.Reason{}, false
}

// notPlain returns the reason for a person.
func notPlain(why string) reason.Reason {
	if why == reasonArithmetic {
		return reason.New(reason.ArithmeticRuns)
	}
	return reason.Reason{Code: reason.TextUnplain, Detail: why}
}

// markNode stores, for agree, what the parser found at a node.
func (w *walker) markNode(kind byte, from, to syntax.Pos) {
	w.tokens = append(w.tokens, tokenAt(kind, int(from.Offset()), int(to.Offset())))
}

// markCall marks the words and assignments of a simple command.
func (w *walker) markCall(n *syntax.CallExpr) {
	for _, assign := range n.Assigns {
		w.markNode(tokenAssign, assign.Pos(), assign.End())
	}
	if len(n.Args) == 0 {
		return
	}
	for _, arg := range n.Args {
		w.markNode(tokenWord, arg.Pos(), arg.End())
	}
	w.markNode(tokenCall, n.Args[0].Pos(), n.Args[len(n.Args)-1].End())
}

// markDeclaration marks the words of declare and similar builtins.
func (w *walker) markDeclaration(n *syntax.DeclClause) {
	w.markNode(tokenWord, n.Variant.Pos(), n.Variant.End())
	end := n.Variant.End()
	for _, arg := range n.Args {
		w.markNode(tokenWord, arg.Pos(), arg.End())
		end = arg.End()
	}
	w.markNode(tokenCall, n.Variant.Pos(), end)
}

// markRedirect marks a redirection.
func (w *walker) markRedirect(n *syntax.Redirect) {
	w.markNode(tokenRedirect, n.OpPos, n.Word.End())
	if n.Hdoc != nil && len(n.Hdoc.Parts) > 0 {
		w.markNode(tokenBody, n.Hdoc.Pos(), n.Hdoc.Pos())
	}
}
