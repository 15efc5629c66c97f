// Package doctest finds the commands in the documentation, so that tests can run or check each of them.
package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Command is one command of a page.
type Command struct {
	Page   string // relative to the root of the repository
	Line   int    // counted from 1
	Inline bool   // it is in a sentence or a table, not in a block that somebody copies
	Env    []string
	Args   []string // the program first; what a shell would compute is "…"
	Piped  bool     // its input is the output of another command
}

// String returns where the command is, and the command.
func (c *Command) String() string {
	return fmt.Sprintf("%s:%d: %s", c.Page, c.Line, strings.Join(c.Args, " "))
}

// languages of blocks with commands. A block without a language may contain something else.
var languages = []string{"sh", "bash", "shell", "console"}

// Pages lists the pages with documentation, relative to root.
func Pages(root string) ([]string, error) {
	var pages []string
	for _, pattern := range []string{"*.md", "*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, "docs", pattern))
		if err != nil {
			return nil, err
		}
		pages = append(pages, found...)
	}
	for _, name := range []string{
		"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "ARCHITECTURE.md", "persistence/README.md",
		"charts/zephbot/README.md",
	} {
		if path := filepath.Join(root, name); exists(path) {
			pages = append(pages, path)
		}
	}
	for i, path := range pages {
		name, err := filepath.Rel(root, path)
		if err != nil {
			return nil, err
		}
		pages[i] = name
	}
	slices.Sort(pages)
	return pages, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Commands returns all commands of a page. programs are those that begin a command in a block without a language, and
// in a sentence. In a block of a shell every line is a command; what cannot be parsed is an error.
func Commands(root, page string, programs []string) ([]Command, error) {
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		return nil, err
	}
	p := &parser{page: page, programs: programs}
	var block []line
	language, inside := "", false
	for i, text := range strings.Split(string(raw), "\n") {
		name, fence := strings.CutPrefix(strings.TrimSpace(text), "```")
		switch {
		case fence && inside:
			p.block(language, block)
			block, inside = nil, false
		case fence:
			language, inside = name, true
		case inside:
			block = append(block, line{i + 1, strings.TrimSpace(text)})
		case strings.HasPrefix(text, "    ") && p.known(strings.TrimSpace(text)): // a block without fences
			p.parse(line{i + 1, strings.TrimSpace(text)}, false)
		default:
			p.sentence(line{i + 1, text})
		}
	}
	if inside {
		p.wrong(len(raw), "a block has no end")
	}
	if len(p.problems) > 0 {
		return nil, fmt.Errorf("%s: %s", page, strings.Join(p.problems, "; "))
	}
	return p.found, nil
}

type line struct {
	number int
	text   string
}

type parser struct {
	page     string
	programs []string
	found    []Command
	problems []string
}

func (p *parser) wrong(number int, what string) {
	p.problems = append(p.problems, fmt.Sprintf("line %d: %s", number, what))
}

// block reads a block: lines after a prompt if there is one, otherwise all.
func (p *parser) block(language string, lines []line) {
	shell := slices.Contains(languages, language)
	if !shell && language != "" {
		return
	}
	prompted := slices.ContainsFunc(lines, func(l line) bool { return strings.HasPrefix(l.text, "$ ") })
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		for strings.HasSuffix(l.text, `\`) && i+1 < len(lines) {
			i++
			l.text = strings.TrimSuffix(l.text, `\`) + " " + lines[i].text
		}
		if prompted {
			command, ok := strings.CutPrefix(l.text, "$ ")
			if !ok {
				continue
			}
			l.text = command
		}
		if (shell || prompted || p.known(l.text)) && l.text != "" {
			p.parse(l, false)
		}
	}
}

// assigned are the variables that are set before a command.
var assigned = regexp.MustCompile(`^(?:[A-Z_]+=\S*\s+)+`)

// known reports whether a line begins with one of the programs.
func (p *parser) known(text string) bool {
	word, _, _ := strings.Cut(assigned.ReplaceAllString(text, ""), " ")
	return slices.Contains(p.programs, word)
}

var inTicks = regexp.MustCompile("``? ?([^`]+?) ?``?")

// sentence reads the commands of the program itself that a sentence names.
func (p *parser) sentence(l line) {
	for _, m := range inTicks.FindAllStringSubmatch(l.text, -1) {
		if text := strings.ReplaceAll(m[1], `\|`, "|"); strings.HasPrefix(text, "zephbot ") {
			p.parse(line{l.number, text}, true)
		}
	}
}

func (p *parser) parse(l line, inline bool) {
	file, err := syntax.NewParser(syntax.KeepComments(false)).Parse(strings.NewReader(l.text), "")
	if err != nil {
		p.wrong(l.number, fmt.Sprintf("%q is no command: %v", l.text, err))
		return
	}
	piped := map[*syntax.CallExpr]bool{}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.BinaryCmd:
			if call, ok := n.Y.Cmd.(*syntax.CallExpr); ok && n.Op == syntax.Pipe {
				piped[call] = true
			}
		case *syntax.CallExpr:
			c := Command{Page: p.page, Line: l.number, Inline: inline, Piped: piped[n]}
			for _, a := range n.Assigns {
				c.Env = append(c.Env, a.Name.Value+"="+word(a.Value))
			}
			for _, w := range n.Args {
				c.Args = append(c.Args, word(w))
			}
			if len(c.Args) > 0 {
				p.found = append(p.found, c)
			}
		}
		return true
	})
}

// word returns the text of a word.
func word(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var text strings.Builder
	var parts func(list []syntax.WordPart)
	parts = func(list []syntax.WordPart) {
		for _, part := range list {
			switch v := part.(type) {
			case *syntax.Lit:
				text.WriteString(strings.ReplaceAll(v.Value, `\`, ""))
			case *syntax.SglQuoted:
				text.WriteString(v.Value)
			case *syntax.DblQuoted:
				parts(v.Parts)
			default:
				text.WriteString("…")
			}
		}
	}
	parts(w.Parts)
	return text.String()
}
