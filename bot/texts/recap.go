package texts

// recapBook is what is said about the older part of a conversation.
type recapBook struct {
	Head, Nothing, Failed, Off string
	Summed, LeftOut, Retold    string
	AsideHelp, AsideFailed     string
}

// Recap is a reminder of a conversation; text was written by a model, as Markdown.
func (w Words) Recap(language, text string) string {
	return "*" + w.in(language).Recap.Head + "*\n\n" + text
}

// RecapNothing says that there is nothing to remind of.
func (w Words) RecapNothing(language string) string { return w.in(language).Recap.Nothing }

// RecapFailed says that the model gave no reminder in time.
func (w Words) RecapFailed(language string) string { return w.in(language).Recap.Failed }

// RecapOff says that reminders are switched off.
func (w Words) RecapOff(language string) string { return w.in(language).Recap.Off }

// AsideHelp says how to ask a side question.
func (w Words) AsideHelp(language string) string { return w.in(language).Recap.AsideHelp }

// AsideFailed says that the model did not answer a side question.
func (w Words) AsideFailed(language string) string { return w.in(language).Recap.AsideFailed }

// Summed says, once in a conversation, that the model now works with a summary of its older part.
func (w Words) Summed(language string) string { return w.in(language).Recap.Summed }

// LeftOut says that the model no longer reads the oldest messages, because there is no summary of them.
func (w Words) LeftOut(language string) string { return w.in(language).Recap.LeftOut }

// Retold says, once in a conversation, that the model's server refused the conversation and took it as plain text.
func (w Words) Retold(language string) string { return w.in(language).Recap.Retold }
