package texts

import (
	"fmt"
	"time"
)

// transcriptBook is what /export page says, and what the page of a conversation says.
type transcriptBook struct {
	Button, Begun, Private, Done, Bare, Nothing, First, Often, Unknown, Failed string
	Large                                                                      string // limit in MB
	Page                                                                       Transcript
	Steps                                                                      count
	Foot                                                                       string // time, zone
}

// Transcript is what the page of a conversation says around what was said.
type Transcript struct {
	Title, Bot, Somebody         string
	Edited, Scheduled, Forwarded string // signs of what a person has said
	Brought                      string // with the call of a hook
	Failed, Open                 string // signs of a call
	Cut, Others, Bare            string // what is left out
}

// Transcript returns what the page of a conversation says around what was said.
func (w Words) Transcript(language string) Transcript { return w.in(language).Privacy.Transcript.Page }

// TranscriptSteps says how many steps led to an answer.
func (w Words) TranscriptSteps(language string, n int) string {
	return w.in(language).Privacy.Transcript.Steps.say(n)
}

// TranscriptFoot says when the page of a conversation was made, and on which clock its times are.
func (w Words) TranscriptFoot(language string, made time.Time) string {
	zone := "UTC"
	if w.Zone != nil {
		zone = w.Zone.String()
	}
	day, hour := w.TranscriptTime(made)
	return fmt.Sprintf(w.in(language).Privacy.Transcript.Foot, day+" "+hour, zone)
}

// TranscriptTime returns the day and the time of day of a moment, on the clock of the reader.
func (w Words) TranscriptTime(at time.Time) (day, hour string) {
	local, _ := w.local(at)
	return local.Format(time.DateOnly), local.Format("15:04")
}

// TranscriptButton is the label of the button that makes a page of the conversation.
func (w Words) TranscriptButton(language string) string {
	return w.in(language).Privacy.Transcript.Button
}

// TranscriptBegun says that a page of the conversation is being made; elsewhere: it comes to the private chat.
func (w Words) TranscriptBegun(language string, elsewhere bool) string {
	if elsewhere {
		return w.in(language).Privacy.Transcript.Private
	}
	return w.in(language).Privacy.Transcript.Begun
}

// TranscriptDone goes with the page of a conversation; bare: its pictures are left out.
func (w Words) TranscriptDone(language string, bare bool) string {
	b := w.in(language).Privacy.Transcript
	if bare {
		return b.Done + " " + b.Bare
	}
	return b.Done
}

// TranscriptNothing says that nothing was said that a page could show.
func (w Words) TranscriptNothing(language string) string {
	return w.in(language).Privacy.Transcript.Nothing
}

// TranscriptFirst says that somebody has to write in private first, because the page is sent there.
func (w Words) TranscriptFirst(language string) string {
	return w.in(language).Privacy.Transcript.First
}

// TranscriptOften says that a page was made a moment ago.
func (w Words) TranscriptOften(language string) string {
	return w.in(language).Privacy.Transcript.Often
}

// TranscriptUnknown says what can be written behind /export.
func (w Words) TranscriptUnknown(language string) string {
	return w.in(language).Privacy.Transcript.Unknown
}

// TranscriptFailed says that a page could not be made.
func (w Words) TranscriptFailed(language string) string {
	return w.in(language).Privacy.Transcript.Failed
}

// TranscriptLarge says that a page is larger than the channel takes.
func (w Words) TranscriptLarge(language string, limit int64) string {
	return fmt.Sprintf(w.in(language).Privacy.Transcript.Large, limit>>20)
}
