package offline

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/zephbot/zephbot/agent/llm"
)

// tongue is what the rules say to people who write another language than theirs.
type tongue struct {
	words                 []string // that show the language; English has none of them
	proposed              []phrase // what the bot's own sentences in that language propose to say
	hello, thanks         []string // beginnings of such messages
	greet, welcome, sorry string   // greet and sorry leave open two examples
}

// phrase is a sentence of another language: of a text that said matches, english is made as by Regexp.Expand.
type phrase struct {
	said    func() *regexp.Regexp
	english string
}

// tongues are the languages besides English, of which the rules know that they do not understand them.
var tongues = [...]tongue{
	{
		words: strings.Fields("hallo moin servus guten ich du wir wie welche welcher dateien datei lösche bitte " +
			"kannst kann hilfe wer bist ist sind und nicht mir mich zeig zeige erinnere erzähl schreib danke heute " +
			"morgen gibt"),
		proposed: []phrase{
			{lazyExpression(`(?i)^welche dateien (?:gibt es|sind|liegen)(?: hier)?[?.!]*$`), "what files are here?"},
			{
				lazyExpression(`(?is)^erinnere? mich in (\d{1,4}) minuten?\b\s*(?:(?:ans?|daran,?|an das)\s+)?(.*)$`),
				"remind me in $1 minutes to $2",
			},
			{
				lazyExpression(`(?is)^erinnere? mich in (\d{1,4}) stunden?\b\s*(?:(?:ans?|daran,?|an das)\s+)?(.*)$`),
				"remind me in $1 hours to $2",
			},
			{
				lazyExpression(`(?is)^(sag.*) jeden (?:werktag|arbeitstag) um neun,?\s+(.+)$`),
				"every working day at nine, $1, $2",
			},
		},
		hello:  []string{"hallo", "moin", "servus", "guten"},
		thanks: []string{"danke", "vielen dank"},
		greet: "Hallo! Ich bin das eingebaute Modell: feste Regeln, kein richtiges Sprachmodell. Ich " +
			"verstehe einfaches Englisch, zum Beispiel %s oder %s; *help* zeigt den Rest.",
		welcome: "Gern geschehen.",
		sorry: "Das verstehe ich nicht: Ich folge festen Regeln und kann einfaches Englisch. Versuch es " +
			"mit %s oder %s.",
	},
	{
		words: strings.Fields("hola buenos buenas qué cómo archivos archivo borra puedes puede ayuda quién " +
			"quien eres hay aquí recuérdame muéstrame escribe lee gracias hoy mañana"),
		proposed: []phrase{
			{lazyExpression(`(?i)^[¿¡]*qué archivos (?:hay|están)(?: aquí)?[?.!]*$`), "what files are here?"},
			{
				lazyExpression(`(?is)^recuérdame en (\d{1,4}) minutos?\b\s*(?:(?:que|de)\s+)?(.*)$`),
				"remind me in $1 minutes to $2",
			},
			{
				lazyExpression(`(?is)^recuérdame en (\d{1,4}) horas?\b\s*(?:(?:que|de)\s+)?(.*)$`),
				"remind me in $1 hours to $2",
			},
			{
				lazyExpression(`(?is)^(dime.*) cada día laborable a las nueve,?\s+(.+)$`),
				"every working day at nine, $1 $2",
			},
		},
		hello:  []string{"hola", "buenos", "buenas"},
		thanks: []string{"gracias", "muchas gracias"},
		greet: "¡Hola! Soy el modelo incorporado: reglas fijas, no un modelo de lenguaje de verdad. " +
			"Entiendo inglés sencillo, por ejemplo %s o %s; *help* muestra el resto.",
		welcome: "De nada.",
		sorry:   "No lo entiendo: sigo reglas fijas y sé inglés sencillo. Prueba con %s o %s.",
	},
	{
		proposed: []phrase{
			{lazyExpression(`(?i)^какие файлы (?:здесь|тут)(?: есть)?[?.!]*$`), "what files are here?"},
			{
				lazyExpression(`(?is)^напомни(?:те)?(?: мне)? через (\d{1,4}) минут[уы]?(?:\s+(.*))?$`),
				"remind me in $1 minutes to $2",
			},
			{
				lazyExpression(`(?is)^напомни(?:те)?(?: мне)? через (\d{1,4}) час(?:а|ов)?(?:\s+(.*))?$`),
				"remind me in $1 hours to $2",
			},
			{lazyExpression(`(?is)^каждый рабочий день в девять,?\s+(.+)$`), "every working day at nine, $1"},
		},
		hello:  []string{"привет", "здравствуйте", "здравствуй", "добрый", "доброе"},
		thanks: []string{"спасибо", "благодарю"},
		greet: "Здравствуйте! Я встроенная модель: набор правил, а не настоящая языковая модель. Я понимаю " +
			"простой английский, например %s или %s; *help* покажет остальное.",
		welcome: "Пожалуйста.",
		sorry:   "Не понимаю: я следую набору правил и знаю простой английский. Попробуйте %s или %s.",
	},
}

// cyrillic is the language of tongues that is known by its script.
const cyrillic = len(tongues) - 1

// maxSmallTalk is how many words a greeting or thanks has at most.
const maxSmallTalk = 5

// englishWords show that a text is English; no other language of tongues has them.
var englishWords = strings.Fields("the an to of for and with from my you i is are what which how who where when why please " +
	"can could would write read list show delete remove search find run fetch open make create save put tell say give " +
	"get file files folder remind remember call help hello thanks this that it into")

// inEnglish says a sentence that the bot's texts in another language propose as they do in English. Any other text
// stays.
func inEnglish(text string) string {
	said := strings.TrimSpace(strings.Trim(strings.TrimSpace(text), "„“”\"«»"))
	for i := range tongues {
		for _, p := range tongues[i].proposed {
			if at := p.said().FindStringSubmatchIndex(said); at != nil {
				return strings.TrimSuffix(string(p.said().ExpandString(nil, p.english, said, at)), " to ")
			}
		}
	}
	return text
}

// tongueOf returns the language of most of the words of a text that are known, of as many the one that begins; nil =
// English, or none that is known.
func tongueOf(text string) *tongue {
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

// foreignTalk answers a greeting or thanks in a language that the rules do not understand, in that language.
func foreignTalk(text string, tools []llm.Tool) (string, bool) {
	t, words := tongueOf(text), wordsOf(text)
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
		return t.say(t.greet, tools), true
	case begins(t.thanks):
		return t.welcome, true
	}
	return "", false
}

// sayForeign says in the language of a text that the rules do not understand it; ok is false if it is English.
func sayForeign(text string, tools []llm.Tool) (said string, ok bool) {
	t := tongueOf(text)
	if t == nil {
		return "", false
	}
	return t.say(t.sorry, tools), true
}

// say fills two examples into a sentence.
func (t *tongue) say(sentence string, tools []llm.Tool) string {
	list := append(offeredExamples(tools), "*help*")
	return fmt.Sprintf(sentence, list[0], list[1])
}
