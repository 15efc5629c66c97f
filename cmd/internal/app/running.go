package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot/blocks"
	"github.com/zephbot/zephbot/bot/processes"
	"github.com/zephbot/zephbot/persistence"
)

// Time limits of a shutdown; together they are below the 30 s that platforms allow.
const (
	graceTurns  = 18 * time.Second
	graceOutbox = 5 * time.Second
	graceAudit  = 2 * time.Second
)

// run serves until ctx ends or intake fails. It starts outbox and dispatcher before the intake, and stops them in
// reverse order, so that what was accepted is still worked on and what was answered is still sent.
func (s *service) run(ctx context.Context, intake func(ctx context.Context) error) error {
	outCtx, endOut := context.WithCancel(context.WithoutCancel(ctx))
	defer endOut()
	workCtx, endWork := context.WithCancel(context.WithoutCancel(ctx))
	defer endWork()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var out, work sync.WaitGroup
	part := func(wg *sync.WaitGroup, name string, run func() error) {
		wg.Go(func() {
			if err := run(); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	defer s.whenBuried(func() {
		cancel(persistence.ErrBuried)
		endOut()
	})()
	part(&out, "outbox", func() error { return s.outbox.Run(outCtx) })
	for name, run := range s.features.Runs() {
		part(&out, name, func() error { return run(outCtx) })
	}
	if err := s.core.sweepPreviews(ctx); err != nil { // before the first call
		s.log.Error().Err(err).Msg("what people have approved is not applied to the end, or old layers are not removed")
	}
	s.core.tell = s.serverHandler.Tell(outCtx)
	tell := s.teller()
	s.core.told = func(e blocks.Event) { tell.Tell(outCtx, e) }
	mcpCtx, endMCP := context.WithCancel(outCtx)
	defer endMCP()
	var clients sync.WaitGroup
	part(&clients, "mcp", func() error { return s.core.servers.Run(mcpCtx) })
	if in := s.core.signIns; in != nil {
		part(&clients, "sign-ins", func() error { return in.Run(mcpCtx) })
	}
	part(&clients, "index of tools", func() error {
		return s.core.resyncing(cost.WithPayer(mcpCtx, s.meter.House(s.ch.name, s.ch.bot)))
	})
	if s.core.shared() {
		s.serverHandler.Open(mcpCtx, nil) // jobs that nobody performs are found by the regular check
		part(&clients, "what others store", func() error { return s.follow(mcpCtx) })
	} else {
		s.serverHandler.Open(mcpCtx, s.serverHandler.Begun(outCtx))
	}
	part(&work, "dispatcher", func() error {
		if err := s.meter.Follow(workCtx, s.core.stores.Bot); err != nil { // before the first turn is charged
			return err
		}
		s.tellLimits()
		return s.dispatcher.Run(workCtx)
	})
	part(&out, "housekeeping", func() error { return s.sweep(outCtx) })
	err := intake(ctx)
	endWork()
	work.Wait()
	s.serverHandler.Close(endMCP)
	clients.Wait()
	s.drain(outCtx)
	endOut()
	out.Wait()
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// drain sends what is still to be sent, and writes what is due to the audit log: a process that ended in order leaves
// neither to the next one.
func (s *service) drain(ctx context.Context) {
	sending, done := context.WithTimeout(ctx, graceOutbox)
	defer done()
	if err := s.outbox.Drain(sending); err != nil {
		s.log.Warn().Err(err).Msg("answers left in the outbox; the next process sends them")
	}
	if ctx.Err() != nil { // it was buried
		return
	}
	recording, done := context.WithTimeout(ctx, graceAudit)
	defer done()
	var exporting sync.WaitGroup
	exporting.Go(func() {
		if err := s.core.closeTracing(recording); err != nil {
			s.log.Debug().Err(err).Msg("spans lost")
		}
	})
	s.core.records.Settle(recording)
	exporting.Wait()
}

// follow keeps what this process remembers in step with what other processes have stored, until ctx ends.
func (s *service) follow(ctx context.Context) error {
	living := s.core.meet
	// who is unknown is taken for dead, and the rest of a round may wait for a server
	var alone sync.WaitGroup
	alone.Go(func() { _ = processes.Follow(ctx, s.log, living) }) // it returns nil
	defer alone.Wait()
	return processes.Follow(ctx, s.log, append([]func(context.Context) error{living}, s.features.Follows()...)...)
}

// meet reads which processes live.
func (c *Core) meet(ctx context.Context) error {
	living, err := c.stores.Living(ctx)
	if err == nil && c.living.Learn(living) {
		c.records.Settle(ctx) // of a process that is gone
	}
	return err
}

// whenBuried ends the work of a process that was declared dead, because nothing that it does counts any more. stop ends
// the watch.
func (s *service) whenBuried(end func()) (stop func()) {
	var watching sync.WaitGroup
	over := make(chan struct{})
	watching.Go(func() {
		select {
		case <-s.core.stores.Buried():
			s.log.Error().Err(persistence.ErrBuried).Msg("stopping at once")
			s.dispatcher.Abandon()
			end()
		case <-over:
		}
	})
	return func() {
		close(over)
		watching.Wait()
	}
}

// When the service deletes expired data: soon after its start, so that one that is restarted often does so too, and
// then every hour.
const (
	firstSweep = time.Minute
	sweepEvery = time.Hour
)

// sweep deletes expired data regularly.
func (s *service) sweep(ctx context.Context) error {
	const day = 24 * time.Hour
	keep := persistence.Retention{
		Journal: time.Duration(s.core.cfg.Retention.Journal) * day,
		Outbox:  time.Duration(s.core.cfg.Retention.Outbox) * day,
		Blobs:   time.Duration(s.core.cfg.Retention.Blobs) * day,
	}
	own := s.core.opts.Housekeeping
	timer := time.NewTimer(cmp.Or(own, firstSweep))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			err := s.core.stores.Sweep(ctx, s.core.now(), keep)
			if err != nil && ctx.Err() == nil {
				s.log.Error().Err(err).Msg("old rows not removed")
			}
			if err := s.core.undo.Sweep(ctx); err != nil && ctx.Err() == nil {
				s.log.Error().Err(err).Msg("old copies of changed files not removed")
			}
			if err := s.core.sweepPreviews(ctx); err != nil && ctx.Err() == nil {
				s.log.Error().Err(err).Msg("old layers of previewed commands not removed")
			}
			if err := s.core.pruneAudit(ctx); err != nil && ctx.Err() == nil {
				s.log.Error().Err(err).Msg("old audit lines not removed")
			}
			s.core.metrics.Swept(err == nil)
			timer.Reset(cmp.Or(own, sweepEvery))
		}
	}
}
