package processes_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/processes"
)

const (
	own   = "bbbbbbbb-1"
	elder = "aaaaaaaa-2"
	young = "cccccccc-3"
)

// TestLiving: which processes run, which one acts for the dead, and what people are shown follows from the last read;
// before the first read, a process takes over nothing.
func TestLiving(t *testing.T) {
	t.Parallel()
	type view struct {
		Own, Elder, Eldest bool
		Count              int
		Names              []string
	}
	for _, tt := range []struct {
		name   string
		shared bool
		learnt [][]string
		want   view
	}{
		{"alone", false, nil, view{true, false, true, 2, []string{"bbbbbbbb"}}},
		{"shared, nothing read", true, nil, view{true, true, false, 2, []string{"bbbbbbbb"}}},
		{"shared, alone", true, [][]string{{own}}, view{true, false, true, 1, []string{"bbbbbbbb"}}},
		{"shared, an elder one", true, [][]string{{own, elder}}, view{true, true, false, 2, []string{"bbbbbbbb", "aaaaaaaa"}}},
		{"shared, a younger one", true, [][]string{{young, own}}, view{true, false, true, 2, []string{"bbbbbbbb", "cccccccc"}}},
		{"the elder one is gone", true, [][]string{{elder, own}, {own}}, view{true, false, true, 1, []string{"bbbbbbbb"}}},
		{"this one is not listed", true, [][]string{{}}, view{true, false, false, 1, []string{"bbbbbbbb"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := processes.New(own, tt.shared)
			for _, owners := range tt.learnt {
				if !l.Learn(owners) {
					t.Errorf("%q is not reported as new", owners)
				}
				if l.Learn(owners) {
					t.Errorf("%q is reported as new twice", owners)
				}
			}
			got := view{l.Lives(own), l.Lives(elder), l.Eldest(), l.Count(), l.Names()}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	if got := processes.New("a", false).Names(); !cmp.Equal(got, []string{"a"}) {
		t.Errorf("short name: %q", got)
	}
}

// TestFollow: rounds are a second apart, the looks are called in order, a failure ends only its own round and is logged
// once.
func TestFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var log bytes.Buffer
		var took []string
		refused := errors.New("refused")
		failing := 2 // rounds
		done := make(chan error)
		go func() {
			done <- processes.Follow(ctx, zerolog.New(&log),
				func(context.Context) error {
					took = append(took, "first")
					return nil
				},
				func(context.Context) error {
					if failing > 0 {
						failing--
						return refused
					}
					took = append(took, "second")
					return nil
				})
		}()
		for range 3 {
			<-time.After(processes.Every)
			synctest.Wait()
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"first", "first", "first", "second", "first", "second"}, took); diff != "" {
			t.Errorf("looks (-want +got):\n%s", diff)
		}
		if n := strings.Count(log.String(), "refused"); n != 1 {
			t.Errorf("logged %d times: %s", n, log.String())
		}
	})
}
