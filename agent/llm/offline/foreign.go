package offline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/zephbot/zephbot/agent/llm"
)

// tongue is a language besides English in which the rules understand a few sentences and answer; nil = English.
type tongue struct {
	words         []string // that show the language; English has none of them
	understood    []phrase // sentences of people, among them what the bot's own texts in that language propose
	hello, thanks []string // beginnings of such messages
	greet         string   // leaves open examples
	welcome       string
	examples      []example // the best ones are first
	said          func() saying
	plural        func(n int) int // the place of a form of a noun
}

// english is the language of the rules.
var english *tongue

// phrase is a sentence of another language: of a text that said matches, english is made as by Regexp.Expand.
type phrase struct {
	said    func() *regexp.Regexp
	english string
}

// spokenTongues are all that the rules answer in.
func spokenTongues() []*tongue {
	list := []*tongue{english}
	for i := range tongues {
		list = append(list, &tongues[i])
	}
	return list
}

// say says a sentence, which is written in English.
func (t *tongue) say(sentence string, values ...any) string {
	if t != nil {
		if said, known := t.said().Sentences[sentence]; known {
			if sentence = said; !strings.Contains(said, "%") {
				return said
			}
		}
	}
	if len(values) == 0 {
		return sentence
	}
	return fmt.Sprintf(sentence, values...)
}

// count is a number of something, which is named in English.
func (t *tongue) count(n int, what string) string {
	if t != nil {
		if forms := t.said().Nouns[what]; forms != nil {
			return fmt.Sprint(n, " ", forms[t.plural(n)])
		}
	}
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

// maxSmallTalk is how many words a greeting or thanks has at most.
const maxSmallTalk = 5

// englishWords show that a text is English; no other language of tongues has them.
var englishWords = strings.Fields("the an to of for and with from my you i is are what which how who where when why please " +
	"can could would write read list show delete remove search find run fetch open make create save put tell say give " +
	"get file files folder remind remember call help hello thanks this that it into")

// inEnglish says a sentence that is understood in another language as in English. Any other text stays.
func inEnglish(text string) string {
	said := strings.TrimSpace(strings.Trim(strings.TrimSpace(text), "„“”\"«»"))
	for i := range tongues {
		for _, p := range tongues[i].understood {
			if at := p.said().FindStringSubmatchIndex(said); at != nil {
				return strings.TrimSuffix(string(p.said().ExpandString(nil, p.english, said, at)), " to ")
			}
		}
	}
	return text
}

// tongueOf returns the language of a text: of a sentence that is understood, or of most of the words that are known, of
// as many the one that begins; nil = English, or none that is known.
func tongueOf(text string) *tongue {
	said := strings.TrimSpace(strings.Trim(strings.TrimSpace(text), "„“”\"«»"))
	for i := range tongues {
		if slices.ContainsFunc(tongues[i].understood, func(p phrase) bool { return p.said().MatchString(said) }) {
			return &tongues[i]
		}
	}
	var most *tongue
	found := map[*tongue]int{}
	words := wordsOf(text)
	slices.Reverse(words) // as many: the one whose word comes first is looked at last
	for _, word := range words {
		if t, known := tongueOfWord(word); known {
			if found[t]++; found[t] >= found[most] {
				most = t
			}
		}
	}
	return most
}

// tongueOfTalk returns the language of what people have said last.
func tongueOfTalk(messages []llm.Message) *tongue {
	for _, s := range slices.Backward(speechesOf(messages)) {
		if s.person {
			return tongueOf(s.text)
		}
	}
	return english
}

// tongueOfWord returns the language of a word; nil = English. known is false if no language has it.
func tongueOfWord(word string) (t *tongue, known bool) {
	if strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }) {
		return &tongues[cyrillic], true
	}
	for i := range tongues {
		if slices.Contains(tongues[i].words, word) {
			return &tongues[i], true
		}
	}
	return nil, slices.Contains(englishWords, word)
}

// wordsOf are the words of a text in small letters.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
}

// foreignTalk answers a greeting or thanks in another language than English.
func foreignTalk(t *tongue, text string, tools []llm.Tool) (string, bool) {
	words := wordsOf(text)
	if t == nil || len(words) > maxSmallTalk {
		return "", false
	}
	begins := func(list []string) bool {
		for _, word := range list {
			if strings.HasPrefix(strings.Join(words, " ")+" ", word+" ") {
				return true
			}
		}
		return false
	}
	switch {
	case begins(t.hello):
		return fmt.Sprintf(t.greet, t.suggest(tools, "")), true
	case begins(t.thanks):
		return t.welcome, true
	}
	return "", false
}
