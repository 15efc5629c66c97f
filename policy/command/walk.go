package command

import (
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"

	"mvdan.cc/sh/v3/syntax"
)

// walker visits the syntax tree of one text.
type walker struct {
	*finder
	src    string
	at     place
	frames []frame
	piped  *stdin  // input of the statement being entered
	tokens []token // what the second reading must find too
	room   []word  // buffer for the words of one command
	// prefixes are the assignments before commands, which do not stay.
	prefixes map[*syntax.Assign]bool
}

// frame describes a node until its children are done.
type frame struct {
	deeper bool // the node has increased the depth
	runs   bool // a call or pipe: check whether it runs what it downloads
	from   int  // number of commands before it
}

// visitNode returns the callback of syntax.Walk.
func (w *walker) visitNode(node syntax.Node) bool {
	if node == nil {
		w.leaveNode()
		return true
	}
	fr := frame{from: len(w.out.Commands)}
	switch n := node.(type) {
	case *syntax.Stmt:
		w.piped = w.readRedirects(n.Redirs)
	case *syntax.CallExpr:
		fr.runs = true
		w.readCall(n)
	case *syntax.BinaryCmd:
		fr.runs = n.Op == syntax.Pipe || n.Op == syntax.PipeAll
	case *syntax.Subshell:
		fr.deeper = true
	case *syntax.CmdSubst:
		fr.deeper = true
		w.markNode(tokenSubst, n.Pos(), n.End())
	case *syntax.ProcSubst:
		fr.deeper = true
	case *syntax.FuncDecl:
		fr.deeper, w.piped = true, nil
	default:
		w.readDetail(node)
	}
	if fr.deeper {
		w.at.depth++
	}
	w.frames = append(w.frames, fr)
	return true
}

// leaveNode ends the node on top of the stack.
func (w *walker) leaveNode() {
	fr := w.frames[len(w.frames)-1]
	w.frames = w.frames[:len(w.frames)-1]
	if fr.deeper {
		w.at.depth--
	}
	if fr.runs && w.lastDownload > fr.from && w.lastTake > fr.from {
		w.out.RunsDownload = true
	}
}

// readDetail handles the nodes that are not commands but may change something. What the plain grammar refuses, agree
// reports: arithmetic with variables, subscripts, functions, coprocesses, process substitutions.
func (w *walker) readDetail(node syntax.Node) {
	switch n := node.(type) {
	case *syntax.DeclClause:
		w.readDeclare(n)
	case *syntax.LetClause:
		var words []word
		for text := range strings.FieldsSeq(w.nodeText(n)) {
			words = append(words, word{text: text})
		}
		w.recordCommand(words, w.at)
	case *syntax.Assign:
		w.readAssign(n)
	case *syntax.ParamExp:
		w.readParam(n)
	case *syntax.WordIter:
		w.recordVariable(n.Name.Value, "a loop")
		for _, item := range n.Items {
			w.giveVariable(n.Name.Value, w.appendWords(nil, item)...)
		}
	}
}

// readCall reads one simple command.
func (w *walker) readCall(n *syntax.CallExpr) {
	w.markCall(n)
	at := w.at
	at.stdin = w.piped
	w.piped = nil
	if len(n.Args) == 0 {
		return
	}
	for i, a := range n.Assigns {
		if i == 0 {
			at.sets = slices.Clip(at.sets)
		}
		at.sets = append(at.sets, w.prefixVariable(a))
		if w.prefixes == nil {
			w.prefixes = map[*syntax.Assign]bool{}
		}
		w.prefixes[a] = true
	}
	words := w.room[:0]
	for _, arg := range n.Args {
		words = w.appendWords(words, arg)
	}
	w.room = words
	if len(words) == 0 {
		w.addIndirect(reason.New(reason.NameEmpty))
		return
	}
	w.written = w.src[n.Args[0].Pos().Offset():n.Args[len(n.Args)-1].End().Offset()]
	w.recordCommand(words, at)
}

// readDeclare handles declare, export, local, readonly, typeset and nameref.
func (w *walker) readDeclare(n *syntax.DeclClause) {
	w.markDeclaration(n)
	words := []word{{text: n.Variant.Value}}
	for _, arg := range n.Args {
		if arg.Name == nil && arg.Value != nil {
			words = w.appendWords(words, arg.Value) // not an assignment in the grammar: export {A,PATH}=x
			continue
		}
		var value word
		if arg.Name != nil {
			value.text = arg.Name.Value
		}
		switch {
		case arg.Array != nil || arg.Index != nil:
			value = word{text: w.nodeText(arg), mark: MarkExpansion}
		case arg.Value != nil:
			v := w.singleWord(arg.Value)
			v.text = value.text + "=" + v.text
			value = v
		}
		words = append(words, value)
	}
	w.declared = true
	w.recordCommand(words, w.at)
	w.declared = false
}

// readAssign records variables that determine what runs.
func (w *walker) readAssign(n *syntax.Assign) {
	w.arrays = w.arrays || n.Array != nil
	if n.Name != nil && !n.Naked {
		if w.prefixes[n] {
			w.inShell(n.Name.Value, w.assignedValue(n), anAssignment)
		} else {
			w.recordValue(n.Name.Value, w.assignedValue(n), anAssignment)
		}
		if n.Value != nil {
			w.giveVariable(n.Name.Value, w.singleWord(n.Value))
		}
	}
}

// prefixVariable returns an assignment before a command, which gets the variable.
func (w *walker) prefixVariable(n *syntax.Assign) Variable {
	v := Variable{Name: n.Name.Value, Value: w.assignedValue(n)}
	v.Known = !n.Append && n.Array == nil && (n.Value == nil || w.singleWord(n.Value).mark&^MarkPattern == 0)
	v.Harmless = isHarmless(v.Name, v.Value)
	if ObeyedByShell(v.Name) {
		w.recordExport(v.Name, v.Value, anAssignment)
	}
	return v
}

// assignedValue returns the value of an assignment, in source form if it is not known.
func (w *walker) assignedValue(n *syntax.Assign) string {
	value := ""
	if n.Value != nil {
		value = w.singleWord(n.Value).text
	}
	if n.Append {
		value = "+=" + value
	}
	return value
}

// readParam records expansions that set a variable: ${PATH:=x}.
func (w *walker) readParam(n *syntax.ParamExp) {
	if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
		w.recordVariable(n.Param.Value, "an expansion")
	}
}

// readRedirects records the redirections of a statement and returns the input that they provide.
func (w *walker) readRedirects(list []*syntax.Redirect) *stdin {
	var in *stdin
	for _, n := range list {
		red := Redirect{Op: n.Op.String()}
		switch n.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if n.Hdoc == nil {
				in = &stdin{known: true}
				break
			}
			body := w.readHeredoc(n)
			red.Dynamic = !body.known
			in = &body
		default:
			target := w.singleWord(n.Word)
			red.Target, red.Dynamic = target.text, target.mark != 0
			if n.Op == syntax.WordHdoc {
				in = &stdin{text: target.text, known: target.mark&MarkExpansion == 0, here: true}
			}
			red.Writes = mayWrite(n.Op, target)
			switch {
			case isSocket(target.text):
				w.addIndirect(reason.New(reason.RedirectionNetwork))
			case n.Op == syntax.RdrIn && target.mark&^MarkTilde != 0:
				w.addIndirect(reason.New(reason.RedirectionUnknown))
			}
		}
		w.out.Redirects = append(w.out.Redirects, red)
		w.markRedirect(n)
	}
	return in
}

// readHeredoc returns the body of a here-document in the form that the command reads.
func (w *walker) readHeredoc(n *syntax.Redirect) stdin {
	body := stdin{known: true}
	quoted := true
	if len(n.Word.Parts) == 1 {
		lit, ok := n.Word.Parts[0].(*syntax.Lit)
		quoted = !ok || strings.IndexByte(lit.Value, '\\') >= 0
	}
	var text strings.Builder
	for _, part := range n.Hdoc.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			body.known = false
			text.WriteString(w.nodeText(part))
			continue
		}
		if quoted {
			text.WriteString(lit.Value)
		} else {
			text.WriteString(unescapeQuoted(lit.Value))
		}
	}
	body.text = text.String()
	return body
}

// mayWrite reports whether a redirection may create or change a file.
func mayWrite(op syntax.RedirOperator, target word) bool {
	switch op {
	case syntax.RdrIn, syntax.WordHdoc, syntax.DplIn:
		return false
	case syntax.DplOut:
		rest := strings.TrimSuffix(target.text, "-")
		if target.mark == 0 && strings.Trim(rest, "0123456789") == "" {
			return false
		}
	}
	return target.text != "/dev/null"
}

// nodeText returns the text of a node. A position outside the text would be a bug of the parser, and ends in "gave up".
func (w *walker) nodeText(n syntax.Node) string {
	return w.src[n.Pos().Offset():n.End().Offset()]
}
