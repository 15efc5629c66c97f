package sql_test

import (
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/persistence/storetest"
)

// heirs are processes that have a database one after the other.
type heirs struct{ store *sql.Store }

func (h *heirs) Start(*testing.T, string) bot.Store { return h.store }

func (h *heirs) Bury(t *testing.T, _ string) {
	t.Helper()
	_, err := h.store.Recover(t.Context(), "heir")
	check(t, err)
}

func (*heirs) Most() int { return 1 }

func (*heirs) Crash(*testing.T) bool { return false }

func TestMoney(t *testing.T) {
	t.Parallel()
	storetest.Money(t, &heirs{open(t, sql.Options{})})
}
