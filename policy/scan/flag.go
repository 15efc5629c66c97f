package scan

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// mostlyImage is the number of bytes of text next to an image up to which the image counts as the whole content.
const mostlyImage = 60

// still matches an image whose address carries no data: a file of a usual type, or one of the same site.
var still = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\.(?:png|jpe?g|gif|svg|webp|ico)\)?$|^<img`)
})

// around is how many bytes next to a match are used to decide whether it is an instruction.
const around = 110

// setting says in which context a pattern of the table is an instruction. The patterns are made for definitions of
// tools, from which even harmless matches are removed. In pages, logs and files, the same words are mostly harmless.
type setting struct {
	only *regexp.Regexp // one of these must be next to it or in it; nil = no condition
	not  *regexp.Regexp // none of these may be
	in   *regexp.Regexp // it must itself contain one of these; nil = no condition
}

// holds reports whether a match is an instruction in its context, which includes the match.
func (s setting) holds(match, near string) bool {
	return (s.in == nil || s.in.MatchString(match)) && (s.only == nil || s.only.MatchString(near)) && (s.not == nil || !s.not.MatchString(near))
}

// settings are the contexts, by rule.
var settings = sync.OnceValue(func() map[string]setting {
	re := func(s string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + s) }
	devices := `phone|android|ios|iphone|ipad|device|chrome|browser|extension|windows|settings|usb|tablet|kindle|console|app\b|kernel|freebsd`
	subjects := `eslint|lint|css|stylesheet|iptables|gitignore|compiler|optimi[sz]er|cpu|opcode|nginx|dosage|doctor|label|e-?mail|invoice|message i sent|comment|officers?|context menu|court|jury|after the return`
	return map[string]setting{
		"ignore_instructions": {not: re(subjects +
			`|context\s+in\s+which|directionality|the\s+context\s+(?:menu|key|switch)`)},
		"role_override":       {only: re(`you\s+are\s+now\s+(?:an?|the|no longer|free|in|going to|called|named|dan|evil|unrestricted|my|root|god)\b`), not: re(`you\s+are\s+now\s+(?:an?|the|in|my|free)\s+(?:to\b|\w+\s+)?(?:member|owner|administrator|admin|moderator|user|customer|subscriber|part|step|directory|folder|position|process|proud|registered|root|administrator of)`)},
		"new_directive":       {not: re(`intel|arm\b|avx|risc|vector|x86`)},
		"developer_mode":      {only: re(`(?:enter|enabl\w*|activat\w*|switch\s+to|now\s+in|turn\s+on|engage|you.re\s+in)\s+(?:\w+\s+)?developer\s+mode|developer\s+mode\s+(?:is\s+)?(?:on|enabled|activated|unlocked)`), not: re(devices)},
		"system_prompt_leak":  {},
		"reveal_instructions": {},
		"jailbreak":           {only: re(`\bDAN\b.{0,12}\bmode|(?:you\s+are|act\s+as|as|be|become|called|now)\s+DAN\b|jailbreak\s+(?:mode|yourself|prompt)|DAN[,.:]?\s+(?:an?\s+ai|which|who|do)|enter\s+jailbreak`), not: re(devices)},
		"base64_payload":      {only: re(`(?:decode|eval|execute)\s+(?:this|the\s+following|it|and\s+(?:run|execute|follow|obey))`)},
		"xml_tag_injection": {not: re("`<(?:system|assistant|user)>`|" +
			`[\w\s=:/'"(\[|]<user>(?:[^\w\s]|\s*$|\s*\n|\s+[-<\[|])|<user>\s*[@:]|` + `<\s*(?:system|assistant|user)\s*>[^<>\s]{0,40}(?:\s[^<>\s]{1,20})?\s*<\s*/|@<host>|<\s*/\s*(?:system|assistant|user)\s*>\s*<|>[^<>\s]{1,40}<\s*/\s*(?:system|assistant|user)\s*>`)},
		"markdown_image_exfil": {
			only: re(`\([^)]*[?&#][^)=]*=|\{|secret|data=|\$`),
			not:  re(`badge|shield|/workflows/|codecov|status|branch=|[?&](?:svg|style|label|logo|v|version)=`),
		},
		"html_image_exfil":       {only: re(`src\s*=\s*["']?https?://[^"'\s>]*\?[^"'\s>]*(?:secret|data|token|key|\{|<|q=)`), not: re(`badge|shield`)},
		"forget_everything":      {only: re(`forget\s+(?:everything|all)\s*(?:\.|!|$|,|\n|you|i\b|above|before|previous|prior|that|of\s+the|your|the|and|rules|instructions)`), not: re(`(?:don'?t|never|not|to|i|will|'ll|would|could|networks?)\s+forget|networks|password`)},
		"disregard_instructions": {only: re(`disregard\s+(?:your|everything|all|any|the|previous).{0,60}(?:instruct|rule|prompt|guid|train|direct|told|polic|orders|constraints|programming)|disregard\s+(?:your|everything)`), not: re(subjects)},
		"override_directives":    {not: re(subjects + `|firewall|methods|class|rules of the same`)},
		"act_as_if":              {only: re(`act\s+as\s+if\s+you`)},
		"new_persona":            {only: re(`do\s+anything\s+now|pretend\s+(?:that\s+)?you.{0,50}(?:rule|restrict|limit|guideline|filter|unrestricted|ai|policy|free)|pretend\s+to\s+be\s+(?:an?\s+)?(?:unrestricted|evil|dan|ai|admin|different)|your\s+new\s+persona`)},
		"execute_following":      {only: re(`(?:ai|assistant|llm|agent|model)s?\b.{0,60}(?:execute|run|perform)\s+the\s+following|without\s+(?:asking|approval|confirm|telling)`)},
		"hide_from_user": {
			only: re(`(?:do\s+not|don.?t|never)\s+(?:tell|inform|mention)`),
			not:  re(`inform\s+the\s+user\s+(?:about|of)\s+(?:internal|each|every)`),
		},
		"important_tag": {},
	}
})

// strict are further conditions for files and outputs of commands, by rule: source, manuals, licences and logs contain
// what would be odd in a page. Each was written for what a measurement over foreign repositories found (TestCleanFiles).
var strict = sync.OnceValue(func() map[string]setting {
	re := func(s string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + s) }
	return map[string]setting{
		"ignore_instructions": {in: re(`previous|prior|earlier|above|preceding|foregoing|your|my|(?:all|any|every|these|those)` + ws + `+(?:of` + ws + `+|the` + ws + `+)*(?:instruction|prompt)`)},
		"override_orders":     {not: re(`pull request|severity|\.ya?ml|linter|\|\w+\|\w+\||[\s\x60]-[a-z]\b|directives embedded|\b(?:ignore|override)-\w|overrid(?:e|es|den)\s+(?:the\s+(?:model|default)|default|async|get)\b|(?:istanbul|[cv]8)\s+ignore|prompt directives|ignore the request if`)},
		"void_orders": {not: re(`(?:file|value|text|line|name)s?\s+(?:is|are)\s+replaced|\b(?:context|ctx|callback|goroutine|thread|handler|workflow|draft|rfc|warranty|licen[cs]e)s?\b|` +
			`(?:request|turn|query|operation|job|call)s?\s+(?:is|was|are|were|has been|have been)\s+(?:already\s+)?cancell?ed|cancell?ed\s+before`)},
		"call_first": {not: re(`before\s+(?:\W*\s*)?(?:using\s+this\s+(?:\W*\s*)?(?:file|package|module|library|software|class|function|code|api)|responding\W+(?:to|with))|\bwe\s+can|respond to \w+ first|\bcall\s+\w+\(\)|tool\s+requires\s+(?:access|an?\b)`)},
		"to_the_model": {only: re(`curl|wget|\|\s*(?:ba)?sh\b|delete|approve|mark\s+this|skip|without\s+(?:review|asking|approval|confirm)|recommend|ignore|disregard|classify|rank|wire|stored\s+card|payment|gift|production|public\b|tracking|` +
			`backdoor|insert|\bsay\b|tell\s+the|secret|password|credential|token|evil|execute\s+\W|otherwise|will\s+fail|leave\s+no|book\b|purchase|immediately|harmless|score|no\s+matter|whatever|https?:`), not: re(`::|[a-z]\s+model:|\bmodel\??:\s*(?:['"\x60]|string\b|\w+[;,<.|(])|\bharness\b|agents?\s+(?:must|should|shall|may)\s+(?:always\s+|also\s+|first\s+)?(?:read|resume|stop|follow|consult|prefer|keep|check|handle|respond|return|implement|support|validate|update)\b|should:(?:\s|\\n)`)},
		"kept_order":   {not: re(`(?:if|when|whether)\s+(?:the\s+|a\s+)?user\s+prefers`)},
		"secret_deed":  {not: re(`between us \w+ing|silently\s+ignor`)},
		"prompt_leak":  {not: re(`_SYSTEM_PROMPT|system_prompt\s*[=:]|sends\s+a\s+system|context\s+window|definitions\s+available|messages,\s+system\s+prompt|list\s+of\s+(?:\W*\s*)?(?:\w+\s+)*tool`)},
		"hide_orders":  {not: re(`user'?s\s+(?:environment|home|config|setting|locale|shell|terminal|browser|data|program)`)},
		"key_files":    {not: re(`loads?\s+(?:the\s+)?\W*\.env|environment\s+variables\s+if`)},
		"fixed_answer": {only: re(`(?:respond|reply|answer|say|rate|rank|mark|approve|classify|write)\b[^.]{0,80}(?:whatever|regardless|no\s+matter|nothing\s+else|full\s+access|10\s+of\s+10)`), not: re(`no\s+matter\s+what\s+the|regardless\s+of\s+(?:whether|how|which|what\s+the)`)},
		"other_task":   {not: re(`abort\s+the\s+current\s+(?:data|operation|transaction|transfer|request|process|batch|command|statement|merge|rebase|test|download|parse|loop|iteration|upload|build)|(?:model|llm)\s+refuse`)},
		"role_object":  {only: re(`["']role\\?["']\s*:|tool_calls`), not: re(`this\.tool_calls`)},
		"xml_tag_injection": {
			only: re(`<` + ws + `*/` + ws + `*(?:system|assistant|user|tool.result|function.call)|<` + ws + `*(?:system|assistant)` + ws + `*>` + ws + `*(?:\n|[A-Za-z])`),
			not:  re(`\b[a-z]<(?:system|user)|<reasoning>`),
		},
		"forged_turns":      {not: re(`<example>`)},
		"unbound_role":      {not: re(`broken free\W+of the \w+ (?:format|spec)|no rules are inherited`)},
		"carry_off":         {not: re(`localhost|/oauth`)},
		"hide_from_user":    {not: re(`the\s+user\s+(?:about|of|that|when|if)\s+(?:an?\s+|the\s+)?(?:internal|errors?\b|each|every)`)},
		"hidden_text":       {in: re(`\S\S`)}, // one override of the direction is what editors and linters are tested with
		"chat_template":     {not: re(`[\w(]\[inst\]|special\s+tokens?|tokenizer|\|>\W{0,3}\s*tokens?\b`)},
		"encoded_orders":    {not: re(`\\xEF\\xBB|\bBOM`)},
		"execute_following": {not: re(`user\s+agents?\b`)},
	}
})

// FlagFile is Flag for text of files, outputs of commands and names. There a false alarm would be frequent and costs much:
// it makes everything ask. The rules are the same, the conditions are stricter.
func FlagFile(text string) []Match {
	return slices.DeleteFunc(Flag(text), func(m Match) bool {
		s, ok := strict()[m.Rule]
		return ok && !s.holds(asRead(text[m.Start:m.End]), asRead(near(text, m)))
	})
}

// asRead returns a text, followed by it as it reads without invisible characters and with the letters that look-alikes
// look like, if that differs.
func asRead(text string) string {
	if f := fold(text, false); f.text != text {
		return text + "\n" + f.text
	}
	return text
}

// Flag returns what must be treated as an attempt to instruct the model, in the output of a tool: the matches of Find,
// without those that only look like one. A text about such attacks may quote them, a page has images, and a manual
// gives orders to people. Patterns alone are never sufficient, least of all here: attempts in other words, or in the
// form of a manual, are not found.
func Flag(text string) []Match { return once(instructions(text, find(text))) }

// instructions returns the matches that are instructions in their context and not only quoted.
func instructions(text string, found []Match) []Match {
	return slices.DeleteFunc(slices.Clone(found), func(m Match) bool { return !isInstruction(text, m) || mentioned(text, m) })
}

// isInstruction reports whether a match is an instruction in its context.
func isInstruction(text string, m Match) bool {
	s, ok := settings()[m.Rule]
	if !ok {
		return true
	}
	if strings.HasSuffix(m.Rule, "_image_exfil") && len(text)-(m.End-m.Start) < mostlyImage {
		return !s.not.MatchString(text) && !still().MatchString(text[m.Start:m.End])
	}
	return s.holds(text[m.Start:m.End], near(text, m))
}

// near returns a match with the text around it.
func near(text string, m Match) string {
	return text[boundary(text, max(0, m.Start-around)):boundary(text, min(len(text), m.End+around))]
}

// topics matches words of texts about such attacks, or about the marks of chat templates.
var topics = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)inject|attack|payload|malicious|jailbreak|red.team|adversar|scanner|filter|detect|flagged|refuse|test case|\bassert|expect\(|phrases|labelled|poison|cve-|template|special.token|control.token|tokens?\b.{0,40}turn|consists of|model card|prompts? of the form|tokenizer|matches sentences`)
})

// quotes are the pairs that enclose a quotation.
var quotes = [...][2]string{
	{`"`, `"`},
	{"`", "`"},
	{"“", "”"},
	{"‘", "’"},
	{"„", "“"},
	{"«", "»"},
	{" '", "'"},
	{"('", "'"},
}

const (
	// maxQuoted is the maximum length of a quotation in bytes.
	maxQuoted = 240
	// aboutIt is the maximum distance in bytes between a quotation and the word that says what is quoted.
	aboutIt = 260
)

// mentioned reports whether a match is quoted by a text about such attacks.
func mentioned(text string, m Match) bool {
	line := text[max(0, strings.LastIndexByte(text[:m.Start], '\n')+1):]
	offset := len(text) - len(line)
	line = line[:m.End-offset+upTo(text[m.End:], "\n")]
	start, end := m.Start-offset, m.End-offset
	for _, q := range quotes {
		from := strings.LastIndex(line[max(0, start-maxQuoted):start+min(1, end-start)], q[0])
		to := strings.Index(line[end-min(1, end-start):min(len(line), end+maxQuoted)], q[1])
		if from < 0 || to < 0 {
			continue
		}
		from, to = from+max(0, start-maxQuoted), max(from+max(0, start-maxQuoted), to+end-min(1, end-start))
		before := text[max(0, offset+from-aboutIt) : offset+from]
		after := text[min(len(text), offset+to):min(len(text), offset+to+aboutIt)]
		if topics().MatchString(before) || topics().MatchString(after) {
			return true
		}
	}
	return false
}
