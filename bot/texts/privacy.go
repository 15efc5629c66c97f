package texts

import (
	"fmt"
	"strings"
	"time"
)

// Erased is what became of a person's data. Its words are keys of the catalogue.
type Erased struct {
	Gone      []ErasedCount
	Stays     []ErasedCount
	Beyond    []string // why something is out of reach
	Problems  []string // what could not be erased
	Pseudonym string
}

// ErasedCount is how many things of a kind went, or stay for a reason.
type ErasedCount struct {
	What string
	N    int
	Why  string // of what stays
}

// privacyBook is what /export and /forget say.
type privacyBook struct {
	Ask                                            string
	AskAdmin                                       string
	Erase, Keep                                    string // labels
	Kept, Old, Begun, Private                      string
	Done, Nothing, Stays, Beyond, Problems, Called string // heads of the receipt
	Line                                           string // what, how many
	StaysLine                                      string // what, how many, why
	What                                           map[string]string
	Why                                            map[string]string
	Out                                            map[string]string
	Export                                         exportBook
	Transcript                                     transcriptBook
}

// exportBook is what /export says.
type exportBook struct {
	Begun, Often, Done, Texts, Failed, Nothing string
	Large                                      string // limit in MB
	Readme                                     string // time
}

// ForgetAsk asks before everything about a person is erased.
func (w Words) ForgetAsk(language string, admin bool) string {
	b := w.in(language).Privacy
	if admin {
		return b.Ask + "\n\n" + b.AskAdmin
	}
	return b.Ask
}

// ForgetButtons returns the labels of the two answers.
func (w Words) ForgetButtons(language string) (erase, keep string) {
	b := w.in(language).Privacy
	return b.Erase, b.Keep
}

// ForgetKept says that nothing was erased.
func (w Words) ForgetKept(language string) string { return w.in(language).Privacy.Kept }

// ForgetOld says that the question is too old.
func (w Words) ForgetOld(language string) string { return w.in(language).Privacy.Old }

// ForgetBegun says that erasing has begun.
func (w Words) ForgetBegun(language string) string { return w.in(language).Privacy.Begun }

// ForgetPrivate says where /export and /forget are answered.
func (w Words) ForgetPrivate(language string) string { return w.in(language).Privacy.Private }

// ForgetReceipt says what went, what stays and why.
func (w Words) ForgetReceipt(language string, e Erased) string {
	b := w.in(language).Privacy
	var lines []string
	if len(e.Gone) == 0 {
		lines = append(lines, b.Nothing)
	} else {
		lines = append(lines, b.Done)
	}
	for _, c := range e.Gone {
		lines = append(lines, fmt.Sprintf(b.Line, wordFor(b.What, c.What), c.N))
	}
	if len(e.Problems) > 0 {
		lines = append(lines, "", b.Problems)
		for _, what := range e.Problems {
			lines = append(lines, "• "+wordFor(b.What, what))
		}
	}
	if len(e.Stays) > 0 {
		lines = append(lines, "", b.Stays)
	}
	for _, c := range e.Stays {
		lines = append(lines, fmt.Sprintf(b.StaysLine, wordFor(b.What, c.What), c.N, wordFor(b.Why, c.Why)))
	}
	lines = append(lines, "", b.Beyond)
	for _, what := range e.Beyond {
		lines = append(lines, "• "+wordFor(b.Out, what))
	}
	if e.Pseudonym != "" {
		lines = append(lines, "", fmt.Sprintf(b.Called, e.Pseudonym))
	}
	return strings.Join(lines, "\n")
}

// wordFor returns what a key means; the key itself if that is not known.
func wordFor(words map[string]string, key string) string {
	if text, ok := words[key]; ok {
		return text
	}
	return key
}

// ExportBegun says that an export is being made.
func (w Words) ExportBegun(language string) string { return w.in(language).Privacy.Export.Begun }

// ExportOften says that the last export was made within the hour.
func (w Words) ExportOften(language string) string { return w.in(language).Privacy.Export.Often }

// ExportDone goes with an export; texts: files were left out of it.
func (w Words) ExportDone(language string, texts bool) string {
	b := w.in(language).Privacy.Export
	if texts {
		return b.Texts
	}
	return b.Done
}

// ExportLarge says that an export is larger than the channel takes.
func (w Words) ExportLarge(language string, limit int64) string {
	return fmt.Sprintf(w.in(language).Privacy.Export.Large, limit>>20)
}

// ExportFailed says that an export could not be made.
func (w Words) ExportFailed(language string) string { return w.in(language).Privacy.Export.Failed }

// ExportNothing says that nothing is stored.
func (w Words) ExportNothing(language string) string { return w.in(language).Privacy.Export.Nothing }

// ExportReadme is the text that explains an export.
func (w Words) ExportReadme(language string, at time.Time) string {
	return fmt.Sprintf(w.in(language).Privacy.Export.Readme, at.UTC().Format("2006-01-02 15:04 UTC"))
}
