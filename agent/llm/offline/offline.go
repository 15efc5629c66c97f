// Package offline is the built-in model that needs neither key nor network: a few rules that recognise simple requests
// ("read a.txt", "run ls", "delete the temp files"), call the tools they need and report the results in words. It also
// measures pictures and counts tables that come with a message. It says what it is when asked. Equal conversations get
// equal answers, so that demonstrations and tests can rely on it.
package offline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent/llm"
)

// ModelName is the value of Response.Model.
const ModelName = "built-in rules"

// charsPerToken is the usual rough estimate for English text.
const charsPerToken = 4

// Options configure New. The zero value is ready for use.
type Options struct {
	// Name is the provider's name; "" = "offline".
	Name string
	// Pace is called before every streamed word, for pages that show a growing answer. Its error ends the call. nil =
	// no delay.
	Pace func(ctx context.Context) error
}

// Model is the built-in provider. It is stateless and safe for concurrent use.
type Model struct {
	name string
	pace func(ctx context.Context) error
}

// New returns the built-in model.
func New(o Options) *Model {
	m := &Model{name: o.Name, pace: o.Pace}
	if m.name == "" {
		m.name = "offline"
	}
	if m.pace == nil {
		m.pace = func(context.Context) error { return nil }
	}
	return m
}

// Name implements llm.Provider.
func (m *Model) Name() string { return m.name }

// Chat implements llm.Provider. The next step depends only on the messages from the last user message on. Summaries,
// which nobody watches, come without a pause between their words.
func (m *Model) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("offline model: %w", err)
	}
	res := &llm.Response{
		Stop: llm.StopEnd, Provider: m.name, Model: ModelName,
		Usage: llm.Usage{Input: inputTokens(req)},
	}
	text, uses := nextStep(ctx, req)
	if len(uses) > 0 {
		res.Uses, res.Stop = uses, llm.StopTools
		for _, u := range uses {
			res.Usage.Output += estimateTokens(u.Name) + estimateTokens(string(u.Args))
		}
		return res, nil
	}
	text = mannered(req.System, text)
	if limit := req.MaxTokens * charsPerToken; limit > 0 && utf8.RuneCountInString(text) > limit {
		text, res.Stop = string([]rune(text)[:limit]), llm.StopLength
	}
	pace := m.pace
	if wantsDigest(req) {
		pace = func(context.Context) error { return nil }
	}
	if err := streamText(ctx, text, pace, onDelta); err != nil {
		return nil, err
	}
	res.Text = text
	res.Usage.Output = estimateTokens(text)
	return res, nil
}

// streamText passes text on word by word, at a pace.
func streamText(
	ctx context.Context, text string, pace func(context.Context) error, onDelta func(string),
) error {
	if onDelta == nil {
		return nil
	}
	for _, word := range splitWords(text) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("offline model: %w", err)
		}
		if err := pace(ctx); err != nil {
			return fmt.Errorf("offline model: pace: %w", err)
		}
		onDelta(word)
	}
	return nil
}

// nextStep decides what to say or to call.
func nextStep(ctx context.Context, req *llm.Request) (string, []llm.ToolUse) {
	if wantsDigest(req) {
		return digestTalk(tongueOfTalk(req.Messages), req.Messages), nil
	}
	at := lastUser(req.Messages)
	if at < 0 {
		return introduceTools(english, req.Tools), nil
	}
	message := &req.Messages[at]
	asked := message.Text
	if aside, ok := sideQuestion(asked); ok {
		asked = aside
	}
	speakers := strings.Contains(req.System, "its speaker's name")
	hook := hookRE().FindStringSubmatch(asked)
	if hook != nil {
		asked, speakers = hook[1], false
	}
	text, documents := takeDocuments(spokenText(asked, speakers))
	closed := attachedRE().FindStringSubmatch(text)
	text = strings.TrimSpace(attachedRE().ReplaceAllString(text, ""))
	t := tongueOf(text)
	text = inEnglish(text)
	var stages [][]wish
	draws := drawRE().MatchString(text) && !hasPicture(message)
	if about := aboutRE().MatchString(text); !about || draws {
		if talk, ok := smallTalk(t, text, req, at); ok {
			return talk, nil
		}
		stages = planStages(t, text)
	}
	if len(stages) == 0 {
		if told := describeContents(ctx, t, req, message, documents); told != "" {
			return told, nil
		}
		if pictureRE().MatchString(text) {
			return t.say("There is no picture with your message: send one with these words."), nil
		}
		stages = planStages(t, text)
	}
	switch scheduled := scheduledRE().MatchString(message.Text); {
	case len(stages) > 0:
		return stageUses(t, stages, req, at)
	case hook != nil:
		return "The call brought this: " + shortLine(strings.ReplaceAll("\n"+hook[2], "\n> ", "\n"), maxBrought), nil
	case scheduled:
		return t.say("You wanted to be reminded: %s", text), nil
	case text == "" && closed != nil && recordingRE().MatchString(closed[1]):
		return "You could write this: " + t.suggest(req.Tools, "") + ".", nil // that nobody listens has been said
	case text == "" && closed != nil:
		return "I can do nothing with that. Try " + t.suggest(req.Tools, "") + ".", nil
	default:
		if talk, ok := smallTalk(t, text, req, at); ok {
			return talk, nil
		}
		return t.say("I follow fixed rules and cannot do that. Try %s.", t.suggest(req.Tools, text)), nil
	}
}

// sideQuestion returns the question that a person asks beside the work (/btw). What the program has put above it, the
// conversation so far, is for models that understand it.
func sideQuestion(text string) (question string, ok bool) {
	at := strings.LastIndex(text, "\n\nThe side question:\n")
	if at < 0 || !strings.Contains("\n"+text[:at], "\nThe conversation:\n") {
		return "", false
	}
	_, question, _ = strings.Cut(text[at:], ":\n")
	return question, true
}

// describeContents says what is in the documents and pictures of a message; "" = it has none.
func describeContents(ctx context.Context, t *tongue, req *llm.Request, m *llm.Message, documents []sentDocument) string {
	var told []string
	for _, d := range documents {
		if d.text != "" || !hasPicture(m) {
			told = append(told, describeDocument(t, d))
		}
	}
	if pictures := measurePictures(ctx, t, req, m); pictures != "" {
		told = append(told, pictures)
	}
	return strings.Join(told, "\n\n")
}

// stageUses returns the uses of the first stage that is not done, or the answer if nothing is left to do.
func stageUses(t *tongue, stages [][]wish, req *llm.Request, at int) (string, []llm.ToolUse) {
	offered := map[string]bool{}
	for _, tool := range req.Tools {
		offered[tool.Name] = true
	}
	done := stageResults(stages, req.Messages[at+1:])
	local := strings.Contains(req.System, "on the person's own machine") ||
		strings.Contains(req.System, "of the person's own machine")
	for s, stage := range stages {
		var uses []llm.ToolUse
		stop := false
		for i, w := range stage {
			p := wishPlace{s, i}
			result, asked := done[p]
			switch {
			case asked:
				stop = stop || (w.changes && (result == nil || result.Error))
			case !offered[w.tool] && isNamed(req.Tools, w.tool) && !wasSearched(req.Messages[at+1:], w.tool):
				id := fmt.Sprintf("off_%d_%d_%d_search", at, s, i)
				uses = append(uses, llm.ToolUse{ID: id, Name: searchTool, Args: oneArgument("query", w.tool)})
			case !offered[w.tool]:
				stop = stop || w.changes
			default:
				uses = append(uses, llm.ToolUse{ID: fmt.Sprintf("off_%d_%d_%d", at, s, i), Name: w.tool, Args: w.args})
			}
		}
		if len(uses) > 0 {
			return "", uses
		}
		if stop {
			return reportStages(t, stages, s, done, offered, local), nil
		}
	}
	return reportStages(t, stages, len(stages)-1, done, offered, local), nil
}

// searchTool shows tools that are named in its description and not defined.
const searchTool = "tool_search"

// isNamed reports whether a tool is not offered and can be had by asking for it.
func isNamed(tools []llm.Tool, name string) bool {
	return slices.ContainsFunc(tools, func(t llm.Tool) bool {
		return t.Name == searchTool && strings.Contains(t.Description, name+": ")
	})
}

// wasSearched reports whether a tool was asked for.
func wasSearched(messages []llm.Message, name string) bool {
	return slices.ContainsFunc(messages, func(m llm.Message) bool {
		return slices.ContainsFunc(m.Uses, func(u llm.ToolUse) bool {
			return u.Name == searchTool && strings.Contains(string(u.Args), `"`+name+`"`)
		})
	})
}

// wishPlace is the position of a wish in the plan.
type wishPlace struct{ stage, wish int }

// stageResults finds the result of each wish that has been requested; a nil result is missing from the history. The
// n-th use of a tool belongs to the n-th wish for it: ids and the spelling of arguments can change on the way through a
// journal, but the order cannot.
func stageResults(stages [][]wish, messages []llm.Message) map[wishPlace]*llm.ToolResult {
	results := map[string]*llm.ToolResult{}
	for _, msg := range messages {
		if msg.Role == llm.ToolRole && msg.Result != nil {
			results[msg.Result.ID] = msg.Result
		}
	}
	uses := map[string][]llm.ToolUse{}
	for _, msg := range messages {
		for _, u := range msg.Uses {
			uses[u.Name] = append(uses[u.Name], u)
		}
	}
	done := map[wishPlace]*llm.ToolResult{}
	for s, stage := range stages {
		for i, w := range stage {
			if queue := uses[w.tool]; len(queue) > 0 {
				done[wishPlace{s, i}] = results[queue[0].ID]
				uses[w.tool] = queue[1:]
			}
		}
	}
	return done
}

// aboutRE matches requests about what came with the message.
var aboutRE = lazyExpression(`(?i)^(?:@\w+[,:]?\s*)?(?:please\s+|can you\s+|could you\s+)?` +
	`(?:|what\b[^\n]*|(?:read|count|show|see|open|describe|analy[sz]e|check|sum|summari[sz]e|explain|look)\b[^\n]*|` +
	`how (?:many|big|large)\b[^\n]*)$`)

// pictureRE matches questions about a picture.
var pictureRE = lazyExpression(`(?i)^what(?:'s| is| do you see)\s+(?:in|on)\s+(?:this|the|my)\s+(?:picture|photo|image)[?.!]*$`)

// recordingRE matches the program's words for what somebody has spoken.
var recordingRE = lazyExpression(`(?i)voice|audio|recording`)

// scheduledRE matches the line above the text of a scheduled task.
var scheduledRE = lazyExpression(`^\[scheduled task [^\n]*\]\n`)

// hookRE matches the call of a hook: the words of its owner, and what the call brought, quoted.
var hookRE = lazyExpression(`(?s)^(?:[^\n]*: )?\[the hook [^\n]* was called; [^\n]*\]\n(.*?)\n` +
	`\[what the call brought: [^\n]*\]\n(.*)\n\[end of what the call brought\]`)

// maxBrought is how many characters of what a call brought are said.
const maxBrought = 300

// quotation matches a replied-to message, background news and the talk of a group in front of what the person wrote.
var quotation = lazyExpression(`(?s)^(?:` +
	`\[reply to (?:your own message|a message of "[^"\n]*")(?: in another chat(?:, "[^"\n]*")?)?\]\n|` +
	`\[that message has [^\n]*\]\n|` +
	`\[(?:reply to|news|what people said) [^\n]*\]\n.*?\n\[end of (?:quotation|news|what they said)\]\n)+`)

// spokenText returns what the person wrote, without the quotation, and without the speaker's name that precedes
// messages in shared conversations.
func spokenText(text string, speakers bool) string {
	text = quotation().ReplaceAllString(text, "")
	if name, rest, ok := strings.Cut(text, ": "); ok && speakers && !strings.Contains(name, "\n") {
		text = rest
	}
	return dropPhrases(scheduledRE().ReplaceAllString(text, ""))
}

func lastUser(messages []llm.Message) int {
	for i, message := range slices.Backward(messages) {
		if message.Role == llm.User {
			return i
		}
	}
	return -1
}

// estimateTokens estimates the tokens of a text.
func estimateTokens(s string) int {
	return (utf8.RuneCountInString(s) + charsPerToken - 1) / charsPerToken
}

func inputTokens(req *llm.Request) int {
	n := estimateTokens(req.System)
	for _, msg := range req.Messages {
		n += estimateTokens(msg.Text)
		for _, u := range msg.Uses {
			n += estimateTokens(u.Name) + estimateTokens(string(u.Args))
		}
		if msg.Result != nil {
			n += estimateTokens(msg.Result.Text)
		}
	}
	for _, t := range req.Tools {
		n += estimateTokens(t.Name) + estimateTokens(t.Description) + estimateTokens(string(t.Schema))
	}
	return n
}

// splitWords splits text into pieces that end with the white space after a word; joined, they are text again.
func splitWords(text string) []string {
	var out []string
	for text != "" {
		end := strings.IndexAny(text, " \n\t")
		if end < 0 {
			return append(out, text)
		}
		for end < len(text) && strings.IndexByte(" \n\t", text[end]) >= 0 {
			end++
		}
		out = append(out, text[:end])
		text = text[end:]
	}
	return out
}
