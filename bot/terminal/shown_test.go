package terminal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/bot/terminal/console"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
)

// paper is an output that can be read while it is written.
type paper struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *paper) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(data)
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

var cards = regexp.MustCompile(`CARD (\d+)`)

// lastCard returns the number of the card that was shown last; "" = none was.
func (p *paper) lastCard() string {
	found := cards.FindAllStringSubmatch(p.String(), -1)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1][1]
}

// asking is a conversation at a terminal in which several questions are asked.
type asking struct {
	t       *testing.T
	paper   *paper
	send    func(row *bot.Row)
	typed   chan string
	mu      sync.Mutex
	presses []bot.Message
	shown   []string       // the card that was shown last at each press
	open    map[int]string // id of the question, by row
}

func (a *asking) accept(_ context.Context, raws []turn.Raw) error {
	var m bot.Message
	if err := json.Unmarshal(raws[0].Body, &m); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.Kind == bot.Press {
		a.presses, a.shown = append(a.presses, m), append(a.shown, a.paper.lastCard())
	}
	return nil
}

// keyboard passes on what is typed, until typed is closed.
func keyboard(typed <-chan string) io.Reader {
	in, to := io.Pipe()
	go func() {
		for text := range typed {
			_, _ = io.WriteString(to, text) // nobody reads any more
		}
		_ = to.Close() // it never fails
	}()
	return in
}

// stepCard is a question of the step, with everything that a card can have.
func stepCard(n int) *bot.Row {
	show := fmt.Sprintf("rm %d", n)
	head := fmt.Sprintf("CARD %d\n", n)
	data := func(choice string) string { return fmt.Sprintf("a1:Q%d:%s", n, choice) }
	return &bot.Row{ID: int64(n), Turn: "t", Purpose: bot.Question, Content: bot.Content{
		Text: head + show + "\nwhy", Entities: []render.Entity{{Type: "pre", Offset: render.Length(head), Length: render.Length(show)}},
		Buttons: [][]bot.Button{
			{{Label: "Once", Data: data("y")}, {Label: "Session", Data: data("s")}}, {{Label: "Always", Data: data("r")}, {Label: "Deny", Data: data("n")}},
		},
	}}
}

// stepRecord is what a card becomes.
func stepRecord(n int) *bot.Row {
	show := fmt.Sprintf("rm %d", n)
	return &bot.Row{Turn: "t", Purpose: bot.Record, EditRow: int64(n), Content: bot.Content{
		Text: "bash\n" + show + "\ndecided", Entities: []render.Entity{{Type: "pre", Offset: 5, Length: render.Length(show)}},
	}}
}

// decide plays what the service does with the presses that arrived since: it answers each, and most decide.
func (a *asking) decide(seen *int, random *rand.Rand) {
	a.mu.Lock()
	fresh := slices.Clone(a.presses[*seen:])
	*seen = len(a.presses)
	a.mu.Unlock()
	for i := range fresh {
		m := &fresh[i]
		var n int
		var choice string
		if _, err := fmt.Sscanf(strings.ReplaceAll(m.Data, ":", " "), "a1 Q%d %s", &n, &choice); err != nil {
			a.t.Fatal(err)
		}
		toast := &bot.Row{Purpose: bot.Toast, Query: m.Query, Content: bot.Content{Text: "noted"}}
		if _, open := a.open[n]; open && choice == "r" && random.IntN(2) == 0 { // it shows what changes
			a.send(toast)
			a.send(&bot.Row{Purpose: bot.Notice, Content: bot.Content{Text: "changes"}})
			continue
		} else if !open || choice == "r" || random.IntN(8) == 0 && choice != "w" {
			toast.Alert = true
			a.send(toast)
			continue
		}
		a.send(toast)
		if choice != "w" {
			delete(a.open, n)
			a.send(stepRecord(n))
		}
	}
}

// play asks some questions and has somebody press keys, while other questions come, are decided elsewhere, are too late
// or change their cards.
func (a *asking) play(random *rand.Rand, key func() string) {
	count, seen := 2+random.IntN(3), 0
	asked := 0
	for range 40 {
		synctest.Wait()
		switch random.IntN(9) {
		case 0, 1:
			if asked < count {
				asked++
				a.open[asked] = fmt.Sprint("Q", asked)
				if random.IntN(3) == 0 {
					a.send(&bot.Row{Turn: "t", Purpose: bot.Question, Content: bot.Content{File: &bot.File{Name: "command.sh.txt", Data: []byte("long")}}})
				}
				a.send(stepCard(asked))
			}
		case 2: // decided elsewhere, or expired
			if n := 1 + random.IntN(count); a.open[n] != "" {
				delete(a.open, n)
				a.send(stepRecord(n))
			}
		case 3: // one of several votes
			if n := 1 + random.IntN(count); a.open[n] != "" {
				vote := stepCard(n)
				vote.ID, vote.Purpose, vote.EditRow = 0, bot.Record, int64(n)
				a.send(vote)
			}
		case 4:
			a.send(&bot.Row{Purpose: bot.Notice, Content: bot.Content{Text: "something else"}})
		case 5:
			a.decide(&seen, random)
		default:
			a.typed <- key()
		}
		time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond) //nolint:forbidigo // the clock of synctest
	}
	synctest.Wait()
}

// check says that each press is one of the card that was shown last when it was made, whatever its order; a reason
// belongs to the denial before it.
func (a *asking) check(what string, seed uint64) (decided int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.presses {
		data := a.presses[i].Data
		if strings.HasSuffix(data, ":w") {
			if denial := strings.TrimSuffix(data, "w") + "n"; !slices.ContainsFunc(a.presses[:i], func(m bot.Message) bool { return m.Data == denial }) {
				a.t.Errorf("%s, seed %d: a reason for %s, which was not denied", what, seed, data)
			}
			continue
		}
		decided++
		if want := "a1:Q" + a.shown[i] + ":"; !strings.HasPrefix(data, want) {
			a.t.Errorf("%s, seed %d: %s is decided, and card %q is shown\n%s", what, seed, data, a.shown[i], a.paper)
		}
	}
	return decided
}

// TestDecidedIsShown: at a terminal, with and without a screen, what is decided is what is shown: whatever the order in
// which several questions come, are decided here or elsewhere, are refused, change or stay open.
func TestDecidedIsShown(t *testing.T) {
	t.Parallel()
	decided := map[string]int{}
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			typed := make(chan string, 100)
			in := keyboard(typed)
			out := &paper{}
			a := &asking{t: t, paper: out, typed: typed, open: map[int]string{}}
			r := terminal.NewRich(terminal.Options{Ask: true, Now: time.Now, Chat: "main"}, terminal.RichOptions{
				Open: func() (terminal.Console, func(), error) {
					return terminal.Console{In: in, Out: out, Size: func() console.Size { return console.Size{Cols: 80, Rows: 24} }}, func() {}, nil
				},
				Words: texts.Words{}.Terminal("en"), Doing: func(act.Verb, string, int, int, time.Duration) string { return "" },
				Silent: func(lasting time.Duration) string { return "⏳ silent " + lasting.String() },
			})
			a.send = func(row *bot.Row) {
				if _, err := r.Send(t.Context(), row); err != nil {
					t.Error(err)
				}
			}
			done := make(chan error, 1)
			go func() { done <- r.Talk(t.Context(), a.accept) }()
			a.play(random, func() string { return []string{"y", "s", "n", "1", "4", "\r", "\x1b[B", "\x1b", "x"}[random.IntN(9)] })
			close(typed)
			if err := <-done; err != nil {
				t.Error(err)
			}
			decided["screen"] += a.check("screen", seed)
		})
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			typed := make(chan string, 100)
			in := keyboard(typed)
			out := &paper{}
			a := &asking{t: t, paper: out, typed: typed, open: map[int]string{}}
			term := terminal.New(terminal.Options{In: in, Out: out, Err: out, Ask: true, Now: time.Now, Chat: "main"})
			a.send = func(row *bot.Row) {
				if _, err := term.Send(t.Context(), row); err != nil {
					t.Error(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- term.Once(ctx, a.accept, "go") }()
			a.play(random, func() string {
				return []string{"y\n", "s\n", "n\n", "no, use trash\n", "perhaps\n", "yes\n", "1\n", "2\n"}[random.IntN(8)]
			})
			cancel()
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			close(typed)
			_, _ = io.Copy(io.Discard, in) // what was typed and nobody asked for
			decided["lines"] += a.check("lines", seed)
		})
	}
	for _, what := range []string{"screen", "lines"} {
		if decided[what] < 150 {
			t.Errorf("%s: only %d decisions", what, decided[what])
		}
	}
}

// TestSilenceIsShown: the line that says what is being done tells when the model has said nothing for long, and how to
// stop it, until the model says something.
func TestSilenceIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		typed, out := make(chan string, 10), &paper{}
		r := terminal.NewRich(terminal.Options{Ask: true, Now: time.Now, Chat: "main"}, terminal.RichOptions{
			Open: func() (terminal.Console, func(), error) {
				return terminal.Console{In: keyboard(typed), Out: out, Size: func() console.Size { return console.Size{Cols: 120, Rows: 24} }}, func() {}, nil
			},
			Words: texts.Words{}.Terminal("en"), Doing: func(act.Verb, string, int, int, time.Duration) string { return "" },
			Silent: func(lasting time.Duration) string { return "⏳ silent " + lasting.String() },
		})
		done := make(chan error, 1)
		go func() {
			done <- r.Talk(t.Context(), func(context.Context, []turn.Raw) error { return nil })
		}()
		wait := func(d time.Duration) string {
			from := len(out.String())
			<-time.After(d)
			synctest.Wait()
			return out.String()[from:]
		}
		wait(time.Second)
		typed <- "hello\r"
		if got := wait(14 * time.Second); strings.Contains(got, "silent") {
			t.Errorf("before 15 s: %q", got)
		}
		if got := wait(5 * time.Second); !strings.Contains(got, "silent 15s") {
			t.Errorf("after 15 s: %q", got)
		}
		if got := wait(50 * time.Second); !strings.Contains(got, "silent 1m0s") {
			t.Errorf("after a minute: %q", got)
		}
		progress := r.Watch(turn.Watched{Turn: "t"})
		progress.Emit(t.Context(), agent.Event{Type: agent.PlanEvent, Plan: []tools.PlanEntry{{Text: "look", Status: tools.PlanCompleted}, {Text: "write", Status: tools.PlanInProgress}}})
		if got := wait(time.Second); !strings.Contains(got, "☑ look") || !strings.Contains(got, "▶ write") || strings.Index(got, "▶ write") > strings.Index(got, "Thinking") {
			t.Errorf("the plan: %q", got)
		}
		progress.Emit(t.Context(), agent.Event{Type: agent.PlanEvent})
		wait(time.Second)
		if got := wait(time.Second); strings.Contains(got, "write") {
			t.Errorf("the plan was taken back: %q", got)
		}
		progress.Emit(t.Context(), agent.Event{Type: agent.ThoughtEvent, Text: "hm"})
		wait(time.Second)
		if got := wait(5 * time.Second); strings.Contains(got, "silent") {
			t.Errorf("after a thought: %q", got)
		}
		close(typed)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
