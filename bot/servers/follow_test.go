package servers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/servers"
	"github.com/zephbot/zephbot/tools/mcp"
)

var _ servers.Client = (*mcp.Manager)(nil)

// syncing is a client whose Sync ends with err.
type syncing struct {
	servers.Client
	err error
}

func (s syncing) Sync(context.Context) error { return s.err }

// unread is a store whose facts cannot be read.
type unread struct {
	*bottest.Store
	asked bool
}

func (u *unread) FactsOf(context.Context, string, string, time.Time) ([]bot.Fact, error) {
	u.asked = true
	return nil, errors.New("away")
}

// TestFollow: jobs are taken up once the client is in line with the others, or does not run yet; a client that is not in
// line takes up nothing.
func TestFollow(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for _, tt := range []struct {
		name  string
		err   error
		takes bool
	}{
		{"in line", nil, true},
		{"not running yet", mcp.ErrNotRunning, true},
		{"not in line", refused, false},
	} {
		store := &unread{Store: bottest.New()}
		d := servers.New(servers.Deps{Client: syncing{err: tt.err}, Store: store, Keeper: facts.Keeper{Store: store, Log: zerolog.Nop()}, Now: time.Now, Log: zerolog.Nop()})
		err := d.Follow(t.Context())
		if store.asked != tt.takes || err == nil || errors.Is(err, refused) == tt.takes {
			t.Errorf("%s: looked for jobs %t, %v", tt.name, store.asked, err)
		}
	}
}
