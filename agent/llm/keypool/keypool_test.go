package keypool_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/keypool"
)

// server is asked with one key, and answers each time with the next of its errors; nil = an answer.
type server struct {
	key   int
	asked *[]int

	mu   sync.Mutex
	errs []error
}

func (s *server) Name() string { return "main" }

func (s *server) answer() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.asked = append(*s.asked, s.key)
	if len(s.errs) == 0 {
		return nil
	}
	err := s.errs[0]
	s.errs = s.errs[1:]
	return err
}

func (s *server) Chat(context.Context, *llm.Request, func(string)) (*llm.Response, error) {
	if err := s.answer(); err != nil {
		return nil, err
	}
	return &llm.Response{Text: fmt.Sprint(s.key)}, nil
}

func (s *server) Embed(context.Context, []string) ([][]float32, error) { return nil, s.answer() }

func (s *server) Transcribe(context.Context, string, io.Reader, int64, time.Duration) (string, float64, error) {
	return "hello", 0, s.answer()
}

func refused(kind llm.Kind, after time.Duration) error {
	return &llm.Error{Kind: kind, Provider: "main", RetryAfter: after, Err: errors.New(string(kind))}
}

// desk is a pool of keys 1, 2, … and a clock.
type desk struct {
	pool  *keypool.Pool[*server]
	asked []int
	at    time.Time
}

func setup(t *testing.T, errs ...[]error) *desk {
	t.Helper()
	d := &desk{at: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
	var members []*server
	for i, list := range errs {
		members = append(members, &server{key: i + 1, asked: &d.asked, errs: list})
	}
	pool, err := keypool.New(members, keypool.Options{Now: func() time.Time { return d.at }})
	if err != nil {
		t.Fatal(err)
	}
	d.pool = pool
	return d
}

func (d *desk) chat(t *testing.T, want string) {
	t.Helper()
	d.asked = nil
	res, err := d.pool.Chat(t.Context(), &llm.Request{}, nil)
	got := fmt.Sprint(d.asked)
	if err == nil {
		got += " " + res.Text
	} else {
		got += " " + string(llm.KindOf(err))
	}
	if got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}

// TestRotation: a key stays until it is refused, rests as long as the vendor says, and comes back when it is its turn.
func TestRotation(t *testing.T) {
	t.Parallel()
	d := setup(t, []error{nil, refused(llm.RateLimited, time.Minute)}, []error{nil, refused(llm.NoCredit, 0)}, nil)
	d.chat(t, "[1] 1")
	d.chat(t, "[1 2] 2")
	d.chat(t, "[2 3] 3")
	d.chat(t, "[3] 3")
	d.at = d.at.Add(2 * time.Minute)
	d.chat(t, "[3] 3") // it stays: the vendor has cached the prompt there
}

// TestAllRest: if all keys are refused, the error is that of the one that may be asked soonest, and nobody is asked before.
func TestAllRest(t *testing.T) {
	t.Parallel()
	d := setup(t, []error{refused(llm.NoCredit, 0)}, []error{refused(llm.RateLimited, 40*time.Second)}, []error{refused(llm.RateLimited, 20*time.Second)})
	_, err := d.pool.Chat(t.Context(), &llm.Request{}, nil)
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != llm.RateLimited || e.RetryAfter != 20*time.Second || !slices.Equal(d.asked, []int{1, 2, 3}) {
		t.Errorf("%v after %v", err, d.asked)
	}
	d.chat(t, "[] rate_limited")
	d.at = d.at.Add(21 * time.Second)
	d.chat(t, "[3] 3")
}

// TestOtherFailures: what is not the fault of the key is not asked again with another one.
func TestOtherFailures(t *testing.T) {
	t.Parallel()
	for _, kind := range []llm.Kind{llm.Invalid, llm.TooLong, llm.Unavailable, llm.Timeout, llm.UnknownModel} {
		d := setup(t, []error{refused(kind, 0)}, nil)
		d.chat(t, "[1] "+string(kind))
		d.chat(t, "[1] 1")
	}
	d := setup(t, []error{refused(llm.Unauthorized, 0)}, nil)
	d.chat(t, "[1 2] 2")
	shown := &llm.Error{Kind: llm.RateLimited, Streamed: true, Err: errors.New("half")}
	d = setup(t, []error{shown}, nil)
	d.chat(t, "[1] rate_limited")
	d.chat(t, "[2] 2")
}

// TestOthers: embeddings and recordings change the key too; a recording, which is read once, for the next one.
func TestOthers(t *testing.T) {
	t.Parallel()
	d := setup(t, []error{refused(llm.RateLimited, 0)}, []error{nil, refused(llm.NoCredit, 0)}, nil)
	if _, err := d.pool.Embed(t.Context(), []string{"a"}); err != nil || !slices.Equal(d.asked, []int{1, 2}) {
		t.Errorf("embeddings: %v after %v", err, d.asked)
	}
	d.asked = nil
	for _, want := range []llm.Kind{llm.NoCredit, ""} {
		text, _, err := d.pool.Transcribe(t.Context(), "a.ogg", strings.NewReader("x"), 1, 0)
		if (err != nil) != (want != "") || (err != nil && llm.KindOf(err) != want) || text != "hello" {
			t.Errorf("a recording: %q, %v; want %q", text, err, want)
		}
	}
	if !slices.Equal(d.asked, []int{2, 3}) {
		t.Errorf("asked %v", d.asked)
	}
	if _, err := keypool.New([]*server{}, keypool.Options{}); err == nil {
		t.Error("an empty pool is made")
	}
}

// TestMany: many callers at once ask at most once with each key.
func TestMany(t *testing.T) {
	t.Parallel()
	var asked []int
	mute := &sync.Mutex{}
	members := []*locked{{server{key: 1, asked: &asked, errs: []error{refused(llm.RateLimited, 0)}}, mute}, {server{key: 2, asked: &asked}, mute}}
	pool, err := keypool.New(members, keypool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := pool.Chat(t.Context(), &llm.Request{}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(asked) > 51 || len(asked) < 50 {
		t.Errorf("asked %d times", len(asked))
	}
}

// locked is a server whose list is shared.
type locked struct {
	server
	mu *sync.Mutex
}

func (l *locked) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.server.Chat(ctx, req, onDelta)
}
