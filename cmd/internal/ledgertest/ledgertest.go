// Package ledgertest is a model of money for tests that break the service: each request to a fake model has a cost of
// its own, from which its number follows, so that each charge can be told from every other. Then:
//
//   - a request is charged once or not at all, to everybody who pays alike;
//   - a request that was answered is charged with its cost, unless its process died or its answer was lost;
//   - what a dead process had set aside is charged, and pays for what the process could not store;
//   - a charge that is neither is an estimate of an answer that broke off, or what an attempt of unknown end may have cost.
package ledgertest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
)

// What a million tokens of the fake model cost in USD: one that is read a micro-USD, one that is written a thousand.
const (
	InputUSD  = 1
	OutputUSD = 1000
)

// The first requests read from 1 to inputs tokens and write leastWritten, the next ones one more.
const (
	leastWritten = 100
	inputs       = 1000
)

// Sum is what a call has cost.
type Sum struct{ Tokens, Micro int64 }

// Price returns the usage of the nth request, and what it costs. No two cost the same.
func Price(n int) (llm.Usage, Sum) {
	u := llm.Usage{Input: 1 + n%inputs, Output: leastWritten + n/inputs}
	return u, Sum{int64(u.Input + u.Output), int64(InputUSD*u.Input + OutputUSD*u.Output)}
}

// Request is a request to the model.
type Request struct {
	By       string // the process
	About    string
	At, Over time.Time
	Whole    bool // it was answered as a whole
}

// Book numbers the requests to a model. Its zero value is ready. Safe for concurrent use.
type Book struct {
	// Unheard says that requests are lost on their way to the model, which are charged as if it had heard them. Set it
	// before Judge.
	Unheard bool

	mu       sync.Mutex
	requests []*Request
}

// Ask records a request, and returns what its answer costs.
func (b *Book) Ask(by, about string) (*Request, llm.Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &Request{By: by, About: about, At: time.Now()}
	b.requests = append(b.requests, r)
	u, _ := Price(len(b.requests) - 1)
	return r, u
}

// Answered records that the answer to a request was sent as a whole.
func (b *Book) Answered(r *Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.Whole, r.Over = true, time.Now()
}

// Verdict is what Judge has found.
type Verdict struct {
	Wrong           []string // what should not be
	Requests, Whole int
	Missing         int // requests that were answered and are charged as lost or estimated
	Estimates       int
	Lost            int // reservations of dead processes
}

func (v *Verdict) String() string {
	return fmt.Sprintf(
		"money: %d requests, %d answered, %d of them charged as lost or estimated; %d estimates, %d lost reservations",
		v.Requests, v.Whole, v.Missing, v.Estimates, v.Lost,
	)
}

// Judge compares all charges of a run with the requests. excused reports whether a request that was answered may be
// charged otherwise than with its cost.
func (b *Book) Judge(charges []bot.Charge, excused func(*Request) bool) *Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls, lost := callsOf(charges)
	v := &Verdict{Requests: len(b.requests), Lost: lost}
	wrong := func(format string, args ...any) { v.Wrong = append(v.Wrong, fmt.Sprintf(format, args...)) }
	numbers := map[Sum]int{}
	for i := range b.requests {
		_, costs := Price(i)
		numbers[costs] = i
	}
	times := make([]int, len(b.requests))
	for name, c := range calls {
		user, chat, own := c["user"], c["chat"], c["bot"]
		if user != own || chat != (Sum{}) && chat != own {
			wrong("%s is charged %+v to the person, %+v to the chat and %+v to the bot", name, user, chat, own)
		}
		switch n, exact := numbers[own]; {
		case exact:
			times[n]++
		case own.Tokens > 0 || own.Micro > 0:
			v.Estimates++
		}
	}
	for i, r := range b.requests {
		if r.Whole {
			v.Whole++
		}
		switch {
		case times[i] > 1:
			wrong("request %d, about %s, is charged %d times", i, r.About, times[i])
		case times[i] == 0 && r.Whole:
			v.Missing++
			if !excused(r) {
				wrong(
					"request %d of process %s, about %s at %s, is charged nowhere",
					i, r.By, r.About, r.At.Format(time.TimeOnly),
				)
			}
		}
	}
	broken := len(b.requests) - v.Whole
	if v.Missing > lost+v.Estimates {
		wrong(
			"%d requests are not charged, and only %d estimates and %d lost reservations are",
			v.Missing, v.Estimates, lost,
		)
	}
	if v.Estimates > broken+v.Missing && !b.Unheard {
		wrong("%d estimates are charged, and only %d answers broke off", v.Estimates, broken+v.Missing)
	}
	return v
}

// callsOf groups charges by calls and kinds of scopes that pay, and counts the reservations that were lost.
func callsOf(charges []bot.Charge) (calls map[string]map[string]Sum, lost int) {
	calls = map[string]map[string]Sum{}
	for _, c := range charges {
		kind, _, _ := strings.Cut(c.Scope, "/")
		if strings.HasPrefix(c.Key, bot.Lost) {
			if kind == "bot" && c.Unit == quota.USD {
				lost++
			}
			continue
		}
		name, is := strings.CutSuffix(c.Key, "/"+c.Unit+"/"+c.Scope)
		if !is || c.Unit == quota.Turns {
			continue
		}
		call := calls[name]
		if call == nil {
			call = map[string]Sum{}
			calls[name] = call
		}
		s := call[kind]
		if c.Unit == quota.USD {
			s.Micro += c.N
		} else {
			s.Tokens += c.N
		}
		call[kind] = s
	}
	return calls, lost
}
