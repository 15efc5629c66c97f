package texts

// showingBook is what is said about an answer that is being written.
type showingBook struct {
	Stop, Stopping, Over, NotYours string
}

// StopButton is the label of the button that stops an answer.
func (w Words) StopButton(language string) string { return w.in(language).Showing.Stop }

// StopToast answers the press that stops an answer.
func (w Words) StopToast(language string) string { return w.in(language).Showing.Stopping }

// StopOver answers a press that comes too late.
func (w Words) StopOver(language string) string { return w.in(language).Showing.Over }

// StopNotYours answers the press of somebody who may not stop the answer.
func (w Words) StopNotYours(language string) string { return w.in(language).Showing.NotYours }
