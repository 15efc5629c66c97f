package app

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zephbot/zephbot/cmd/internal/metrics"
)

// Time limits of the listener of the metrics. A handler that takes longer to answer extends its own deadline with
// http.ResponseController.
const (
	headerTimeout = 5 * time.Second
	answerTimeout = 15 * time.Second
	graceHTTP     = 2 * time.Second
)

// mounts lists what the listener of the metrics serves besides metrics and health checks. serving is empty until
// Telegram is connected.
func (c *Core) mounts(serving *atomic.Pointer[service]) []metrics.Mount {
	list := pageMount(serving)
	if c.cfg.Metrics.Pprof {
		list = append(list, metrics.Profiles())
	}
	return list
}

// listenerNames returns the names under which the listener of the metrics is reached: as it is configured, and that of
// this machine.
func (c *Core) listenerNames() []string {
	names := []string{c.cfg.Metrics.Listen, c.cfg.Metrics.PublicURL}
	if own, err := os.Hostname(); err == nil { // else it is reached by the other names and by its address
		names = append(names, own)
	}
	return names
}

// serveHTTP serves metrics, health checks and what is mounted until stop is called; without an address there is no
// server.
func (c *Core) serveHTTP(ctx context.Context, health metrics.Health, mounts []metrics.Mount) (stop func(), err error) {
	if c.cfg.Metrics.Listen == "" {
		return func() {}, nil
	}
	listener, err := c.listen(ctx, "metrics.listen", c.cfg.Metrics.Listen)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler:           c.metrics.Handler(health, c.listenerNames(), mounts...),
		ReadHeaderTimeout: headerTimeout, WriteTimeout: answerTimeout,
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			c.log.Error().Err(err).Msg("metrics server ended")
		}
	})
	c.log.Info().Str("metrics", "http://"+listener.Addr().String()+"/metrics").Msg("start")
	return func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceHTTP)
		defer cancel()
		if err := server.Shutdown(end); err != nil {
			_ = server.Close() // it is ending anyway
		}
		wg.Wait()
	}, nil
}
