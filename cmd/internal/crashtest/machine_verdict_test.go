//go:build linux

package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/persistence"
)

// tally is what the verdict counted.
type tally struct {
	questions, answered, excused, again, lost     int
	commands, ran, unknown, refused, doubtful     int
	orders, presses, updates, lives, own, unasked int
	verdict                                       verdict
	money                                         string
	untold                                        int // rows that may not have arrived
}

func (s tally) String() string {
	return fmt.Sprintf(`  %s
  updates %d · questions %d: answered %d (%d more times, marked), ended by /stop %d, given up %d · commands to the bot %d · presses %d
  commands of the shell %d: ran %d, not allowed %d, outcome unknown %d, failed half-way %d · lives of processes %d, ended by themselves %d · 429s that no fault asked for %d · perhaps lost %d
  requests to the model %d, %d of them before the lane was taken · calls of the tool %d · of all of them counted %d, handed from process to process %d, at once %d`,
		s.money, s.updates, s.questions, s.answered, s.again, s.excused, s.lost, s.orders, s.presses, s.commands, s.ran, s.refused, s.unknown, s.doubtful, s.lives, s.own, s.unasked, s.untold,
		s.verdict.model, len(s.verdict.early), s.verdict.tools, s.verdict.counted, s.verdict.passed, len(s.verdict.twice))
}

// settle waits until nothing is in progress any more.
func (m *machine) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, aftermath)
	defer cancel()
	last, looked := "", time.Now()
	for ctx.Err() == nil {
		if time.Since(looked) > lossesEvery {
			looked = time.Now()
			if err := m.read(ctx, func(db persistence.Reader) error { return m.losses(ctx, db) }); err != nil {
				m.t.Logf("losses not read: %v", err)
			}
		}
		waits, err := m.waits(ctx)
		if err == nil && waits == "" {
			return nil
		}
		if err != nil {
			waits = err.Error()
		}
		if last != "" && waits != last {
			m.t.Logf("still on its way: %s", waits)
		}
		last = waits
		pause(ctx, 250*time.Millisecond)
	}
	return fmt.Errorf("%s after the last fault this is still on its way: %s", aftermath, last)
}

// lossesEvery is how often it is looked whether what people wait for was given up.
const lossesEvery = 5 * time.Second

// losses excuses what was given up after as many requests without an answer as there may be. That people were told is
// checked by lost.
func (m *machine) losses(ctx context.Context, db persistence.Reader) error {
	for _, p := range m.talkers {
		rows, err := db.Rows(ctx, p.session(), manyRows)
		if err != nil {
			return err
		}
		m.mu.Lock()
		for i := range rows {
			r := &rows[i]
			if r.State != bot.Unknown && r.State != bot.Dead || r.Unconfirmed <= resends || !r.Vital() {
				continue
			}
			if found := answered.FindStringSubmatch(r.Content.Text); found != nil {
				if n, err := strconv.Atoi(found[1]); err == nil && n < len(m.questions) && !m.questions[n].heard && !m.questions[n].excused {
					m.questions[n].excused, m.questions[n].lost = true, true
				}
			}
			if slices.ContainsFunc(m.questions, func(q *question) bool { return q.talker == p && !q.heard && !q.excused }) {
				m.refused(p.chat, r.Content.Text)
			}
			for _, c := range m.commands {
				if c.talker == p && !c.heard && replies[c.text].MatchString(r.Content.Text) {
					c.heard = true
					break
				}
			}
		}
		m.mu.Unlock()
	}
	return nil
}

// waits names what is still in progress; "" = nothing.
func (m *machine) waits(ctx context.Context) (string, error) {
	var list []string
	m.mu.Lock()
	for _, q := range m.questions {
		if !q.heard && !q.excused {
			list = append(list, fmt.Sprintf("q%dq", q.n))
		}
	}
	for _, c := range m.commands {
		if !c.heard {
			list = append(list, fmt.Sprintf("%s in chat %d", c.text, c.talker.chat))
		}
	}
	m.mu.Unlock()
	if n := m.fake.PendingUpdates(); n > 0 {
		list = append(list, fmt.Sprintf("%d updates", n))
	}
	if len(list) > 0 {
		return strings.Join(list[:min(len(list), 12)], " "), nil
	}
	err := m.read(ctx, func(db persistence.Reader) error {
		c, err := db.Counts(ctx, channel, fmt.Sprint(m.fake.BotID()))
		if err == nil && c.Running+c.Parked+c.Waiting+c.Queued+c.Undelivered > 0 {
			list = append(list, fmt.Sprintf("in the store: %+v", c))
		}
		return err
	})
	return strings.Join(list, " "), err
}

func (m *machine) read(ctx context.Context, look func(db persistence.Reader) error) error {
	db, err := persistence.OpenReader(ctx, m.store.home(m, 0), m.store.url())
	if err != nil {
		return err
	}
	return errors.Join(look(db), db.Close())
}

// judge returns the verdict: what people saw, what ran, what is stored, and what the logs say.
func (m *machine) judge() {
	if p := m.fake.Problems(); len(p) > 0 {
		m.fail("misuse of the fake: %v", p)
	}
	m.once()
	ran := m.ran()
	m.bench.add(ran)
	m.mu.Lock()
	questions := slices.Clone(m.questions)
	m.tally.presses, m.tally.updates, m.tally.orders, m.tally.unasked = m.presses, m.updates, len(m.commands), m.unasked
	m.mu.Unlock()
	answers := m.answers()
	m.tally.questions = len(questions)
	for _, q := range questions {
		m.judgeQuestion(q, answers[q.n], ran)
	}
	for _, c := range m.commands {
		if !c.heard {
			m.fail("%s of %.1f s has no reply in chat %d: %s", c.text, c.at.Sub(m.began).Seconds(), c.talker.chat, m.lines(c.talker.chat, c.at))
		}
	}
	if could := m.tally.commands - m.tally.refused; could > 20 && m.tally.ran < could/2 {
		m.fail("only %d of %d commands ran: this proves nothing about commands", m.tally.ran, could)
	}
	m.replied()
	m.judgeMoney()
	if err := m.read(m.t.Context(), m.stored); err != nil {
		m.fail("%v", err)
	}
	for _, n := range m.nodes {
		m.tally.lives, m.tally.own = m.tally.lives+n.lives, m.tally.own+len(n.own)
		m.logs(n)
	}
}

// said is one message that answers a question.
type said struct {
	words  string // the results of its commands: " a=done b=unknown"
	marked bool   // it says that it comes again
}

// answers collects the answers by question and checks that they are in the order of the questions in each conversation.
func (m *machine) answers() map[int][]said {
	all, torn := map[int][]said{}, regexp.MustCompile(`Answer q([0-9]+)q`)
	seen := map[int64]bool{}
	last := map[*talker]int{}
	for _, p := range m.talkers {
		if seen[p.chat] {
			continue
		}
		seen[p.chat] = true
		for _, msg := range m.fake.Chat(p.chat) {
			begun := torn.FindStringSubmatch(msg.Text)
			if !msg.FromBot || msg.Deleted || begun == nil {
				continue
			}
			n, err := strconv.Atoi(begun[1])
			if err != nil || n >= len(m.questions) {
				m.fail("chat %d has an answer to a question that nobody asked: %q", p.chat, msg.Text)
				continue
			}
			q := m.questions[n]
			whole := answered.FindStringSubmatch(msg.Text)
			switch {
			case q.talker.chat != p.chat:
				m.fail("the answer to q%dq went to chat %d instead of %d", n, p.chat, q.talker.chat)
			case whole == nil && !q.excused:
				m.fail("half an answer to q%dq stays in chat %d: %q", n, p.chat, msg.Text)
			case whole != nil:
				all[n] = append(all[n], said{whole[2], strings.Contains(msg.Text, resent())})
			}
			if before, ok := last[q.talker]; ok && n < before {
				m.fail("chat %d: the answer to q%dq comes after that to q%dq; %s", p.chat, n, before, m.story(p.chat, q.n, before))
			}
			last[q.talker] = n
		}
	}
	return all
}

// story returns what a chat shows about some questions, and the calls that produced it.
func (m *machine) story(chat int64, about ...int) string {
	var b strings.Builder
	names := func(text string) bool {
		return slices.ContainsFunc(about, func(n int) bool { return strings.Contains(text, fmt.Sprintf("q%dq", n)) })
	}
	shown := map[int]bool{}
	for _, msg := range m.fake.Chat(chat) {
		if names(msg.Text) {
			shown[msg.MessageID] = true
			fmt.Fprintf(&b, "\n    message %d of %s, %d edits, answers %d: %.90q", msg.MessageID, msg.Name, msg.Edits, msg.ReplyTo, msg.Text)
		}
	}
	for _, c := range m.fake.Calls() {
		if c.Chat == chat && (names(c.Params["text"]) || shown[c.Message]) {
			fmt.Fprintf(&b, "\n    %6.1f s: call %d %s, message %d, status %d, executed %v, fault %q: %.60q", c.At.Sub(m.began).Seconds(), c.N, c.Method, c.Message, c.Status, c.Executed, c.Fault, c.Params["text"])
		}
	}
	return b.String()
}

// lines returns what a chat shows from a moment on, at most ten messages.
func (m *machine) lines(chat int64, from time.Time) string {
	var b strings.Builder
	left := 10
	for _, msg := range m.fake.Chat(chat) {
		if late := msg.Date.Before(from.Truncate(time.Second)); late || left == 0 {
			continue
		}
		left--
		fmt.Fprintf(&b, "\n    message %d of %s at %s: %.90q", msg.MessageID, msg.Name, msg.Date.Format(time.TimeOnly), msg.Text)
	}
	err := m.read(m.t.Context(), func(db persistence.Reader) error {
		place := bot.Place{Channel: channel, Bot: fmt.Sprint(m.fake.BotID()), Surface: "bot", Chat: fmt.Sprint(chat)}
		rows, err := db.Rows(m.t.Context(), place.SessionKey(""), 12)
		for i := range rows {
			r := &rows[i]
			fmt.Fprintf(&b, "\n    row %d %s %s, %d attempts, %s, message %s: %.60q", r.ID, r.Purpose, r.State, r.Attempts, r.Problem, r.Message, r.Content.Text)
		}
		return err
	})
	if err != nil {
		fmt.Fprintf(&b, "\n    %v", err)
	}
	return b.String()
}

// mayHaveRun are the outcomes of a command that may or may not have run.
var mayHaveRun = []string{"unknown", "timeout", "network_error", "server_error", "cancelled", "permanent_failure"}

// judgeQuestion checks one question: it was answered, once without a mark, and its commands ran as often as the answer
// says.
func (m *machine) judgeQuestion(q *question, answers []said, ran map[string]int) {
	plain, words := 0, map[string]string{}
	for _, a := range answers {
		if !a.marked {
			plain++
		}
		for word := range strings.FieldsSeq(a.words) {
			step, outcome, _ := strings.Cut(word, "=")
			if before, ok := words[step]; ok && before != outcome {
				m.fail("q%dq: one answer says %s of command %s, another %s", q.n, before, step, outcome)
			}
			words[step] = outcome
		}
	}
	switch {
	case len(answers) == 0 && q.lost:
		m.tally.lost++
	case len(answers) == 0 && q.excused:
		m.tally.excused++
	case len(answers) == 0:
		m.fail("q%dq (%s, asked after %.1f s in chat %d) has no answer", q.n, q.kind, q.at.Sub(m.began).Seconds(), q.talker.chat)
	case plain > 1:
		m.fail("q%dq was answered %d times without saying so", q.n, plain)
	default:
		m.tally.answered++
		m.tally.again += len(answers) - 1
	}
	for _, step := range map[string][]string{askFree: {"a"}, askHeld: {"a"}, askPair: {"a", "b"}, askTool: {"a"}}[q.kind] {
		m.judgeEffect(q, step, words[step], len(answers) > 0, ran[fmt.Sprintf("q%dq-%s", q.n, step)])
	}
}

// judgeEffect compares what the answer says about a command with how often it ran.
func (m *machine) judgeEffect(q *question, step, outcome string, told bool, n int) {
	m.tally.commands++
	m.tally.ran += n
	switch {
	case outcome == "unknown":
		m.tally.unknown++
	case outcome == "policy_blocked":
		m.tally.refused++
	case slices.Contains(mayHaveRun, outcome):
		m.tally.doubtful++
	}
	switch {
	case n > 1:
		m.fail("command %s of q%dq ran %d times", step, q.n, n)
	case outcome == "done" && n == 0:
		m.fail("command %s of q%dq did not run, and the answer says that it did", step, q.n)
	case outcome != "done" && !slices.Contains(mayHaveRun, outcome) && n > 0 && (told || !q.excused):
		m.fail("command %s of q%dq ran, and the answer says %q", step, q.n, outcome)
	case outcome == "odd":
		m.fail("command %s of q%dq has an odd result", step, q.n)
	}
}

// ran counts the lines that commands have written, in every workspace.
func (m *machine) ran() map[string]int {
	counts := map[string]int{}
	err := filepath.WalkDir(m.workspaces(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != effects {
			return err
		}
		raw, err := os.ReadFile(path)
		for line := range strings.Lines(string(raw)) {
			words := strings.Fields(line)
			counts[words[len(words)-1]]++
		}
		return err
	})
	if err != nil {
		m.fail("workspaces: %v", err)
	}
	return counts
}

// replied compares the number of replies to commands in each chat with the number of commands, and that of turns that say
// that they were stopped with the questions that a command may have stopped; what is repeated must say so.
func (m *machine) replied() {
	for _, p := range m.talkers {
		if p.chat < 0 {
			continue
		}
		said := m.fake.Chat(p.chat)
		for text, pattern := range replies {
			ordered := 0
			for _, c := range m.commands {
				if c.talker == p && c.text == text {
					ordered++
				}
			}
			m.most(p.chat, said, text, pattern, ordered)
		}
		// Besides /stop, /new stops what is before it: it is sent while nobody waits for an answer any more, so it meets only
		// what a /stop was about.
		stopped := 0
		for _, q := range m.questions {
			if q.talker == p && q.excused && !q.lost {
				stopped++
			}
		}
		m.most(p.chat, said, "questions that were stopped", stoppedTurn, stopped)
	}
}

// most checks that a chat shows at most so many messages of a kind that do not say that they come again.
func (m *machine) most(chat int64, said []telegramtest.Shown, what string, pattern *regexp.Regexp, most int) {
	var all []string
	plain := 0
	for _, msg := range said {
		if !msg.FromBot || !pattern.MatchString(msg.Text) {
			continue
		}
		all = append(all, fmt.Sprintf("%.100q", msg.Text))
		if !strings.Contains(msg.Text, resent()) {
			plain++
		}
	}
	if plain > most {
		m.fail("chat %d: to %s up to %d replies belong, and there are %d, %d of them without saying that it comes again:\n    %s", chat, what, most, len(all), plain, strings.Join(all, "\n    "))
	}
}

// stored checks the store: nothing is left over; each message has one turn, each turn one end, each call one result and
// at most one start.
func (m *machine) stored(db persistence.Reader) error {
	ctx, id := m.t.Context(), fmt.Sprint(m.fake.BotID())
	c, err := db.Counts(ctx, channel, id)
	if err != nil {
		return err
	}
	c.Sessions = 0
	c.Lost = 0 // each is judged
	if c != (bot.Counts{}) {
		m.fail("left over in the store: %+v", c)
	}
	if err := m.lost(ctx, db); err != nil {
		return err
	}
	lanes, err := db.Lanes(ctx, channel, id, manyRows)
	if err != nil {
		return err
	}
	for _, l := range lanes {
		if l.State != bot.Idle || l.Turn != "" || l.Owner != "" {
			m.fail("lane %+v is not idle", l)
		}
		entries, err := db.Journal(ctx, l.Session, 0)
		if err != nil {
			return err
		}
		m.journal(string(l.Session), entries)
	}
	open, err := db.OpenApprovals(ctx, "")
	if err != nil || len(open) > 0 {
		m.fail("open questions: %+v, %v", open, err)
	}
	return nil
}

// lost checks what may not have arrived and nobody was told of: somebody waits for it, it was repeated as often as it
// may be, and the chat was sent nothing since with which it could have been told.
func (m *machine) lost(ctx context.Context, db persistence.Reader) error {
	rows, err := db.Lost(ctx, channel, fmt.Sprint(m.fake.BotID()))
	if err != nil {
		return err
	}
	m.tally.untold = len(rows)
	for i := range rows {
		r := &rows[i]
		if !r.Vital() || r.Unconfirmed <= resends {
			m.fail("row %d (%s) in chat %s is given up after %d requests without an answer: %s", r.ID, r.Purpose, r.Place.Chat, r.Unconfirmed, r.Problem)
		}
		later, err := db.Rows(ctx, r.Session, manyRows)
		if err != nil {
			return err
		}
		for j := range later {
			if l := &later[j]; l.ID > r.ID && l.State == bot.Sent && l.Vital() && l.Edit == "" && l.EditRow == 0 {
				m.fail("row %d (%s) in chat %s is lost, and row %d (%s), sent after it, does not say so", r.ID, r.Purpose, r.Place.Chat, l.ID, l.Purpose)
			}
		}
	}
	return nil
}

// resends is how often a message is repeated whose outcome is unknown.
const resends = 3

// journal checks one conversation.
func (m *machine) journal(session string, entries []journal.Entry) {
	asked, results, started, turns := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case journal.UserEntry:
			turns[e.Turn]++
			if found := askedFor.FindAllStringSubmatch(e.Text, -1); len(found) > 0 {
				asked[found[len(found)-1][1]]++
			}
		case journal.StartedEntry:
			started[e.Call]++
		case journal.ResultEntry:
			results[e.Call]++
		case journal.AnswerEntry, journal.EndEntry:
			turns[e.Turn] -= 1000
		}
	}
	for n, times := range asked {
		if times > 1 {
			m.fail("%s: q%sq was begun %d times", session, n, times)
		}
	}
	for turn, n := range turns {
		if n != -999 {
			m.fail("%s: turn %s has %d beginnings and %d ends", session, turn, (n%1000+1000)%1000, (999-n)/1000)
		}
	}
	for call, n := range started {
		if n > 1 || results[call] != 1 {
			m.fail("%s: call %s was started %d times and has %d results", session, call, n, results[call])
		}
	}
	for call, n := range results {
		if n != 1 {
			m.fail("%s: call %s has %d results", session, call, n)
		}
	}
}

// audits are the patterns of the names of a process's audit log files.
func (m *machine) audits(n *node) []string {
	return []string{filepath.Join(n.dir, "audit*.jsonl*"), filepath.Join(m.workspaces(), ".zephbot", "audit", "audit*.jsonl*")}
}

// logs checks the audit log of a process, and its log for panics.
func (m *machine) logs(n *node) {
	var names []string
	for _, pattern := range m.audits(n) {
		found, err := filepath.Glob(pattern)
		if err != nil {
			m.fail("%v", err)
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	if len(names) == 0 {
		m.fail("process %d has no audit log", n.index)
	}
	if m.shared { // one chain for each process that ever wrote
		for _, name := range names {
			if err := whole(name); err != nil {
				m.fail("%s: %v", filepath.Base(name), err)
			}
		}
	} else if err := whole(names...); err != nil {
		m.fail("process %d: %v", n.index, err)
	}
	raw, err := os.ReadFile(n.logName())
	if err != nil {
		m.fail("%v", err)
	}
	for line := range strings.Lines(string(raw)) {
		if strings.Contains(line, "panic") || strings.HasPrefix(line, "fatal error:") || strings.Contains(line, "WARNING: DATA RACE") {
			m.fail("process %d: %s", n.index, strings.TrimSpace(line))
		}
	}
}
