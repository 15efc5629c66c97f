package privacy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot"
)

func ann() *Subject {
	return &Subject{Person: Person{Channel: telegram, ID: "4242424242"}, Pseudonym: "erased-x"}
}

func TestParsePerson(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"telegram:42": "telegram:42", "42": "telegram:42", " 42 ": "telegram:42", "terminal:local": "terminal:local",
		"": "", "-100": "", "telegram:-100": "", "@ann": "", "telegram:@ann": "", "042": "", "telegram:": "", "matrix:1": "", "terminal:": "",
		"terminal:a/b": "", "12345678901234567890": "", "telegram:4 2": "",
	} {
		got, err := ParsePerson(text)
		if (err == nil) != (want != "") || err == nil && got.Caller() != want {
			t.Errorf("%q is %v, %v; want %q", text, got, err, want)
		}
	}
}

func TestOwns(t *testing.T) {
	t.Parallel()
	for session, want := range map[bot.SessionKey]bool{
		"telegram/1/bot/4242424242/0/0":     true,
		"telegram/1/bot/-5/0/4242424242":    true,
		"telegram/1/biz:c/4242424242/0/0":   true,
		"telegram/1/bot/-5/0/0":             false,
		"telegram/1/bot/-5/4242424242/7":    false,
		"telegram/1/bot/14242424242/0/0":    false,
		"terminal/local/bot/4242424242/0/0": false,
		"":                                  false,
	} {
		if got := ann().Owns(session); got != want {
			t.Errorf("%s: %v", session, got)
		}
	}
	if local := (Person{Channel: terminal, ID: "local"}); !local.Owns("terminal/local/bot/work/0/0") {
		t.Error("a conversation at the terminal is nobody's")
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"id":4242424242}`: true, "telegram:4242424242": true, "user/telegram:4242424242/turns": true, "4242424242": true, "of 4242424242, and": true,
		"14242424242": false, "42424242421": false, "-4242424242": false, "a4242424242": false, "": false, "424242424": false, "é4242424242": false,
	} {
		if got := ann().named(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestSender: an update belongs to who sent it, not to who is quoted in it.
func TestSender(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		`{"update_id":1,"message":{"from":{"id":4242424242}}}`:                                      true,
		`{"update_id":1,"callback_query":{"from":{"id":4242424242},"message":{"from":{"id":1}}}}`:   true,
		`{"update_id":1,"business_connection":{"user":{"id":4242424242}}}`:                          true,
		`{"v":1,"caller":"telegram:4242424242"}`:                                                    true,
		`{"update_id":1,"message":{"from":{"id":7},"reply_to_message":{"from":{"id":4242424242}}}}`: false,
		`{"update_id":1,"message":{"from":{"id":7},"text":"4242424242"}}`:                           false,
		`{"update_id":4242424242,"message":{"from":{"id":7}}}`:                                      false,
		`not json`: false, `[]`: false, `null`: false, ``: false, `{"message":7}`: false,
	} {
		if got := ann().sender(raw); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}

func TestEveryTableHasABound(t *testing.T) {
	t.Parallel()
	for name, bound := range tableBounds() {
		if strings.TrimSpace(bound) == "" {
			t.Errorf("nothing bounds the table %s", name)
		}
	}
}

// TestTalk: what a person said to others in a group is erased from, and exported of, conversations of others that have
// read it; what others said there stays, and is not exported.
func TestTalk(t *testing.T) {
	t.Parallel()
	const talk = `"talk":[{"caller":"telegram:4242424242","name":"Ann","text":"mine"},{"caller":"telegram:7","name":"Bo","text":"other"}]`
	body := `{"at":"x","caller":"telegram:7","kind":"user","text":"words",` + talk + `}`
	clean, changed, _ := ann().scrubEntry(body)
	if want := `{"at":"x","caller":"telegram:7","kind":"user","talk":[{"caller":"erased-x","text":"[erased]"},{"caller":"telegram:7","name":"Bo","text":"other"}],"text":"words"}`; !changed || clean != want {
		t.Errorf("erased: %s", clean)
	}
	own := `"talk":[{"caller":"telegram:4242424242","name":"Ann","text":"mine"}]`
	for name, row := range map[string]struct{ session, body, want string }{
		"of somebody else": {"telegram/1/bot/-5/0/7", body, `{"at":"x","kind":"user",` + own + `}`},
		"their own":        {"telegram/1/bot/-5/0/4242424242", `{"caller":"telegram:4242424242","kind":"user","text":"words",` + talk + `}`, `{"caller":"telegram:4242424242","kind":"user",` + own + `,"text":"words"}`},
		"without":          {"telegram/1/bot/-5/0/0", `{"kind":"user","text":"words","caller":"telegram:4242424242"}`, `{"kind":"user","text":"words","caller":"telegram:4242424242"}`},
	} {
		record := Record{"session": row.session, "body": row.body}
		if !ann().spoke(record) {
			t.Errorf("%s: not exported", name)
		}
		if got := ann().spoken(record)["body"]; got != row.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// FuzzEntry: whatever a journal entry is, it remains JSON, and what its person said is not in it any more.
func FuzzEntry(f *testing.F) {
	for _, raw := range []string{
		`{"turn":"t","kind":"user","caller":"telegram:4242424242","text":"secret","speaker":"Ann","quote":{"author":"A","text":"q"},"parts":[{"hash":"ab","name":"n"}],"heard":[{"m":"1","a":"2"}]}`,
		`{"kind":"result","by":"telegram:4242424242","text":"out"}`, `{"kind":"user","caller":"telegram:7","text":"hi"}`, `{"standing":{"by":[{"caller":"telegram:4242424242","calls":3}]}}`, `{"standing":{"said":"AAAAAAAAAAA=","n":1}}`,
		`{"kind":"user","caller":"telegram:7","text":"hi","talk":[{"caller":"telegram:4242424242","name":"Ann","text":"secret"},{"caller":"telegram:7","text":"hi"},7]}`,
		`[]`, `{`, ``, `"telegram:4242424242"`, `{"text":1e400,"caller":"telegram:4242424242"}`, `{"kind":"user","caller":"telegram:4242424242","text":null,"parts":7}`,
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		clean, changed, _ := ann().scrubEntry(raw)
		if !changed {
			if clean != raw {
				t.Errorf("%q became %q unchanged", raw, clean)
			}
			return
		}
		value, _ := decodeJSON(clean)
		e, ok := value.(map[string]any)
		if !ok || !json.Valid([]byte(clean)) {
			t.Fatalf("%q became %q", raw, clean)
		}
		if e["caller"] == "telegram:4242424242" || e["kind"] == "user" && e["caller"] == "erased-x" && (e["text"] != erasedText || e["quote"] != nil) {
			t.Errorf("%q became %q", raw, clean)
		}
		if standing, ok := e["standing"].(map[string]any); ok && standing["said"] != nil {
			t.Errorf("%q keeps what addresses were written: %q", raw, clean)
		}
		if again, more, _ := ann().scrubEntry(clean); more {
			t.Errorf("%q became %q, and then %q", raw, clean, again)
		}
	})
}
