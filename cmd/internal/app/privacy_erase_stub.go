package app

import (
	"context"

	"github.com/zephbot/zephbot/bot/privacy"
)

// Erase implements privacy.Place.
func (p auditPlace) Erase(context.Context, *privacy.Order) (int, error) { return 0, nil }
