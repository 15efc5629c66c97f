package skill

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// fence begins and ends the front matter.
const fence = "---"

// text is SKILL.md, taken apart.
type text struct {
	skill   Skill
	unknown []Finding
}

// parse reads a SKILL.md. path is how problems name the file.
func parse(path string, data []byte) (*text, *Problem) {
	fail := func(line int, format string, values ...any) (*text, *Problem) {
		return nil, &Problem{Path: path, Line: line, Text: fmt.Sprintf(format, values...)}
	}
	switch {
	case !utf8.Valid(data):
		return fail(0, "is not UTF-8 text; save it as UTF-8")
	case bytes.IndexByte(data, 0) >= 0:
		return fail(0, "contains a NUL byte; remove it")
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	if strings.TrimRight(string(first), " \t") != fence {
		return fail(1, "the first line must be %s, which begins the front matter with name and description", fence)
	}
	matter, body, closed := cutMatter(string(rest))
	switch {
	case !closed:
		return fail(1, "the front matter does not end; put a line %s below it", fence)
	case len(matter) > maxMatter:
		return fail(
			1, "the front matter has %d bytes; use at most %d, and put the rest below it", len(matter), maxMatter,
		)
	}
	t := &text{}
	if p := t.read(path, matter); p != nil {
		return nil, p
	}
	t.skill.Body = strings.TrimSpace(body)
	if t.skill.Body == "" {
		return fail(0, "there are no instructions below the front matter; write what the model has to do")
	}
	above := strings.Count(string(data[:len(data)-len(body)]), "\n")
	if line, target := outside(body); line > 0 {
		return fail(above+line, "refers to %.80q, outside of the skill's folder; put the file into the folder", target)
	}
	return t, nil
}

// cutMatter cuts the text at the line that ends the front matter.
func cutMatter(rest string) (matter, body string, closed bool) {
	at := 0
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, " \t\n") == fence {
			return rest[:at], rest[at+len(line):], true
		}
		at += len(line)
	}
	return "", "", false
}

// yamlLine finds the line in an error of the YAML library.
var yamlLine = regexp.MustCompile(`line (\d+): `)

// read reads the front matter.
func (t *text) read(path, matter string) *Problem {
	problem := func(line int, format string, values ...any) *Problem {
		if line > 0 {
			line++ // the fence is line 1
		}
		return &Problem{Path: path, Line: line, Text: fmt.Sprintf(format, values...)}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(matter), &doc); err != nil {
		line, said := 0, strings.TrimPrefix(err.Error(), "yaml: ")
		if m := yamlLine.FindStringSubmatchIndex(said); m != nil {
			line, _ = strconv.Atoi(said[m[2]:m[3]]) // the expression takes digits only; too many of them are no line
			said = said[:m[0]] + said[m[1]:]
		}
		return problem(line, "the front matter is no valid YAML: %s; a value with a colon needs quotes", said)
	}
	if len(doc.Content) == 0 {
		return problem(0, "the front matter is empty; it needs name and description")
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return problem(root.Line, "the front matter must be a list of fields, such as \"name: pdf\"")
	}
	if n := aliased(root); n != nil {
		return problem(n.Line, "aliases and anchors of YAML are not allowed here; write the value out")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if seen[key.Value] {
			return problem(key.Line, "field %.80q stands here twice; remove one", key.Value)
		}
		seen[key.Value] = true
		if err := t.field(key, value); err != nil {
			return problem(value.Line, "%s", err.Error())
		}
	}
	for _, needed := range []string{"name", "description"} {
		if !seen[needed] {
			return problem(0, "the front matter has no %s; add it", needed)
		}
	}
	return nil
}

// aliased returns a node that is an alias or has an anchor; nil = none.
func aliased(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return n
	}
	for _, child := range n.Content {
		if found := aliased(child); found != nil {
			return found
		}
	}
	return nil
}

// field reads a field.
func (t *text) field(key, value *yaml.Node) error {
	s := &t.skill
	switch key.Value {
	case "name":
		s.Name = value.Value
		if value.Kind != yaml.ScalarNode {
			return errors.New("name must be a text")
		}
		if why := named(s.Name); why != "" {
			return errors.New(why)
		}
		return nil
	case "description":
		err := scalar(value, "description", maxDescription, &s.Description)
		if err == nil && s.Description == "" {
			return errors.New("description is empty; say what the skill does and when to use it")
		}
		return err
	case "license":
		return scalar(value, "license", maxCompatible, &s.License)
	case "compatibility":
		return scalar(value, "compatibility", maxCompatible, &s.Compatibility)
	case "allowed-tools":
		return t.allowed(value)
	case "metadata":
		return t.metadata(value)
	default:
		t.unknown = append(t.unknown, Finding{
			Kind: Unknown,
			File: Document,
			Line: key.Line + 1,
			What: brief(key.Value, 80),
		})
		return nil
	}
}

// scalar reads a text of limited length, on one line.
func scalar(n *yaml.Node, name string, most int, to *string) error {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return fmt.Errorf("%s must be a text", name)
	}
	*to = strings.Join(strings.Fields(n.Value), " ")
	if count := utf8.RuneCountInString(*to); count > most {
		return fmt.Errorf("%s has %d characters; use at most %d", name, count, most)
	}
	return nil
}

// allowed reads allowed-tools: a text, or a list of texts.
func (t *text) allowed(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		return scalar(n, "allowed-tools", maxDescription, &t.skill.AllowedTools)
	}
	var list []string
	for _, item := range n.Content {
		var one string
		if err := scalar(item, "allowed-tools", maxDescription, &one); err != nil {
			return err
		}
		list = append(list, one)
	}
	t.skill.AllowedTools = brief(strings.Join(list, " "), maxDescription)
	return nil
}

func (t *text) metadata(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return errors.New("metadata must be a list of fields, such as \"author: someone\"")
	}
	if len(n.Content)/2 > maxMetadata {
		return fmt.Errorf("metadata has %d fields; use at most %d", len(n.Content)/2, maxMetadata)
	}
	t.skill.Metadata = map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind != yaml.ScalarNode || key.Kind != yaml.ScalarNode {
			return fmt.Errorf("metadata.%.80s must be a text", key.Value)
		}
		if _, twice := t.skill.Metadata[key.Value]; twice {
			return fmt.Errorf("metadata.%.80s stands here twice; remove one", key.Value)
		}
		t.skill.Metadata[key.Value] = value.Value
	}
	return nil
}

// link is the target of a link in Markdown.
var link = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)`)

// outside finds the first link that leads out of the folder, and its line from 1.
func outside(body string) (line int, target string) {
	n := 0
	for text := range strings.Lines(body) {
		n++
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if leaves(m[1]) {
				return n, m[1]
			}
		}
	}
	return 0, ""
}

// leaves reports whether a relative path goes above where it starts.
func leaves(path string) bool {
	path, _, _ = strings.Cut(path, "#")
	depth := 0
	for part := range strings.SplitSeq(strings.ReplaceAll(path, `\`, "/"), "/") {
		switch part {
		case "..":
			if depth--; depth < 0 {
				return true
			}
		case "", ".":
		default:
			depth++
		}
	}
	return false
}

// brief cuts a text after a number of characters.
func brief(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
