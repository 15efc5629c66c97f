package app_test

import (
	"fmt"
	"net/http/httptest"
	"testing"
)

// TestModelChosen: a press of a button of /model, or its name, has the next question answered by that model, also after
// a restart, until the first one is chosen again.
func TestModelChosen(t *testing.T) {
	t.Parallel()
	big := &vendor{answers: []string{spoken("big one"), spoken("big two")}}
	server := httptest.NewServer(big)
	defer server.Close()
	extra := fmt.Sprintf("[[llm.providers]]\nname = \"large\"\nmodel = \"gpt-big\"\nwire = \"chat\"\nbase_url = %q\n[llm]\nchoices = [\"large\"]\n", server.URL+"/v1")
	w := newWired(t, "", extra, spoken("small one"), spoken("small two"))
	w.say("first")
	w.await("small one")
	w.say("/model")
	card := w.await("The model of this conversation is main · m.")
	if _, err := w.fake.PressButton(1001, 1001, card.MessageID, "large · gpt-big"); err != nil {
		t.Fatal(err)
	}
	if err := w.fake.WaitFor(t.Context(), func() bool {
		m, _ := w.fake.Message(1001, card.MessageID)
		return m.Text == "The model of this conversation is large · gpt-big. Ann chose it.\nChoose another one below; it applies from the next question on."
	}); err != nil {
		t.Fatal(err)
	}
	w.say("second")
	w.await("big one")
	w.end()
	w.serve()
	w.say("third")
	w.await("big two")
	w.say("/model lagre")
	w.await("I have no such model. Available: main, large. Did you mean large?")
	w.say("/model M")
	w.await("The model of this conversation is main · m. Ann chose it.")
	w.say("fourth")
	w.await("small two")
}
