package servers_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/moves"
	"github.com/zephbot/zephbot/bot/servers"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
)

// ledger notes what is put on record.
type ledger struct{ lines []string }

func (l *ledger) Record(call *tools.Call, err error) {
	line := call.Tool + " " + string(call.Args)
	if err != nil {
		line += ": " + err.Error()
	}
	l.lines = append(l.lines, line)
}
func (*ledger) Due(*tools.Call, error) []bot.Fact { return nil }
func (*ledger) Settle(context.Context)            {}

// desk is a Handler over a client without servers.
func desk(t *testing.T, store *bottest.Store, audit *ledger) *servers.Handler {
	t.Helper()
	registry, err := tools.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	client, err := mcp.New(mcp.Options{Registry: registry, WorkDir: t.TempDir(), Now: time.Now, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	running.Go(func() { _ = client.Run(ctx) }) // it returns nil
	return servers.New(servers.Deps{
		Setup:  servers.Setup{Channel: "telegram", Bot: "7", Owner: "second", Nobody: true, Programs: true, AllowedCommands: []string{"npx"}},
		Client: client, Store: store, Keeper: facts.Keeper{Store: store, Log: zerolog.Nop()}, Moves: &moves.Map{}, Audit: audit, Now: time.Now, Log: zerolog.Nop(),
	})
}

func ask() *turn.Call {
	return &turn.Call{
		Session: "telegram/7/bot/1/0/0", Admin: true,
		Message: &bot.Message{ID: "9", Caller: "telegram:1", Place: bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "1"}},
	}
}

// TestRefusedAtFirstSight: what cannot be done is refused before anything is stored, and what was proposed is on
// record.
func TestRefusedAtFirstSight(t *testing.T) {
	t.Parallel()
	audit := &ledger{}
	d := desk(t, bottest.New(), audit)
	for _, verb := range []string{"restart", "remove", "signin", "accept"} {
		e, err := d.Begin(t.Context(), ask(), verb, "nobody", []string{}[:0])
		if !errors.Is(err, servers.ErrNoServer) || len(e.Change.Facts) > 0 {
			t.Errorf("%s: %v, %v", verb, e.Change.Facts, err)
		}
	}
	if len(audit.lines) != 0 {
		t.Errorf("on record: %q", audit.lines)
	}
	for _, target := range [][]string{{"https://example.org/mcp", "more"}, {"rm", "-rf"}, {"npx", "server"}} {
		if e, err := d.Begin(t.Context(), ask(), "add", "new", target); err == nil || len(e.Change.Facts)+len(e.Change.Ask) > 0 {
			t.Errorf("add %q: %+v, %v", target, e.Change, err)
		}
	}
	if len(audit.lines) != 3 {
		t.Errorf("on record: %q", audit.lines)
	}
}

// TestBegun: jobs of this channel and bot are taken up, in the order of their messages; what cannot be read is none.
func TestBegun(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	b := facts.Bucket{Name: "mcp_job", Store: store, Now: time.Now}
	for key, value := range map[string]string{
		"1": `{"verb":"restart","id":"a","message":{"id":"1","place":{"channel":"telegram","bot":"7"}}}`,
		"2": `{"verb":"restart","id":"b","message":{"id":"2","place":{"channel":"telegram","bot":"8"}}}`,
		"3": `{"verb":"restart","id":"c","message":{"id":"3","place":{"channel":"terminal","bot":"7"}}}`,
		"4": `{`,
		"5": `{"verb":"remove","id":"d","message":{"id":"5","place":{"channel":"telegram","bot":"7"}}}`,
	} {
		if err := b.Save(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, j := range desk(t, store, &ledger{}).Begun(t.Context()) {
		got = append(got, j.Verb+" "+j.ID)
	}
	if diff := cmp.Diff([]string{"restart a", "remove d"}, got); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}
