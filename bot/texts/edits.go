package texts

// editBook is what is said about messages that were changed, overtaken by the next one, or brought by a link.
type editBook struct {
	Overtaken, Offer, Again, Runs, NotYours, Lost, None, Already, Link string
}

// EditedLate says that a message was changed after it was answered; AgainButton is on the button below.
func (w Words) EditedLate(language string) string { return w.in(language).Edits.Offer }

// AgainButton labels the button that runs a changed message again.
func (w Words) AgainButton(language string) string { return w.in(language).Edits.Again }

// AgainRuns says that a changed message is being worked on.
func (w Words) AgainRuns(language string) string { return w.in(language).Edits.Runs }

// AgainNotYours says that a button is somebody else's.
func (w Words) AgainNotYours(language string) string { return w.in(language).Edits.NotYours }

// AgainNone says that nothing was asked yet that could be answered again.
func (w Words) AgainNone(language string) string { return w.in(language).Edits.None }

// AgainLost says that a message is no longer there.
func (w Words) AgainLost(language string) string { return w.in(language).Edits.Lost }

// AgainAlready says that a button was pressed before.
func (w Words) AgainAlready(language string) string { return w.in(language).Edits.Already }

// StartUnknown follows Start when a link brought something unknown.
func (w Words) StartUnknown(language string) string { return w.in(language).Edits.Link }
