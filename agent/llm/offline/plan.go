package offline

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// wish is one tool call that the person asked for.
type wish struct {
	tool    string
	args    json.RawMessage
	phrase  string // what is done, as the object of "I could not …": "read a.txt"
	subject string // file, folder, command or address
	changes bool   // later stages depend on it: a failure ends the plan
	later   bool   // it is to happen at another time
	counts  bool   // the content is counted instead of shown
	// done is what is said when it is done and has printed nothing; nil = the words for its tool
	done func(t *tongue) string
}

// object matches the part of a sentence that names a file, in quotes or as one word.
const object = "(\"[^\"]+\"|'[^']+'|`[^`]+`|\\S+)"

var (
	politeRE  = lazyExpression(`(?i)^(?:please|could you|can you|would you|will you|hey|now|then|and)\b[,:]?\s*`)
	mentionRE = lazyExpression(`^@\w+[,:]?\s*`)
	thenRE    = lazyExpression(`(?i)^(?:\s*[,;.]?\s+and then\s+|\s*[,;.]\s*then\s+|\s*\n\s*then\s+)`)
	listRE    = lazyExpression(`(?i)^(?:list|show|ls|what|which)\b(?: me)?(?: all)?(?: the| my)?\s*(?:files?|folder|` +
		`directory|content|contents)?(?: are| do we have| do you see| is)?(?: there)?(?:\s+(?:in|of|under|` +
		`inside)\s+(?:the\s+)?` +
		object + `(?:\s+(?:folder|directory))?|\s+here)?[?.!]*$`)
	whatInRE = lazyExpression(`(?i)^what(?:'s| is)\s+(?:in|inside)\s+(?:the\s+)?(?:file\s+)?` +
		object + `(\s+(?:folder|directory))?[?.!]*$`)
	readRE  = lazyExpression(`(?is)^(?:read|show(?: me)?|open|cat|print)\s+(?:the\s+)?(?:files?\s+)?(.+)$`)
	writeRE = lazyExpression(
		"(?is)^(?:write|create|save)\\s+(?:a\\s+|the\\s+)?(?:file\\s+)?(?:named\\s+|called\\s+)?(\"[^\"\n]+\"|'[^'\n]+'|`[^`\n]+`|[^\\s\"']+?)(?:\\s*:|(?:\\s+with(?:\\s+the)?(?:\\s+(?:text|content))?|\\s+saying):?)\\s*(.*)$",
	)
	writeToRE = lazyExpression(
		"(?is)^(?:write|save|put)\\s+(\"[^\"]*\"|'[^']*'|`[^`]*`)\\s+(?:to|into|in)\\s+(?:the\\s+)?(?:file\\s+)?" +
			object + `(.*)$`,
	)
	writeBareRE = lazyExpression(
		"(?is)^(?:write|save|put)\\s+(.+?)\\s+(?:to|into|in)\\s+(?:the\\s+)?(?:file\\s+)?(\"[^\"]+\"|'[^']+'|`[^`]+`|[^\\s\"'`]*\\.\\w+)(.*)$",
	)
	runRE  = lazyExpression(`(?is)^(?:run|execute|exec)\b(?:\s+(?:the\s+)?command)?\s*:?\s*(.+)$`)
	tempRE = lazyExpression(`(?i)^(?:delete|remove|clean up)\s+(?:all\s+)?(?:the\s+|my\s+)?(?:temp|temporary|tmp|` +
		`\.tmp|\*\.tmp)\s*files?(?:\s+(?:in|under)\s+(?:the\s+)?` + object + `)?[?.!]*$`)
	deleteRE = lazyExpression(`(?i)^(?:delete|remove)\s+(?:the\s+)?(?:file\s+|folder\s+|directory\s+)?` +
		object + `$`)
	searchRE = lazyExpression(`(?is)^(?:search|grep|look)\s+(?:for\s+)?(.+?)(?:\s+in\s+(?:the\s+|all\s+|` +
		`my\s+)*(files?|code|folder|` + object + `))?$`)
	hereRE  = lazyExpression(`(?i)^(?:list|ls|how many files are (?:here|there))[?.!]*$`)
	clockRE = lazyExpression(`(?i)^what(?:'s| is)?\s+(?:the\s+)?(?:time|date|day)(?:\s+is\s+it)?(?:\s+(?:now|today))?[?.!]*$`)
	countRE = lazyExpression(`(?i)^(?:count|sum(?:\s+up)?|add\s+up|summari[sz]e|how\s+many)\s+(?:the\s+)?` +
		`(?:(?:rows?|lines?|words?|columns?|numbers?|entries)\s+)?(?:(?:are|does)\s+)?(?:there\s+)?(?:(?:in|of)\s+)?` +
		`(?:the\s+)?(?:file\s+)?(?:"([^"]+)"|([^\s"]+\.\w+))(?:\s+ha(?:s|ve))?[?.!]*$`)
	findRE = lazyExpression(`(?i)^find\s+(?:all\s+)?(?:the\s+)?(?:files?\s+)?(?:named\s+|called\s+|matching\s+)?` +
		object + `$`)
	fetchRE = lazyExpression(
		`(?i)^(?:fetch|get|download|open|visit|read)\s+(?:the\s+)?(?:page\s+|url\s+|site\s+)?(https?://\S+)$`,
	)
	planRE   = lazyExpression(`(?i)^(?:let(?:'|’)?s |let us |help me )?plan something\b`)
	remindRE = lazyExpression(
		`(?is)^remind me in\s+(an?|\d{1,4})\s*(minutes?|mins?|m|hours?|h)\b\s*(?:(?:to|that|of|about)\s+)?(.*)$`,
	)
	workingDaysRE = lazyExpression(`(?is)^every working ?day at (?:nine|9)(?: o'clock)?,?\s+(.+?)[.!]*$`)
	rememberRE    = lazyExpression(`(?is)^remember\s*(?:that\s+|:\s*)?(.+)$`)
	earlierRE     = lazyExpression(`(?is)^(?:what did we (?:say|decide|agree)(?: about| on)?|when did we talk about)\s+(?:the\s+|our\s+)?(.+?)[?.!]*$`)
	recallRE      = lazyExpression(`(?is)^(?:what do you remember about|what do you know about|recall)\s+(.+?)[?.!]*$`)
	callRE        = lazyExpression(`(?is)^(?:call|use)\s+(?:the\s+)?(?:tool\s+)?([\w.:-]+)\s*(?:with\s+)?(\{.*)?$`)
	checkRE       = lazyExpression(`(?i)^(?:check|diagnose)\s+(?:the\s+|my\s+)?(?:code|project)[?.!]*$`)
	nothingRE     = lazyExpression(`(?i)^(?:|here|there|this|the|it|workspace|this folder|current)$`)
	fenceRE       = lazyExpression("(?s)^```[a-z]*\n(.*?)\n?```$")
	listWordRE    = lazyExpression(`(?i)\s*,\s+and\s+|\s+and\s+|\s*,\s*`)
)

// planStages converts a text to stages; the wishes of one stage are called in one message. Empty means: not understood.
func planStages(t *tongue, text string) [][]wish {
	var stages [][]wish
	verb := ""
	for rest := text; rest != ""; {
		stage, after := readLiteral(rest)
		if stage == nil {
			clause, tail := splitThen(rest)
			stage, verb = readClause(t, clause, verb)
			after = tail
		}
		if len(stage) == 0 {
			return nil
		}
		stages = append(stages, stage)
		rest = strings.TrimSpace(after)
	}
	return stages
}

// readLiteral reads the forms whose text must not be split at "then": `$ command` and `write file: text`.
func readLiteral(s string) ([]wish, string) {
	if command, ok := strings.CutPrefix(s, "$ "); ok && strings.TrimSpace(command) != "" {
		return []wish{runShell(strings.TrimSpace(command))}, ""
	}
	if m := writeToRE().FindStringSubmatch(s); m != nil {
		if tail, ok := afterThen(m[3]); ok {
			return []wish{writeFile(bareName(m[2]), unquoteText(m[1]))}, tail
		}
	}
	m := writeRE().FindStringSubmatch(s)
	if m == nil || m[2] == "" {
		return readBareText(s)
	}
	path, content := bareName(m[1]), m[2]
	if inner := fenceRE().FindStringSubmatch(content); inner != nil {
		return []wish{writeFile(path, inner[1]+"\n")}, ""
	}
	if q := content[0]; q == '"' || q == '\'' || q == '`' {
		if end := strings.IndexByte(content[1:], q); end >= 0 {
			if tail, ok := afterThen(content[end+2:]); ok {
				return []wish{writeFile(path, content[1:end+1])}, tail
			}
		}
	}
	return []wish{writeFile(path, content)}, ""
}

// readBareText reads `write TEXT to FILE` without quotes around the text.
func readBareText(s string) ([]wish, string) {
	if m := writeBareRE().FindStringSubmatch(s); m != nil {
		if tail, ok := afterThen(m[3]); ok {
			return []wish{writeFile(bareName(m[2]), m[1])}, tail
		}
	}
	return nil, ""
}

// afterThen accepts what can follow a quoted text: nothing, punctuation, or "and then …".
func afterThen(s string) (string, bool) {
	if loc := thenRE().FindStringIndex(s); loc != nil {
		return s[loc[1]:], true
	}
	return "", strings.Trim(s, " \n.!") == ""
}

// splitThen cuts at the first "and then" outside quotes.
func splitThen(s string) (clause, rest string) {
	for i := 0; i < len(s); i++ {
		if end := quoteEnd(s, i); end > 0 {
			i = end
			continue
		}
		if strings.IndexByte(" ,;.\n", s[i]) < 0 {
			continue
		}
		if loc := thenRE().FindStringIndex(s[i:]); loc != nil {
			return s[:i], s[i+loc[1]:]
		}
	}
	return s, ""
}

// quoteEnd returns the index of the quote that closes the one at i; 0 = none. A single quote within a word is an
// apostrophe.
func quoteEnd(s string, i int) int {
	c := s[i]
	if c != '"' && c != '`' && (c != '\'' || (i > 0 && s[i-1] != ' ')) {
		return 0
	}
	if n := strings.IndexByte(s[i+1:], c); n >= 0 {
		return i + 1 + n
	}
	return 0
}

// readClause reads one clause. verb is the verb of the previous clause, which applies to a clause that names only a
// file ("read a and then b").
func readClause(t *tongue, clause, verb string) (stage []wish, newVerb string) {
	clause = dropPhrases(clause)
	rules := []func(string) []wish{
		listRule, countRule, fetchRule, removeRule, searchRule, t.scheduleRule, memoryRule, otherRules, readRule,
	}
	for _, rule := range rules {
		if stage := rule(clause); len(stage) > 0 {
			return stage, stage[0].tool
		}
	}
	if verb == "read" && !strings.ContainsAny(clause, " \n") {
		return []wish{readFile(bareName(clause))}, verb
	}
	return nil, verb
}

func listRule(s string) []wish {
	if hereRE().MatchString(s) {
		return []wish{listFiles(".")}
	}
	if clockRE().MatchString(s) {
		return []wish{runShell("date")}
	}
	if m := whatInRE().FindStringSubmatch(s); m != nil {
		path := bareName(m[1])
		if m[2] == "" && strings.Contains(strings.TrimLeft(path, "./"), ".") {
			return []wish{readFile(path)}
		}
		return []wish{listFiles(path)}
	}
	lower := strings.ToLower(s)
	if m := listRE().FindStringSubmatch(s); m != nil && (lower == "ls" || strings.Contains(lower, "file") ||
		strings.Contains(lower, "folder") || strings.Contains(lower, "directory") || m[1] != "") {
		return []wish{listFiles(bareName(m[1]))}
	}
	return nil
}

func countRule(s string) []wish {
	m := countRE().FindStringSubmatch(s)
	if m == nil {
		return nil
	}
	w := readFile(m[1] + m[2])
	w.counts, w.phrase = true, "count "+w.subject
	return []wish{w}
}

func readRule(s string) []wish {
	m := readRE().FindStringSubmatch(s)
	if m == nil {
		return nil
	}
	var out []wish
	for _, part := range listWordRE().Split(strings.TrimRight(m[1], "?!"), -1) {
		if path := bareName(part); path != "" {
			out = append(out, readFile(path))
		}
	}
	return out
}

func fetchRule(s string) []wish {
	m := fetchRE().FindStringSubmatch(s)
	if m == nil {
		return nil
	}
	url := strings.TrimRight(m[1], ".,;!?)>")
	return []wish{{tool: "fetch", args: oneArgument("url", url), phrase: "fetch " + url, subject: url}}
}

func removeRule(s string) []wish {
	if m := tempRE().FindStringSubmatch(s); m != nil {
		path := bareName(m[1])
		if nothingRE().MatchString(path) {
			path = "."
		}
		w := runShell("find " + shellWord(path) + " -type f -name '*.tmp' -delete")
		w.done = func(t *tongue) string { return t.say("The temporary files are deleted.") }
		return []wish{w}
	}
	if m := deleteRE().FindStringSubmatch(strings.TrimRight(s, "?!")); m != nil {
		path := bareName(m[1])
		return []wish{{
			tool: "delete_path", args: oneArgument("path", path),
			phrase: "delete " + path, subject: path, changes: true,
		}}
	}
	return nil
}

func searchRule(s string) []wish {
	if m := findRE().FindStringSubmatch(strings.TrimRight(s, "!")); m != nil {
		pattern := bareName(m[1])
		return []wish{{
			tool: "find_path", args: oneArgument("pattern", pattern),
			phrase: "look for " + pattern, subject: pattern,
		}}
	}
	m := searchRE().FindStringSubmatch(strings.TrimRight(s, "?!"))
	if m == nil {
		return nil
	}
	text := unquoteText(strings.TrimSpace(m[1]))
	args := map[string]any{"pattern": regexp.QuoteMeta(text)}
	if m[3] != "" && !strings.EqualFold(m[2], "files") && !strings.EqualFold(m[2], "code") &&
		!strings.EqualFold(m[2], "file") &&
		!strings.EqualFold(m[2], "folder") {
		args["path"] = bareName(m[3])
	}
	return []wish{{tool: "grep", args: encodeArguments(args), phrase: "search for " + text, subject: text}}
}

// scheduleRule is the rule for reminders. The name of a reminder is what it is about and in how
// long: the same words again move it.
func (t *tongue) scheduleRule(s string) []wish {
	if m := workingDaysRE().FindStringSubmatch(s); m != nil {
		name := []rune(m[1])
		return []wish{{
			tool: "schedule_periodic",
			args: encodeArguments(map[string]any{
				"name": string(name[:min(len(name), 90)]), "cron": "0 9 * * 1-5", "task": m[1],
			}),
			phrase: "do that again and again", subject: m[1], changes: true, later: true,
			done: func(t *tongue) string { return t.say("Every working day at nine: %s", m[1]) },
		}}
	}
	m := remindRE().FindStringSubmatch(s)
	if m == nil {
		return nil
	}
	count, task := m[1], strings.TrimSpace(m[3])
	if strings.HasPrefix(strings.ToLower(count), "a") {
		count = "1"
	}
	unit := map[byte]string{'m': "minute", 'h': "hour"}[m[2][0]|0x20]
	number, _ := strconv.Atoi(count) // the pattern has digits only
	span := t.count(number, unit)
	name := []rune(task)
	name = name[:min(len(name), 90)]
	done := func(t *tongue) string { return t.say("I will remind you in %s: %s", span, m[3]) }
	if task == "" { // the reminder has a subject all the same
		task, name = t.say("%s are over", span), []rune(t.say("reminder"))
		if number == 1 {
			task = t.say("%s is over", span)
		}
		done = func(t *tongue) string { return t.say("I will remind you in %s.", span) }
	}
	return []wish{{
		tool: "schedule_deferred",
		args: encodeArguments(map[string]any{
			"name":   t.say("%s (in %s)", string(name), span),
			"run_at": "+" + count + unit[:1],
			"kind":   "reminder",
			"task":   task,
		}),
		phrase: "set a reminder", subject: task, changes: true, later: true, done: done,
	}}
}

func memoryRule(s string) []wish {
	if m := earlierRE().FindStringSubmatch(s); m != nil {
		return []wish{{
			tool: "search_conversations", args: oneArgument("query", m[1]),
			phrase: "search our conversations for " + m[1], subject: m[1],
		}}
	}
	if m := recallRE().FindStringSubmatch(s); m != nil {
		return []wish{{
			tool: "memory_search", args: oneArgument("query", m[1]),
			phrase: "search my memory for " + m[1], subject: m[1],
		}}
	}
	if m := rememberRE().FindStringSubmatch(s); m != nil {
		return []wish{{
			tool: "memory_save", args: oneArgument("content", m[1]),
			phrase: "remember that", subject: m[1], changes: true,
		}}
	}
	return nil
}

// imageTool makes pictures, where a provider can.
const imageTool = "generate_image"

// planned is what the model asks somebody who wants to plan something: a question of each kind.
const planned = `{"questions":[{"question":"What shall we plan?","choices":["A trip","A party","A quiet weekend"]},` +
	`{"question":"Which day?","date":true},` +
	`{"question":"What do you need?","choices":["Food","Music","Tickets","Nothing"],"several":true}]}`

func otherRules(s string) []wish {
	if planRE().MatchString(s) {
		return []wish{{tool: "ask_user", args: json.RawMessage(planned), phrase: "ask you", subject: "my questions"}}
	}
	if m := runRE().FindStringSubmatch(s); m != nil {
		return []wish{runShell(commandText(m[1]))}
	}
	if drawRE().MatchString(s) {
		return []wish{{tool: imageTool, args: oneArgument("prompt", s), phrase: "make a picture", subject: "the picture"}}
	}
	if checkRE().MatchString(s) {
		return []wish{{tool: "diagnostics", args: json.RawMessage(`{}`), phrase: "check the code", subject: "the code"}}
	}
	if m := callRE().FindStringSubmatch(s); m != nil {
		args := json.RawMessage(m[2])
		if m[2] == "" {
			args = json.RawMessage(`{}`)
		}
		return []wish{{tool: m[1], args: args, phrase: "call " + m[1], subject: m[1], changes: true}}
	}
	return nil
}

func listFiles(path string) wish {
	if nothingRE().MatchString(path) {
		path = "."
	}
	return wish{
		tool:    "list_directory",
		args:    oneArgument("path", path),
		phrase:  "list the files in " + path,
		subject: path,
	}
}

func readFile(path string) wish {
	return wish{tool: "read", args: oneArgument("path", path), phrase: "read " + path, subject: path}
}

func writeFile(path, content string) wish {
	args := encodeArguments(map[string]any{"path": path, "content": content})
	return wish{tool: "write", args: args, phrase: "write " + path, subject: path, changes: true}
}

func runShell(command string) wish {
	return wish{
		tool:    "bash",
		args:    oneArgument("command", command),
		phrase:  "run that",
		subject: command,
		changes: true,
	}
}

// commandText removes a code block, back quotes or plain quotes around the whole command.
func commandText(s string) string {
	s = strings.TrimSpace(s)
	if m := fenceRE().FindStringSubmatch(s); m != nil {
		return m[1]
	}
	if len(s) > 2 && (s[0] == '`' || s[0] == '"') && strings.IndexByte(s[1:], s[0]) == len(s)-2 {
		return s[1 : len(s)-1]
	}
	return s
}

// dropPhrases removes polite phrases and Telegram's bot mention from the beginning of a request.
func dropPhrases(s string) string {
	s = strings.TrimSpace(s)
	for {
		t := mentionRE().ReplaceAllString(s, "")
		t = politeRE().ReplaceAllString(t, "")
		if t == s || t == "" {
			return s
		}
		s = t
	}
}

// bareName returns a file name without quotes and without the sentence's punctuation.
func bareName(s string) string {
	s = strings.TrimSpace(s)
	if t := unquoteText(s); t != s {
		return t
	}
	return unquoteText(strings.TrimRight(s, "?!,;"))
}

func unquoteText(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'' || s[0] == '`') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// shellWord quotes a path for the shell unless it is plain.
func shellWord(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-"
	if strings.Trim(s, plain) == "" && !strings.HasPrefix(s, "-") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func oneArgument(key, value string) json.RawMessage {
	return encodeArguments(map[string]any{key: value})
}

// encodeArguments encodes an object; strings and maps of strings can always be encoded.
func encodeArguments(m map[string]any) json.RawMessage {
	data, err := json.Marshal(m)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return data
}

// lazyExpression compiles a pattern at its first use, because most processes use another model and never need one.
func lazyExpression(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
