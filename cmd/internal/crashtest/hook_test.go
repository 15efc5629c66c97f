//go:build unix

package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// hookSecret is the secret of the hook of that story.
const hookSecret = "known-to-the-caller"

// alerted is the story of two alerts that a monitoring system reports, and sends again until they are accepted.
var alerted = story{
	script: `
on "alert: one": say ` + answer1 + `
on "alert: two": say ` + answer2,
	step: (*run).stepCalled, promise: (*run).promiseCalled, prepare: (*run).setHook,
}

// TestCrashCalled kills the process at every point of that story: each alert begins a turn, and one.
func TestCrashCalled(t *testing.T) { crash(t, alerted, 6) }

// TestCrashCalledOnPostgreSQL plays the same story with the service's data in PostgreSQL.
func TestCrashCalledOnPostgreSQL(t *testing.T) {
	s := alerted
	s.cluster = pgtest.Shared(t)
	crash(t, s, 2)
}

// setHook configures a hook, at a port that is free.
func (r *run) setHook() {
	l, err := (&net.ListenConfig{}).Listen(r.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.calls = "http://" + l.Addr().String() + "/hooks/alerts"
	if err := l.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.config = fmt.Sprintf(`[triggers]
listen = %q
[[hooks]]
name = "alerts"
secret = %q
prompt = "What is it? {{.alert}}"
owner = %d
`, l.Addr(), hookSecret, ann)
}

// stepCalled sends the next alert, also again if it was not accepted, or if nobody knows.
func (r *run) stepCalled(ctx context.Context) (done bool, err error) {
	shown := r.fake.Chat(ann)
	alerts := []string{"one", "two"}
	switch {
	case r.requests("getUpdates") == r.polls: // this process does not poll yet
		return false, nil
	case r.said < len(alerts):
		if r.sendAlert(ctx, alerts[r.said]) {
			r.said++
		}
		return false, nil
	case count(shown, answer1) == 0 || count(shown, answer2) == 0:
		return false, nil
	}
	return r.still(ctx)
}

// sendAlert reports whether an alert was accepted.
func (r *run) sendAlert(ctx context.Context, alert string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.calls, strings.NewReader(`{"alert":"`+alert+`"}`))
	if err != nil {
		r.t.Error(err)
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+hookSecret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false // it is sent again
	}
	_ = resp.Body.Close() // the status says it all
	return resp.StatusCode < http.StatusMultipleChoices
}

// promiseCalled: each alert began one turn, and both answers arrived.
func (r *run) promiseCalled(ctx context.Context) error {
	begun := map[string]int{}
	err := r.read(ctx, func(db persistence.Reader) error {
		entries, err := db.Journal(ctx, session(r.fake.BotID()), 0)
		for i := range entries {
			if e := &entries[i]; e.Kind == journal.UserEntry {
				begun[map[bool]string{true: "one", false: "two"}[strings.Contains(e.Text, "alert: one")]]++
			}
		}
		return err
	})
	if begun["one"] != 1 || begun["two"] != 1 {
		err = errors.Join(err, fmt.Errorf("the alerts began turns: %v", begun))
	}
	shown := r.fake.Chat(ann)
	if n := count(shown, "⚡ Called: alerts"); n < 2 || n > 3 { // one whose delivery nobody knew is sent again
		err = errors.Join(err, fmt.Errorf("%d lines say what began a turn", n))
	}
	return errors.Join(err, r.answered(shown, answer1), r.answered(shown, answer2))
}
