//go:build unix

package bench_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// unusedFeatures has group talk, speech, personas and a hook set up. The group of the benchmark uses none of them.
const unusedFeatures = `[groups]
context = true

[[llm.providers]]
name = "main"
speech_model = "tts-1"
speech_usd_per_mchar = 15.0
transcription_model = "whisper-1"

[personas.pirate]
instructions = "You are an old pirate. Answer in two sentences."

[personas.tutor]
instructions = "Explain as to somebody who learns."
tools = ["read", "fetch"]
voice = "nova"

[triggers]
listen = "127.0.0.1:0"

[[hooks]]
name = "alerts"
secret = "known-to-the-caller"
prompt = "Look at {{.text}}."
owner = 10000
`

// teamOf is the group in which the turns of this comparison are.
const teamOf int64 = -100_500

// configured is the service with a file of configuration.
func configured(name, file string) subject {
	return subject{name, func(ctx context.Context, dir string, w *world, model string) error {
		if err := os.WriteFile(filepath.Join(dir, "zephbot.toml"), []byte(file), 0o600); err != nil {
			return err
		}
		return serve(ctx, dir, w, model)
	}}
}

// groupTrack is what the turns of a group have cost with one configuration.
type groupTrack struct {
	subject subject
	world   *world
	model   weigher
	turns   int
	// of each block
	allocations, cpu []float64
}

// play makes a block of turns in the group, one after another.
func (t *groupTrack) play(ctx context.Context) error {
	before, err := used()
	if err != nil {
		return err
	}
	cpu, err := processorTime()
	if err != nil {
		return err
	}
	for range block {
		if err := t.turn(ctx); err != nil {
			return fmt.Errorf("%s: %w", t.subject.name, err)
		}
	}
	now, err := processorTime()
	if err != nil {
		return err
	}
	after, err := used()
	t.allocations = append(t.allocations, float64(after.allocations-before.allocations)/block)
	t.cpu = append(t.cpu, millis(now-cpu)/block)
	return err
}

// turn has somebody of the group ask something, after somebody has said something to all, and waits for the answer.
func (t *groupTrack) turn(ctx context.Context) error {
	w := t.world
	if err := w.listening(ctx); err != nil {
		return err
	}
	t.turns++
	asks := fmt.Sprint("hello ", t.turns)
	says := func(who int, text string) error {
		_, err := w.fake.Post(person(who%talkers), teamOf, telegramtest.Message{Text: text})
		return err
	}
	if err := says(t.turns+1, "who brings tea?"); err != nil {
		return err
	}
	awaitQuiet(w.tally.commits.Load)
	if err := says(t.turns, "@zephbot "+asks); err != nil {
		return err
	}
	a, err := w.next(ctx)
	if err == nil && (a.chat != teamOf || !strings.HasSuffix(a.text, asks)) {
		err = fmt.Errorf("chat %d got %q", a.chat, a.text)
	}
	awaitQuiet(w.tally.commits.Load)
	return err
}

// compareUnused plays blocks of turns in a group on two services in turn: one as it comes, and one with group talk,
// speech, personas and a hook set up.
func compareUnused(ctx context.Context, tb testing.TB, blocks int) (plain, with *groupTrack) {
	tb.Helper()
	plain = &groupTrack{subject: configured("plain", "")}
	with = &groupTrack{subject: configured("with features", unusedFeatures)}
	tracks := []*groupTrack{plain, with}
	var members []int64
	for i := range talkers {
		members = append(members, person(i))
	}
	for _, t := range tracks {
		t.world = newWorld(tb, talkers)
		t.world.fake.AddGroup(telegramtest.Group{
			ID: teamOf, Title: "Team", Members: members, Admins: []int64{t.world.fake.BotID()}, // sees everything
		})
		t.world.environment = []string{
			fmt.Sprint("ZEPH_TELEGRAM_ALLOWED_CHATS=", teamOf), "ZEPH_TELEGRAM_LIMITS_PER_GROUP_PER_MINUTE=0",
		}
		tb.Cleanup(t.subject.begin(ctx, tb, t.world, t.model.begin(tb)))
		if err := t.play(ctx); err != nil { // warms up
			tb.Fatal(err)
		}
		t.allocations, t.cpu, t.turns = nil, nil, 0
		t.world.tally.reset()
		t.model.bytes.Store(0)
		t.model.requests.Store(0)
	}
	for i := range blocks {
		for j := range tracks {
			if err := tracks[(i+j)%2].play(ctx); err != nil { // each is the first one as often
				tb.Fatal(err)
			}
		}
	}
	return plain, with
}

// ofBlocks returns the median of the ratios of the blocks of two tracks, and how far half of them are from it.
func ofBlocks(plain, with []float64) (median, spread float64) {
	ratios := make([]float64, len(plain))
	for i := range plain {
		ratios[i] = with[i] / plain[i]
	}
	slices.Sort(ratios)
	n := len(ratios)
	return ratios[n/2], (ratios[n*3/4] - ratios[n/4]) / 2
}

// BenchmarkUnused compares what the turn of a group costs that uses neither group talk nor speech, personas or hooks,
// where they are set up and where they are not.
func BenchmarkUnused(b *testing.B) {
	for b.Loop() {
		plain, with := compareUnused(b.Context(), b, 160)
		allocations, spread := ofBlocks(plain.allocations, with.allocations)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(median(plain.allocations), "allocs/turn")
		b.ReportMetric(allocations, "x-allocs")
		b.ReportMetric(spread, "x-allocs-spread")
		cpu, spread := ofBlocks(plain.cpu, with.cpu)
		b.ReportMetric(median(plain.cpu), "cpu-ms/turn")
		b.ReportMetric(cpu, "x-cpu")
		b.ReportMetric(spread, "x-cpu-spread")
		for name, t := range map[string]*groupTrack{"": plain, "with-": with} {
			n := float64(t.turns)
			b.ReportMetric(float64(t.world.tally.commits.Load())/n, name+"commits/turn")
			b.ReportMetric(float64(t.world.tally.perTurn(t.turns)), name+"sql/turn")
			b.ReportMetric(float64(t.model.bytes.Load())/n, name+"request-bytes/turn")
		}
	}
}

// TestUnusedCost: features that a group does not use cost no statement, and no byte of a request.
func TestUnusedCost(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	plain, with := compareUnused(ctx, t, 2)
	n := plain.turns
	if got, want := with.world.tally.perTurn(n), plain.world.tally.perTurn(n); got > want {
		t.Errorf("%d statements in a turn, %d without the features\n%s\nwithout:\n%s", got, want,
			with.world.tally.report(n), plain.world.tally.report(n))
	}
	if got, want := with.model.bytes.Load(), plain.model.bytes.Load(); got != want || want == 0 {
		t.Errorf("requests of %d bytes, %d without the features", got, want)
	}
	if got, want := with.model.requests.Load(), plain.model.requests.Load(); got != want || want != int64(n) {
		t.Errorf("%d requests, %d without the features, in %d turns", got, want, n)
	}
}
