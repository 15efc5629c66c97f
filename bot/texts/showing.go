package texts

// showingBook is what is said about an answer that is being written.
type showingBook struct {
	stop, stopping, over, notYours string
}

func englishShowing() showingBook {
	return showingBook{
		stop: "Stop", stopping: "Stopping.", over: "This has ended already.",
		notYours: "Only the person who asked, an approver or an admin can stop this.",
	}
}

func germanShowing() showingBook {
	return showingBook{
		stop: "Stopp", stopping: "Ich halte an.", over: "Das ist schon beendet.",
		notYours: "Anhalten kann das nur, wer gefragt hat, wer hier genehmigen darf oder ein Admin.",
	}
}

// StopButton is the label of the button that stops an answer.
func (w Words) StopButton(language string) string { return w.in(language).showing.stop }

// StopToast answers the press that stops an answer.
func (w Words) StopToast(language string) string { return w.in(language).showing.stopping }

// StopOver answers a press that comes too late.
func (w Words) StopOver(language string) string { return w.in(language).showing.over }

// StopNotYours answers the press of somebody who may not stop the answer.
func (w Words) StopNotYours(language string) string { return w.in(language).showing.notYours }
