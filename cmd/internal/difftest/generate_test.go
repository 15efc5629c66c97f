package difftest

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// maker makes up scripts: about half are written from a grammar, with now and then something nasty in between, the
// others are changed copies of seeds and of what was made before.
type maker struct {
	*rand.Rand
	seeds []string
	last  []string
	nasty int // one in so many places is nasty; 0 = none
	depth int
	b     strings.Builder
}

func newMaker(seed uint64, seeds []string) *maker {
	return &maker{Rand: rand.New(rand.NewPCG(seed, 9)), seeds: seeds} //nolint:gosec // scripts must be repeatable
}

// next is one script.
func (m *maker) next() string {
	var text string
	switch n := m.IntN(100); {
	case n < 80 || len(m.last) < 64:
		m.nasty = [...]int{0, 0, 0, 0, 0, 0, 60, 20, 10}[m.IntN(9)]
		m.b.Reset()
		m.list()
		text = m.b.String()
	case n < 90:
		text = m.mutate(m.pick(m.seeds))
	default:
		text = m.mutate(m.pick(m.last))
	}
	if len(text) > 2000 {
		text = text[:2000]
	}
	if len(m.last) < 256 {
		m.last = append(m.last, text)
	} else {
		m.last[m.IntN(256)] = text
	}
	return text
}

func (m *maker) pick(list []string) string { return list[m.IntN(len(list))] }

// field is one of the words of a list.
func (m *maker) field(list string) string { return m.pick(strings.Fields(list)) }

// one is true once in n times.
func (m *maker) one(n int) bool { return m.IntN(n) == 0 }

func (m *maker) put(parts ...string) {
	for _, p := range parts {
		m.b.WriteString(p)
		if m.nasty > 0 && m.one(m.nasty) {
			m.b.WriteString(m.pick(fragments))
		}
	}
}

// fragments are what parsers are known to read differently, and what runs, calculates or writes.
var fragments = strings.Split(strings.NewReplacer("⏎", "\n", "¶", "\r", "·", "\u00a0").Replace(
	`\⏎|# \⏎|# x⏎|#|$'|$"|'|"|`+"`"+`|\|<(canary)|>(canary)|<&-|>&-|<&-canary|>&1canary|time -- |time -p |time |! |!|{fd}>|@(|!(|((|))|$((|)|(|{|}|${|${x:-'}'|${x:-$'}'}|${x:-"}"}|${x:-$(canary)}|${x@P}|${!x}|`+
		`${x:y}|${a[x]}|$((x))|$[x]|;;|;&|;|⏎|&|coproc |function f |f() { canary; }|select x in |[[ | ]]| -v | -eq |a[$(canary)]|'a[$(canary)]'|a[x]=|let |printf -v |RANDOM=|> out|>out|>>out|&>out|&>/dev/null |&>/dev/null canary|${x:-'}'}; canary #'|${x:-"}"}; canary #"|"${x:-"}"; canary #"|${x:-\}}; canary|${x#'}'}; canary #'|${x/\}/}; canary|1>out|22>out|<>out|`+
		`>out |>&out|2>&1|2>/dev/null|</dev/tcp/127.0.0.1/1|<<EOF⏎|<<'EOF'⏎|<<-EOF⏎|⏎EOF⏎|\⏎EOF⏎|<<<|¶|·|~|*|{a,b}|{,}|{1..3}|$(|$(canary)|`+"`canary`"+`| canary|canary |canary|;canary|⏎canary⏎|&&canary|-- |=|+=|=(|$|$$|$@|"$@"|$x|"$x"|-k|-o |eval |exec |`+
		`set -k;|shopt -s extglob;|shopt -s expand_aliases⏎alias ls=canary⏎|IFS=x |PATH=. |esac|done|fi|in |do |then |\\|\'|\"|\$|`+"\\`"), "|")

// list is commands with something between them.
func (m *maker) list() {
	if m.depth++; m.depth > 3 {
		m.simple()
		m.depth--
		return
	}
	for n := 1 + m.IntN(3)*m.IntN(2); ; n-- {
		if m.one(3) {
			m.compound()
		} else {
			m.simple()
		}
		if n <= 1 {
			break
		}
		m.put(m.pick([]string{"; ", "\n", " && ", " || ", " | ", " |& ", " & ", ";", "|", " \\\n && ", " # x\n", "\n# it's \"x\" $(\n", "&&\n"}))
	}
	m.depth--
}

// simple is a simple command.
func (m *maker) simple() {
	if m.one(12) {
		m.put(m.field("x= y=1 a=b x=(a);local PATH=. IFS=, x+=y a[1]= z=~ SECONDS="), m.word(), " ")
	}
	if m.one(40) {
		m.redirect()
	}
	switch n := m.IntN(40); {
	case n == 0:
		m.put(m.field(canaries))
	case n == 1 && m.nasty > 0:
		m.put(m.word())
	case n < 8 && (m.nasty > 0 || m.one(2)):
		m.wrapped()
	case n < 22:
		m.put(m.field(builtins))
	default:
		m.put(m.field("echo echo git ls cat printf grep sort"))
	}
	for range m.IntN(4) {
		m.put(" ", m.word())
	}
	if m.one(10) {
		m.put(" ")
		m.redirect()
	}
}

// wrapped is a builtin with words that it gives a meaning.
func (m *maker) wrapped() {
	w := m.word()
	m.put(m.pick([]string{
		"eval " + w, "eval 'echo " + strings.ReplaceAll(w, "'", "") + "'", "bash -c 'ls " + strings.ReplaceAll(w, "'", "") + "'", "sh -c 'ls " + strings.ReplaceAll(w, "'", "") + "'", "bash -c " + w, "env " + w, "env ls " + w,
		"timeout 1 ls " + w, "timeout " + w + " ls", "command ls " + w, "builtin echo " + w, "exec ls " + w, "printf -v " + w, "printf " + w, "read " + w, "test -v " + w, "[ -v " + w + " ]", "[ " + w + " = " + w + " ]", "[ " + w + " -eq 1 ]", "test " + w,
		"[[ -v " + w + " ]]", "[[ " + w + " -eq 1 ]]", "[[ " + w + " == " + w + " ]]", "[[ -f " + w + " ]]", "[[ " + w + " =~ ^x$ ]]", "unset " + w, "declare " + w, "declare -a x=" + w, "declare x=" + w, "mapfile -tC " + w + " l", "read -a x; export x=" + w, "declare -i x=" + w, "export x=" + w, "export " + w, "let " + w,
		"trap " + w + " EXIT", "set -k; cat " + w, "set -- " + w, "set " + w, "((" + w + "))", "mapfile " + w, "getopts a " + w, "wait " + w, "cd " + w, "local " + w,
	}))
}

// redirect is a redirection.
func (m *maker) redirect() {
	m.put(m.pick([]string{
		"2>/dev/null", ">/dev/null", ">/dev/null 2>&1", "2>&1", ">&2", "</dev/null", "< f", "<<< " + m.word(), "2>&-", "<&-", "&>/dev/null", "<<EOF\nx $x\nEOF\n", "<<'EOF'\nit's $(canary)\nEOF\n", "<<-EOF\n\tx\n\tEOF\n", "> out", ">> out",
		"> " + m.word(), "< " + m.word(), "<&" + m.word(), ">&" + m.word(),
	}))
}

// word is one word, as it stands in a script.
func (m *maker) word() string {
	var b strings.Builder
	for n := 1 + m.IntN(2)*m.IntN(2); n > 0; n-- {
		b.WriteString(m.part())
		if m.nasty > 0 && m.one(m.nasty*2) {
			b.WriteString(m.pick(fragments))
		}
	}
	return b.String()
}

func (m *maker) part() string {
	switch m.IntN(22) {
	case 0:
		return "'" + m.pick([]string{"a b", "a[$(canary)]", "$(canary)", "($(canary))", "x;canary", "", "`canary`", "a\nb", "-v", "}", "echo $x", "canary"}) + "'"
	case 1, 2:
		return `"` + m.pick([]string{"a b", "$x", "${x}", "a$", "$(ls)", "a\nb", "\\$x \\\"", "${x:-a b}", "#x", "it's", "a[0]", "$@", "$((1+2))", "{a,b}", "a\\b", "canary", ""}) + `"`
	case 3:
		return m.pick([]string{"$x", "$y", "$i", "$f", "$c", "${x}", "$1", "$?", "$#", "${x:-y}", "${x%.*}", "${x##*/}", "${x/a/b}", "${x:1}", "${x:1:2}", "${#x}", "${a[0]}", "${a[@]}", "${x^^}", "$@", "$-", "$_"})
	case 4:
		return "$(" + m.field("ls pwd git") + " " + m.field("a $x 'b' \"c\" *") + ")"
	case 5:
		return "`" + m.field("ls pwd git") + "`"
	case 6:
		return m.pick([]string{"{a,b}", "{1..3}", "{}", "x{a,}", "HEAD@{1}", "{a,b}{c,d}", "a{b", "{a}", "{,}"})
	case 7:
		return m.pick([]string{"*", "*.txt", "f*", "[a-z]", "?", "~", "~/x", "\\*", "-*", "*canary*"})
	case 8:
		n := 9
		if m.nasty == 0 {
			n = 5
		}
		return "$((" + m.pick([]string{"1", "1+2", "2 * 3", "10%3", "1<2", "x", "x+1", "a[0]", "010"}[:n]) + "))"
	case 9:
		return `\` + m.field("$ a \" ' ; & ( # \\ ~ {")
	case 10:
		return m.pick([]string{"-n", "-e", "-v", "-x", "--", "-", "-c", "-p", "-a", "-i", "-s", "=", "==", "!", "-f", "-z", "]", "]]", "(", ")", "1", "0", "+x"})
	case 11:
		return m.pick([]string{"é", "→", "ü", "日本"})
	case 12:
		if m.nasty == 0 {
			return m.field("a b x y f g.txt")
		}
		return m.field("if then fi do done in case esac time for { } ! [[ function select coproc while")
	}
	return m.field("a b x y f g.txt d/f x=1 a.b-c a:b % @ canary ls echo PATH PATH=. RANDOM a[x]") + strings.Repeat(strconv.Itoa(m.IntN(9)), m.IntN(2))
}

// compound is a command with lists in it.
func (m *maker) compound() {
	switch m.IntN(10) {
	case 0:
		m.put("if ")
		m.list()
		m.put("; then ")
		m.list()
		if m.one(2) {
			m.put("\nelse ")
			m.list()
		}
		m.put("\nfi")
	case 1:
		m.put("while false; do ")
		m.list()
		m.put("; done")
	case 2, 3:
		m.put("for "+m.field("x y i f")+" in ", m.word(), " ", m.word(), m.pick([]string{"; do ", "\ndo ", ";do\n"}))
		m.list()
		m.put("; done")
	case 4:
		m.put("case ", m.word(), " in ", m.word(), ") ")
		m.list()
		m.put(";; ", m.pick([]string{"*", "a|b", "(x"}), ") ")
		m.list()
		m.put("\nesac")
	case 5:
		m.put("(")
		m.list()
		m.put(")")
	case 6:
		m.put("{ ")
		m.list()
		m.put("; }")
	case 7:
		m.put("[[ ", m.word(), m.pick([]string{" == ", " = ", " -nt ", " -eq ", " < ", " =~ ", " && ", " && canary == ", " || canary = "}), m.word(), " ]]")
	case 8:
		m.put(m.pick([]string{"! ", "time ", "time -p ", "! time "}))
		m.simple()
	default:
		m.put("echo \"$(")
		m.list()
		m.put(")\"")
	}
	if m.one(12) {
		m.put(" ")
		m.redirect()
	}
}

// mutate changes a script in one to four places.
func (m *maker) mutate(text string) string {
	for n := 1 + m.IntN(4); n > 0; n-- {
		at := m.IntN(len(text) + 1)
		to := min(len(text), at+m.IntN(8))
		switch m.IntN(6) {
		case 0, 1:
			text = text[:at] + m.pick(fragments) + text[at:]
		case 2:
			text = text[:at] + text[to:]
		case 3:
			text = text[:to] + text[at:]
		case 4:
			other := m.pick(m.last)
			from := m.IntN(len(other) + 1)
			text = text[:at] + other[from:min(len(other), from+m.IntN(30))] + text[at:]
		default:
			const odd = "\n\\'\"`$#(){}[]<>|&;!*?~=:-+@%, \t\r\x01\x7f"
			c := m.IntN(len(odd))
			text = text[:at] + odd[c:c+1] + text[min(len(text), at+m.IntN(2)):]
		}
	}
	return text
}
