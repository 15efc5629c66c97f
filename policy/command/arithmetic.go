package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arithmetic records arithmetic with anything but decimal numbers: bash runs the command substitutions that it finds in
// the value of a variable, and in subscripts named by the value.
func (w *walker) arithmetic(node syntax.Node) {
	known := true
	switch n := node.(type) {
	case *syntax.ArithmExp:
		known = numeric(n.X)
	case *syntax.ArithmCmd:
		known = numeric(n.X)
	case *syntax.CStyleLoop:
		known = numeric(n.Init) && numeric(n.Cond) && numeric(n.Post)
	case *syntax.BinaryTest:
		if n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr {
			known = numericTest(n.X) && numericTest(n.Y)
		}
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			operand, ok := n.X.(*syntax.Word)
			known = ok && isName(operand.Lit())
		}
	}
	if !known {
		w.indirect(reasonArithmetic)
	}
}

// numeric reports whether an expression consists only of decimal numbers, or is missing.
func numeric(x syntax.ArithmExpr) (known bool) {
	switch n := x.(type) {
	case nil:
		known = true
	case *syntax.Word:
		known = isNumber(n.Lit())
	case *syntax.ParenArithm:
		known = numeric(n.X)
	case *syntax.UnaryArithm:
		known = numeric(n.X) && n.Op != syntax.Inc && n.Op != syntax.Dec
	case *syntax.BinaryArithm:
		known = numeric(n.X) && numeric(n.Y)
	}
	return known
}

// numericTest is numeric for an operand in [[ ]].
func numericTest(x syntax.TestExpr) bool {
	operand, ok := x.(*syntax.Word)
	return ok && isNumber(strings.TrimPrefix(operand.Lit(), "-"))
}

// isNumber reports whether text is a decimal number that is not also octal.
func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == "" && (text[0] != '0' || len(text) == 1)
}

// subscript records an index that is neither a number nor all of an array.
func (w *walker) subscript(x syntax.ArithmExpr) {
	if operand, ok := x.(*syntax.Word); ok && (operand.Lit() == "@" || operand.Lit() == "*") {
		return
	}
	if !numeric(x) {
		w.indirect(reasonArithmetic)
	}
}
