//go:build unix

package bench_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// soakVariable makes this binary a service whose clock is ahead: it says by how many days at the start, and how often
// the service sweeps. SIGUSR1 advances the clock by the next stride.
const (
	soakVariable = "BENCH_SOAK"
	soakStride   = 4 * 24 * time.Hour
)

// soakService is the service as the program runs it, with a clock of its own. It returns the exit code.
func soakService() int {
	log := zerolog.New(os.Stderr).With().Timestamp().Logger().Level(zerolog.ErrorLevel)
	var strides int64
	var every time.Duration
	if _, err := fmt.Sscanf(os.Getenv(soakVariable), "%d %d", &strides, &every); err != nil {
		log.Error().Err(err).Msg(soakVariable)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ahead := &atomic.Int64{}
	ahead.Store(strides)
	next := make(chan os.Signal, 1)
	signal.Notify(next, syscall.SIGUSR1)
	go func() { // it ends with the process
		for range next {
			ahead.Add(1)
		}
	}()
	if err := soakProbe(ctx, os.Getenv(soakProbeVariable)); err != nil {
		log.Error().Err(err).Msg(soakProbeVariable)
		return 1
	}
	dir := os.Getenv("ZEPH_DATA_DIR")
	cfg, err := config.Load(config.Source{Env: os.Environ(), WorkDir: dir, Home: dir})
	if err != nil {
		log.Error().Err(err).Msg("config")
		return 1
	}
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * soakStride) }
	err = app.Serve(ctx, app.Options{Config: cfg, Version: "v0.0.0-soak", WorkDir: dir, Log: log, Now: now, Housekeeping: every})
	if err != nil {
		log.Error().Err(err).Msg("serve")
		return 1
	}
	return 0
}
