// Package keypool asks one server with several keys. It stays with a key, because vendors cache prompts by account,
// until the vendor says that the key is asked too often, has no credit, or is not valid; then that key rests and the
// next one is asked. Keys are named by their position and never printed.
package keypool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
)

// How long a key rests: if the vendor says when it may be asked again, as long as that, but at most maxRest.
const (
	busyRest   = 30 * time.Second // asked too often
	refusedFor = time.Hour        // no credit, or not valid: a person has to do something
	maxRest    = time.Hour
)

// listener is a provider that writes down speech.
type listener interface {
	Transcribe(
		ctx context.Context, name string, recording io.Reader, size int64, length time.Duration,
	) (string, float64, error)
}

// Options configure New.
type Options struct {
	Now func() time.Time // nil = time.Now
	Log zerolog.Logger
}

// Pool is an llm.Provider and llm.Embedder that writes down speech too. Safe for concurrent use.
type Pool[M llm.Provider] struct {
	members []M // in the order of the keys
	o       Options

	mu      sync.Mutex
	current int
	rests   []time.Time // by member: until then it is not asked
	last    []error     // why
}

// New returns a pool of providers that differ in nothing but their keys; at least one.
func New[M llm.Provider](members []M, o Options) (*Pool[M], error) {
	if len(members) == 0 {
		return nil, errors.New("a pool of keys is empty")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Pool[M]{
		members: members,
		o:       o,
		rests:   make([]time.Time, len(members)),
		last:    make([]error, len(members)),
	}, nil
}

// Name implements llm.Provider.
func (p *Pool[M]) Name() string { return p.members[0].Name() }

// Accepts implements llm.Accepter.
func (p *Pool[M]) Accepts() llm.Accepts { return llm.AcceptsOf(p.members[0]) }

// Chat implements llm.Provider. Each key is asked at most once. An answer that has begun to be shown is not begun again
// with another key.
func (p *Pool[M]) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	var res *llm.Response
	err := p.tryMembers(func(m M) (err error) {
		res, err = m.Chat(ctx, req, onDelta)
		return err //nolint:wrapcheck // the provider's own error
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// Embed implements llm.Embedder.
func (p *Pool[M]) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	var vectors [][]float32
	err := p.tryMembers(func(m M) (err error) {
		embedder, ok := any(m).(llm.Embedder)
		if !ok {
			return &llm.Error{Kind: llm.Invalid, Provider: m.Name(), Err: errors.New("has no embeddings")}
		}
		vectors, err = embedder.Embed(ctx, texts)
		return err //nolint:wrapcheck // the provider's own error
	})
	return vectors, err
}

// Transcribe writes down a recording. It is read once, so it is asked of one key, the one that rests least.
func (p *Pool[M]) Transcribe(
	ctx context.Context, name string, recording io.Reader, size int64, length time.Duration,
) (string, float64, error) {
	i := p.nextMember(nil)
	if i < 0 {
		i = p.soonestMember()
	}
	writer, ok := any(p.members[i]).(listener)
	if !ok {
		return "", 0, &llm.Error{Kind: llm.Invalid, Provider: p.Name(), Err: errors.New("writes down no speech")}
	}
	text, usd, err := writer.Transcribe(ctx, name, recording, size, length)
	p.judgeKey(i, err)
	return text, usd, err //nolint:wrapcheck // the provider's own error
}

// speaker is a provider that speaks.
type speaker interface {
	Speak(ctx context.Context, text, voice string) (llm.Sound, float64, error)
}

// Speak has a text spoken with a voice, "" = the configured one. Each key is asked at most once.
func (p *Pool[M]) Speak(ctx context.Context, text, voice string) (sound llm.Sound, usd float64, err error) {
	err = p.tryMembers(func(m M) error {
		own, ok := any(m).(speaker)
		if !ok {
			return &llm.Error{Kind: llm.Invalid, Provider: m.Name(), Err: errors.New("does not speak")}
		}
		one, cost, err := own.Speak(ctx, text, voice)
		sound, usd = one, usd+cost
		return err //nolint:wrapcheck // the provider's own error
	})
	return sound, usd, err
}

// artist is a provider that makes pictures.
type artist interface {
	Draw(ctx context.Context, req *llm.PictureRequest) (llm.Picture, float64, error)
	PictureUSD(req *llm.PictureRequest) float64
}

// PictureUSD is the most that a picture costs, whichever key pays.
func (p *Pool[M]) PictureUSD(req *llm.PictureRequest) float64 {
	if own, ok := any(p.members[0]).(artist); ok {
		return own.PictureUSD(req)
	}
	return 0
}

// Draw makes a picture. Each key is asked at most once.
func (p *Pool[M]) Draw(ctx context.Context, req *llm.PictureRequest) (picture llm.Picture, usd float64, err error) {
	err = p.tryMembers(func(m M) error {
		own, ok := any(m).(artist)
		if !ok {
			return &llm.Error{Kind: llm.Invalid, Provider: m.Name(), Err: errors.New("makes no pictures")}
		}
		one, cost, err := own.Draw(ctx, req)
		picture, usd = one, usd+cost
		return err //nolint:wrapcheck // the provider's own error
	})
	return picture, usd, err
}

// tryMembers calls one member after the other until the failure is not one of its key.
func (p *Pool[M]) tryMembers(call func(M) error) error {
	asked := make([]bool, len(p.members))
	var failed error
	for {
		i := p.nextMember(asked)
		if i < 0 {
			if failed != nil {
				return failed
			}
			return p.restingError()
		}
		asked[i] = true
		err := call(p.members[i])
		again := p.judgeKey(i, err)
		if err == nil || !again {
			return err
		}
		if e, ok := errors.AsType[*llm.Error](err); ok && e.Streamed {
			return err
		}
		// of several keys, the one that may be asked again soonest says how long to wait
		if failed == nil || waitOf(err) < waitOf(failed) || llm.KindOf(failed) != llm.RateLimited {
			failed = err
		}
	}
}

// nextMember returns the member that is asked now: the current one, or the first after it that neither rests
// nor was asked; -1 = none is left.
func (p *Pool[M]) nextMember(asked []bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.o.Now()
	for n := range p.members {
		i := (p.current + n) % len(p.members)
		if (asked == nil || !asked[i]) && !now.Before(p.rests[i]) {
			p.current = i
			return i
		}
	}
	return -1
}

// soonestMember returns the member whose rest ends first.
func (p *Pool[M]) soonestMember() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	best := 0
	for i, until := range p.rests {
		if until.Before(p.rests[best]) {
			best = i
		}
	}
	return best
}

// restingError is the error while all keys rest: that of the key that may be asked again
// soonest, with the time until then.
func (p *Pool[M]) restingError() error {
	i := p.soonestMember()
	p.mu.Lock()
	defer p.mu.Unlock()
	e := &llm.Error{
		Kind:     llm.KindOf(p.last[i]),
		Provider: p.members[i].Name(),
		Err:      fmt.Errorf("all %d keys rest: %w", len(p.members), p.last[i]),
	}
	if last, ok := errors.AsType[*llm.Error](p.last[i]); ok {
		e.Server, e.Unreached = last.Server, last.Unreached
	}
	if e.Kind == llm.RateLimited {
		e.RetryAfter = max(p.rests[i].Sub(p.o.Now()), 0)
	}
	return e
}

// judgeKey notes what a failure says about a key, and reports whether another key may be asked instead.
func (p *Pool[M]) judgeKey(i int, err error) (another bool) {
	if err == nil {
		return false
	}
	var rest time.Duration
	switch llm.KindOf(err) {
	case llm.RateLimited:
		rest = busyRest
		if wait := waitOf(err); wait > 0 {
			rest = min(wait, maxRest)
		}
	case llm.NoCredit, llm.Unauthorized:
		rest = refusedFor
	default:
		return false
	}
	p.mu.Lock()
	p.rests[i], p.last[i] = p.o.Now().Add(rest), err
	p.mu.Unlock()
	p.o.Log.Warn().Str("provider", p.Name()).Int("key", i+1).
		Int("keys", len(p.members)).Str("kind", string(llm.KindOf(err))).
		Dur("rest", rest).Msg("a key is refused; it rests, and the next one is asked")
	return true
}

// waitOf returns how long a server asks to wait; 0 = it does not say.
func waitOf(err error) time.Duration {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
