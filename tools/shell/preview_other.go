//go:build !linux

package shell

import (
	"context"
	"errors"
	"time"

	"github.com/zephbot/zephbot/tools"
)

// previews is nothing: only Linux has overlays.
type previews struct{}

func (r *Runner) openPreviews() {}

// Preview tries nothing on this system.
func (r *Runner) Preview(context.Context, *tools.Call) *tools.Effect { return nil }

// Holds reports that there is no layer.
func (r *Runner) Holds(context.Context, *tools.Call, string) bool { return false }

// TryLayer returns why there are no layers.
func TryLayer(context.Context, string, string) error { return errors.New("only Linux has overlays") }

// Drop has nothing to remove.
func (r *Runner) Drop(context.Context, *tools.Call) {}

// Previews reports that commands cannot run on a layer.
func (r *Runner) Previews(context.Context) bool { return false }

// CompletePreview has nothing to complete.
func (r *Runner) CompletePreview(context.Context, *tools.Call) {}

// SweepPreviews has nothing to remove.
func (r *Runner) SweepPreviews(context.Context, func(session, call, digest string, at time.Time) (bool, error)) error {
	return nil
}

// ForgetPreviews has nothing to remove.
func (r *Runner) ForgetPreviews(context.Context, string) (bool, error) { return false, nil }

// PreviewsOf returns no directory.
func (r *Runner) PreviewsOf(string) string { return "" }

func (r *Runner) applyLayer(context.Context, *tools.Call, string) (*outcome, error) {
	return nil, errors.New("no layers on this system")
}

func (r *Runner) layerPaths(*tools.Call, string) ([]string, error) { return nil, nil }

func watchGrowth(ctx context.Context, _ int64, _ ...string) *tools.Error {
	<-ctx.Done()
	return nil
}
