package texts

import (
	"fmt"
	"time"
)

// hiddenBook is what is said of questions that a group does not see.
type hiddenBook struct {
	Waiting        string // until, name
	WaitingMany    string // approvals, until, name
	Nobody         string // until
	TooFew         string // approvals, until
	Unseen, Origin string
	From           string // title of the group
}

// HiddenWaiting says in a group that those who may approve are asked in private; needed is the number of approvals.
func (w Words) HiddenWaiting(language string, needed int, until time.Time, short string) string {
	b := w.in(language).Hidden
	if needed > 1 {
		return fmt.Sprintf(b.WaitingMany, needed, w.clock(language, until), short)
	}
	return fmt.Sprintf(b.Waiting, w.clock(language, until), short)
}

// HiddenTooFew says in a group that too few of those who may approve can be asked in private; needed is the number of
// approvals.
func (w Words) HiddenTooFew(language string, needed int, until time.Time) string {
	b := w.in(language).Hidden
	if needed > 1 {
		return fmt.Sprintf(b.TooFew, needed, w.clock(language, until))
	}
	return fmt.Sprintf(b.Nobody, w.clock(language, until))
}

// HiddenUnseen tells somebody who approves in a group that they have not seen the question.
func (w Words) HiddenUnseen(language string) string { return w.in(language).Hidden.Unseen }

// HiddenOrigin is above a question that comes from a group; "" = what it is called is not known.
func (w Words) HiddenOrigin(language, group string) string {
	b := w.in(language).Hidden
	if group = named(group); group != "" {
		return fmt.Sprintf(b.From, group)
	}
	return b.Origin
}
