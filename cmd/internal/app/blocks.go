package app

import (
	"context"

	"github.com/zephbot/zephbot/bot/blocks"

	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/tools/anomaly"
)

func (c *Core) anomalies(ctx context.Context) (*anomaly.Detector, error) {
	a := c.cfg.Tools.Anomaly
	if !a.Enabled {
		return nil, nil
	}
	o := anomaly.Options{
		Window:                a.WindowSize,
		Warning:               a.ErrorThreshold,
		Critical:              a.FailureThreshold,
		AutoBlock:             a.AutoBlock,
		Attempts:              max(0, c.cfg.Tools.Retry.MaxAttempts) + 1,
		ReasoningModelWarning: a.ReasoningModelWarning,
		Model:                 c.models.Primary,
		Now:                   c.now,
		Log:                   c.log.With().Str("component", "anomaly").Logger(),
		Observe: func(e anomaly.Event) {
			c.metrics.Anomaly(e.Tool, string(e.Level))
			if c.told != nil && e.Blocked {
				c.told(blocks.Event{
					Tool:     e.Tool,
					Session:  e.Session,
					Caller:   e.Caller,
					Name:     e.Name,
					Until:    e.Until,
					Failures: e.Failures,
					Samples:  e.Samples,
				})
			}
		},
	}
	if c.stores != nil {
		o.Store = c.keptBlocks()
	}
	return anomaly.New(ctx, o)
}

// blockedTools returns what /tools unblock works on; nil if nothing is ever blocked.
func (c *Core) blockedTools() command.Blocks {
	if c.stages.anomaly == nil {
		return nil
	}
	return blocks.List{Detector: c.stages.anomaly, Keeper: c.keptBlocks()}
}

// keptBlocks keeps the blocks over a restart.
func (c *Core) keptBlocks() blocks.Keeper { return blocks.Keeper{Facts: c.bucket(blocks.Bucket)} }

// teller tells people of blocked tools.
func (s *service) teller() blocks.Teller {
	c := s.core
	return blocks.Teller{
		Channel:   s.ch.name,
		Bot:       s.ch.bot,
		Operators: s.operators,
		Called:    s.ch.called,
		Lanes:     c.stores.Bot,
		Send:      s.mailer().Send,
		Words:     c.words(),
		Now:       c.now,
		Log:       s.log,
	}
}
