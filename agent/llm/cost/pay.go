package cost

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/zephbot/zephbot/agent/llm"
)

// UnknownUSD is the price of a call that nobody knows: the most that its tokens may cost is counted.
const UnknownUSD = -1

// ReservedUSD is the price of a call that ended while it was under way: what was set aside for it is counted.
const ReservedUSD = -2

// Amount is what a call may cost at most, or has cost.
type Amount struct {
	Tokens llm.Usage
	USD    float64 // UnknownUSD = the most that Tokens may cost; ReservedUSD
	// Unpriced names the model that is asked if nobody knows its price; "" = it is known. A payer whose USD are limited
	// refuses the call.
	Unpriced string
}

// Payer is the budget of somebody, usually of a turn. Safe for concurrent use.
type Payer interface {
	// Reserve sets an amount aside under a key. A refusal is a *Denied. The reservation ends with Settle, or
	// by itself if the process dies.
	Reserve(ctx context.Context, key string, most Amount) error
	// Settle replaces the reservation by what the call has cost, and makes that durable.
	Settle(ctx context.Context, key string, used Amount) error
}

// Thrifty is a Payer that says whether its USD are limited. Those of any other payer are not.
type Thrifty interface {
	LimitsUSD() bool
}

// LimitsUSD reports whether the USD of the payer of a context are limited, so that nothing may be asked whose price
// nobody knows.
func LimitsUSD(ctx context.Context) bool {
	p, _ := PayerOf(ctx)
	t, ok := p.(Thrifty)
	return ok && t.LimitsUSD()
}

// Denied says that a budget is used up; Text is for the person.
type Denied struct {
	Scope string
	Text  string
}

// Error implements error.
func (d *Denied) Error() string { return "quota of " + d.Scope + " is used up" }

// ErrNobody refuses a call whose context names no payer.
var ErrNobody = errors.New("nobody pays for this call of a model")

// ErrBusy refuses a call that had no time to wait for what others have set aside of a budget.
var ErrBusy = errors.New("what is left of a budget is set aside for other calls")

// Refused reports whether a call was not made because of money.
func Refused(err error) bool {
	_, denied := errors.AsType[*Denied](err)
	return denied || errors.Is(err, ErrNobody) || errors.Is(err, ErrBusy)
}

// payerKey is the key of the payer in a context. A parameter would have to pass through every stage of the chain and
// through tools, which must not know of money.
type payerKey struct{}

// WithPayer returns a context whose calls are paid for by somebody.
func WithPayer(ctx context.Context, p Payer) context.Context {
	return context.WithValue(ctx, payerKey{}, p)
}

// PayerOf returns the payer of a context; false if nobody pays.
func PayerOf(ctx context.Context) (Payer, bool) {
	p, ok := ctx.Value(payerKey{}).(Payer)
	return p, ok
}

// Book makes the payer of a context pay for an attempt that has ended in a way that nobody knows the cost of:
// the most that it may have been. A *Denied says that it cannot, and then nothing more may be attempted.
// Without a payer it does nothing.
func Book(ctx context.Context, most llm.Usage) error {
	p, ok := PayerOf(ctx)
	if !ok {
		return nil
	}
	key := "attempt/" + rand.Text()
	if err := p.Reserve(ctx, key, Amount{Tokens: most, USD: UnknownUSD}); err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	if err := p.Settle(ctx, key, Amount{Tokens: most, USD: ReservedUSD}); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	return nil
}

// Unlimited is the payer of calls that the operator makes on the command line, which no quota limits.
type Unlimited struct{}

// Reserve implements Payer.
func (Unlimited) Reserve(context.Context, string, Amount) error { return nil }

// Settle implements Payer.
func (Unlimited) Settle(context.Context, string, Amount) error { return nil }
