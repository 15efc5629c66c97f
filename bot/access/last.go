package access

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/bot"
)

// adminsBucket holds, by bot, which request was the last one that took the rights of an admin away. Two requests that
// were computed from the same list of admins expect the same value of it, so that the second one is computed again: two
// admins who remove each other at once, in two processes, do not leave the bot without one.
const adminsBucket = "admins"

// errLastAdmin refuses to take the rights of the only admin away.
var errLastAdmin = errors.New("nobody else is an admin")

// fewerAdmins checks that an admin remains if a person loses a role, and returns the fact that the Change has to
// contain; nil = none. Admins by the configuration always remain.
func (d *Admissions) fewerAdmins(ctx context.Context, msg *bot.Message, id string, role Role) (*bot.Fact, error) {
	if role != Admin || slices.Contains(d.guard.opts.Admins, id) {
		return nil, nil //nolint:nilnil // nothing has to be checked
	}
	f := bot.Fact{Bucket: adminsBucket, Key: personKey(msg.Place, ""), Value: msg.ID}
	// before the list is read: what changes after it is noticed
	was, err := d.guard.store.Fact(ctx, f.Bucket, f.Key, d.guard.now())
	if f.Was = &was; err != nil {
		return nil, fmt.Errorf("read who is an admin: %w", err)
	}
	admins, err := d.guard.allAdmins(ctx, msg.Place)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(admins, func(other string) bool { return other != id }) {
		return nil, errLastAdmin
	}
	return &f, nil
}
