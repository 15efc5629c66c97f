package telegram_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/telegram"
)

// TestProfile: the profile says what it is where nobody has written their own, follows new texts of ours, and leaves alone
// what somebody else has written or removed.
func TestProfile(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	store := bottest.New()
	run := func(text string) {
		telegram.NewProfiles(w.client, store, zerolog.Nop(), time.Now, []telegram.Profile{
			{Description: text, Short: text + " in short"},
			{Language: "de", Description: text + " auf Deutsch", Short: text + " in Kürze"},
		}).Run(t.Context())
	}
	set := func(method, param, language, text string) {
		t.Helper()
		form := url.Values{"language_code": {language}, param: {text}}
		resp, err := http.PostForm(w.url+"/bot"+w.Token()+"/"+method, form) //nolint:noctx // of a server in this process
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	says := func(when string, want ...string) {
		t.Helper()
		for i, of := range [][2]string{{"description", ""}, {"description", "de"}, {"short_description", ""}, {"short_description", "de"}} {
			if got := w.About(of[0], of[1]); got != want[i] {
				t.Errorf("%s, %s %q: %q, want %q", when, of[0], of[1], got, want[i])
			}
		}
	}
	run("one")
	says("first", "one", "one auf Deutsch", "one in short", "one in Kürze")
	asked := len(w.CallsOf("setMyDescription"))
	run("one")
	if again := len(w.CallsOf("setMyDescription")); again != asked {
		t.Errorf("set again %d times", again-asked)
	}
	set("setMyDescription", "description", "de", "meines")
	set("setMyShortDescription", "short_description", "", "")
	run("two")
	says("others", "two", "meines", "", "one in Kürze")
	w = setup(t, time.Minute)
	store = bottest.New()
	set("setMyDescription", "description", "", "mine")
	run("one")
	says("written before", "mine", "", "one in short", "one in Kürze")
}
