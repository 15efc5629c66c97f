package texts

import (
	"fmt"
	"time"
)

// hiddenBook is what is said of questions that a group does not see.
type hiddenBook struct {
	Waiting        string // until, name
	Nobody         string // until
	Unseen, Origin string
	From           string // title of the group
}

// HiddenWaiting says in a group that those who may approve are asked in private.
func (w Words) HiddenWaiting(language string, until time.Time, short string) string {
	return fmt.Sprintf(w.in(language).Hidden.Waiting, w.clock(language, until), short)
}

// HiddenNobody says in a group that nobody who may approve can be asked in private.
func (w Words) HiddenNobody(language string, until time.Time) string {
	return fmt.Sprintf(w.in(language).Hidden.Nobody, w.clock(language, until))
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
