package overflow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/overflow"
	"github.com/zephbot/zephbot/tools/toolstest"
)

const (
	firstID = "0f8fad5b-d9cb-469f-a165-708600000001"
	kept    = "[10 characters kept as overflow:" + firstID + "; read_overflow reads them]"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// broken is a store whose disk is full.
type broken struct{}

func (broken) Save(context.Context, overflow.Item) error { return errors.New("the disk is full") }

func (broken) Load(context.Context, string, string, time.Time) (overflow.Item, error) {
	return overflow.Item{}, errors.New("the disk is broken")
}

// options returns options with ids that count up, a fixed clock and a threshold of 8.
func options(store overflow.Store) overflow.Options {
	n := 0
	return overflow.Options{
		Store: store, Threshold: 8, Retention: time.Hour, Now: func() time.Time { return start }, Log: zerolog.Nop(),
		NewID: func() string { n++; return fmt.Sprintf("0f8fad5b-d9cb-469f-a165-7086%08d", n) },
	}
}

// gives returns a handler with this result.
func gives(result tools.Result) tools.Handler {
	return func(context.Context, *tools.Call) (*tools.Result, error) { return &result, nil }
}

func call() *tools.Call {
	c := toolstest.Call("bash", `{}`)
	c.Ask = "what is it?"
	return c
}

// load reads what the session of call has under id.
func load(t *testing.T, store overflow.Store, id string) (overflow.Item, bool) {
	t.Helper()
	item, err := store.Load(t.Context(), call().Origin.Session, id, start)
	if err != nil && !errors.Is(err, overflow.ErrNotFound) {
		t.Fatal(err)
	}
	return item, err == nil
}

func TestStage(t *testing.T) {
	t.Parallel()
	says := func(text string, err error) func(*overflow.Options) {
		return func(o *overflow.Options) {
			o.Summarize = func(context.Context, string, string, string) (string, error) { return text, err }
		}
	}
	ends := "abcd\n[… 2 characters left out …]\nghij\n"
	ten := tools.Result{Text: "abcdefghij"}
	for name, test := range map[string]struct {
		set    func(*overflow.Options)
		result tools.Result
		want   string
		cut    bool
		stored string // under firstID; "" = nothing is
	}{
		"fits":                       {nil, tools.Result{Text: "abcdefgh"}, "abcdefgh", false, ""},
		"is too long":                {nil, ten, ends + kept, true, "abcdefghij"},
		"is no text":                 {nil, tools.Result{Text: "abcd\xffefghi"}, "abcd\n[… 2 characters left out …]\nfghi\n" + kept, true, "abcd\uFFFDefghi"},
		"was filtered":               {nil, tools.Result{Text: "ab", Whole: "abcdefghij"}, "ab\n" + kept, false, "abcdefghij"},
		"was filtered to nothing":    {nil, tools.Result{Whole: "abcdefghij"}, kept, false, "abcdefghij"},
		"was filtered to the same":   {nil, tools.Result{Text: "abcd", Whole: "abcd"}, "abcd", false, ""},
		"was filtered, is too long":  {nil, tools.Result{Text: "123456789", Whole: "abcdefghij"}, "1234\n[… 1 characters left out …]\n6789\n" + kept, true, "abcdefghij"},
		"is within the call's limit": {func(o *overflow.Options) { o.Limit = func(*tools.Call) int { return 10 } }, ten, "abcdefghij", false, ""},
		"is over the call's limit":   {func(o *overflow.Options) { o.Limit = func(*tools.Call) int { return 2 } }, ten, "a\n[… 8 characters left out …]\nj\n" + kept, true, "abcdefghij"},
		"a call without a limit":     {func(o *overflow.Options) { o.Limit = func(*tools.Call) int { return 0 } }, ten, ends + kept, true, "abcdefghij"},
		"may just be kept":           {func(o *overflow.Options) { o.MaxBytes = 10 }, ten, ends + kept, true, "abcdefghij"},
		"is too large to be kept": {
			func(o *overflow.Options) { o.MaxBytes = 9 }, ten,
			ends + "[the whole output, 10 characters, could not be kept: it is larger than 9 bytes; ask for less at once]", true, "",
		},
		"was filtered, is too large": {
			func(o *overflow.Options) { o.MaxBytes = 9 },
			tools.Result{Text: "ab", Whole: "abcdefghij"},
			"ab\n[the whole output, 10 characters, could not be kept: it is larger than 9 bytes; ask for less at once]", false, "",
		},
		"only what was filtered can be kept": {
			func(o *overflow.Options) { o.MaxBytes = 10 },
			tools.Result{Text: "abcdefghij", Whole: "abcdefghij and more"},
			ends + kept, true, "abcdefghij",
		},
		"the store fails":      {func(o *overflow.Options) { o.Store = broken{} }, ten, ends + "[the whole output, 10 characters, could not be kept]", true, ""},
		"there is no store":    {func(o *overflow.Options) { o.Store = nil }, ten, ends + "[the whole output, 10 characters, could not be kept]", true, ""},
		"a summary":            {says("short", nil), tools.Result{Text: strings.Repeat("a", 10)}, "[sum\n[… 24 characters left out …]\nhort\n" + kept, true, "aaaaaaaaaa"},
		"a summary that fails": {says("half a", errors.New("the model is away")), ten, ends + kept, true, "abcdefghij"},
		"a summary of nothing": {says(" \n", nil), ten, ends + kept, true, "abcdefghij"},
		"no summary of what others wrote": {
			says("short", nil),
			tools.Result{Text: "abcdefghij", Untrusted: "https://example.com/"},
			ends + kept, true, "abcdefghij",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := overflow.NewMemory(0)
			o := options(store)
			if test.set != nil {
				test.set(&o)
			}
			before := test.result
			got, err := overflow.New(o)(gives(test.result))(t.Context(), call())
			if err != nil {
				t.Fatal(err)
			}
			want := tools.Result{Text: test.want, Truncated: test.cut, Untrusted: before.Untrusted}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			item, found := load(t, store, firstID)
			if item.Text != test.stored || found != (test.stored != "") {
				t.Errorf("stored %q, want %q", item.Text, test.stored)
			}
		})
	}
}

func TestWhatIsStoredSaysWhereItComesFrom(t *testing.T) {
	t.Parallel()
	store := overflow.NewMemory(0)
	o := options(store)
	o.Retention = 0
	result := tools.Result{Text: "abcdefghij", Untrusted: "mcp:github", Error: true, ExitCode: new(3), Raw: "raw", MIME: "text/x"}
	got, err := overflow.New(o)(gives(result))(t.Context(), call())
	if err != nil {
		t.Fatal(err)
	}
	if got.Untrusted != "mcp:github" || !got.Error || *got.ExitCode != 3 || got.Raw != "raw" || got.MIME != "text/x" {
		t.Errorf("the result has lost something: %+v", got)
	}
	item, _ := load(t, store, firstID)
	want := overflow.Item{
		ID: firstID, Session: "telegram:42", Turn: "turn-1", Call: "call-1", Tool: "bash", Source: "mcp:github", Text: "abcdefghij",
		Created: start, Expires: start.Add(overflow.DefaultRetention),
	}
	if diff := cmp.Diff(want, item); diff != "" {
		t.Errorf("item (-want +got):\n%s", diff)
	}
}

func TestWhatTheStageLeavesAlone(t *testing.T) {
	t.Parallel()
	long := &tools.Result{Text: strings.Repeat("a", 100)}
	failure := tools.Errorf(tools.Timeout, "it took too long")
	for name, test := range map[string]struct {
		tool   string
		result *tools.Result
		err    error
	}{
		"an error":        {"bash", nil, failure},
		"a strange error": {"bash", long, failure},
		"nothing":         {"bash", nil, nil},
		"its own tool":    {overflow.ToolName, long, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := overflow.NewMemory(0)
			next := func(context.Context, *tools.Call) (*tools.Result, error) { return test.result, test.err }
			got, err := overflow.New(options(store))(next)(t.Context(), toolstest.Call(test.tool, `{}`))
			if got != test.result || !errors.Is(err, test.err) {
				t.Errorf("got %+v, %v", got, err)
			}
			if _, found := load(t, store, firstID); found {
				t.Error("something was kept")
			}
		})
	}
}

func TestTheResultIsNotChangedInPlace(t *testing.T) {
	t.Parallel()
	shared := &tools.Result{Text: "abcdefghij", Whole: "abcdefghij and more"}
	next := func(context.Context, *tools.Call) (*tools.Result, error) { return shared, nil }
	if _, err := overflow.New(options(overflow.NewMemory(0)))(next)(t.Context(), call()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&tools.Result{Text: "abcdefghij", Whole: "abcdefghij and more"}, shared); diff != "" {
		t.Errorf("the tool's result was changed:\n%s", diff)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	store := overflow.NewMemory(0)
	stage := overflow.New(overflow.Options{Store: store, Now: func() time.Time { return start }})
	fits := strings.Repeat("ä", overflow.DefaultThreshold)
	got, err := stage(gives(tools.Result{Text: fits}))(t.Context(), call())
	if err != nil || got.Text != fits {
		t.Fatalf("a text at the threshold was changed (%v)", err)
	}
	got, err = stage(gives(tools.Result{Text: fits + "ä"}))(t.Context(), call())
	if err != nil || !got.Truncated || leftOut(t, got.Text) != 1 {
		t.Fatalf("a text over the threshold: %.100q (%v)", got.Text, err)
	}
	_, id, found := strings.Cut(got.Text, overflow.Prefix)
	if !found {
		t.Fatal("no reference")
	}
	if item, ok := load(t, store, id[:36]); !ok || item.Text != fits+"ä" {
		t.Errorf("under %q there is %.20q", id[:36], item.Text)
	}
}

func TestARepeatedCallLeavesOneOutput(t *testing.T) {
	t.Parallel()
	store := overflow.NewMemory(0)
	stage := overflow.New(options(store))
	for _, text := range []string{"abcdefghij", "klmnopqrst"} {
		if _, err := stage(gives(tools.Result{Text: text}))(t.Context(), call()); err != nil {
			t.Fatal(err)
		}
	}
	if _, found := load(t, store, firstID); found {
		t.Error("the output of the first run is there")
	}
	if item, _ := load(t, store, "0f8fad5b-d9cb-469f-a165-708600000002"); item.Text != "klmnopqrst" {
		t.Errorf("the output of the second run is %q", item.Text)
	}
	nameless := call()
	nameless.ID = ""
	for range 2 {
		if _, err := stage(gives(tools.Result{Text: "abcdefghij"}))(t.Context(), nameless); err != nil {
			t.Fatal(err)
		}
	}
	for n := 3; n <= 4; n++ {
		if _, found := load(t, store, fmt.Sprintf("0f8fad5b-d9cb-469f-a165-7086%08d", n)); !found {
			t.Errorf("output %d of a call without an id is gone", n)
		}
	}
}

func TestACallOutsideAConversationKeepsNothing(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := options(overflow.NewMemory(0))
	o.Log = zerolog.New(&log)
	c := call()
	c.Origin.Session = ""
	got, err := overflow.New(o)(gives(tools.Result{Text: "abcdefghij"}))(t.Context(), c)
	if err != nil || !strings.HasSuffix(got.Text, "[the whole output, 10 characters, could not be kept]") {
		t.Errorf("got %q, %v", got.Text, err)
	}
	if !strings.Contains(log.String(), "belongs to no conversation") || strings.Contains(log.String(), "abc") {
		t.Errorf("log %s", log.String())
	}
}

func TestAStoppedTurnStillKeepsTheOutput(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	store := overflow.NewMemory(0)
	o := options(store)
	o.Summarize = func(ctx context.Context, _, _, _ string) (string, error) { return "", ctx.Err() }
	next := func(context.Context, *tools.Call) (*tools.Result, error) {
		cancel() // while the tool ran
		return &tools.Result{Text: "abcdefghij"}, nil
	}
	got, err := overflow.New(o)(next)(ctx, call())
	if err != nil || !strings.HasSuffix(got.Text, kept) {
		t.Errorf("got %q, %v", got.Text, err)
	}
	if _, found := load(t, store, firstID); !found {
		t.Error("the output was not kept")
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	o := options(overflow.NewMemory(0))
	o.Threshold = 100
	var heard []string
	o.Summarize = func(_ context.Context, question, tool, text string) (string, error) {
		heard = []string{question, tool, text}
		return "All is well.", nil
	}
	text := strings.Repeat("a", 60) + strings.Repeat("b", 60)
	got, err := overflow.New(o)(gives(tools.Result{Text: text}))(t.Context(), call())
	if err != nil {
		t.Fatal(err)
	}
	want := "[summary of a long output]\nAll is well.\n" + strings.Replace(kept, "10 ", "120 ", 1)
	if got.Text != want || !got.Truncated {
		t.Errorf("got %q, want %q", got.Text, want)
	}
	cut, _ := overflow.Cut(text, 100)
	if diff := cmp.Diff([]string{"what is it?", "bash", cut}, heard); diff != "" {
		t.Errorf("the model was told (-want +got):\n%s", diff)
	}
}

func TestASummaryThatTakesTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := options(overflow.NewMemory(0))
		o.SummaryTimeout = 5 * time.Second
		o.Summarize = func(ctx context.Context, _, _, _ string) (string, error) {
			<-ctx.Done()
			return "too late", ctx.Err()
		}
		begin := time.Now()
		got, err := overflow.New(o)(gives(tools.Result{Text: "abcdefghij"}))(t.Context(), call())
		if err != nil || !strings.HasPrefix(got.Text, "abcd\n[…") {
			t.Errorf("got %q, %v", got.Text, err)
		}
		if took := time.Since(begin); took != 5*time.Second { // of the bubble's clock
			t.Errorf("waited %v", took)
		}
	})
}

// TestBounds: the output of the stage is always text, and at most Extra characters longer than the threshold.
func TestBounds(t *testing.T) {
	t.Parallel()
	stores := map[string]overflow.Store{"memory": overflow.NewMemory(0), "broken": broken{}}
	for name, store := range stores {
		for _, threshold := range []int{1, 2, 7, 100} {
			for _, maxBytes := range []int64{0, 1} {
				o := options(store)
				o.Threshold, o.MaxBytes = threshold, maxBytes
				for _, result := range []tools.Result{
					{Text: strings.Repeat("\xff🏘", 500)},
					{Text: "x", Whole: strings.Repeat("e\u0301", 500)},
					{Text: strings.Repeat("\r\n", 500), Whole: strings.Repeat("x", 100_000)},
				} {
					got, err := overflow.New(o)(gives(result))(t.Context(), call())
					if err != nil {
						t.Fatal(err)
					}
					if n := utf8.RuneCountInString(got.Text); n > threshold+overflow.Extra || !utf8.ValidString(got.Text) || got.Whole != "" {
						t.Errorf("%s store, threshold %d: %d characters: %q", name, threshold, n, got.Text)
					}
				}
			}
		}
	}
}

// TestTooLargeIsKeptByItsEnds: both ends are better than nothing, and the numbers are correct.
func TestTooLargeIsKeptByItsEnds(t *testing.T) {
	t.Parallel()
	for _, size := range []int{4097, 5000, 20_000} {
		whole := strings.Repeat("ü€😀x", size/10) + strings.Repeat("y", size%10+1)
		store := overflow.NewMemory(0)
		o := options(store)
		o.MaxBytes = 4096
		got, err := overflow.New(o)(gives(tools.Result{Text: whole}))(t.Context(), call())
		if err != nil {
			t.Fatal(err)
		}
		item, ok := load(t, store, firstID)
		head, rest, cut := strings.Cut(item.Text, "\n[… ")
		number, tail, _ := strings.Cut(rest, " characters left out …]\n")
		left := utf8.RuneCountInString(whole) - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
		if !ok || !cut || len(item.Text) > 4096 || !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) || number != fmt.Sprint(left) {
			t.Errorf("%d bytes: %d are kept, %s are said to be left out, and it is %d", len(whole), len(item.Text), number, left)
		}
		want := fmt.Sprintf("[%d characters without %d in the middle kept as overflow:%s; read_overflow reads them]", utf8.RuneCountInString(whole), left, firstID)
		if !strings.HasSuffix(got.Text, want) {
			t.Errorf("%q, want %q", got.Text, want)
		}
	}
}

// TestRoom: what the window has no room for is put aside, also below the threshold; tokens count, not characters.
func TestRoom(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		room int
		cut  bool
	}{
		"no limit":       {strings.Repeat("line\n", 1000), 0, false},
		"enough":         {strings.Repeat("line\n", 1000), 1500, false},
		"too little":     {strings.Repeat("line\n", 1000), 1000, true},
		"dense script":   {strings.Repeat("漢字\n", 1000), 1500, true},
		"hardly any":     {strings.Repeat("line\n", 1000), 1, true},
		"shorter anyway": {"line\n", 1, false},
	} {
		c := call()
		c.Room = tt.room
		o := options(overflow.NewMemory(0))
		o.Threshold = 100_000
		res, err := overflow.New(o)(gives(tools.Result{Text: tt.text}))(t.Context(), c)
		if err != nil || res.Truncated != tt.cut || strings.Contains(res.Text, overflow.Prefix) != tt.cut {
			t.Errorf("%s: %d characters, %v", name, len(res.Text), err)
		}
		if tt.cut && len(res.Text) > max(tt.room*7/2, 4*overflow.Extra) {
			t.Errorf("%s: %d characters for %d tokens", name, len(res.Text), tt.room)
		}
	}
}
