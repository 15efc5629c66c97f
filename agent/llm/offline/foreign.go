package offline

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/zephbot/zephbot/agent/llm"
)

// tongue is what the rules say to people who write another language than theirs.
type tongue struct {
	words                 []string // that show the language; English has none of them
	hello, thanks         []string // beginnings of such messages
	greet, welcome, sorry string   // greet and sorry leave open two examples
}

// tongues are the languages besides English, of which the rules know that they do not understand them.
var tongues = [...]tongue{
	{
		words: strings.Fields("hallo moin servus guten ich du wir wie welche welcher dateien datei lösche bitte " +
			"kannst kann hilfe wer bist ist sind und nicht mir mich zeig zeige erinnere erzähl schreib danke heute " +
			"morgen gibt"),
		hello:  []string{"hallo", "moin", "servus", "guten"},
		thanks: []string{"danke", "vielen dank"},
		greet: "Hallo! Ich bin das eingebaute Modell: feste Regeln, kein richtiges Sprachmodell. Ich " +
			"verstehe nur einfaches Englisch, zum Beispiel %s oder %s; *help* zeigt den Rest.",
		welcome: "Gern geschehen.",
		sorry: "Das verstehe ich nicht: Ich folge festen Regeln und kann nur einfaches Englisch. Versuch es " +
			"mit %s oder %s.",
	},
	{
		words: strings.Fields("hola buenos buenas qué cómo archivos archivo borra puedes puede ayuda quién " +
			"quien eres hay aquí recuérdame muéstrame escribe lee gracias hoy mañana"),
		hello:  []string{"hola", "buenos", "buenas"},
		thanks: []string{"gracias", "muchas gracias"},
		greet: "¡Hola! Soy el modelo incorporado: reglas fijas, no un modelo de lenguaje de verdad. Solo " +
			"entiendo inglés sencillo, por ejemplo %s o %s; *help* muestra el resto.",
		welcome: "De nada.",
		sorry:   "No lo entiendo: sigo reglas fijas y solo sé inglés sencillo. Prueba con %s o %s.",
	},
	{
		hello:  []string{"привет", "здравствуйте", "здравствуй", "добрый", "доброе"},
		thanks: []string{"спасибо", "благодарю"},
		greet: "Здравствуйте! Я встроенная модель: набор правил, а не настоящая языковая модель. Я понимаю " +
			"только простой английский, например %s или %s; *help* покажет остальное.",
		welcome: "Пожалуйста.",
		sorry:   "Не понимаю: я следую набору правил и знаю только простой английский. Попробуйте %s или %s.",
	},
}

// cyrillic is the language of tongues that is known by its script.
const cyrillic = len(tongues) - 1

// maxSmallTalk is how many words a greeting or thanks has at most.
const maxSmallTalk = 5

// tongueOf returns the language that a text is written in; nil = English, or none that is known.
func tongueOf(text string) *tongue {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Cyrillic, r) }) {
		return &tongues[cyrillic]
	}
	for i := range tongues {
		for _, word := range wordsOf(text) {
			if slices.Contains(tongues[i].words, word) {
				return &tongues[i]
			}
		}
	}
	return nil
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
