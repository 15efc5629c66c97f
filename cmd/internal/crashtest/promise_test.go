//go:build unix

package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/tools/audit"
)

const (
	channel  = "telegram"
	database = "zephbot.db"
	manyRows = 1000
)

func behind() string { return texts.Words{}.Behind("en") }
func resent() string { return texts.Words{}.Resent("en") }

// wreck is what a killed process left behind.
type wreck struct {
	Sending []string // texts of the rows that were being sent
	Running bool     // a call was journalled as started and has no result
}

// session is the key of the only conversation.
func session(botID int64) bot.SessionKey {
	return bot.Place{Channel: channel, Bot: fmt.Sprint(botID), Surface: "bot", Chat: fmt.Sprint(ann)}.SessionKey("")
}

// copyFiles copies SQLite's files, so that the next process finds them as the previous one left them.
func (r *run) copyFiles(scratch string) error {
	for _, name := range []string{database, database + "-wal"} {
		raw, err := os.ReadFile(filepath.Join(r.dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		}
		if err := os.WriteFile(filepath.Join(scratch, name), raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// inspect reads what the killed process left behind. On a server, it waits for what the process had sent.
func (r *run) inspect(ctx context.Context) (*wreck, error) {
	dir := r.t.TempDir()
	var err error
	if r.story.cluster != nil {
		err = r.story.cluster.Quiet(ctx, r.base)
	} else {
		err = r.copyFiles(dir)
	}
	if err != nil {
		return nil, err
	}
	w := &wreck{}
	err = r.readIn(ctx, dir, func(db persistence.Reader) error {
		id := fmt.Sprint(botOf(telegramtest.DefaultToken))
		rows, err := db.Stranded(ctx, channel, id)
		if err != nil {
			return err
		}
		for i := range rows {
			w.Sending = append(w.Sending, rows[i].Content.Text)
		}
		entries, err := db.Journal(ctx, session(botOf(telegramtest.DefaultToken)), 0)
		w.Running = len(entries) > 0 && entries[len(entries)-1].Kind == journal.StartedEntry
		return err
	})
	return w, err
}

func botOf(token string) int64 {
	var id int64
	_, _ = fmt.Sscanf(token, "%d:", &id) // the default token begins with digits
	return id
}

func (r *run) read(ctx context.Context, look func(db persistence.Reader) error) error {
	return r.readIn(ctx, r.dir, look)
}

// readIn reads from a copy if the data is in files.
func (r *run) readIn(ctx context.Context, dir string, look func(db persistence.Reader) error) error {
	db, err := persistence.OpenReader(ctx, dir, r.databaseURL())
	if err != nil {
		return err
	}
	return errors.Join(look(db), db.Close())
}

// still reports that nothing is in progress: no update unconfirmed, no accepted message unhandled, no turn in progress,
// no row undelivered.
func (r *run) still(ctx context.Context) (still bool, err error) {
	if r.fake.PendingUpdates() > 0 {
		return false, nil
	}
	err = r.read(ctx, func(db persistence.Reader) error {
		id := fmt.Sprint(r.fake.BotID())
		c, err := db.Counts(ctx, channel, id)
		still = c.Running+c.Parked+c.Waiting+c.Queued+c.Undelivered == 0
		return err
	})
	return still, err
}

// promise lists every violation of the promise.
func (r *run) promise(ctx context.Context) error {
	shown := r.fake.Chat(ann)
	errs := []error{r.answered(shown, answer1), r.answered(shown, answer2), r.inOrder(shown), r.cards(shown)}
	if n := count(shown, behind()); n > 1 {
		errs = append(errs, fmt.Errorf("%d times said that the second message waits", n))
	}
	if p := r.fake.Problems(); len(p) > 0 {
		errs = append(errs, fmt.Errorf("misuse of the fake: %v", p))
	}
	unknown := false
	errs = append(errs, r.read(ctx, func(db persistence.Reader) (err error) {
		unknown, err = r.stored(ctx, db)
		return err
	}))
	return errors.Join(append(errs, r.ranOnce(unknown), r.audited(unknown))...)
}

// answered: once; twice only if the process was killed while sending, and then the second copy says so.
func (r *run) answered(shown []telegramtest.Shown, text string) error {
	plain, marked := 0, 0
	for _, m := range shown {
		switch {
		case !m.FromBot || !strings.HasPrefix(m.Text, text):
		case strings.Contains(m.Text, resent()):
			marked++
		default:
			plain++
		}
	}
	stranded := 0
	if r.stranded(text) {
		stranded = 1
	}
	if marked != stranded || plain > 1 || plain+marked == 0 {
		return fmt.Errorf("%q is there %d times plain and %d times marked; being sent when the kill fell: %d", text, plain, marked, stranded)
	}
	return nil
}

func (r *run) stranded(text string) bool {
	if r.dead == nil {
		return false
	}
	for _, s := range r.dead.Sending {
		if strings.HasPrefix(s, text) {
			return true
		}
	}
	return false
}

func (r *run) inOrder(shown []telegramtest.Shown) error {
	last := 0
	for _, m := range shown {
		switch {
		case m.FromBot && strings.HasPrefix(m.Text, answer1) && last == 2:
			return errors.New("the first answer comes after the second")
		case m.FromBot && strings.HasPrefix(m.Text, answer2):
			last = 2
		}
	}
	return nil
}

// cards: one, or two if the process was killed while sending; decided in the end.
func (r *run) cards(shown []telegramtest.Shown) error {
	asked, records := 0, 0
	for _, m := range shown {
		switch {
		case !m.FromBot:
		case strings.Contains(m.Text, "Approved once by Ann"):
			records++
			asked++
		case asks(m):
			asked++
		}
	}
	most := 1
	if r.stranded("✋") {
		most = 2
	}
	if records != 1 || asked > most {
		return fmt.Errorf("%d cards (at most %d may be there), %d of them decided (want 1)", asked, most, records)
	}
	for message, press := range r.presses {
		if _, ok := r.fake.CallbackAnswered(press); !ok && r.dead == nil {
			return fmt.Errorf("the press on message %d has no answer", message)
		}
	}
	return nil
}

// stored checks the store: nothing is left over, each turn has one answer, each call one result. unknown: the outcome
// of a call is unknown.
func (r *run) stored(ctx context.Context, db persistence.Reader) (unknown bool, err error) {
	var errs []error
	add := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	id := fmt.Sprint(r.fake.BotID())
	c, err := db.Counts(ctx, channel, id)
	add(err != nil || c != bot.Counts{Sessions: 1}, "counts %+v, %w", c, orNone(err))
	lanes, err := db.Lanes(ctx, channel, id, manyRows)
	add(err != nil, "lanes: %w", orNone(err))
	for _, l := range lanes {
		add(l.State != bot.Idle || l.Turn != "" || l.Owner != "", "lane %+v is not idle", l)
	}
	ready, err := db.Ready(ctx, channel, id, time.Now(), manyRows)
	add(err != nil || len(ready) > 0, "ready: %v, %w", ready, orNone(err))
	open, err := db.OpenApprovals(ctx, "")
	add(err != nil || len(open) > 0, "open questions: %v, %w", open, orNone(err))
	entries, err := db.Journal(ctx, session(r.fake.BotID()), 0)
	add(err != nil, "journal: %w", orNone(err))
	kinds, results, started := map[journal.Kind]int{}, map[string]int{}, map[string]int{}
	for _, e := range entries {
		kinds[e.Kind]++
		switch e.Kind {
		case journal.ResultEntry:
			results[e.Call]++
			unknown = unknown || e.Category == "unknown"
		case journal.StartedEntry:
			started[e.Call]++
		}
	}
	add(kinds[journal.UserEntry] != 2 || kinds[journal.AnswerEntry] != 2 || kinds[journal.EndEntry] != 0, "journal has entries %v", kinds)
	add(len(results) != 2 || len(started) != 1, "results %v and starts %v, want two and one", results, started)
	for call, n := range results {
		add(n != 1 || started[call] > 1, "call %s: %d starts, %d results", call, started[call], n)
	}
	return unknown, errors.Join(errs...)
}

var errNone = errors.New("no error")

func orNone(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

// ranOnce: what changes something ran once, or its outcome is reported as unknown and it ran at most once.
func (r *run) ranOnce(unknown bool) error {
	raw, err := os.ReadFile(filepath.Join(r.workspace(), notes))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	n := strings.Count(string(raw), "line\n")
	running := r.dead != nil && r.dead.Running
	if n > 1 || (n == 0 && !unknown) || unknown != running {
		return fmt.Errorf("the command ran %d times; outcome unknown %v; started and without a result when the kill fell %v", n, unknown, running)
	}
	return nil
}

// audited: the chain of the log is intact, and it contains the command.
func (r *run) audited(unknown bool) error {
	name := filepath.Join(r.dir, "audit.jsonl")
	if err := whole(name); err != nil {
		return err
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	calls, done := 0, 0
	for line := range strings.Lines(string(raw)) {
		if strings.Contains(line, `"tool":"bash"`) {
			calls++
			if strings.Contains(line, `"type":"success"`) {
				done++
			}
		}
	}
	if calls == 0 || done > 1 || (done == 0 && !unknown) {
		return fmt.Errorf("the audit log has the command %d times, %d times as a success; outcome unknown %v", calls, done, unknown)
	}
	return nil
}

// whole checks the chain of an audit log across its files, from the oldest to the newest.
func whole(names ...string) error {
	var files []audit.File
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // read only
		files = append(files, audit.File{Reader: f})
	}
	report, err := audit.Verify(nil, files...)
	if err != nil || len(report.Problems) > 0 {
		return fmt.Errorf("audit log: %v, %w", report.Problems, orNone(err))
	}
	return nil
}
