package quotatest

import (
	"context"
	"errors"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/turn"
)

// errAgain is the error of a turn that the ledger has refused, and that is admitted
// nevertheless when it is asked again.
var errAgain = errors.New("a turn that the ledger has refused is admitted again")

// Begin admits a turn and stores it, as the dispatcher does: a turn that the ledger refuses is asked about again.
func Begin(ctx context.Context, m *quota.Meter, store bot.Writer, msg *bot.Message, id string) (turn.Admission, error) {
	for range 3 { // more often only if the ledger is wrong: others only add to what is used
		a, err := m.Admit(ctx, msg, id)
		if err != nil || a.Refusal != "" {
			return a, err
		}
		_, err = store.Apply(ctx, &bot.Change{Charges: a.Charges, Ledger: a.Ledger})
		if _, full := errors.AsType[*bot.NoRoom](err); !full {
			return a, err
		}
		_ = m.Undo(ctx, a.Charges) // the counters may be away
	}
	return turn.Admission{}, errAgain
}
