package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
)

// Parse reads a script in the format of the package comment. Errors give line and reason.
func Parse(text string) (*Model, error) { return ParseNamed("scripted", text) }

// ParseNamed is Parse with a different provider name.
func ParseNamed(name, text string) (*Model, error) {
	p := &parser{model: Named(name), lines: strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")}
	for p.at < len(p.lines) {
		line := strings.TrimSpace(p.lines[p.at])
		p.at++
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		number := p.at
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("script line %d: %w", number, err)
		}
	}
	return p.model, nil
}

// parser reads a script. Steps in the text belong to the last rule, or to the ordered script if there is no rule yet.
type parser struct {
	model  *Model
	lines  []string
	at     int // index of the next line = number of the current one
	inRule bool
}

func (p *parser) steps() *[]Step {
	if p.inRule {
		return &p.model.rules[len(p.model.rules)-1].steps
	}
	return &p.model.steps
}

func (p *parser) line(line string) error {
	word, rest := cut(line)
	switch word {
	case "sees":
		return p.sees(rest)
	case "on":
		match, rest, err := ruleHead(rest)
		if err != nil {
			return err
		}
		p.model.rules = append(p.model.rules, rule{match: match})
		p.inRule = true
		return p.newStep(rest)
	case "then":
		return p.newStep(rest)
	case "and":
		steps := *p.steps()
		if len(steps) == 0 {
			return errors.New(`"and" has no step before it`)
		}
		return p.action(&steps[len(steps)-1], rest)
	default:
		if p.inRule {
			return fmt.Errorf(`unknown word %q; after a rule a line begins with "then", "and" or "on"`, word)
		}
		return p.newStep(line)
	}
}

func (p *parser) newStep(rest string) error {
	step := Step{line: p.at, source: strings.TrimSpace(p.lines[p.at-1])}
	if err := p.action(&step, rest); err != nil {
		return err
	}
	steps := p.steps()
	*steps = append(*steps, step)
	return nil
}

// ruleHead reads `"text": rest`.
func ruleHead(s string) (match, rest string, err error) {
	quoted, err := strconv.QuotedPrefix(s)
	if err != nil {
		return "", "", errors.New(`a rule is written: on "text": action`)
	}
	match, err = strconv.Unquote(quoted)
	if err != nil {
		return "", "", fmt.Errorf("read rule text %s: %w", quoted, err)
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(s[len(quoted):]), ":")
	if !ok {
		return "", "", fmt.Errorf(`no colon after on %s`, quoted)
	}
	return match, strings.TrimSpace(rest), nil
}

// action reads one action into step.
func (p *parser) action(step *Step, s string) error {
	word, rest := cut(s)
	switch word {
	case "say", "say*":
		return p.say(step, rest, word == "say*")
	case "call":
		return calls(step, rest, 1)
	case "call*":
		return calls(step, rest, -1)
	case "callraw":
		name, args := cut(rest)
		if name == "" {
			return errors.New("callraw needs a tool name and its arguments")
		}
		step.Uses = append(step.Uses, llm.ToolUse{Name: name, Args: json.RawMessage(args)})
		return nil
	case "fail":
		return fail(step, rest)
	case "wait":
		return p.wait(step, rest)
	case "expect":
		text, err := unquote(rest)
		step.ExpectText = text
		return err
	case "usage":
		return usage(step, rest)
	case "stop":
		return stop(step, rest)
	case "never":
		step.never = true
		return nil
	case "":
		return errors.New(
			"an action is missing: say, say*, call, call*, callraw, fail, wait, expect, usage, stop or never")
	default:
		return fmt.Errorf(
			"unknown action %q; known are say, say*, call, call*, callraw, fail, wait, expect, usage, stop and never",
			word)
	}
}

func (p *parser) say(step *Step, rest string, words bool) error {
	text, err := p.text(rest)
	if err != nil {
		return err
	}
	if text == "" {
		return errors.New("say needs a text")
	}
	if words {
		step.Deltas = append(step.Deltas, Words(text)...)
	} else {
		step.Deltas = append(step.Deltas, text)
	}
	return nil
}

// text reads a plain text, a quoted one or the lines of <<END.
func (p *parser) text(s string) (string, error) {
	end, ok := strings.CutPrefix(s, "<<")
	if !ok {
		return unquote(s)
	}
	end = strings.TrimSpace(end)
	if end == "" {
		return "", errors.New("<< needs the word that ends the text")
	}
	for i := p.at; i < len(p.lines); i++ {
		if strings.TrimSpace(p.lines[i]) == end {
			text := strings.Join(p.lines[p.at:i], "\n")
			p.at = i + 1
			return text, nil
		}
	}
	return "", fmt.Errorf("the text <<%s has no end: a line %s is missing", end, end)
}

// calls reads NAME JSON pairs; limit < 0 takes all of them.
func calls(step *Step, s string, limit int) error {
	if s == "" {
		return errors.New(`call needs a tool name and arguments, as in: call bash {"command":"ls"}`)
	}
	for n := 0; s != ""; n++ {
		if n == limit {
			return fmt.Errorf(
				"unexpected text after the arguments: %q (several uses in one step are written with call*)",
				shorten(s))
		}
		name, rest := cut(s)
		dec := json.NewDecoder(strings.NewReader(rest))
		var args json.RawMessage
		switch err := dec.Decode(&args); {
		case errors.Is(err, io.EOF):
			args = json.RawMessage(`{}`)
		case err != nil:
			return fmt.Errorf("arguments of %s are not JSON (use callraw for that on purpose): %w", name, err)
		}
		step.Uses = append(step.Uses, llm.ToolUse{Name: name, Args: args})
		s = strings.TrimSpace(rest[dec.InputOffset():])
	}
	return nil
}

func fail(step *Step, s string) error {
	word, rest := cut(s)
	kinds := []llm.Kind{
		llm.Unavailable, llm.RateLimited, llm.Timeout,
		llm.Truncated, llm.Invalid, llm.Unauthorized, llm.TooLong, llm.NoCredit, llm.UnknownModel, llm.Region,
	}
	kind := llm.Kind(word)
	if !slices.Contains(kinds, kind) {
		return fmt.Errorf("unknown failure %q; known are %v", word, kinds)
	}
	e := &llm.Error{Kind: kind, Err: errors.New("scripted failure")}
	if rest != "" {
		after, err := time.ParseDuration(rest)
		if err != nil || after <= 0 {
			return fmt.Errorf("retry after %q is not a duration such as 5s", rest)
		}
		e.RetryAfter = after
	}
	step.Err = e
	return nil
}

// wait reads NAME, optionally followed by the action of the same step.
func (p *parser) wait(step *Step, s string) error {
	name, rest := cut(s)
	if name == "" {
		return errors.New("wait needs a name")
	}
	if step.gate != nil {
		return errors.New("the step already waits")
	}
	step.gate = p.model.gate(name)
	if rest == "" {
		return nil
	}
	return p.action(step, rest)
}

func usage(step *Step, s string) error {
	fields := strings.Fields(s)
	if len(fields) == 3 {
		usd, err := strconv.ParseFloat(fields[2], 64)
		if err != nil || usd < 0 {
			return fmt.Errorf("usage %q is not a price in USD", fields[2])
		}
		step.USD, fields = usd, fields[:2]
	}
	numbers := make([]int, 0, 2)
	for _, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil || n < 0 {
			return fmt.Errorf("usage %q is not a number of tokens", f)
		}
		numbers = append(numbers, n)
	}
	if len(numbers) != 2 {
		return errors.New("usage needs two numbers: input and output tokens; a third is the price in USD")
	}
	step.Usage = llm.Usage{Input: numbers[0], Output: numbers[1]}
	return nil
}

func stop(step *Step, s string) error {
	known := []llm.Stop{llm.StopEnd, llm.StopTools, llm.StopLength, llm.StopRefusal}
	if !slices.Contains(known, llm.Stop(s)) {
		return fmt.Errorf("unknown reason to stop %q; known are %v", s, known)
	}
	step.Stop = llm.Stop(s)
	return nil
}

// Words splits text into pieces that begin with a word and keep the white space behind it; their sum is text.
func Words(text string) []string {
	var out []string
	start, space := 0, false
	for i, r := range text {
		isSpace := r == ' ' || r == '\n' || r == '\t'
		if space && !isSpace && i > start {
			out = append(out, text[start:i])
			start = i
		}
		space = isSpace
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

// cut takes the first word.
func cut(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimSpace(s[i:])
}

// unquote reads a Go string literal in double quotes; anything else is taken as it is.
func unquote(s string) (string, error) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s, nil
	}
	text, err := strconv.Unquote(s)
	if err != nil {
		return "", fmt.Errorf("read quoted text %s: %w", shorten(s), err)
	}
	return text, nil
}

// sees reads the kinds of parts that the model takes.
func (p *parser) sees(rest string) error {
	for kind := range strings.FieldsSeq(rest) {
		switch llm.PartKind(kind) {
		case llm.ImagePart:
			p.model.sees.Image = true
		case llm.AudioPart:
			p.model.sees.Audio = true
		case llm.FilePart:
			p.model.sees.File = true
		default:
			return fmt.Errorf("nothing sees %q; it may be image, audio or file", kind)
		}
	}
	return nil
}
