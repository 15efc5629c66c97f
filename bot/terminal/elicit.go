package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/tools/mcp/content"
)

// Request is a question of an MCP server to the person at the terminal.
type Request struct {
	Server string
	Tool   string
	Form   content.Form
	Warn   bool // warn if a field seems to ask for a secret
}

// Reply is the person's answer.
type Reply struct {
	Accept bool
	Cancel bool
	Values map[string]any
}

// cancelWord ends a form.
const cancelWord = "/cancel"

// form is a request that waits for the person.
type form struct {
	ctx   context.Context //nolint:containedctx // of the request, which ends when the server stops waiting
	req   Request
	reply chan Reply
}

// Elicit asks the person, one request after the other, while a message is being worked on. It waits for the answer
// until ctx ends.
func (t *Terminal) Elicit(ctx context.Context, req Request) (Reply, error) {
	if !t.opts.Ask || t.opts.JSON {
		return Reply{}, errors.New("there is nobody at the terminal")
	}
	f := form{ctx: ctx, req: req, reply: make(chan Reply, 1)}
	t.mu.Lock()
	t.forms = append(t.forms, f)
	t.wakeWaiters()
	t.mu.Unlock()
	select {
	case r := <-f.reply:
		return r, nil
	case <-ctx.Done():
		return Reply{}, ctx.Err()
	}
}

// wakeWaiters wakes everything that waits for a change; the caller holds the lock.
func (t *Terminal) wakeWaiters() {
	close(t.change)
	t.change = make(chan struct{})
}

// nextForm takes the oldest request that still waits.
func (t *Terminal) nextForm() (form, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.forms) > 0 {
		f := t.forms[0]
		t.forms = t.forms[1:]
		if f.ctx.Err() == nil {
			return f, true
		}
	}
	return form{}, false
}

// fillForm shows a request and reads its fields. An error means that the terminal's own input has failed.
func (t *Terminal) fillForm(ctx context.Context, f form) error {
	asked := f
	var cancel context.CancelFunc
	asked.ctx, cancel = context.WithCancel(f.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)() // Ctrl-C ends the form too
	reply, err := t.askForm(asked)
	f.reply <- reply
	if err != nil && f.ctx.Err() != nil && ctx.Err() == nil { // the server no longer waits
		t.printText("\nToo late: the server " + f.req.Server + " waits no longer.\n")
		return nil
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// printText writes to the person; it does no harm if nobody sees a prompt.
func (t *Terminal) printText(text string) { _, _ = fmt.Fprint(t.opts.Err, visible.Controls(text)) }

// askForm reads the fields. It first names the server, because the rest are the server's words.
func (t *Terminal) askForm(f form) (Reply, error) {
	asked := t.beginQuestion()
	t.printText("\nThe MCP server " + f.req.Server + " asks (" + f.req.Tool + "):\n" + f.req.Form.Message + "\n")
	if f.req.Warn && f.req.Form.Sensitive() {
		t.printText("Careful: it asks for something that sounds like a secret. What you write goes to the server " +
			f.req.Server + ".\n")
	}
	t.printText(cancelWord + " ends this.\n")
	values := map[string]any{}
	for _, field := range f.req.Form.Fields {
		value, cancelled, err := t.readField(f.ctx, field, asked)
		if err != nil || cancelled {
			return Reply{Cancel: true}, err
		}
		if value != nil {
			values[field.Name] = value
		}
	}
	if len(f.req.Form.Fields) > 0 {
		return Reply{Accept: true, Values: values}, nil
	}
	return t.askConsent(f.ctx, asked)
}

// readField asks for one value until it is valid.
func (t *Terminal) readField(
	ctx context.Context, field content.Field, asked int,
) (value any, cancelled bool, err error) {
	for {
		t.printText(fieldLabel(field))
		text, err := t.input.nextLine(ctx, asked)
		if err != nil {
			return nil, true, err
		}
		if strings.TrimSpace(text) == cancelWord {
			return nil, true, nil
		}
		value, err := content.Parse(field, text)
		if err == nil && value != nil {
			err = field.Validate(value)
		}
		if err == nil {
			return value, false, nil
		}
		t.printText("That does not fit: " + err.Error() + "\n")
	}
}

// fieldLabel returns the line before a field.
func fieldLabel(field content.Field) string {
	var b strings.Builder
	b.WriteString(field.Label())
	if field.Description != "" {
		b.WriteString(" (" + field.Description + ")")
	}
	for i, o := range field.Options {
		fmt.Fprintf(&b, "\n  %d  %s", i+1, o.Title)
	}
	if len(field.Options) > 0 {
		b.WriteString("\n ")
	}
	b.WriteString(" [" + typeLabel(field))
	if !field.Required {
		b.WriteString(", may stay empty")
	}
	if field.Default != nil {
		fmt.Fprintf(&b, ", default %v", field.Default)
	}
	b.WriteString("]: ")
	return b.String()
}

// typeLabel says what a field takes.
func typeLabel(field content.Field) string {
	if field.Type == content.Boolean {
		return "y/n"
	}
	return string(field.Type)
}

// askConsent asks yes or no, for a request without fields.
func (t *Terminal) askConsent(ctx context.Context, asked int) (Reply, error) {
	for {
		t.printText("[y] yes, [n] no: ")
		text, err := t.input.nextLine(ctx, asked)
		if err != nil {
			return Reply{Cancel: true}, err
		}
		switch yes, ok := content.YesNo(text); {
		case yes:
			return Reply{Accept: true, Values: map[string]any{}}, nil
		case ok:
			return Reply{}, nil
		case strings.TrimSpace(text) == cancelWord:
			return Reply{Cancel: true}, nil
		}
	}
}
