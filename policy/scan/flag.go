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
	near := text[boundary(text, max(0, m.Start-around)):boundary(text, min(len(text), m.End+around))]
	return (s.only == nil || s.only.MatchString(near)) && (s.not == nil || !s.not.MatchString(near))
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
