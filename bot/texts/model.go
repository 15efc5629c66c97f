package texts

import (
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/bot/render"
)

// modelBook is what /model says in one language.
type modelBook struct {
	Now, NowGroup, Chosen, Choose, Fixed, Admins, Unknown, Near, Gone string
}

// ModelCard answers /model where there is a choice: which model answers, who has just chosen it ("" = nobody), and
// whether the reader may choose.
func (w Words) ModelCard(language, model, by string, may, group bool) string {
	b := &w.in(language).Models
	line, then := fmt.Sprintf(b.Now, model), b.Admins
	if group {
		line = fmt.Sprintf(b.NowGroup, model)
	}
	if by != "" {
		line += " " + fmt.Sprintf(b.Chosen, render.Cut(by, 64))
	}
	if may {
		then = b.Choose
	}
	return line + "\n" + then
}

// ModelFixed answers /model where there is no choice.
func (w Words) ModelFixed(language, model string) string {
	return fmt.Sprintf(w.in(language).Models.Fixed, model)
}

// ModelAdmins says that somebody may not choose the model.
func (w Words) ModelAdmins(language string) string { return w.in(language).Models.Admins }

// ModelUnknown says that there is no model of that name, and perhaps which one was meant.
func (w Words) ModelUnknown(language, near string, all []string) string {
	b := &w.in(language).Models
	text := fmt.Sprintf(b.Unknown, strings.Join(all, ", "))
	if near != "" {
		text += " " + fmt.Sprintf(b.Near, near)
	}
	return text
}

// ModelGone says that a button is of a model that is no longer configured.
func (w Words) ModelGone(language string) string { return w.in(language).Models.Gone }
