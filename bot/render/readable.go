package render

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mathSigns are commands of formulas that are one sign, or a name that stands upright.
var mathSigns = readSigns(`alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ ` +
	`lambda λ mu μ nu ν xi ξ pi π rho ρ sigma σ tau τ upsilon υ phi φ varphi φ chi χ psi ψ omega ω ` +
	`Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω ` +
	`sum ∑ prod ∏ int ∫ oint ∮ partial ∂ nabla ∇ infty ∞ forall ∀ exists ∃ emptyset ∅ varnothing ∅ angle ∠ degree ° ` +
	`hbar ℏ ell ℓ Re ℜ Im ℑ aleph ℵ prime ′ circ ∘ bullet • star ⋆ dagger † ldots … dots … cdots ⋯ vdots ⋮ ` +
	`langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ neg ¬ lnot ¬ top ⊤ bot ⊥ ` +
	`sin sin cos cos tan tan cot cot arcsin arcsin arccos arccos arctan arctan sinh sinh cosh cosh tanh tanh ` +
	`log log ln ln lg lg exp exp lim lim max max min min sup sup inf inf det det gcd gcd dim dim ker ker arg arg deg deg`)

// mathRelations are commands with a space at both sides.
var mathRelations = readSigns(`le ≤ leq ≤ ge ≥ geq ≥ ne ≠ neq ≠ ll ≪ gg ≫ approx ≈ sim ∼ simeq ≃ cong ≅ equiv ≡ propto ∝ ` +
	`in ∈ notin ∉ ni ∋ subset ⊂ subseteq ⊆ supset ⊃ supseteq ⊇ cup ∪ cap ∩ setminus ∖ times × cdot · div ÷ pm ± mp ∓ ` +
	`oplus ⊕ otimes ⊗ to → rightarrow → leftarrow ← leftrightarrow ↔ Rightarrow ⇒ Leftarrow ⇐ Leftrightarrow ⇔ ` +
	`implies ⇒ iff ⇔ mapsto ↦ longrightarrow ⟶ uparrow ↑ downarrow ↓ land ∧ wedge ∧ lor ∨ vee ∨ mid ∣ parallel ∥ ` +
	`perp ⊥ vdash ⊢ models ⊨ lt < gt >`)

// mathRaised and mathLowered are the signs that exist above and below the line.
var (
	mathRaised  = pairLetters("0123456789+-=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWβγδθφχ′∘*−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵝᵞᵟᶿᵠᵡ′°*⁻")
	mathLowered = pairLetters("0123456789+-=()aehijklmnoprstuvxβγρφχ−", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ₋")
	mathBoard   = pairLetters("CHNPQRZ", "ℂℍℕℙℚℝℤ")
	mathAccents = map[string]string{
		"bar": "\u0304", "overline": "\u0304", "hat": "\u0302", "vec": "\u20d7", "dot": "\u0307", "ddot": "\u0308",
		"tilde": "\u0303",
	}
)

// readSigns reads names, each followed by its sign.
func readSigns(list string) map[string]string {
	fields, m := strings.Fields(list), map[string]string{}
	for i := 0; i+1 < len(fields); i += 2 {
		m[fields[i]] = fields[i+1]
	}
	return m
}

// pairLetters maps the runes of from to those of to.
func pairLetters(from, to string) map[rune]rune {
	m, signs := map[rune]rune{}, []rune(to)
	for i, r := range []rune(from) {
		m[r] = signs[i]
	}
	return m
}

// readableFormula writes a simple formula, given without its marks, in Unicode: "x_1^2 \le \alpha" is "x₁² ≤ α". ok is
// false if it has something that has no such form; it is then better shown as it was written.
func readableFormula(source string) (text string, ok bool) {
	f := &formulaReader{rest: strings.TrimSpace(source), ok: true}
	text = strings.Join(strings.Fields(f.sequence(false)), " ")
	return text, f.ok && text != "" && !hasWord(source)
}

// looksLikeFormula reports whether a text between single dollars, which may also be two amounts of money or a variable
// of a shell, is a formula for sure.
func looksLikeFormula(source string) bool {
	if utf8.RuneCountInString(source) == 1 {
		return unicode.IsLetter([]rune(source)[0])
	}
	return strings.ContainsAny(source, `\^_=<>`) && !strings.Contains(source, "$")
}

// hasWord reports whether a formula has a word outside of commands and braces: then it is rather a name, such as
// "my_variable".
func hasWord(source string) bool {
	letters, depth, command := 0, 0, false
	for _, r := range source {
		switch {
		case r == '\\':
			letters, command = 0, true
		case r < utf8.RuneSelf && unicode.IsLetter(r):
			if letters++; letters > 2 && !command && depth == 0 {
				return true
			}
		default:
			letters, command = 0, false
			depth += strings.Count("{", string(r)) - strings.Count("}", string(r))
		}
	}
	return false
}

// formulaReader reads a formula from left to right.
type formulaReader struct {
	rest string
	ok   bool // everything so far has a form in Unicode
	deep int
}

// maxFormulaDepth bounds braces in braces.
const maxFormulaDepth = 20

func (f *formulaReader) fail() string {
	f.ok, f.rest = false, ""
	return ""
}

// sequence reads up to the end, or to the brace that closes a group.
func (f *formulaReader) sequence(group bool) string {
	var b strings.Builder
	if f.deep++; f.deep > maxFormulaDepth {
		return f.fail()
	}
	defer func() { f.deep-- }()
	for f.ok && f.rest != "" {
		if group && f.rest[0] == '}' {
			f.rest = f.rest[1:]
			return b.String()
		}
		b.WriteString(f.atom())
	}
	if group { // it is never closed
		return f.fail()
	}
	return b.String()
}

// atom reads one sign, command or group.
func (f *formulaReader) atom() string {
	r, size := utf8.DecodeRuneInString(f.rest)
	f.rest = f.rest[size:]
	switch r {
	case '{':
		return f.sequence(true)
	case '^':
		return f.shifted(mathRaised)
	case '_':
		return f.shifted(mathLowered)
	case '\\':
		return f.command()
	case '\'':
		return "′"
	case '~':
		return " "
	case '}', '&', '$', '%', '#', '*', '`', '\n', utf8.RuneError:
		return f.fail()
	case '=', '<', '>':
		return " " + string(r) + " "
	}
	return string(r)
}

// argument reads what a command or a shift applies to.
func (f *formulaReader) argument() string {
	f.rest = strings.TrimLeft(f.rest, " ")
	if f.rest == "" || f.rest[0] == '^' || f.rest[0] == '_' {
		return f.fail()
	}
	return strings.TrimSpace(f.atom())
}

// shifted reads what stands above or below the line.
func (f *formulaReader) shifted(signs map[rune]rune) string {
	var b strings.Builder
	for _, r := range f.argument() {
		shifted, ok := signs[r]
		switch {
		case r == ' ':
		case !ok:
			return f.fail()
		default:
			b.WriteRune(shifted)
		}
	}
	return b.String()
}

// command reads a command after its backslash.
func (f *formulaReader) command() string {
	end := strings.IndexFunc(f.rest, func(r rune) bool { return r >= utf8.RuneSelf || !unicode.IsLetter(r) })
	switch {
	case f.rest == "":
		return f.fail()
	case end < 0:
		end = len(f.rest)
	case end == 0:
		return f.escape()
	}
	name := f.rest[:end]
	f.rest = f.rest[end:]
	if sign, ok := mathSigns[name]; ok {
		if sign == name && f.rest != "" && f.rest[0] != '(' && f.rest[0] != '^' && f.rest[0] != '_' {
			sign += " "
		}
		return sign
	}
	if sign, ok := mathRelations[name]; ok {
		return " " + sign + " "
	}
	if accent, ok := mathAccents[name]; ok {
		if of := f.argument(); utf8.RuneCountInString(of) == 1 {
			return of + accent
		}
		return f.fail()
	}
	return f.structure(name)
}

// escape reads a command that is one sign.
func (f *formulaReader) escape() string {
	sign := f.rest[0]
	f.rest = f.rest[1:]
	switch sign {
	case ',', ';', ':', ' ':
		return " "
	case '!':
		return ""
	case '{', '}', '%', '$', '#', '_', '&':
		return string(sign)
	case '|':
		return "‖"
	}
	return f.fail()
}

// structure reads the arguments of a command that has some.
func (f *formulaReader) structure(name string) string {
	switch name {
	case "frac", "dfrac", "tfrac":
		over := f.bracketed()
		return over + "/" + f.bracketed()
	case "sqrt":
		if strings.HasPrefix(f.rest, "[") {
			return f.fail()
		}
		return "√" + f.bracketed()
	case "text", "mathrm", "operatorname", "mathbf", "mathit", "textbf", "textit":
		word, rest, closed := strings.Cut(strings.TrimPrefix(f.rest, "{"), "}")
		if !closed || rest == f.rest || f.rest[0] != '{' || strings.ContainsAny(word, `\{$`) {
			return f.fail()
		}
		f.rest = rest
		return word
	case "mathbb":
		if sign, ok := mathBoard[[]rune(f.argument() + " ")[0]]; ok {
			return string(sign)
		}
	case "left", "right", "big", "Big", "bigl", "bigr":
		f.rest = strings.TrimPrefix(f.rest, ".")
		return ""
	case "quad", "qquad":
		return " "
	}
	return f.fail()
}

// bracketed reads an argument, in brackets unless it is one number or sign.
func (f *formulaReader) bracketed() string {
	s := f.argument()
	numeric := strings.IndexFunc(s, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
	if plain := strings.IndexFunc(s, func(r rune) bool {
		return strings.ContainsRune(" +-=·×/<>", r)
	}) < 0; numeric || plain && utf8.RuneCountInString(s) <= 3 {
		return s
	}
	return "(" + s + ")"
}
