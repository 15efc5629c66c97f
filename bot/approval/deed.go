package approval

import (
	"context"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// showDiff is the choice of the button that shows what a call would change.
const showDiff = "d"

// diffName is the name of a file with differences.
const diffName = "changes.diff.txt"

// Limits of the output on a card.
const (
	outputLines  = 6
	outputLength = 100 // of each line, in UTF-16 units
)

// deedOf returns what a call would do, and its differences as a unified diff: what was found out by trying it, or what
// its tool says. nil = neither is known.
func deedOf(q *tools.Question) (deed *tools.Effect, diff string) {
	if deed = q.Effect; deed == nil {
		deed = q.Deed
	}
	if deed == nil || deed.Unknown != "" {
		return deed, ""
	}
	return deed, deed.Diff
}

// tellDeed puts on a card what the call would do, or why that is not known.
func (b *Broker) tellDeed(c *texts.Card, language string, deed *tools.Effect, q *tools.Question, line func(string) string) {
	c.Again = q.Again
	if deed == nil {
		return
	}
	if deed.Unknown != "" {
		c.Untold = b.deps.Words.Untold(language, deed.Unknown, line(deed.Tried))
		return
	}
	c.Deed = b.deps.Words.Deed(language, deed)
	if deed.Partial {
		c.Partial = deed.Compared
	}
	c.Exit = deed.Exit
}

// lastPrinted returns the last lines of what a call printed when it was tried.
func (b *Broker) lastPrinted(language string, deed *tools.Effect) string {
	if deed == nil || deed.Unknown != "" {
		return ""
	}
	words := b.deps.Words.Visible(language)
	var output []string
	for text := range strings.Lines(deed.Output) {
		if text = strings.TrimRight(text, "\r\n"); strings.TrimSpace(text) != "" {
			text, _ = words.Line(text)
			output = append(output, render.Cut(text, outputLength))
		}
	}
	return strings.Join(output[max(0, len(output)-outputLines):], "\n")
}

// repeats are the reasons that begin with a part of the command, or name it first.
var repeats = []reason.Code{ //nolint:gochecknoglobals // a table
	reason.NoRule, reason.RuleAsks, reason.RunsUncertain, reason.FilesUncertain, reason.RedirectionWrites, reason.ShowsRepository,
	reason.MayReadDenied, reason.OptionUnnamed, reason.VariableUnnamed, reason.StartupFile,
}

// reasonOf returns why a question is asked, without the command, which is above it in its own words. A part of the
// command is named where it is there unchanged, or by its first word.
func reasonOf(q *tools.Question) reason.Reason {
	why := q.Why()
	if !q.Command || !slices.Contains(repeats, why.Code) || !why.Known() {
		return why
	}
	show, part := strings.TrimSpace(shownCall(*q)), strings.TrimSuffix(strings.TrimPrefix(why.Args[0], "`"), "`")
	words := strings.Fields(part)
	switch {
	case part == show || len(words) == 0 || strings.HasSuffix(part, "…"):
		return why.Quoting("")
	case strings.Contains(show, part):
		return why
	case slices.Contains(strings.Fields(show), words[0]):
		return why.Quoting("`" + words[0] + "`")
	}
	return why.Quoting("")
}

// showChanges answers the press that asks what would change: in a message, or in a file if it is long.
func (b *Broker) showChanges(
	ctx context.Context, a *bot.Approval, msg *bot.Message, say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	info, err := readGrant(a)
	if err != nil {
		return turn.Effect{}, err
	}
	_, diff := deedOf(&info.Question)
	row := bot.Row{Session: a.Session, Turn: a.Turn, Place: a.Place, Purpose: bot.Notice, ReplyTo: bot.ReplyToRow(a.Row), Key: askKey + a.ID + "/diff"}
	show, _ := b.deps.Words.Visible(info.Language).Text(strings.TrimRight(diff, "\n"))
	if strings.Count(show, "\n") < cardLines && render.Length(show) <= cardLength {
		row.Content = frameCode(diffName, show, "", "")
	} else {
		row.Content = bot.Content{Text: diffName, File: b.keepFile(ctx, a.Session, &bot.File{Name: diffName, Data: []byte(diff)})}
	}
	return turn.Effect{Change: bot.Change{Send: []bot.Row{say(b.deps.Words.Noted(msg.Language, 0), false), row}}}, nil
}
