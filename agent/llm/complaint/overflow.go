package complaint

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/policy/lazyregexp"
)

// The numbers that can be those of a window, in tokens. Smaller ones are codes, versions or differences.
const (
	leastTokens = 256
	mostTokens  = 1 << 27
)

//go:embed patterns.json
var patternData []byte

// row is a fact about how servers put things.
type row struct {
	Match  string `json:"match"`
	Source string `json:"source"`
}

// kindRow says which kind of failure a code or some words mean. All that is set must hold.
type kindRow struct {
	Kind    string `json:"kind"`
	Codes   string `json:"codes"`   // of a whole code or type
	Words   string `json:"words"`   // anywhere in the words
	Status  []int  `json:"status"`  // one of these
	Patient bool   `json:"patient"` // only if the server does not ask to try again within patience
	Source  string `json:"source"`
}

// patterns is the form of patterns.json.
type patterns struct {
	Comment                                                   string
	Never, Rate, Quota, Codes, Strong, Thing, Excess, Measure []row
	Other, Unlike, Numbers                                    []row
	Kinds                                                     []kindRow
	APIs                                                      []apiRow
}

// apiRow recognises the answer of another API than the one that was asked.
type apiRow struct {
	Match  string `json:"match"` // within the beginning of the answer, as it came
	Says   string `json:"says"`  // which API it is, and what to set
	Source string `json:"source"`
}

// foreignAPI is an apiRow, compiled.
type foreignAPI struct {
	match *regexp.Regexp
	says  string
}

// table is patterns.json, compiled.
type table struct {
	never, rate, quota, codes, strong, thing, excess, measure, other, unlike *regexp.Regexp
	numbers                                                                  []*regexp.Regexp
	kinds                                                                    []kindRule
	apis                                                                     []foreignAPI
}

// tables compiles the data when the first complaint is classified.
var tables = sync.OnceValue(func() *table {
	var p patterns
	if err := json.Unmarshal(patternData, &p); err != nil {
		panic(fmt.Sprintf("patterns.json: %v", err)) //nolint:forbidigo // a constant of the program; tests read it
	}
	t := &table{
		never:   unionOf(p.Never),
		rate:    unionOf(p.Rate),
		quota:   unionOf(p.Quota),
		codes:   unionOf(p.Codes),
		strong:  unionOf(p.Strong),
		thing:   unionOf(p.Thing),
		excess:  unionOf(p.Excess),
		measure: unionOf(p.Measure),
		other:   unionOf(p.Other),
		unlike:  unionOf(p.Unlike),
	}
	for _, r := range p.Numbers {
		t.numbers = append(t.numbers, regexp.MustCompile("(?s)"+expandNumbers(r.Match)))
	}
	for _, r := range p.Kinds {
		t.kinds = append(t.kinds, newKindRule(r))
	}
	for _, r := range p.APIs {
		t.apis = append(t.apis, foreignAPI{regexp.MustCompile("(?s)" + r.Match), r.Says})
	}
	return t
})

// unionOf compiles rows to one expression that matches if any of them does.
func unionOf(rows []row) *regexp.Regexp {
	list := make([]string, 0, len(rows))
	for _, r := range rows {
		list = append(list, expandNumbers(r.Match))
	}
	return regexp.MustCompile("(?:" + strings.Join(list, ")|(?:") + ")")
}

// expandNumbers replaces the names of numbers.
func expandNumbers(match string) string {
	for _, name := range []string{"limit", "size", "part", "more"} {
		match = strings.ReplaceAll(match, "<"+name+">", `(?P<`+name+`>\d+)`)
	}
	return match
}

// Overflow reports whether the request was refused because it is too long for the model. limit is how many tokens the
// model takes and size how many it was sent, as the server counts them; 0 = it did not say. If Quota reports true,
// limit is not the model's window.
func (c *Complaint) Overflow() (limit, size int, over bool) {
	t := tables()
	if c.Page || c.words == "" && len(c.codes) == 0 {
		return 0, 0, c.Status == http.StatusRequestEntityTooLarge
	}
	switch rate := c.aboutRate(t); {
	case t.never.MatchString(c.words) || c.hasCode(t.never):
		return 0, 0, false
	case rate:
		if !c.Quota() {
			return 0, 0, false
		}
	case !c.tooLong(t):
		return 0, 0, false
	}
	limit, size = c.readNumbers(t)
	return limit, size, true
}

// Quota reports whether the request alone is larger than a budget of tokens per time (Groq's 413, OpenAI's
// 429): waiting never helps, a shorter request does. Overflow then returns the budget, which counts the
// tokens reserved for the answer.
func (c *Complaint) Quota() bool {
	t := tables()
	if !c.aboutRate(t) || !t.quota.MatchString(c.words) {
		return false
	}
	limit, size := c.readNumbers(t)
	if limit > 0 && size > 0 {
		return size > limit
	}
	return c.Status == http.StatusRequestEntityTooLarge || strings.Contains(c.words, "too large")
}

// aboutRate reports whether words or codes speak of requests or tokens in a time.
func (c *Complaint) aboutRate(t *table) bool { return t.rate.MatchString(c.words) || c.hasCode(t.rate) }

func (c *Complaint) hasCode(match *regexp.Regexp) bool {
	return slices.ContainsFunc(c.codes, match.MatchString)
}

// tooLong recognises a request that is too long, by its code, by the wordings that are known, or by classes of words
// within one sentence: what is too long, that it is, and by which measure.
func (c *Complaint) tooLong(t *table) bool {
	switch {
	case c.hasCode(t.codes), c.Status == http.StatusRequestEntityTooLarge:
		return true
	case c.Status == http.StatusUnauthorized ||
		c.Status == http.StatusPaymentRequired || c.Status == http.StatusTooManyRequests:
		return t.strong.MatchString(c.words) && c.Status == http.StatusTooManyRequests
	case c.Has("array_above_max_length") && slices.Contains([]string{"messages", "input", "contents"}, c.Param):
		return true
	}
	for _, sentence := range sentences().Split(c.words, -1) {
		if t.strong.MatchString(sentence) && !c.aboutSetting(t, sentence) {
			return true
		}
		if t.thing.MatchString(sentence) && t.excess.MatchString(sentence) && t.measure.MatchString(sentence) &&
			!t.unlike.MatchString(sentence) && !c.aboutSetting(t, sentence) {
			return true
		}
	}
	// Two sentences: how long the request is, and how long it may be.
	if !tokenCount().MatchString(c.words) || t.unlike.MatchString(c.words) || c.aboutSetting(t, c.words) {
		return false
	}
	limit, size := aroundNumbers(c.words)
	return limit > 0 && size > limit
}

var tokenCount = lazyregexp.New(`\d+ (?:\w+ )?tokens?\b`)

// sentences match where one ends: not the dot within a number or a name.
var sentences = lazyregexp.New(`[.!?;]\s|[\n。；]`)

// input matches words that say that the input is meant, even if a setting is named as well.
var input = lazyregexp.New(`\b(?:context|prompt|inputs?|messages|conversation|window)\b`)

// aboutSetting reports whether a sentence is about a parameter that is out of its range.
func (c *Complaint) aboutSetting(t *table, sentence string) bool {
	return t.other.MatchString(sentence) && !input().MatchString(sentence)
}

// readNumbers returns how much the model takes and was sent: from fields, from the wordings that are known, or from
// what stands around each number; 0 = not said.
func (c *Complaint) readNumbers(t *table) (limit, size int) {
	limit, size = plausibleTokens(c.limit), plausibleTokens(c.size)
	if limit > 0 && size > 0 {
		return limit, size
	}
	for _, match := range t.numbers {
		m := match.FindStringSubmatch(c.words)
		if m == nil {
			continue
		}
		said := map[string]int{}
		for i, name := range match.SubexpNames() {
			if name != "" {
				n, err := strconv.Atoi(m[i])
				if err == nil && n <= mostTokens {
					said[name] = n
				}
			}
		}
		if sum := said["part"] + said["more"]; sum > 0 {
			said["size"] = sum
		}
		if limit == 0 {
			limit = plausibleTokens(said["limit"])
		}
		if size == 0 {
			size = plausibleTokens(said["size"])
		}
		break
	}
	if limit == 0 || size == 0 {
		l, s := aroundNumbers(c.words)
		if limit == 0 {
			limit = l
		}
		if size == 0 {
			size = s
		}
	}
	if size <= limit { // the size of a part
		size = 0
	}
	return limit, size
}

func plausibleTokens(n int) int {
	if n < leastTokens || n > mostTokens {
		return 0
	}
	return n
}

var (
	number   = lazyregexp.New(`\d+`)
	limitCue = lazyregexp.New(
		`max(?:imum)?|limit(?:ed)?|allow(?:s|ed)?|at most|up to|capacity|supports?|window|n_ctx|<=?|less than|fewer ` +
			`than|(?:longer|larger|greater|more|bigger|higher) than|only|exceed(?:s|ed|ing)?|>=?|最大|上限|限制|超过|超出`,
	)
	sizeCue = lazyregexp.New(`request(?:ed)?|contains?|\bhas\b|\bhave\b|\bgot\b|given|resulted in|too long|` +
		`current|your|\bsent\b|used|total|n_keep|prompt|input|count|received|actual|was|were|实际|当前|输入`)
	limitNext = lazyregexp.New(
		`^(?: tokens?)?[ (-]*(?:token )?(?:max|limit|allowed|context|window|is the (?:max|limit))`,
	)
	sizeNext = lazyregexp.New(
		`^(?: tokens?)? ?(?:>|(?:is|are|was|were) (?:too|sent|given|requested|longer|larger|more)|requested|in ` +
			`(?:the|your) (?:messages|prompt)|exceeds?|input|of input|of text|does not|do not|doesn't|超过|超出)`,
	)
	unitNext = lazyregexp.New(`^[ -]*(?:bytes?|kb|mb|gb|ki?b|mi?b|characters?|chars?|ms|seconds?|secs?|s\b|` +
		`minutes?|words?|images?|pages?|requests?|messages?|%|字节|字符|秒)`)
	nameNext  = lazyregexp.New(`^(?:[a-z_:/]|-[a-su-z0-9]|\.\d)`)
	nameLast  = lazyregexp.New(`(?:[a-z0-9_/:@#-]|\d\.)$`)
	notTokens = lazyregexp.New(`(?:\bby|status|code|error|http|line|version|v)[ :#=(]*$`)
	onlyCode  = lazyregexp.New(`^\)\s*$`)
)

// aroundNumbers finds the limit and the size of an unknown wording. What is closest before a number, or directly
// after it, says what it is. Of two numbers that nothing describes, the smaller one is the limit,
// because the request is too long.
func aroundNumbers(words string) (limit, size int) {
	last := 0
	var plain []int
	for _, at := range number().FindAllStringIndex(words, 64) {
		n, err := strconv.Atoi(words[at[0]:at[1]])
		before, after := words[max(last, at[0]-48):at[0]], words[at[1]:min(len(words), at[1]+32)]
		last = at[1]
		if err != nil || plausibleTokens(n) == 0 || unitNext().MatchString(after) ||
			nameNext().MatchString(after) || nameLast().MatchString(before) ||
			notTokens().MatchString(before) ||
			strings.HasSuffix(before, "(") && onlyCode().MatchString(after) && n >= 1000 && n < 3000 {
			continue
		}
		if !slices.Contains(plain, n) {
			plain = append(plain, n)
		}
		switch l, s := lastCue(limitCue(), before), lastCue(sizeCue(), before); {
		case limitNext().MatchString(after):
			limit = leastKnown(limit, n)
		case sizeNext().MatchString(after):
			size = max(size, n)
		case l < 0 && s < 0:
		case l > s:
			limit = leastKnown(limit, n)
		default:
			size = max(size, n)
		}
	}
	if len(plain) == 2 && (limit == 0 || size == 0) {
		return min(plain[0], plain[1]), max(plain[0], plain[1])
	}
	return limit, size
}

// lastCue returns where the last cue in a text ends; -1 = there is none.
func lastCue(cue *regexp.Regexp, text string) int {
	end := -1
	for _, at := range cue.FindAllStringIndex(text, -1) {
		end = at[1]
	}
	return end
}

// leastKnown returns the smaller number, where 0 = none yet.
func leastKnown(a, b int) int {
	if a == 0 {
		return b
	}
	return min(a, b)
}

var (
	grouped   = lazyregexp.New(`\d{1,3}(?:[,_' \x{00a0}\x{202f}]\d{3})+`)
	thousands = lazyregexp.New(`\b(\d{1,4}(?:\.\d{1,3})?)(k\b|m[ -](?:token|context|input))`)
	separator = strings.NewReplacer(",", "", "_", "", "'", "", " ", "", "\u00a0", "", "\u202f", "")
)

// normalWords prepares words for the tables: lower case, and numbers such as 128,000 and 32k as digits.
func normalWords(words string) string {
	words = strings.ToLower(words)
	var out strings.Builder
	last := 0
	for _, at := range grouped().FindAllStringIndex(words, -1) {
		if digitAt(words, at[0]-1) || digitAt(words, at[1]) { // part of a longer list of digits
			continue
		}
		out.WriteString(words[last:at[0]])
		out.WriteString(separator.Replace(words[at[0]:at[1]]))
		last = at[1]
	}
	out.WriteString(words[last:])
	return thousands().ReplaceAllStringFunc(out.String(), func(text string) string {
		m := thousands().FindStringSubmatch(text)
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return text
		}
		n *= 1000
		rest := m[2][1:]
		if m[2][0] == 'm' { // not minutes
			n *= 1000
		}
		return strconv.FormatFloat(math.Round(n), 'f', 0, 64) + rest
	})
}

func digitAt(text string, i int) bool {
	return i >= 0 && i < len(text) && text[i] >= '0' && text[i] <= '9'
}
