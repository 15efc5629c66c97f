package offline

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

//go:embed said/*.json
var saidFiles embed.FS

// saying is what is said in a language.
type saying struct {
	// Sentences are those of the rules by their English form, as for fmt.Sprintf. One that leaves nothing open ignores
	// the values.
	Sentences map[string]string
	// Nouns are what is counted, by the English word, in the forms that plural tells apart.
	Nouns map[string][]string
}

// readSentences reads the sentences of a language when they are needed first.
func readSentences(language string) func() saying {
	return sync.OnceValue(func() saying {
		var s saying
		data, err := saidFiles.ReadFile("said/" + language + ".json")
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if err != nil {
			panic(fmt.Sprintf("said/%s.json: %v", language, err)) //nolint:forbidigo // a constant of the program; tests read it
		}
		return s
	})
}

// cyrillic is the language of tongues that is known by its script.
const cyrillic = len(tongues) - 1

// oneOrMore is the plural of German and Spanish.
func oneOrMore(n int) int {
	if n == 1 {
		return 0
	}
	return 1
}

// russianPlural tells 1, 2 to 4 and 5 apart.
func russianPlural(n int) int {
	switch tens, ones := n/10%10, n%10; {
	case tens == 1 || ones == 0 || ones > 4:
		return 2
	case ones == 1:
		return 0
	default:
		return 1
	}
}

// tongues are the languages besides English that the rules know.
var tongues = [...]tongue{
	{
		words: strings.Fields("hallo moin servus guten ich du wir wie welche welcher dateien datei lösche bitte " +
			"kannst kann hilfe wer bist ist sind und nicht mir mich zeig zeige erinnere erzähl schreib danke heute " +
			"morgen gibt lies weiter mach mache zeichne mal bild auf dem der die das ein eine"),
		understood: []phrase{
			{lazyExpression(`(?i)^welche dateien (?:gibt es|sind|liegen)(?: hier)?[?.!]*$`), "what files are here?"},
			{
				lazyExpression(`(?is)^erinnere? mich in (\d{1,4}) minuten?\b\s*(?:(?:daran,?|an (?:das|den|die)|ans?)\s+)?(.*)$`),
				"remind me in $1 minutes to $2",
			},
			{
				lazyExpression(`(?is)^erinnere? mich in (\d{1,4}) stunden?\b\s*(?:(?:daran,?|an (?:das|den|die)|ans?)\s+)?(.*)$`),
				"remind me in $1 hours to $2",
			},
			{
				lazyExpression(`(?is)^(sag.*) jeden (?:werktag|arbeitstag) um neun,?\s+(.+)$`),
				"every working day at nine, $1, $2",
			},
			{lazyExpression(`(?i)^(?:bitte )?lösche (?:bitte )?(?:alle |die )?temporären dateien[.!]*$`), "delete the temp files"},
			{lazyExpression(`(?i)^(?:bitte )?(?:lies|lese|zeige?)(?: mir)?(?: die datei)? (\S+\.\w+)[.!]*$`), "read $1"},
			{lazyExpression(`(?i)^(?:eine )?lange antwort[.!]*$`), "long answer"},
			{lazyExpression(`(?i)^(?:mach |mache )?(?:bitte )?weiter[.!]*$`), "go on"},
			{lazyExpression(`(?i)^(?:hilfe|was kannst du(?: alles)?)[?.!]*$`), "help"},
			{lazyExpression(`(?i)^(?:wer|was) bist du[?.!]*$`), "who are you"},
			{lazyExpression(`(?i)^was ist (?:auf|in) (?:dem|diesem|meinem) (?:bild|foto)(?: zu sehen)?[?.!]*$`), "what is in this picture?"},
			{
				lazyExpression(`(?i)^(?:zeichne|male?)\b|^(?:mach|erstelle|zeige?|schick)\w*\b[^\n]{0,20}\b(?:bild|foto|zeichnung)\b`),
				"draw $0",
			},
		},
		hello:  []string{"hallo", "moin", "servus", "guten"},
		thanks: []string{"danke", "vielen dank"},
		greet: "Hallo! Ich bin das eingebaute Modell: feste Regeln, kein richtiges Sprachmodell. Versuch es mit %s; " +
			"*hilfe* zeigt den Rest.",
		welcome: "Gern geschehen.",
		examples: []example{
			{"list_directory", "welche Dateien gibt es hier?"},
			{"bash", "lösche die temporären Dateien"},
			{"read", "lies todo.txt"},
			{"schedule_deferred", "erinnere mich in 2 Minuten ans Aufstehen"},
			{"", "lange Antwort"},
		},
		plural: oneOrMore,
		said:   readSentences("de"),
	},
	{
		words: strings.Fields("hola buenos buenas qué cómo archivos archivo borra puedes puede ayuda quién " +
			"quien eres hay aquí recuérdame muéstrame escribe lee gracias hoy mañana sigue continúa dibuja una un el la en"),
		understood: []phrase{
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
			{lazyExpression(`(?i)^(?:por favor,? )?borra (?:todos )?(?:los )?archivos temporales[.!]*$`), "delete the temp files"},
			{lazyExpression(`(?i)^(?:por favor,? )?(?:lee|muestra|muéstrame)(?: el archivo)? (\S+\.\w+)[.!]*$`), "read $1"},
			{lazyExpression(`(?i)^(?:una )?respuesta larga[.!]*$`), "long answer"},
			{lazyExpression(`(?i)^[¡]*(?:sigue|continúa|continua|más)[.!]*$`), "go on"},
			{lazyExpression(`(?i)^[¿¡]*(?:ayuda|qué (?:puedes|sabes) hacer)[?.!]*$`), "help"},
			{lazyExpression(`(?i)^[¿¡]*(?:quién|qué) eres[?.!]*$`), "who are you"},
			{lazyExpression(`(?i)^[¿¡]*qué (?:hay|se ve) en (?:la|esta|mi) (?:imagen|foto)[?.!]*$`), "what is in this picture?"},
			{
				lazyExpression(`(?i)^(?:dibuja|pinta)\b|^(?:haz|crea|genera|muéstra|envía)\w*\b[^\n]{0,20}\b(?:imagen|foto|dibujo)\b`),
				"draw $0",
			},
		},
		hello:  []string{"hola", "buenos", "buenas"},
		thanks: []string{"gracias", "muchas gracias"},
		greet: "¡Hola! Soy el modelo incorporado: reglas fijas, no un modelo de lenguaje de verdad. Prueba con %s; " +
			"*ayuda* muestra el resto.",
		welcome: "De nada.",
		examples: []example{
			{"list_directory", "¿qué archivos hay aquí?"},
			{"bash", "borra los archivos temporales"},
			{"read", "lee todo.txt"},
			{"schedule_deferred", "recuérdame en 2 minutos que me levante"},
			{"", "respuesta larga"},
		},
		plural: oneOrMore,
		said:   readSentences("es"),
	},
	{
		understood: []phrase{
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
			{lazyExpression(`(?i)^удали(?:те)? (?:все )?временные файлы[.!]*$`), "delete the temp files"},
			{lazyExpression(`(?i)^(?:прочитай(?:те)?|прочти(?:те)?|покажи(?:те)?)(?: файл)? (\S+\.\w+)[.!]*$`), "read $1"},
			{lazyExpression(`(?i)^длинный ответ[.!]*$`), "long answer"},
			{lazyExpression(`(?i)^(?:продолжай(?:те)?|дальше|ещё)[.!]*$`), "go on"},
			{lazyExpression(`(?i)^(?:помощь|помоги(?:те)?|что ты умеешь|что вы умеете)[?.!]*$`), "help"},
			{lazyExpression(`(?i)^(?:кто ты|кто вы|что ты такое)[?.!]*$`), "who are you"},
			{
				lazyExpression(`(?i)^что (?:на|изображено на) (?:этой |моей )?(?:картинке|фотографии|фото|картине)[?.!]*$`),
				"what is in this picture?",
			},
			{
				lazyExpression(`(?i)^(?:нарисуй|изобрази)|^(?:сделай|создай|покажи|пришли)\S*\s[^\n]{0,20}(?:картинку|рисунок|фото)`),
				"draw $0",
			},
		},
		hello:  []string{"привет", "здравствуйте", "здравствуй", "добрый", "доброе"},
		thanks: []string{"спасибо", "благодарю"},
		greet: "Здравствуйте! Я встроенная модель: набор правил, а не настоящая языковая модель. Попробуйте %s; " +
			"*помощь* покажет остальное.",
		welcome: "Пожалуйста.",
		examples: []example{
			{"list_directory", "какие файлы здесь?"},
			{"bash", "удали временные файлы"},
			{"read", "прочитай todo.txt"},
			{"schedule_deferred", "напомни через 2 минуты встать"},
			{"", "длинный ответ"},
		},
		plural: russianPlural,
		said:   readSentences("ru"),
	},
}
