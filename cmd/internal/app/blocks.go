package app

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/tools/anomaly"
)

func (c *Core) anomalies(ctx context.Context) (*anomaly.Detector, error) {
	a := c.cfg.Tools.Anomaly
	if !a.Enabled {
		return nil, nil
	}
	o := anomaly.Options{
		Window: a.WindowSize, Warning: a.ErrorThreshold, Critical: a.FailureThreshold, AutoBlock: a.AutoBlock, Attempts: max(0, c.cfg.Tools.Retry.MaxAttempts) + 1,
		ReasoningModelWarning: a.ReasoningModelWarning, Model: c.modelLine, Now: c.now, Log: c.log.With().Str("component", "anomaly").Logger(),
		Observe: func(e anomaly.Event) {
			c.metrics.Anomaly(e.Tool, string(e.Level))
			if c.told != nil && e.Blocked {
				c.told(e)
			}
		},
	}
	if c.stores != nil {
		o.Store = blocks{c.bucket(blockedBucket)}
	}
	return anomaly.New(ctx, o)
}

// blocks keeps tools that failed too often as facts.
type blocks struct{ facts facts.Bucket }

// Blocks implements anomaly.Store. What an earlier version stored had no end; it is left out, and so lifted.
func (b blocks) Blocks(ctx context.Context) ([]anomaly.Block, error) {
	stored, err := b.facts.List(ctx, "")
	var list []anomaly.Block
	for _, f := range stored {
		var block anomaly.Block
		if json.Unmarshal([]byte(f.Value), &block) == nil && block.Tool != "" {
			list = append(list, block)
		}
	}
	return list, err
}

// Block implements anomaly.Store.
func (b blocks) Block(ctx context.Context, block anomaly.Block) error {
	raw, err := json.Marshal(block)
	if err != nil {
		return err
	}
	f := b.facts.Fact(blockKey(block.Session, block.Tool), string(raw))
	f.Expires = block.Forget()
	return b.facts.Apply(ctx, f)
}

// Unblock implements anomaly.Store.
func (b blocks) Unblock(ctx context.Context, session, tool string) error {
	return b.facts.Save(ctx, blockKey(session, tool), "")
}

func blockKey(session, tool string) string { return tool + " " + session }

// blockedTools is what /tools unblock works on; nil when nothing is ever blocked.
func (c *Core) blockedTools() command.Blocks {
	if c.stages.anomaly == nil {
		return nil
	}
	return blocked{c.stages.anomaly, c.bucket(blockedBucket)}
}

// blocked is the detector as /tools sees it.
type blocked struct {
	*anomaly.Detector
	stored facts.Bucket
}

// Blocked implements command.Blocks.
func (b blocked) Blocked(session bot.SessionKey, all bool) []texts.Blocked {
	var list []texts.Blocked
	for _, block := range b.Blocks() {
		here := block.Session == "" || block.Session == string(session)
		if here || all {
			list = append(list, texts.Blocked{Tool: block.Tool, Reason: block.Reason, Left: block.Until.Sub(b.stored.Now()), Elsewhere: !here})
		}
	}
	return list
}

// Lifted implements command.Blocks.
func (b blocked) Lifted(tool string) []bot.Fact {
	var list []bot.Fact
	for _, block := range b.Lift(tool) {
		list = append(list, b.stored.Fact(blockKey(block.Session, tool), ""))
	}
	return list
}

// tellBlocks tells the conversation that a tool was taken away from, and the operators.
func (s *service) tellBlocks(ctx context.Context) func(anomaly.Event) {
	w := s.core.words()
	return func(e anomaly.Event) {
		key := "blocked/" + e.Tool + "/" + strconv.FormatInt(e.Until.UnixNano(), 10)
		left := e.Until.Sub(s.core.now()).Round(time.Minute)
		told, where := bot.Place{}, ""
		if e.Session != "" {
			lane, err := s.core.stores.Bot.Lane(ctx, bot.SessionKey(e.Session))
			if err != nil {
				s.log.Error().Err(err).Str("tool", e.Tool).Str("session", e.Session).Msg("nobody was told of a blocked tool")
			} else if lane.Place.Channel == s.ch.name && lane.Place.Bot == s.ch.bot {
				told, where = lane.Place, lane.Place.Chat
				s.send(ctx, bot.Row{Session: bot.SessionKey(e.Session), Place: told, Purpose: bot.Reply, Key: key, Content: bot.Content{Text: w.ToolBlocked("", e.Tool, left)}})
			}
		}
		for i, place := range s.ch.operators {
			if place != told {
				text := w.ToolBlockedAdmins("", e.Tool, where, e.Failures, e.Samples, left)
				row := bot.Row{Session: place.SessionKey(""), Place: place, Purpose: bot.Reply, Key: key + "/" + strconv.Itoa(i), Content: bot.Content{Text: text}}
				s.send(ctx, row)
			}
		}
	}
}
