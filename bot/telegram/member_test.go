package telegram_test

import (
	"net/http"
	"strconv"
	"testing"
)

// TestLeft: whoever is in a group has not left it, whoever was there has; and where nobody says, nobody has.
func TestLeft(t *testing.T) {
	t.Parallel()
	w := setup(t, 0)
	chat := strconv.FormatInt(group, 10)
	left := func(in, person string, want bool) {
		t.Helper()
		got, err := w.client.Left(t.Context(), in, person)
		if err != nil || got != want {
			t.Errorf("%s in %s: %v, %v", person, in, got, err)
		}
	}
	left(chat, "11", false)
	if err := w.Exit(ann, group); err != nil {
		t.Fatal(err)
	}
	left(chat, "11", true)
	left(chat, "999999", true) // nobody has seen that person
	left("-999999", "11", false)
	left(chat, "not a number", false)
	if err := w.Enter(ann, group); err != nil {
		t.Fatal(err)
	}
	left(chat, "11", false)
	down := answering(t, http.StatusBadGateway, "<html>")
	if got, err := down.Left(t.Context(), chat, "11"); got || err == nil {
		t.Errorf("without an answer: %v, %v", got, err)
	}
	refused := answering(t, http.StatusBadRequest, `{"ok":false,"error_code":400,"description":"Bad Request: CHAT_ADMIN_REQUIRED"}`)
	if got, err := refused.Left(t.Context(), chat, "11"); got || err != nil {
		t.Errorf("refused: %v, %v", got, err)
	}
}
