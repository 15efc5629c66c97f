package spend_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/agent/window"
)

// purse keeps what it is asked for.
type purse struct {
	refuse   error
	reserved []cost.Amount
	settled  []cost.Amount
	keys     map[string]int // by key: reservations without their settlement
}

func (p *purse) Reserve(_ context.Context, key string, most cost.Amount) error {
	if p.keys == nil {
		p.keys = map[string]int{}
	}
	p.keys[key]++
	p.reserved = append(p.reserved, most)
	return p.refuse
}

func (p *purse) Settle(ctx context.Context, key string, used cost.Amount) error {
	p.keys[key]--
	if used != (cost.Amount{}) {
		p.settled = append(p.settled, used)
	}
	return ctx.Err()
}

// check checks what was settled, and that nothing is left aside.
func (p *purse) check(t *testing.T, want ...cost.Amount) {
	t.Helper()
	if diff := cmp.Diff(want, p.settled); diff != "" {
		t.Errorf("settled (-want +got):\n%s", diff)
	}
	for key, n := range p.keys {
		if n != 0 {
			t.Errorf("%s is set aside %d times", key, n)
		}
	}
}

func question(n int) *llm.Request {
	return &llm.Request{System: "s", MaxTokens: n, Messages: []llm.Message{{Role: llm.User, Text: "go on"}}}
}

// givenUp is a model that is given up while its request is under way.
type givenUp struct{ text string }

func (givenUp) Name() string { return "m" }

func (g givenUp) Chat(_ context.Context, _ *llm.Request, onDelta func(string)) (*llm.Response, error) {
	if g.text != "" {
		onDelta(g.text)
	}
	return nil, fmt.Errorf("model m: %w: %w", context.Canceled, llm.ErrUnderWay)
}

// TestGivenUp: a call that was given up while its request was under way costs what was set aside, or what its text says.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	for text, usd := range map[string]float64{"": cost.ReservedUSD, "half an answer": cost.UnknownUSD} {
		p := &purse{}
		if _, err := spend.NewModel("judge", givenUp{text}).Chat(cost.WithPayer(t.Context(), p), question(99)); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		used := p.reserved[0].Tokens
		if text != "" {
			used.Output = window.Tokens(text)
		}
		p.check(t, cost.Amount{Tokens: used, USD: usd})
	}
}

// TestNobodyPays: without a payer nothing is asked.
func TestNobodyPays(t *testing.T) {
	t.Parallel()
	m := llmtest.New(llmtest.Step{Text: "yes"})
	if _, err := spend.NewModel("judge", m).Chat(t.Context(), question(5)); !errors.Is(err, cost.ErrNobody) || !cost.Refused(err) {
		t.Errorf("a model: %v", err)
	}
	words := &vectors{}
	if _, err := spend.NewEmbedder(words, spend.Cost{USD: 1}, nil).Embed(t.Context(), []string{"a"}); !errors.Is(err, cost.ErrNobody) {
		t.Errorf("embeddings: %v", err)
	}
	ear := &ear{}
	if _, _, err := spend.NewTranscriber(ear, spend.Cost{USD: 1}, nil).Transcribe(t.Context(), "a.ogg", strings.NewReader("x"), 1, time.Second); !errors.Is(err, cost.ErrNobody) {
		t.Errorf("a transcription: %v", err)
	}
	if len(m.Requests()) != 0 || words.asked != 0 || ear.asked != 0 {
		t.Errorf("asked %d, %d and %d times", len(m.Requests()), words.asked, ear.asked)
	}
	if _, err := spend.NewEmbedder(words, spend.Cost{USD: 0}, nil).Embed(t.Context(), []string{"a"}); err != nil {
		t.Errorf("embeddings that cost nothing: %v", err)
	}
	if _, _, err := spend.NewTranscriber(ear, spend.Cost{USD: 0}, nil).Transcribe(t.Context(), "a.ogg", strings.NewReader("x"), 1, 0); err != nil {
		t.Errorf("a transcription that costs nothing: %v", err)
	}
}

// TestModel: the most that a call may cost is set aside, and what it has cost is settled, however it ends.
func TestModel(t *testing.T) {
	t.Parallel()
	down := &llm.Error{Kind: llm.Unavailable}
	for name, tt := range map[string]struct {
		step llmtest.Step
		want []cost.Amount
	}{
		"an answer":       {llmtest.Step{Text: "yes", Usage: llm.Usage{Input: 7, Output: 2}, USD: 0.5}, []cost.Amount{{Tokens: llm.Usage{Input: 7, Output: 2}, USD: 0.5}}},
		"a failure":       {llmtest.Step{Err: down}, nil},
		"a broken answer": {llmtest.Step{Text: "yes and no", Err: down}, []cost.Amount{{Tokens: llm.Usage{Input: 7, Output: 3}, USD: cost.UnknownUSD}}},
		"a cut answer":    {llmtest.Step{Text: "yes", Stop: llm.StopLength}, []cost.Amount{{Tokens: llm.Usage{Input: 7, Output: 1}, USD: cost.UnknownUSD}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &purse{}
			resp, err := spend.NewModel("judge", llmtest.New(tt.step)).Chat(cost.WithPayer(t.Context(), p), question(200))
			if (err == nil) != (tt.step.Err == nil) || (resp == nil) != (err != nil) {
				t.Errorf("%v, %v", resp, err)
			}
			if r := p.reserved; len(r) != 1 || r[0].Tokens.Output != 200 || r[0].Tokens.Input < 5 || r[0].USD != cost.UnknownUSD {
				t.Errorf("reserved %+v", r)
			}
			p.check(t, tt.want...)
		})
	}
}

// TestDenied: what is refused is not asked, and nothing stays set aside of it.
func TestDenied(t *testing.T) {
	t.Parallel()
	p := &purse{refuse: &cost.Denied{Scope: "user", Text: "Used up."}}
	m := llmtest.New(llmtest.Step{Text: "yes"})
	_, err := spend.NewModel("judge", m).Chat(cost.WithPayer(t.Context(), p), question(5))
	denied, ok := errors.AsType[*cost.Denied](err)
	if !ok || denied.Text != "Used up." || !cost.Refused(err) || len(m.Requests()) != 0 {
		t.Errorf("%v, asked %d times", err, len(m.Requests()))
	}
	p.check(t)
	if cost.Refused(io.EOF) {
		t.Error("a failure is no refusal")
	}
}

// unpriced is a model whose price nobody knows.
type unpriced struct{ llm.Provider }

func (unpriced) UnpricedFor(string) string { return "our-model" }

// TestUnpriced: whoever pays is told that nobody knows the price, also of what would cost nothing if it were 0.
func TestUnpriced(t *testing.T) {
	t.Parallel()
	asked := spend.Cost{Unpriced: "our-model"}
	m, words, listener := llmtest.New(llmtest.Step{Text: "yes"}), &vectors{}, &ear{}
	for name, call := range map[string]func(context.Context) error{
		"a model": func(ctx context.Context) error {
			_, err := spend.NewModel("judge", unpriced{m}).Chat(ctx, question(5))
			return err
		},
		"embeddings": func(ctx context.Context) error {
			_, err := spend.NewEmbedder(words, asked, nil).Embed(ctx, []string{"a"})
			return err
		},
		"a transcription": func(ctx context.Context) error {
			_, _, err := spend.NewTranscriber(listener, asked, nil).Transcribe(ctx, "a.ogg", strings.NewReader("x"), 1, time.Second)
			return err
		},
	} {
		p := &purse{refuse: &cost.Denied{Scope: "user", Text: "Nobody knows the price."}}
		if err := call(cost.WithPayer(t.Context(), p)); !cost.Refused(err) || len(p.reserved) != 1 || p.reserved[0].Unpriced != "our-model" {
			t.Errorf("%s: %v, reserved %+v", name, err, p.reserved)
		}
	}
	if len(m.Requests()) != 0 || words.asked != 0 || listener.asked != 0 {
		t.Errorf("asked %d, %d and %d times", len(m.Requests()), words.asked, listener.asked)
	}
}

// TestSettledWhenStopped: a turn that is stopped pays for what it has used.
func TestSettledWhenStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := &purse{}
	words := &vectors{during: cancel}
	if _, err := spend.NewEmbedder(words, spend.Cost{USD: 1e6}, nil).Embed(cost.WithPayer(ctx, p), []string{"abcdefg"}); err != nil {
		t.Error(err)
	}
	p.check(t, cost.Amount{USD: 2})
}

// vectors fail as they are told.
type vectors struct {
	asked  int
	err    error
	during func()
}

func (v *vectors) Embed(_ context.Context, texts []string) ([][]float32, error) {
	v.asked++
	if v.during != nil {
		v.during()
	}
	return make([][]float32, len(texts)), v.err
}

func TestEmbedder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want []cost.Amount
	}{
		"works":      {nil, []cost.Amount{{USD: 0.2}}},
		"breaks off": {&llm.Error{Kind: llm.Timeout}, []cost.Amount{{USD: 0.2}}},
		"refused":    {&llm.Error{Kind: llm.Unauthorized}, nil},
	} {
		p, seen := &purse{}, 0.0
		e := spend.NewEmbedder(&vectors{err: tt.err}, spend.Cost{USD: 1e5}, func(usd float64) { seen += usd })
		if _, err := e.Embed(cost.WithPayer(t.Context(), p), []string{"abc", "def"}); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", name, err)
		}
		if len(p.reserved) != 1 || p.reserved[0] != (cost.Amount{USD: 0.2}) {
			t.Errorf("%s: reserved %+v", name, p.reserved)
		}
		p.check(t, tt.want...)
		if (seen > 0) != (len(tt.want) > 0) {
			t.Errorf("%s: observed $%v", name, seen)
		}
	}
}

// ear says what it was told of a recording.
type ear struct {
	asked  int
	length time.Duration
	usd    float64
	err    error
}

func (e *ear) Transcribe(_ context.Context, _ string, _ io.Reader, _ int64, length time.Duration) (string, float64, error) {
	e.asked++
	e.length = length
	return "hello", e.usd, e.err
}

// TestTranscriber: a recording is reserved by its length, or by its size if nobody says how long it is, and costs what
// the vendor charges.
func TestTranscriber(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		size   int64
		length time.Duration
		want   float64
	}{
		"by its length": {90_000, time.Minute, 0.6},
		"by its size":   {90_000, 0, 1.2},
	} {
		p, listener := &purse{}, &ear{usd: 0.9, err: io.EOF}
		text, usd, err := spend.NewTranscriber(listener, spend.Cost{USD: 0.6}, nil).Transcribe(cost.WithPayer(t.Context(), p), "a.ogg", strings.NewReader(""), tt.size, tt.length)
		if text != "hello" || usd != 0.9 || !errors.Is(err, io.EOF) || listener.length <= 0 {
			t.Errorf("%s: %q, %v, %v", name, text, usd, err)
		}
		if len(p.reserved) != 1 || p.reserved[0] != (cost.Amount{USD: tt.want}) {
			t.Errorf("%s: reserved %+v", name, p.reserved)
		}
		p.check(t, cost.Amount{USD: 0.9})
	}
}

// TestNoTimeToWait: a call that has less time than a budget needs to have room again is refused because of money, and
// not as one whose model failed.
func TestNoTimeToWait(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{context.DeadlineExceeded: true, context.Canceled: false, io.EOF: false} {
		p := &purse{refuse: err}
		m := llmtest.New(llmtest.Step{Text: "yes"})
		_, got := spend.NewModel("judge", m).Chat(cost.WithPayer(t.Context(), p), question(5))
		if !errors.Is(got, err) || cost.Refused(got) != want || len(m.Requests()) != 0 {
			t.Errorf("%v: %v, refused %v", err, got, cost.Refused(got))
		}
		p.check(t)
	}
}

// maker speaks and draws, at a price, and fails as it is told.
type maker struct {
	usd float64
	err error
}

func (m maker) Speak(context.Context, string, string) (llm.Sound, float64, error) {
	return llm.Sound{}, m.usd, m.err
}

func (m maker) Draw(context.Context, *llm.PictureRequest) (llm.Picture, float64, error) {
	return llm.Picture{}, m.usd, m.err
}

func (maker) PictureUSD(*llm.PictureRequest) float64 { return 0.5 }

// TestMedia: for a recording, speech or a picture, the most that it may cost is set aside, and what it has cost is paid;
// if nobody knows how the call has ended, the most.
func TestMedia(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		usd, want float64
		err       error
	}{
		"works":  {usd: 0.1, want: 0.1},
		"fails":  {err: io.EOF},
		"breaks": {err: &llm.Error{Kind: llm.Timeout, UnderWay: true}, want: 0.5},
	} {
		seen := 0.0
		observe := func(usd float64) { seen += usd }
		voice := spend.NewVoice(maker{tt.usd, tt.err}, spend.Cost{USD: 1e5}, observe)
		painter := spend.NewPainter(maker{tt.usd, tt.err}, "", observe)
		scribe := spend.NewTranscriber(&ear{usd: tt.usd, err: tt.err}, spend.Cost{USD: 0.5}, observe)
		for what, call := range map[string]func(ctx context.Context) (float64, error){
			"voice": func(ctx context.Context) (usd float64, err error) {
				_, usd, err = voice.Speak(ctx, "words", "")
				return usd, err
			},
			"picture": func(ctx context.Context) (usd float64, err error) {
				_, usd, err = painter.Paint(ctx, &llm.PictureRequest{})
				return usd, err
			},
			"recording": func(ctx context.Context) (usd float64, err error) {
				_, usd, err = scribe.Transcribe(ctx, "a.ogg", strings.NewReader(""), 0, time.Minute)
				return usd, err
			},
		} {
			p := &purse{}
			seen = 0
			usd, err := call(cost.WithPayer(t.Context(), p))
			if usd != tt.want || seen != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%s %s: $%v, observed $%v, %v", what, name, usd, seen, err)
			}
			if len(p.reserved) != 1 || p.reserved[0] != (cost.Amount{USD: 0.5}) {
				t.Errorf("%s %s: reserved %+v", what, name, p.reserved)
			}
			if want := (cost.Amount{USD: tt.want}); tt.want > 0 {
				p.check(t, want)
			} else {
				p.check(t)
			}
			if _, err := call(t.Context()); !errors.Is(err, cost.ErrNobody) {
				t.Errorf("%s that nobody pays: %v", what, err)
			}
		}
	}
}
