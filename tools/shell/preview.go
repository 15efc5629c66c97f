package shell

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// A preview is a command that runs on a layer above its working directory before a person is asked about it. It has the
// profile of an approved command, but no network, and nothing besides the layer can be written. The layer is kept; if
// the person approves, it is applied instead of running the command again.

// Limits of a preview.
const (
	previewTimeout = 5 * time.Second
	previewBytes   = 64 << 20 // what it may write
	previewLines   = 12       // of its output, for the card
	previewOutput  = 1500     // characters of these
)

// previewedCommand returns the command of a call that may be previewed. If it may not, why says so to
// people; "" = it is no command.
func previewedCommand(call *tools.Call) (text string, why tools.Unknown, ok bool) {
	var in In
	switch {
	case call.Def.Name != Name, call.Def.Server != "",
		json.Unmarshal(call.Args, &in) != nil, checkText(in.Command) != nil:
		return "", "", false
	case call.Def.Outside:
		return "", tools.UnknownOutside, false
	case in.Background:
		return "", tools.UnknownBackground, false
	}
	return in.Command, "", true
}

// Previewable reports whether a call can be previewed here. If it cannot, why says so to people; "" = there is nothing
// to say: it is no command, or commands are not to be previewed.
func (r *Runner) Previewable(ctx context.Context, call *tools.Call) (can bool, why tools.Unknown) {
	if r.opts.PreviewDir == "" {
		return false, ""
	}
	_, why, can = previewedCommand(call)
	if can && !r.Previews(ctx) {
		return false, tools.UnknownMachine
	}
	return can, why
}

// recorded is the outcome of a previewed command, which becomes the result of the call.
type recorded struct {
	Text    string         `json:"text"`
	Stdout  string         `json:"stdout"`
	Stderr  string         `json:"stderr"`
	Omitted int64          `json:"omitted,omitempty"`
	Status  sandbox.Status `json:"status"`
	Took    time.Duration  `json:"took"`
}

// recordOutcome returns what is kept of an outcome. Credentials are hidden already, because it is on
// the disk until somebody decides.
func (r *Runner) recordOutcome(o *outcome) recorded {
	hide := r.opts.Redact
	return recorded{
		Text:    hide(o.text),
		Stdout:  hide(o.stdout),
		Stderr:  hide(o.stderr),
		Omitted: o.omitted,
		Status:  o.status,
		Took:    o.took,
	}
}

func (c recorded) toOutcome() *outcome {
	return &outcome{
		output: output{text: c.Text, stdout: c.Stdout, stderr: c.Stderr, omitted: c.Omitted},
		status: c.Status, took: c.Took,
	}
}

// lastLines returns the last lines of an output, for people.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	cut := len(lines) > previewLines
	text = strings.Join(lines[max(0, len(lines)-previewLines):], "\n")
	if runes := []rune(text); len(runes) > previewOutput {
		text, cut = string(runes[len(runes)-previewOutput:]), true
	}
	if cut {
		return "…\n" + text
	}
	return text
}
