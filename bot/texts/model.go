package texts

import (
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/bot/render"
)

// modelBook is what /model says in one language.
type modelBook struct {
	now, nowGroup, chosen, choose, fixed, admins, unknown, near, gone string
}

func englishModels() modelBook {
	return modelBook{
		now: "The model of this conversation is %s.", nowGroup: "The model of this chat is %s.", chosen: "%s chose it.",
		choose: "Choose another one below; it applies from the next question on.", fixed: "The model is %s. It is set in the configuration.",
		admins:  "Only admins of this bot can choose the model here.",
		unknown: "I have no such model. Available: %s.", near: "Did you mean %s?",
		gone: "This model is no longer offered. /model shows the current ones.",
	}
}

func germanModels() modelBook {
	return modelBook{
		now: "Das Modell dieses Gesprächs ist %s.", nowGroup: "Das Modell dieses Chats ist %s.", chosen: "%s hat es gewählt.",
		choose: "Unten lässt sich ein anderes wählen; es gilt ab der nächsten Frage.", fixed: "Das Modell ist %s. Es steht in der Konfiguration.",
		admins:  "Das Modell wählen hier nur Admins dieses Bots.",
		unknown: "Ein solches Modell habe ich nicht. Es gibt: %s.", near: "Ist %s gemeint?",
		gone: "Dieses Modell steht nicht mehr zur Wahl. /model zeigt die jetzigen.",
	}
}

// ModelCard answers /model where there is a choice: which model answers, who has just chosen it ("" = nobody), and
// whether the reader may choose.
func (w Words) ModelCard(language, model, by string, may, group bool) string {
	b := &w.in(language).models
	line, then := fmt.Sprintf(b.now, model), b.admins
	if group {
		line = fmt.Sprintf(b.nowGroup, model)
	}
	if by != "" {
		line += " " + fmt.Sprintf(b.chosen, render.Cut(by, 64))
	}
	if may {
		then = b.choose
	}
	return line + "\n" + then
}

// ModelFixed answers /model where there is no choice.
func (w Words) ModelFixed(language, model string) string {
	return fmt.Sprintf(w.in(language).models.fixed, model)
}

// ModelAdmins says that somebody may not choose the model.
func (w Words) ModelAdmins(language string) string { return w.in(language).models.admins }

// ModelUnknown says that there is no model of that name, and perhaps which one was meant.
func (w Words) ModelUnknown(language, near string, all []string) string {
	b := &w.in(language).models
	text := fmt.Sprintf(b.unknown, strings.Join(all, ", "))
	if near != "" {
		text += " " + fmt.Sprintf(b.near, near)
	}
	return text
}

// ModelGone says that a button is of a model that is no longer configured.
func (w Words) ModelGone(language string) string { return w.in(language).models.gone }
