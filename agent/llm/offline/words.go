package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent/llm"
)

// maxShown limits how much of one tool result the answer repeats, in characters.
const maxShown = 3000

var (
	greetRE = lazyExpression(
		`(?i)^(?:hi|hello|hey|good (?:morning|evening|day|afternoon)|greetings)\b[\s\w,@]{0,30}[!.?]*$`,
	)
	helpRE     = lazyExpression(`(?i)^(?:help|what can you do|what do you do|/start|/help)\b[^\n]{0,20}$`)
	whoRE      = lazyExpression(`(?i)^(?:who|what) are you\b[^\n]{0,20}$`)
	thanksRE   = lazyExpression(`(?i)^(?:thanks|thank you|thx|great|ok|okay|cool)\b[\s\w,]{0,20}[!.]*$`)
	reminderRE = lazyExpression(`(?s)^Reminder: (.+)$`)
	longRE     = lazyExpression(`(?i)\blong answer\b`)
	goOnRE     = lazyExpression(`(?i)^(?:go on|continue|carry on|more)[.!]*$`)
	digestRE   = lazyExpression(`(?i)^(?:summari[sz]e|recap)\b(?:\s+(?:this|our|the))?(?:\s+(?:conversation|chat|talk))?[.!?]*$`)
)

// drawRE matches requests for a picture.
var drawRE = lazyExpression(`(?i)^(?:draw|paint|sketch)\b|` +
	`^(?:make|create|generate|show|send|give)\b[^\n]{0,12}\b(?:picture|image|photo|drawing)\b`)

// What people of a group said to each other, above a message, and a question about it.
var (
	talkRE = lazyExpression(`(?s)^\[what people said [^\n]*\]\n(.*?)\n\[end of what they said\]\n`)
	saidRE = lazyExpression(`(?i)^what (?:was|did (?:we|they|people)|have (?:we|they|people)) (?:said|say|talk about)\b[^\n]{0,20}$`)
)

// repeatTalk says what people of a group said to each other before a message.
func repeatTalk(t *tongue, message string) string {
	found := talkRE().FindStringSubmatch(message)
	if found == nil {
		return t.say("I know of nothing that was said here since I was last asked.")
	}
	return t.say("This was said here:\n\n%s", found[1])
}

// smallTalk answers messages that need no tool.
func smallTalk(t *tongue, text string, req *llm.Request, at int) (string, bool) {
	if talk, ok := foreignTalk(t, text, req.Tools); ok {
		return talk, true
	}
	switch {
	case whoRE().MatchString(text), helpRE().MatchString(text):
		return introduceTools(t, req.Tools), true
	case greetRE().MatchString(text):
		return greetPeople(req), true
	case thanksRE().MatchString(text):
		return "You are welcome.", true
	case reminderRE().MatchString(text):
		return t.say("You wanted to be reminded: %s", reminderRE().FindStringSubmatch(text)[1]), true
	case longRE().MatchString(text):
		return longAnswer(t), true
	case goOnRE().MatchString(text):
		return goOn(t, req, at), true
	case drawRE().MatchString(text) && !hasPicture(&req.Messages[at]) && !isOffered(req.Tools, imageTool):
		return t.say("I cannot make pictures: that needs a provider with an `image_model`. Try %s.",
			t.suggest(req.Tools, "")), true
	case saidRE().MatchString(text):
		return repeatTalk(t, req.Messages[at].Text), true
	case digestRE().MatchString(text):
		return digestTalk(t, req.Messages[:at]), true
	default:
		return "", false
	}
}

func introduceTools(t *tongue, tools []llm.Tool) string {
	return t.say("I am the built-in offline model: a few fixed rules, no real language model. ") + listAbilities(t, tools)
}

// greetPeople answers a greeting.
func greetPeople(req *llm.Request) string {
	hello := "Hello! "
	if strings.Contains(req.System, "You are in a group") {
		hello = "Hello everybody! Mention me or answer one of my messages, and I answer here. "
	}
	return hello + "I am the built-in offline model: fixed rules, no real language model. " +
		"Try " + english.suggest(req.Tools, "") + ". *help* lists the rest."
}

// example is a request that the rules know, and the tool that it needs; "" = none.
type example struct{ tool, text string }

// examples are requests in English. The best ones are first.
var examples = []example{
	{"list_directory", "what files are here?"},
	{"bash", "delete the temp files"},
	{"read", "read todo.txt"},
	{"read", "count sales.csv"},
	{"grep", "search for error in logs"},
	{"write", "write notes.txt: buy milk"},
	{"bash", "run date"},
	{"fetch", "fetch https://example.org"},
	{"schedule_deferred", "remind me in 2 minutes to stand up"},
	{"ask_user", "plan something"},
	{"memory_save", "remember that I like tea"},
	{"", "long answer"},
}

// offered are the examples whose tools are offered.
func (t *tongue) offered(tools []llm.Tool) []string {
	known := examples
	if t != nil {
		known = t.examples
	}
	var list []string
	for _, e := range known {
		if e.tool == "" || isOffered(tools, e.tool) {
			list = append(list, "*"+e.text+"*")
		}
	}
	return list
}

// isOffered reports whether a tool is defined, or can be had by asking for it.
func isOffered(tools []llm.Tool, name string) bool {
	return isNamed(tools, name) || slices.ContainsFunc(tools, func(t llm.Tool) bool { return t.Name == name })
}

// suggest returns two requests that work, or one: those that begin like what was said are first.
func (t *tongue) suggest(tools []llm.Tool, said string) string {
	list := t.offered(tools)
	verb, _, _ := strings.Cut(strings.ToLower(said), " ")
	slices.SortStableFunc(list, func(a, b string) int {
		return cmp.Compare(wordAt(verb, a), wordAt(verb, b))
	})
	return strings.Join(list[:min(2, len(list))], t.say(" or "))
}

// wordAt is 0 if an example begins with a word, else 1.
func wordAt(word, example string) int {
	if word != "" && strings.HasPrefix(example, "*"+word+" ") {
		return 0
	}
	return 1
}

// listAbilities lists what works with the offered tools.
func listAbilities(t *tongue, tools []llm.Tool) string {
	list := t.offered(tools)
	if len(list) == 1 {
		return t.say("No tools are offered to me here, so I can only talk. Try %s.", list[0])
	}
	return t.say("Try one of these, also joined by \"and then\":\n- %s\n\n"+
		"Send me a picture, and I measure it; a CSV, and I count it; a text, and I read it.", strings.Join(list, "\n- "))
}

// reportStages describes the results of the stages up to last. local: the person is at their own machine, where
// nothing runs after they have left.
func reportStages(
	t *tongue, stages [][]wish, last int, done map[wishPlace]*llm.ToolResult, offered map[string]bool, local bool,
) string {
	var parts, left []string
	for s, stage := range stages {
		for i, w := range stage {
			r := done[wishPlace{s, i}]
			switch {
			case r != nil:
				parts = append(parts, describeResult(t, w, r))
			case s > last:
				left = append(left, describeWish(w))
			case !offered[w.tool] && w.later && local:
				parts = append(parts, t.say("I cannot %s here: nothing runs when you have left. "+
					"Reminders and tasks at set times work in Telegram.", w.phrase))
			case !offered[w.tool]:
				parts = append(parts, t.say(
					"I could not %s: I would need the tool `%s`, and it is not offered to me here.", w.phrase, w.tool,
				))
			default:
				parts = append(parts, t.say("I do not know what became of this: %s.", describeWish(w)))
			}
		}
	}
	if len(left) > 0 {
		parts = append(parts, "I stopped there and left out: "+strings.Join(left, ", ")+".")
	}
	return strings.Join(parts, "\n\n")
}

// describeWish names a wish whose phrase alone would be unclear.
func describeWish(w wish) string {
	if w.tool == "bash" {
		return "run " + inlineCode(w.subject)
	}
	return w.phrase
}

// describeResult describes one result.
func describeResult(t *tongue, w wish, r *llm.ToolResult) string {
	if r.Error {
		return describeFailure(t, w, r.Text)
	}
	text := strings.TrimRight(withoutMarks(r.Text), " \n")
	if w.done != nil && (w.tool != "bash" || text == "" || text == "(no output)") {
		return w.done(t)
	}
	switch w.tool {
	case "list_directory":
		return describeListing(t, w.subject, text)
	case "read":
		return describeFile(t, w, text)
	case "write":
		return t.say("I wrote %s.", inlineCode(w.subject))
	case "delete_path":
		return t.say("I deleted %s.", inlineCode(w.subject))
	case "bash":
		return titledBlock(t, t.say("I ran %s. It printed:", inlineCode(w.subject)),
			t.say("I ran %s. It printed nothing.", inlineCode(w.subject)), "", text)
	case "grep", "find_path":
		return titledBlock(t, t.say("I searched for %s and found:", inlineCode(w.subject)),
			t.say("I found nothing for %s.", inlineCode(w.subject)), "", text)
	case "fetch":
		return titledBlock(t, "This is what "+w.subject+" says:", w.subject+" has no text.", "", text)
	case "memory_save":
		return "I will remember that."
	case "ask_user":
		return describeAnswers(text)
	default:
		return titledBlock(
			t, "The result of "+inlineCode(w.subject)+":", inlineCode(w.subject)+" gave no result.", "", text,
		)
	}
}

// describeAnswers says what somebody has answered.
func describeAnswers(text string) string {
	_, raw, _ := strings.Cut(text, "\n")
	var list []struct {
		Question, Said, Date, Until string
		Chosen                      []string
	}
	if err := json.Unmarshal([]byte(raw), &list); err != nil || !strings.HasPrefix(text, "The person has answered") {
		return "You have not answered, so there is no plan."
	}
	lines := []string{"This is the plan:"}
	for _, a := range list {
		parts := a.Chosen
		day := dayInWords(a.Date)
		if a.Until != "" {
			day += " – " + dayInWords(a.Until)
		}
		for _, part := range []string{day, a.Said} {
			if part != "" {
				parts = append(parts, part)
			}
		}
		if len(parts) == 0 {
			parts = []string{"not said"}
		}
		lines = append(lines, "- "+a.Question+" "+strings.Join(parts, ", "))
	}
	return strings.Join(lines, "\n")
}

// dayInWords is a day, or a point in time, as the program writes it, in words.
func dayInWords(text string) string {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.Format("Monday, 2 January 2006")
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.Format("Monday, 2 January 2006, 15:04")
	}
	return text
}

// describeFile says what is in a file that was read, or counts it.
func describeFile(t *tongue, w wish, text string) string {
	text, _, more := strings.Cut(text, "\n[more lines follow")
	text = numberedRE().ReplaceAllString(text, "")
	if w.counts && text != "" {
		return describeDocument(t, sentDocument{name: w.subject, text: text, whole: !more})
	}
	title := t.say("%s says:", inlineCode(w.subject))
	if more {
		title = t.say("%s is long. It begins:", inlineCode(w.subject))
	}
	return titledBlock(t, title, t.say("%s is empty.", inlineCode(w.subject)), languageOf(w.subject), text)
}

// describeFailure describes an error or a denial. text is the tool error block or any text.
func describeFailure(t *tongue, w wish, text string) string {
	category, reason := errorBlock(t, withoutMarks(text))
	switch {
	case strings.Contains(text, llm.OutcomeUnknown):
		return t.say("I do not know what became of this: %s. "+
			"It was interrupted while it ran and may have finished, or not, or in part. "+
			"I have not repeated it. Please look, or ask me to run it again.", describeWish(w))
	case category == "policy_blocked" || category == "confirmation_required":
		return t.say("I was not allowed to %s: %s", describeWish(w), reason)
	case category == "cancelled":
		return t.say("I was stopped before I could %s.", describeWish(w))
	case category == "timeout":
		return t.say("I tried to %s, but it took too long: %s", describeWish(w), reason)
	default:
		return t.say("I could not %s: %s", describeWish(w), reason)
	}
}

// errorBlock reads the lines "category:" and "error:" of a [tool_error] block. Without one, the text itself is the
// reason.
func errorBlock(t *tongue, text string) (category, reason string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if v, ok := strings.CutPrefix(line, "category:"); ok && category == "" {
			category = strings.TrimSpace(v)
		}
		if v, ok := strings.CutPrefix(line, "error:"); ok && reason == "" {
			reason = strings.TrimSpace(v)
		}
	}
	if reason == "" {
		reason = strings.TrimSpace(text)
	}
	if reason == "" {
		reason = t.say("no reason was given.")
	}
	return category, cutText(t, reason)
}

// titledBlock returns text in a code block below a title, or none if there is no text. language may be empty.
func titledBlock(t *tongue, title, none, language, text string) string {
	if text == "" || text == "(no output)" {
		return none
	}
	shown := cutText(t, text)
	fence := "```"
	for strings.Contains(shown, fence) {
		fence += "`"
	}
	return title + "\n" + fence + language + "\n" + shown + "\n" + fence
}

// cutText shortens a long text and appends its length.
func cutText(t *tongue, s string) string {
	if utf8.RuneCountInString(s) <= maxShown {
		return s
	}
	r := []rune(s)
	return t.say("%s\n… (%d characters in all)", string(r[:maxShown]), len(r))
}

// inlineCode formats a name or a command as code.
func inlineCode(s string) string {
	if strings.ContainsAny(s, "`\n") {
		return fmt.Sprintf("%q", s)
	}
	return "`" + s + "`"
}

// digestSystemRE matches the instructions for a summary of the conversation, which the program asks for rather than a
// person.
var digestSystemRE = lazyExpression(`(?i)summar|recap|you remind a person of a conversation`)

func wantsDigest(req *llm.Request) bool {
	return len(req.Tools) == 0 && digestSystemRE().MatchString(req.System)
}

// transcriptRE matches the beginning of what a person or the assistant said in a transcript.
var transcriptRE = lazyExpression(`^(person|assistant)(?: [^:\n]*)?: (.*)$`)

// speech is what one side said.
type speech struct {
	person bool
	text   string
}

// speechesOf are the speeches of messages, in which a transcript may be one message.
func speechesOf(messages []llm.Message) []speech {
	var list []speech
	for _, msg := range messages {
		text := quotation().ReplaceAllString(msg.Text, "")
		_, transcript, written := strings.Cut("\n"+text, "\nThe conversation:\n")
		if msg.Role != llm.User && msg.Role != llm.Assistant {
			continue
		}
		if !written {
			said, _ := takeDocuments(text)
			list = append(list, speech{msg.Role == llm.User, said})
			continue
		}
		list = append(list, transcribedSpeeches(transcript)...)
	}
	return slices.DeleteFunc(list, func(s speech) bool { return strings.TrimSpace(s.text) == "" })
}

// transcribedSpeeches are the speeches of a transcript, without calls of tools and their results. Further lines of a
// speech are indented.
func transcribedSpeeches(transcript string) []speech {
	var list []speech
	said := false
	for line := range strings.Lines(transcript) {
		rest, indented := strings.CutPrefix(line, "  ")
		m := transcriptRE().FindStringSubmatch(strings.TrimRight(line, "\n"))
		switch {
		case indented && said:
			list[len(list)-1].text += "\n" + strings.TrimRight(rest, "\n")
		case indented:
		case m != nil && !strings.HasPrefix(line, "assistant calls "):
			said = true
			list = append(list, speech{m[1] == "person", m[2]})
		default:
			said = false
		}
	}
	for i := range list {
		list[i].text, _ = takeDocuments(list[i].text)
	}
	return list
}

// digestTalk sums up a conversation in the only way that rules can: by quoting what was asked and the last answer.
func digestTalk(t *tongue, messages []llm.Message) string {
	const most, length = 8, 100
	var asked []string
	last := ""
	for _, s := range speechesOf(messages) {
		line := shortLine(s.text, length)
		switch {
		case !s.person:
			last = line
		case len(asked) == 0 || asked[len(asked)-1] != line:
			asked = append(asked, line)
		}
	}
	if len(asked) == 0 {
		return t.say("Nothing has been said yet.")
	}
	title := t.say("You asked:")
	if skipped := len(asked) - most; skipped > 0 {
		asked, title = asked[skipped:], t.say("After %s you asked:", t.count(skipped, "other message"))
	}
	text := title + "\n- " + strings.Join(asked, "\n- ")
	if last != "" {
		text += "\n\n" + t.say("My last answer: %s", last)
	}
	return text
}

// goOn continues a long answer that was cut.
func goOn(t *tongue, req *llm.Request, at int) string {
	for _, m := range slices.Backward(req.Messages[:at]) {
		if m.Role != llm.Assistant || strings.TrimSpace(m.Text) == "" {
			continue
		}
		said := strings.TrimSpace(strings.TrimPrefix(m.Text, strings.TrimSpace(mannered(req.System, ""))))
		for _, language := range spokenTongues() {
			whole := longAnswer(language)
			if begin := strings.Index(whole, said); begin >= 0 && !strings.HasSuffix(whole, said) {
				return strings.TrimLeft(whole[begin+len(said):], " \n")
			}
		}
		break
	}
	return t.say("There is nothing to go on with: my last answer was complete. Try %s.", t.suggest(req.Tools, ""))
}

// longAnswer is a Markdown text of more than 9 000 characters that contains everything that is hard to split.
func longAnswer(t *tongue) string {
	var b strings.Builder
	b.WriteString(t.say("# A long answer\n\n" +
		"This text is long on purpose, so that you can see how it is cut into several messages.\n"))
	for i := 1; i <= 18; i++ {
		b.WriteString(t.say("\n## Part %d\n\n", i))
		b.WriteString(t.say("Paragraph %d has **bold**, *italic*, `code` and a [link](https://example.org/%d). ", i, i))
		b.WriteString(strings.Repeat(t.say("It goes on for a while, because short paragraphs are easy to split. "), 4))
		b.WriteString(t.say("\n\n- first point of part %d\n- second point: größer, 日本語, 👩‍🚀\n  - a point below it\n", i))
		b.WriteString(t.say("\n> A quotation in part %d that runs over\n> two lines.\n", i))
		fmt.Fprintf(&b, "\n```go\n// part %d\nfor i := range %d {\n\tfmt.Println(\"line\", i)\n}\n```\n", i, i)
	}
	b.WriteString(t.say("\nThat was all of it."))
	return b.String()
}
