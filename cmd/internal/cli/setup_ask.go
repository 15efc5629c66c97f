package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// asker asks a person, line by line: that works on any terminal, and over ssh.
type asker struct {
	ctx    context.Context //nolint:containedctx // of the command: reading a terminal cannot be interrupted
	out    io.Writer
	person bool // there is somebody to ask
	hide   func() (show func(), err error)
	lines  chan string
	// columns returns the width of the terminal; 0 = it is not known, and the terminal breaks lines itself.
	columns func() int
}

// errEnded is the error of a question if there is no answer any more.
var errEnded = errors.New("the input has ended before all questions were answered; nothing was written")

func newAsker(ctx context.Context, env Env) *asker {
	a := &asker{
		ctx: ctx, out: env.Out, person: env.InTerm, hide: env.Hide, lines: make(chan string), columns: env.columns,
	}
	if !a.person {
		return a
	}
	go func() { // ends with the program: reading a terminal cannot be interrupted
		defer close(a.lines)
		in := bufio.NewScanner(env.In)
		in.Buffer(make([]byte, 0, 4096), maxSecret+2)
		for in.Scan() {
			select {
			case a.lines <- strings.TrimSpace(in.Text()):
			case <-ctx.Done():
				return
			}
		}
	}()
	return a
}

// say prints a text and ends its line.
func (a *asker) say(format string, args ...any) {
	a.show(wrapWords(fmt.Sprintf(format, args...), a.columns()) + "\n")
}

// sentence prints what is wrong as a sentence, and what follows it.
func (a *asker) sentence(text, then string) {
	first, size := utf8.DecodeRuneInString(text)
	if word, _, _ := strings.Cut(text, " "); !strings.ContainsAny(word, "/:.") { // an address is written as it is
		text = string(unicode.ToUpper(first)) + text[size:]
	}
	if !strings.ContainsAny(text[max(0, len(text)-1):], ".?!") {
		text += "."
	}
	a.say("%s", strings.TrimSpace(text+" "+then))
}

// show prints a text as it is. A terminal that is gone is noticed when it is read.
func (a *asker) show(text string) { _, _ = io.WriteString(a.out, text) }

// explain prints a line for the person who is asked; where flags answer, nobody needs it.
func (a *asker) explain(format string, args ...any) {
	if a.person {
		a.say(format, args...)
	}
}

// line asks for one line. Control characters, which keys for moving the cursor leave, are removed.
func (a *asker) line(prompt string) (string, error) {
	a.show(wrapWords(prompt, a.columns()))
	select {
	case text, ok := <-a.lines:
		if !ok {
			return "", errEnded
		}
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return -1
			}
			return r
		}, text)), nil
	case <-a.ctx.Done():
		return "", a.ctx.Err()
	}
}

// secret asks for a line that is not shown.
func (a *asker) secret(prompt string) (config.Secret, error) {
	if a.hide != nil {
		show, err := a.hide()
		if err != nil {
			return "", fmt.Errorf(
				"the terminal cannot hide what is typed (%w); put the secret into a file: --token-file, --key-file",
				err,
			)
		}
		defer show()
	}
	text, err := a.line(prompt + " (not shown): ")
	if a.hide != nil {
		a.say("")
	}
	return config.Secret(text), err
}

// yes asks a question whose answer is no unless somebody says yes; with byDefault the other way round.
func (a *asker) yes(question string, byDefault bool) (bool, error) {
	choice := " [y/N]: "
	if byDefault {
		choice = " [Y/n]: "
	}
	for {
		answer, err := a.line(question + choice)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(answer) {
		case "":
			return byDefault, nil
		case "y", "yes", "j", "ja", "s", "si", "sí", "д", "да":
			return true, nil
		case "n", "no", "nein", "н", "нет":
			return false, nil
		}
		a.say("Please answer y or n.")
	}
}

// need is the error of an answer that nobody can be asked for.
func need(what string) error {
	return usageError{fmt.Errorf("there is no terminal to ask at: give %s", what)}
}
