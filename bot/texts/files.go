package texts

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/turn"
)

// fileBook is what is said of files that people send.
type fileBook struct {
	// by problem: which file; size and limit where there are some
	problems map[turn.FileProblem]string
	kinds    map[string]string // by kind of attachment, where it has no name
	other    string            // for a kind that is not among them
	named    string            // where it has a name: the name
	heard    string            // what was said
}

// shownName is how much of the name of a file is shown, in characters.
const shownName = 80

// quotedWords is how much of a transcript is quoted to the person, in characters.
const quotedWords = 1000

// FileTrouble says why a file cannot be worked with, and what the person can do.
func (w Words) FileTrouble(language string, t turn.Trouble) string {
	b := w.in(language).files
	which := b.kinds[t.Kind]
	if which == "" {
		which = b.other
	}
	if t.Name != "" {
		which = fmt.Sprintf(b.named, render.Cut(strings.Join(strings.Fields(t.Name), " "), shownName))
	}
	switch t.Problem {
	case turn.FileTooLarge:
		return fmt.Sprintf(b.problems[t.Problem], which, prompt.Bytes(t.Size), megabytes(t.Limit))
	case turn.FileTooManyDots:
		return fmt.Sprintf(b.problems[t.Problem], which, t.Size, t.Limit)
	case turn.FileUnseen, turn.FileUnheard:
		return b.problems[t.Problem]
	default:
		return fmt.Sprintf(b.problems[t.Problem], which)
	}
}

// megabytes says a limit as its source does: 20 MB are 20 · 2²⁰ bytes.
func megabytes(n int64) string { return strconv.FormatInt(n>>20, 10) + " MB" }

// Heard quotes what was written down of a recording.
func (w Words) Heard(language, text string) string {
	return fmt.Sprintf(w.in(language).files.heard, render.Cut(text, quotedWords))
}

// englishFiles is the part about files that people send.
func englishFiles(b *book) {
	b.files = fileBook{
		other: "the file", named: "“%s”", heard: "I heard: “%s”",
		kinds: map[string]string{
			bot.Photo: "the photo", bot.Document: "the document", bot.Voice: "the voice message", bot.Audio: "the audio file", bot.Video: "the video",
			bot.VideoNote: "the video message", bot.Animation: "the animation",
		},
		problems: map[turn.FileProblem]string{
			turn.FileTooLarge:    "I cannot take %s: it has %s, and I can take up to %s. Send a smaller one, or a part of it.",
			turn.FileGone:        "I cannot get %s: Telegram does not have it any more. Please send it again.",
			turn.FileAway:        "I could not download %s. Please send it again in a moment.",
			turn.FileNoRoom:      "I could not keep %s: there is no room for it here. Delete files that are no longer needed, or ask the operator.",
			turn.FileUnseen:      "The model here does not take pictures; I only tell it that there was one.",
			turn.FileNoPicture:   "I cannot read %s as a picture. JPEG, PNG, WebP and GIF work.",
			turn.FileTooManyDots: "I cannot take %s as a picture: it has %d megapixels, and up to %d work. Send a smaller one.",
			turn.FileDamaged:     "I cannot read %s: it is damaged or not what its name says. It is stored as it came.",
			turn.FileLocked:      "I cannot read %s: it needs a password. Send it without one.",
			turn.FileBloated:     "I do not unpack %s: there is far more in it than I can read. It is stored as it came.",
			turn.FileUnheard:     "I cannot listen to recordings: no speech recognition is set up here. Please write it.",
			turn.FileNoSound:     "I cannot read %s as a recording. OGG, MP3, M4A, WAV, FLAC and WebM work.",
			turn.FileNotWritten:  "I could not write down what is said in %s. Please send it again later, or write it.",
			turn.FileNoWords:     "I heard no words in %s.",
		},
	}
}

// germanFiles is the same in German.
func germanFiles(b *book) {
	b.files = fileBook{
		other: "die Datei", named: "„%s“", heard: "Ich habe verstanden: „%s“",
		kinds: map[string]string{
			bot.Photo: "das Foto", bot.Document: "das Dokument", bot.Voice: "die Sprachnachricht", bot.Audio: "die Audiodatei", bot.Video: "das Video",
			bot.VideoNote: "die Videonachricht", bot.Animation: "die Animation",
		},
		problems: map[turn.FileProblem]string{
			turn.FileTooLarge:    "Ich kann nicht annehmen: %s. Größe: %s; bis %s geht es. Bitte etwas Kleineres schicken oder einen Teil davon.",
			turn.FileGone:        "Ich bekomme %s nicht: Telegram hat das nicht mehr. Bitte noch einmal schicken.",
			turn.FileAway:        "Ich konnte %s nicht herunterladen. Bitte gleich noch einmal schicken.",
			turn.FileNoRoom:      "Ich konnte %s nicht aufheben: Hier ist kein Platz dafür. Bitte löschen, was nicht mehr gebraucht wird, oder den Betreiber fragen.",
			turn.FileUnseen:      "Das Modell hier nimmt keine Bilder an; ich sage ihm nur, dass eines da war.",
			turn.FileNoPicture:   "Ich kann %s nicht als Bild lesen. JPEG, PNG, WebP und GIF gehen.",
			turn.FileTooManyDots: "Ich kann %s nicht als Bild annehmen: Es hat %d Megapixel, bis %d geht es. Bitte ein kleineres schicken.",
			turn.FileDamaged:     "Ich kann %s nicht lesen: Der Inhalt ist beschädigt oder nicht das, was der Name sagt. Die Datei ist gespeichert, wie sie kam.",
			turn.FileLocked:      "Ich kann %s nicht lesen: Es braucht ein Passwort. Bitte ohne Passwort schicken.",
			turn.FileBloated:     "Ich packe %s nicht aus: Darin ist weit mehr, als ich lesen kann. Die Datei ist gespeichert, wie sie kam.",
			turn.FileUnheard:     "Ich kann keine Aufnahmen anhören: Hier ist keine Spracherkennung eingerichtet. Bitte schreiben.",
			turn.FileNoSound:     "Ich kann %s nicht als Aufnahme lesen. OGG, MP3, M4A, WAV, FLAC und WebM gehen.",
			turn.FileNotWritten:  "Ich konnte nicht aufschreiben, was gesagt wird: %s. Bitte später noch einmal schicken oder schreiben.",
			turn.FileNoWords:     "Ich habe keine Worte gehört: %s.",
		},
	}
}
