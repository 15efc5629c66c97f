package access_test

import (
	"testing"

	"github.com/zephbot/zephbot/bot/access"
)

// TestRedeems: the command of a link or of a person who types it redeems a code, and nothing else does.
func TestRedeems(t *testing.T) {
	t.Parallel()
	code := access.NewCode()
	for text, want := range map[string]bool{
		"/start " + code: true, "  /start   " + code + " ": true, "/START " + code: true, "/start@some_bot " + code: true,
		code: false, "/start": false, "/start ": false, "/start " + code + "x": false, "/start " + code[1:]: false, "/stop " + code: false, "": false,
	} {
		if got := access.Redeems(text, code); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if !access.Redeems("/start abcd", "ABCD") || access.Redeems("/start", "") {
		t.Error("case matters, or an empty code")
	}
}
