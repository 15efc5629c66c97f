package scan

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// mostlyImage is the number of bytes of text next to an image up to which the image counts as the whole content.
const mostlyImage = 60

// still matches an image whose address carries no data: a file of a usual type, or one of the same site.
var still = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\.(?:png|jpe?g|gif|svg|webp|ico)\)?$|^<img`)
})

// around is how many bytes next to a match are used to decide whether it is an instruction.
const around = 110

// conditionsText is the table of contexts; its first lines describe the format.
//
//go:embed conditions.txt
var conditionsText string

// expressions are alternatives.
type expressions []*regexp.Regexp

func (e expressions) match(text string) bool {
	return slices.ContainsFunc(e, func(re *regexp.Regexp) bool { return re.MatchString(text) })
}

// setting says in which context a match is an instruction.
type setting struct {
	only expressions // one of these must be next to it or in it; nil = no condition
	not  expressions // none of these may be
	in   expressions // it must itself contain one of these; nil = no condition
}

// holds reports whether a match is an instruction in its context, which includes the match.
func (s *setting) holds(match, near string) bool {
	return (s.in == nil || s.in.match(match)) && (s.only == nil || s.only.match(near)) && !s.not.match(near)
}

// settings are the contexts by rule; those that only files and outputs of commands have begin with "strict ". A row
// with a mistake, which a test finds, is left out.
var settings = sync.OnceValue(func() map[string]*setting {
	list, _ := readSettings(conditionsText)
	return list
})

// readSettings reads a table.
func readSettings(text string) (map[string]*setting, error) {
	list := map[string]*setting{}
	parts := map[string]string{"$ws": ws}
	err := eachRow("conditions.txt", text, func(_ int, row string) error {
		head, expression, ok := strings.Cut(row, ": ")
		if !ok {
			return errNoColon
		}
		for name, part := range parts {
			expression = strings.ReplaceAll(expression, name, part)
		}
		if head[0] == '$' {
			if known := parts[head]; known != "" {
				expression = known + "|" + expression
			}
			parts[head] = expression
			return nil
		}
		re, err := regexp.Compile("(?i)" + expression)
		if err != nil {
			return err
		}
		last := strings.LastIndexByte(head, ' ')
		s := list[head[:max(0, last)]]
		if s == nil {
			s = &setting{}
		}
		switch head[last+1:] {
		case "only":
			s.only = append(s.only, re)
		case "not":
			s.not = append(s.not, re)
		case "in":
			s.in = append(s.in, re)
		default:
			return fmt.Errorf("%q is neither only, not, nor in", head[last+1:])
		}
		list[head[:max(0, last)]] = s
		return nil
	})
	return list, err
}

// flagFile is Flag for text of files, outputs of commands and names. There a false alarm would be frequent and costs
// much: it makes everything ask. The rules are the same, the conditions are stricter.
func flagFile(text string) []Match {
	return slices.DeleteFunc(Flag(text), func(m Match) bool {
		s, ok := settings()["strict "+m.Rule]
		return ok && !s.holds(asRead(text[m.Start:m.End]), asRead(near(text, m)))
	})
}

// asRead returns a text, followed by it as it reads without invisible characters and with the letters that look-alikes
// look like, if that differs.
func asRead(text string) string {
	if f := fold(text, false); f.text != text {
		return text + "\n" + f.text
	}
	return text
}

// Flag returns what must be treated as an attempt to instruct the model, in the output of a tool: the matches of Find,
// without those that only look like one. A text about such attacks may quote them, a page has images, and a manual
// gives orders to people. Patterns alone are never sufficient, least of all here: attempts in other words, or in the
// form of a manual, are not found.
func Flag(text string) []Match { return once(instructions(text, find(text))) }

// instructions returns the matches that are instructions in their context and not only quoted.
func instructions(text string, found []Match) []Match {
	return slices.DeleteFunc(slices.Clone(found), func(m Match) bool {
		return !isInstruction(text, m) || mentioned(text, m)
	})
}

// isInstruction reports whether a match is an instruction in its context.
func isInstruction(text string, m Match) bool {
	s, ok := settings()[m.Rule]
	if !ok {
		return true
	}
	if strings.HasSuffix(m.Rule, "_image_exfil") && len(text)-(m.End-m.Start) < mostlyImage {
		return !s.not.match(text) && !still().MatchString(text[m.Start:m.End])
	}
	return s.holds(text[m.Start:m.End], near(text, m))
}

// near returns a match with the text around it.
func near(text string, m Match) string {
	return text[boundary(text, max(0, m.Start-around)):boundary(text, min(len(text), m.End+around))]
}

// topics matches words of texts about such attacks, or about the marks of chat templates.
var topics = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`(?i)inject|attack|payload|malicious|jailbreak|red.team|adversar|scanner|filter|detect|flagged|refuse|test ` +
			`case|\bassert|expect\(|phrases|labelled|poison|cve-|template|special.token|control.token|` +
			`tokens?\b.{0,40}turn|consists of|model card|prompts? of the form|tokenizer|matches sentences`,
	)
})

// quotes are the pairs that enclose a quotation.
var quotes = [...][2]string{
	{`"`, `"`},
	{"`", "`"},
	{"“", "”"},
	{"‘", "’"},
	{"„", "“"},
	{"«", "»"},
	{" '", "'"},
	{"('", "'"},
}

const (
	// maxQuoted is the maximum length of a quotation in bytes.
	maxQuoted = 240
	// aboutIt is the maximum distance in bytes between a quotation and the word that says what is quoted.
	aboutIt = 260
)

// mentioned reports whether a match is quoted by a text about such attacks.
func mentioned(text string, m Match) bool {
	line := text[max(0, strings.LastIndexByte(text[:m.Start], '\n')+1):]
	offset := len(text) - len(line)
	line = line[:m.End-offset+upTo(text[m.End:], "\n")]
	start, end := m.Start-offset, m.End-offset
	for _, q := range quotes {
		from := strings.LastIndex(line[max(0, start-maxQuoted):start+min(1, end-start)], q[0])
		to := strings.Index(line[end-min(1, end-start):min(len(line), end+maxQuoted)], q[1])
		if from < 0 || to < 0 {
			continue
		}
		from, to = from+max(0, start-maxQuoted), max(from+max(0, start-maxQuoted), to+end-min(1, end-start))
		before := text[max(0, offset+from-aboutIt) : offset+from]
		after := text[min(len(text), offset+to):min(len(text), offset+to+aboutIt)]
		if topics().MatchString(before) || topics().MatchString(after) {
			return true
		}
	}
	return false
}
