package shell

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell/layer"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// previews is what the Runner needs for previews.
type previews struct {
	store layer.Store
	mu    sync.Mutex
	can   bool
	until time.Time // when a failure is forgotten; zero = nobody has tried, or it can
}

func (r *Runner) openPreviews() { r.previews.store.Dir = r.opts.PreviewDir }

// Preview runs a command on a layer and says what it would do; nil = it was not tried. The layer is kept until Drop, or
// until a call with Call.Layer applies it. It is safe for concurrent use.
func (r *Runner) Preview(ctx context.Context, call *tools.Call) *tools.Effect {
	text, _, ok := previewedCommand(call)
	if !ok || r.opts.PreviewDir == "" || !r.Previews(ctx) {
		return nil
	}
	ws, err := r.workspaceOf(call.Origin)
	if err != nil {
		return &tools.Effect{Unknown: tools.UnknownFailed}
	}
	if r.Active(call.Origin.Session) > 0 {
		return &tools.Effect{Unknown: tools.UnknownBusy}
	}
	release, ok := r.locks.acquireLock(ctx.Done(), ws)
	if !ok {
		return nil
	}
	defer release()
	effect, err := r.tryOut(ctx, call, text, ws)
	if err == nil {
		return effect
	}
	if ctx.Err() != nil {
		return nil
	}
	why := whyUnknown(err)
	r.log.Debug().Err(err).Str("call", call.ID).Str("why", string(why)).Msg("no preview of a command")
	return &tools.Effect{Unknown: why}
}

// errUnusual means that a previewed command did not end by itself.
type unusualError struct{ why tools.Unknown }

func (e *unusualError) Error() string { return "the command did not end by itself: " + string(e.why) }

// whyUnknown returns the reason for people why there is no preview.
func whyUnknown(err error) tools.Unknown {
	unusual, refused := new(unusualError), new(layer.Refused)
	switch {
	case errors.As(err, &unusual):
		return unusual.why
	case errors.As(err, &refused):
		return tools.UnknownSpecial
	case errors.Is(err, layer.ErrLarge):
		return tools.UnknownLarge
	case errors.Is(err, layer.ErrChanged):
		return tools.UnknownBusy
	case errors.Is(err, context.DeadlineExceeded):
		return tools.UnknownSlow
	default:
		return tools.UnknownFailed
	}
}

// tryOut runs a command on a new layer and keeps it.
func (r *Runner) tryOut(ctx context.Context, call *tools.Call, text, ws string) (*tools.Effect, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*previewTimeout) // also for comparing files
	defer cancel()
	r.tmpDir(ws) // before the state of the workspace is taken
	d, err := r.previews.store.Begin(ctx, layerOwner(call, ws), r.sparedPaths(ws))
	if err != nil {
		return nil, err
	}
	effect, err := r.tryOn(ctx, call, text, ws, d)
	if err != nil || effect.Unknown != "" {
		return effect, errors.Join(err, d.Drop())
	}
	return effect, nil
}

func (r *Runner) tryOn(ctx context.Context, call *tools.Call, text, ws string, d *layer.Draft) (*tools.Effect, error) {
	if d.Base.Foreign && os.Geteuid() != 0 {
		return &tools.Effect{Unknown: tools.UnknownOwners}, nil
	}
	if _, complete := r.Bars(ctx, ws); !complete { // its output and the diff would show what may not be read
		return &tools.Effect{Unknown: tools.UnknownHidden}, nil
	}
	most, _ := r.opts.Disk.Room(ctx, ws, previewBytes) // the error is for those who want more
	o, err := r.executeJob(ctx, job{
		text:    text,
		ws:      ws,
		timeout: previewTimeout,
		permit:  permit{approved: true, exact: true},
		read:    r.readableDirs(call.Origin),
		layer:   &sandbox.Overlay{Upper: d.Upper, Work: d.Work, Beside: d.Beside},
		most:    min(most, previewBytes),
	})
	if err != nil {
		return nil, err
	}
	switch why := o.whyUnusual(); {
	case o.status.Internet, o.status.Sockets && o.status.Code != 0: // some look for a service of this machine, in vain
		return &tools.Effect{Unknown: tools.UnknownNetwork}, nil
	case o.status.Moves:
		return &tools.Effect{Unknown: tools.UnknownRename}, nil
	case o.status.Elsewhere != "":
		return &tools.Effect{Unknown: tools.UnknownElsewhere, Tried: o.status.Elsewhere}, nil
	case why != "":
		return nil, &unusualError{why}
	}
	if err := d.Read(ctx); err != nil {
		return nil, err
	}
	effect, err := layer.Show(ctx, d.Upper, ws, d.Changes)
	if err != nil {
		return nil, err
	}
	effect.Exit, effect.Output = o.status.Code, lastLines(r.opts.Redact(o.text))
	effect.Diff = r.opts.Redact(effect.Diff)
	effect.Compared, effect.Partial = d.Base.Entries, d.Base.Partial
	effect.Layer, err = d.Keep(ctx, r.opts.Now(), r.recordOutcome(o))
	return &effect, err
}

// whyUnusual returns why the outcome of a previewed command is not what an approved one would be; "" = it is.
func (o *outcome) whyUnusual() tools.Unknown {
	switch {
	case o.ending == timedOut:
		return tools.UnknownSlow
	case o.ending == filled, o.ending == flooded, o.status.Hit != "":
		return tools.UnknownLarge
	case o.ending != ended, o.status.Signal != "", o.status.Stuck, o.held:
		return tools.UnknownFailed
	default:
		return ""
	}
}

func layerOwner(call *tools.Call, ws string) layer.Owner {
	return layer.Owner{Workspace: ws, Session: call.Origin.Session, Call: call.ID}
}

// sparedPaths returns what is not compared in a workspace: temporary files, and what commands cannot reach.
func (r *Runner) sparedPaths(ws string) map[string]bool {
	spare := r.deniedInside(ws)
	spare[tmpName] = true
	return spare
}

// Holds reports whether the previewed layer with this digest can still be applied: it is whole, and what it was made on
// has not changed.
func (r *Runner) Holds(ctx context.Context, call *tools.Call, digest string) bool {
	ws, err := r.workspaceOf(call.Origin)
	if err != nil || r.opts.PreviewDir == "" {
		return false
	}
	err = r.previews.store.Holds(ctx, layerOwner(call, ws), digest)
	if err != nil {
		r.log.Debug().Err(err).Str("call", call.ID).Msg("a previewed layer does not hold")
	}
	return err == nil
}

// Drop removes the layer of a call that will not run.
func (r *Runner) Drop(ctx context.Context, call *tools.Call) {
	if _, _, ok := previewedCommand(call); !ok || r.opts.PreviewDir == "" {
		return
	}
	ws, err := r.workspaceOf(call.Origin)
	if err == nil {
		err = r.previews.store.Discard(ctx, layerOwner(call, ws))
	}
	if err != nil {
		r.log.Warn().Err(err).Str("call", call.ID).Msg("a previewed layer is not removed; the next sweep does")
	}
}

// applyLayer applies the layer of an approved call, and returns the outcome of its command.
func (r *Runner) applyLayer(ctx context.Context, call *tools.Call, ws string) (*outcome, error) {
	var c recorded
	err := r.previews.store.Take(ctx, layerOwner(call, ws), call.Layer, &c)
	switch {
	case err == nil:
		return c.toOutcome(), nil
	case !errors.Is(err, layer.ErrPartly) && (errors.Is(err, layer.ErrChanged) || errors.Is(err, layer.ErrDamaged)):
		e := tools.Refused(
			reason.New(reason.FilesChangedApproved),
			"Run it again, so that the person is asked about the files as they are now.",
		)
		e.Err = err
		return nil, e
	case ctx.Err() != nil && !errors.Is(err, layer.ErrPartly):
		return nil, tools.AsError(ctx.Err())
	default:
		r.log.Error().Err(err).Str("call", call.ID).Msg("a previewed layer was not applied")
		return nil, &tools.Error{
			Category: tools.PermanentFailure, Err: err, Begun: true,
			Message:    "what a person approved could not be applied, or only a part of it",
			Suggestion: "Look at the files before you go on, and tell the user.",
		}
	}
}

// layerPaths returns the absolute paths that applying the layer of a call changes.
func (r *Runner) layerPaths(call *tools.Call, ws string) ([]string, error) {
	changes, err := r.previews.store.Changes(layerOwner(call, ws), call.Layer)
	var paths []string
	for _, c := range changes {
		if c.Path != "." {
			paths = append(paths, filepath.Join(ws, c.Path))
		}
	}
	return paths, err
}

// CompletePreview completes what a call was applying when its process was killed. The call is the one that another
// process has begun and this one closes; nothing else works in its workspace meanwhile.
func (r *Runner) CompletePreview(ctx context.Context, call *tools.Call) {
	if r.opts.PreviewDir == "" || !call.Def.Runs() {
		return
	}
	ws, err := r.workspaceOf(call.Origin)
	if err == nil {
		err = r.previews.store.Complete(ctx, ws)
	}
	if err != nil {
		r.log.Error().Err(err).Str("call", call.ID).Msg("a previewed layer that was being applied is not completed")
	}
}

// SweepPreviews completes what was being applied when its process was killed, and removes
// layers for which keep is false.
func (r *Runner) SweepPreviews(
	ctx context.Context, keep func(session, call, digest string, at time.Time) (bool, error),
) error {
	if r.opts.PreviewDir == "" {
		return nil
	}
	return r.previews.store.Finish(ctx, func(o layer.Owner, digest string, at time.Time) (bool, error) {
		return keep(o.Session, o.Call, digest, at)
	})
}

// ForgetPreviews removes the layers of a workspace, and returns whether there were any.
func (r *Runner) ForgetPreviews(ctx context.Context, ws string) (bool, error) {
	if r.opts.PreviewDir == "" {
		return false, nil
	}
	return r.previews.store.Forget(ctx, sandbox.Canonical(ws))
}

// PreviewsOf returns the directory with the layers of a workspace, which may not exist; "" = there are no previews.
func (r *Runner) PreviewsOf(ws string) string {
	if r.opts.PreviewDir == "" {
		return ""
	}
	return r.previews.store.Place(sandbox.Canonical(ws))
}

// probeAgain is the time after which Previews tries again: a full disk or too many open files pass.
const probeAgain = 5 * time.Minute

// Previews reports whether commands can run on a layer here. It tries until it succeeds
// once, at most every five minutes.
func (r *Runner) Previews(ctx context.Context) bool {
	if r.opts.PreviewDir == "" || r.opts.Sandbox == SandboxOff || len(r.shell) == 0 {
		return false
	}
	if level := r.Level(ctx); !level.Full() || !level.Root || !level.Guard {
		return false
	}
	r.previews.mu.Lock()
	defer r.previews.mu.Unlock()
	if now := r.opts.Now(); !r.previews.can && !now.Before(r.previews.until) {
		err := TryLayer(ctx, r.opts.Helper, r.opts.PreviewDir)
		if ctx.Err() != nil {
			return false
		}
		if r.previews.can = err == nil; err != nil {
			r.previews.until = now.Add(probeAgain)
			r.log.Info().Err(err).Msg("no previews of commands: an overlay cannot be mounted here")
		}
	}
	return r.previews.can
}

// TryLayer runs a command that changes an empty directory on a layer. It makes and removes what it needs in dir, where
// layers are to be kept. helper is as in Options. The error says why there are no previews here.
func TryLayer(ctx context.Context, helper, dir string) (err error) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if dir, err = os.MkdirTemp(dir, layer.ProbePrefix); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, layer.Remove(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	spec := sandbox.Spec{
		Helper: helper, Argv: []string{sh, "-c", "echo x > probe"}, Dir: filepath.Join(dir, "below"),
		Env: []string{"PATH=/usr/bin:/bin"}, Read: []string{sh}, Require: true,
		Overlay: &sandbox.Overlay{
			Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work"), Beside: filepath.Join(dir, "beside"),
		},
	}
	spec.Write = []string{spec.Dir}
	for _, d := range []string{spec.Dir, spec.Overlay.Upper, spec.Overlay.Work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	p, err := sandbox.Start(ctx, spec, nil, nil)
	if err != nil {
		return err
	}
	<-p.Done()
	if s := p.Status(); s.Err != nil || s.Code != 0 || s.Signal != "" {
		return errors.Join(errors.New(s.Why()), s.Err)
	}
	if _, err := os.Stat(filepath.Join(spec.Dir, "probe")); !errors.Is(err, fs.ErrNotExist) {
		return errors.New("the layer does not hold")
	}
	_, err = os.Stat(filepath.Join(spec.Overlay.Upper, "probe"))
	return err
}

// layerEvery is the time between two measurements of a layer that grows.
const layerEvery = 25 * time.Millisecond

// watchGrowth ends when the layers of a run hold more than most bytes, with an error, or when ctx ends.
func watchGrowth(ctx context.Context, most int64, dirs ...string) *tools.Error {
	tick := time.NewTicker(layerEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var sum int64
		for _, dir := range dirs {
			_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error { // what is gone does not count
				var st unix.Stat_t
				if unix.Lstat(path, &st) == nil {
					sum += st.Blocks*512 + 256
				}
				return ctx.Err()
			})
		}
		if sum > most {
			return tools.Errorf(tools.PolicyBlocked, "a preview may write %s", bytesText(most))
		}
	}
}
