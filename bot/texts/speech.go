package texts

import "fmt"

// Which answers are spoken.
const (
	SpeechAsked  = "asked"  // those that somebody wants to hear with /speak
	SpeechSpoken = "spoken" // those to questions that were spoken, too
	SpeechAlways = "always" // all
)

// speechBook is what is said about spoken answers.
type speechBook struct {
	Off, Silent, Nothing string
	Rest                 string // spoken at the end of what was shortened
	Interrupted, Failed  string
	Unpaid               string // %s says which quota is used up
}

// SpeechOff says that nothing speaks here: at a terminal or in an editor, because nothing plays recordings there; else,
// because no provider speaks.
func (w Words) SpeechOff(language string) string {
	if w.Owner {
		return w.in(language).Speech.Silent
	}
	return w.in(language).Speech.Off
}

// SpeechRest says, at the end of a recording, that the text has more.
func (w Words) SpeechRest(language string) string { return w.in(language).Speech.Rest }

// SpeechNothing says that there is no answer to speak.
func (w Words) SpeechNothing(language string) string { return w.in(language).Speech.Nothing }

// SpeechInterrupted says that an answer was being spoken when the process ended.
func (w Words) SpeechInterrupted(language string) string { return w.in(language).Speech.Interrupted }

// SpeechFailed says that an answer could not be spoken.
func (w Words) SpeechFailed(language string) string { return w.in(language).Speech.Failed }

// SpeechUnpaid says that an answer was not spoken because of a quota; why is a sentence about that.
func (w Words) SpeechUnpaid(language, why string) string {
	return fmt.Sprintf(w.in(language).Speech.Unpaid, why)
}
