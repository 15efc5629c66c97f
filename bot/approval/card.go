package approval

// The card of a question: what is approved, why it is asked about, and what the call would do.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// Limits of what a card itself shows, in UTF-16 units and lines. A longer command is sent in full as a file: what is
// approved is always what was shown.
const (
	cardLength = 2800
	cardLines  = 40
	headLines  = 8
	noteLength = 300 // of each sentence around the command
)

// questionCard returns the question as a person sees it, with a file before it if the command is too long. The file
// contains the command byte for byte; the card reveals invisible characters in it, and always counts them.
func (b *Broker) questionCard(a *bot.Approval, to reader) (bot.Content, *bot.File, error) {
	info, err := readGrant(a)
	if err != nil {
		return bot.Content{}, nil, err
	}
	q, w, lang := info.Question, to.words, to.language
	c := texts.Card{
		Steps: info.Steps, USD: info.USD, Expires: a.Expires, Short: a.Short, Needed: a.Needed, Votes: len(a.Votes),
	}
	exact, fileName := codeBlock(&q)
	deed, diff := deedOf(&q)
	show, found := w.Visible(lang).Text(exact)
	line := func(s string) string {
		text, more := w.Visible(lang).Line(s)
		found = found.Add(more)
		return render.Cut(text, noteLength)
	}
	c.Tool, c.Note, c.Suspicious = line(q.Tool), w.Said(
		lang, reason.Or(q.Note, q.EnglishNote).Map(line),
	), w.Source(lang, line(q.Suspicious))
	c.Agent = line(q.Agent)
	if a.Place.Group {
		c.Asker = info.Name
	}
	c.Found, found = found, visible.Found{}
	c.Reason = w.Reason(lang, reasonOf(&q).Map(line))
	c.NoAlways = info.Admin && a.Needed <= 1 && len(q.Offers) == 0 && q.Whole == nil && q.Suspicious == ""
	tellDeed(&c, to, deed, &q, line)
	for _, name := range q.Changed {
		c.Changed = append(c.Changed, line(name))
	}
	c.Found = c.Found.Most(found) // the reason repeats parts of the command
	var file *bot.File
	if strings.Count(show, "\n") >= cardLines || render.Length(show) > cardLength {
		sum := sha256.Sum256([]byte(exact))
		c.FileLines, c.FileHash = strings.Count(exact, "\n")+1, hex.EncodeToString(sum[:8])
		file = &bot.File{Name: fileName, Data: []byte(exact)}
		show = cutText(show)
	}
	content := to.above(framedWith(
		w.CardHead(lang, c), show, w.Printed(lang), lastPrinted(to, deed), w.CardFoot(lang, c), w.CardHint(lang, c),
	))
	once, session, deny := w.Buttons(lang)
	data := func(choice string) string { return "a1:" + a.ID + ":" + choice }
	yes := []bot.Button{{Label: once, Data: data("y"), Style: "success"}}
	last := []bot.Button{{Label: deny, Data: data("n"), Style: "danger"}}
	content.Buttons = [][]bot.Button{yes, last}
	showsDiff := func() {
		if diff != "" && q.Effect != nil {
			content.Buttons = slices.Insert(content.Buttons, 1, []bot.Button{{
				Label: w.DiffButton(lang),
				Data:  data(showDiff),
			}})
		}
	}
	if a.Needed > 1 { // several people decide about one call, and nobody decides about more in their name
		showsDiff()
		if to.asker { // whose approval would not count
			content.Buttons = content.Buttons[1:]
		}
		return content, file, nil
	}
	if q.Whole != nil && q.Whole.Kind == policy.GrantHost {
		if q.Whole.Server == "" {
			content.Buttons[0][0].Label = w.PageButton(lang)
		}
		more := []bot.Button{{Label: w.WholeButton(lang, q.Whole), Data: data(wholeTool)}}
		content.Buttons = slices.Insert(content.Buttons, 1, more)
		return content, file, nil
	}
	content.Buttons[0] = append(yes, bot.Button{Label: session, Data: data("s")})
	if info.Admin && len(q.Offers) > 0 {
		content.Buttons[1] = append([]bot.Button{{Label: w.AlwaysButton(lang), Data: data(showRule)}}, last...)
	}
	if q.Whole != nil {
		content.Buttons = slices.Insert(content.Buttons, 1, []bot.Button{
			{Label: w.WholeButton(lang, q.Whole), Data: data(wholeTool)},
		})
	}
	showsDiff()
	if info.Clears {
		content.Buttons = slices.Insert(content.Buttons, 1, []bot.Button{
			{Label: w.ClearButton(lang), Data: data(clearMark)},
		})
	}
	return content, file, nil
}

// shownCall returns what is approved.
func shownCall(q tools.Question) string {
	if show := strings.TrimRight(q.Show, "\n"); show != "" {
		return show
	}
	return q.Args
}

// CommandOf returns the command that a question was about; "" = it was about another call.
func CommandOf(a *bot.Approval) string {
	info, err := readGrant(a)
	if err != nil || !info.Question.Command {
		return ""
	}
	return strings.TrimSpace(shownCall(info.Question))
}

// codeBlock returns what a card shows as it is, and the name of its file. What a file tool
// writes is shown as what changes.
func codeBlock(q *tools.Question) (text, file string) {
	if _, diff := deedOf(q); diff != "" && q.Effect == nil {
		return changesOf(diff, q.Deed), diffName(q.Deed)
	}
	return shownCall(*q), fileName(*q)
}

// newFile is what a unified diff says above the text of a new file.
var newFile = regexp.MustCompile(`(?m)^--- /dev/null\n\+\+\+ b/(.*)\n@@ -0,0 .*\n`)

// changesOf returns differences as people read them. Those of one file are without what is said above them: its name,
// and that all of it is new; of several, a new one is its name and its text.
func changesOf(diff string, deed *tools.Effect) string {
	if _, one := oneFile(deed); !one {
		return strings.TrimRight(newFile.ReplaceAllString(diff, "$1\n"), "\n")
	}
	if at := strings.Index(diff, "@@"); at >= 0 {
		diff = diff[at:]
	}
	if strings.HasPrefix(diff, "@@ -0,0 ") {
		_, diff, _ = strings.Cut(diff, "\n")
		diff = strings.TrimSuffix(strings.TrimRight(diff, "\n"), "\n\\ No newline at end of file")
	}
	return strings.TrimRight(diff, "\n")
}

// decidedCard returns what the card becomes: the same command, and who decided what, when. It has no buttons. A
// question that cannot be decoded any more can still be ended. The hint is the last line; "" = none.
func (b *Broker) decidedCard(a *bot.Approval, to reader, hint string) bot.Content {
	info, err := readGrant(a)
	decision := to.words.Decided(to.language, b.signedBy(a))
	if err != nil {
		return bot.Content{Text: visible.Name(a.Tool) + "\n" + decision}
	}
	if q, ok := inquiryOf(a, &info); ok && b.deps.Inquiries != nil {
		return b.deps.Inquiries.Record(q)
	}
	words := to.words.Visible(to.language)
	exact, _ := codeBlock(&info.Question)
	show, _ := words.Text(exact)
	if strings.Count(show, "\n") >= cardLines || render.Length(show) > cardLength {
		show = cutText(show)
	}
	deed, _ := deedOf(&info.Question)
	head := to.words.Deed(to.language, deed)
	if head == "" && !info.Question.Command { // a command speaks for itself
		head, _ = words.Line(info.Question.Tool)
		head = render.Cut(head, noteLength)
	}
	return to.above(frameCode(head, show, decision, hint))
}

// frameCode puts text as code between a head and a foot. Head and foot are made inert, because they contain words of
// others, which must not become links, mentions or commands. The hint is ours and is not changed.
func frameCode(head, code, foot, hint string) bot.Content {
	return framedWith(head, code, "", "", foot, hint)
}

// framedWith is framed with what was printed below the code, if anything was, under a label of ours.
func framedWith(head, code, label, printed, foot, hint string) bot.Content {
	var content bot.Content
	content.Text, content.Entities = render.Marked(head)
	add := func(text string) (offset int) {
		if content.Text != "" {
			content.Text += "\n"
		}
		content.Text += text
		return render.Length(content.Text) - render.Length(text)
	}
	block := func(text string) {
		if text != "" {
			offset := add(text)
			content.Entities = append(content.Entities, render.Entity{
				Type:   "pre",
				Offset: offset,
				Length: render.Length(text),
			})
		}
	}
	block(code)
	if printed != "" {
		add(label)
		block(printed)
	}
	if foot != "" {
		foot, entities := render.Quoted(foot)
		offset := add(foot)
		for _, e := range entities {
			e.Offset += offset
			content.Entities = append(content.Entities, e)
		}
	}
	if hint != "" {
		add(hint)
	}
	return content
}

// cutText returns the beginning of a long text, with a sign that more follows.
func cutText(text string) string {
	lines := strings.SplitN(text, "\n", headLines+1)
	if len(lines) > headLines {
		lines = append(lines[:headLines], "…")
	}
	return render.Cut(strings.Join(lines, "\n"), cardLength/2)
}

func fileName(q tools.Question) string {
	if q.Command {
		return "command.sh.txt"
	}
	return "call.txt"
}

// showDiff is the choice of the button that shows what a call would change.
const showDiff = "d"

// Decides reports whether a choice ends its question, or counts as a vote. The others show something.
func Decides(choice string) bool {
	return choice != showDiff && !strings.HasPrefix(choice, showRule) && choice != hideRule
}

// longestName is how long a name of a file may be, in bytes, for it to be part of the name of another one.
const longestName = 60

// diffName is the name of a file with differences.
func diffName(deed *tools.Effect) string {
	if name, one := oneFile(deed); one {
		if name = path.Base(name); len(name) <= longestName && visible.Name(name) == name {
			return name + ".diff.txt"
		}
	}
	return "changes.diff.txt"
}

// oneFile returns the file whose text a call would write, if it is one.
func oneFile(deed *tools.Effect) (name string, one bool) {
	files := slices.Concat(deed.Created, deed.Changed)
	if len(files) != 1 || deed.Omitted.Created+deed.Omitted.Changed > 0 {
		return "", false
	}
	return files[0].Path, true
}

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
func tellDeed(c *texts.Card, to reader, deed *tools.Effect, q *tools.Question, line func(string) string) {
	c.Again = q.Again
	if deed == nil {
		return
	}
	if deed.Unknown != "" {
		c.Untold = to.words.Untold(to.language, deed.Unknown, line(deed.Tried))
		return
	}
	c.Deed = to.words.Deed(to.language, deed)
	if deed.Partial {
		c.Partial = deed.Compared
	}
	c.Exit = deed.Exit
}

// lastPrinted returns the last lines of what a call printed when it was tried.
func lastPrinted(to reader, deed *tools.Effect) string {
	if deed == nil || deed.Unknown != "" {
		return ""
	}
	words := to.words.Visible(to.language)
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
	reason.NoRule, reason.RuleAsks, reason.RunsUncertain,
	reason.FilesUncertain, reason.RedirectionWrites, reason.ShowsRepository,
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
	deed, diff := deedOf(&info.Question)
	if diff == "" {
		return turn.Effect{Change: bot.Change{Send: []bot.Row{say("", false)}}}, nil
	}
	diff = changesOf(diff, deed)
	row := bot.Row{
		Session: a.Session,
		Turn:    a.Turn,
		Place:   a.Place,
		Purpose: bot.Notice,
		ReplyTo: bot.ReplyToRow(a.Row),
		Key:     askKey + a.ID + "/diff",
	}
	to := b.readerFor(a, msg)
	show, _ := to.words.Visible(to.language).Text(diff)
	head := to.words.Deed(to.language, deed)
	if strings.Count(show, "\n") < cardLines && render.Length(show) <= cardLength {
		row.Content = frameCode(head, show, "", "")
	} else {
		row.Content = frameCode(head, "", "", "")
		row.Content.File = b.keepFile(ctx, a.Session, &bot.File{Name: diffName(deed), Data: []byte(diff)})
	}
	return turn.Effect{Change: bot.Change{Send: []bot.Row{say("", false), row}}}, nil
}
