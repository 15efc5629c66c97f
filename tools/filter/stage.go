package filter

import (
	"context"
	"encoding/json"

	"github.com/zephbot/zephbot/tools"
)

// Hooks receive information about the stage's work.
type Hooks struct {
	// Observe is called once for every result that was filtered; may be nil. It must be safe for concurrent use and
	// must not block.
	Observe func(Stats)
}

// Stats measure one filtered result. Chars are Unicode code points.
type Stats struct {
	Rules             []string
	Level             Confidence
	CharsIn, CharsOut int
	LinesIn, LinesOut int
	Dropped           bool
	Credentials       int
}

// New returns the stage. It changes Result.Text, and sets Whole when something was left out. The raw form is not
// changed.
func New(e *Engine, h Hooks) tools.Middleware {
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			result, err := next(ctx, call)
			if err != nil || !call.Def.Runs() || !ranCommand(result) {
				return result, err
			}
			var args struct {
				Command string `json:"command"`
			}
			if json.Unmarshal(call.Args, &args) != nil {
				return result, nil
			}
			exit := result.ExitCode
			if result.Error && exit != nil && *exit == 0 {
				exit = nil // the result states a failure: believe it
			}
			out := e.Filter(args.Command, exit, result.Text)
			if h.Observe != nil {
				h.Observe(Stats{
					Rules: out.Rules, Level: out.Level, CharsIn: out.CharsIn, CharsOut: out.CharsOut,
					LinesIn: out.LinesIn, LinesOut: out.LinesOut,
					Dropped: out.Dropped, Credentials: out.Credentials,
				})
			}
			if stats := out.Stats(); stats != "" && call.Trail != nil {
				call.Trail.Summary = stats
			}
			return showFiltered(result, out), nil
		}
	}
}

// ranCommand reports whether a command has run to its end and printed something. A result without exit code and failure
// means that a background run was started.
func ranCommand(r *tools.Result) bool {
	return r != nil && r.Text != "" && (r.ExitCode != nil || r.Error)
}

// showFiltered returns a copy of the result with the filtered text, because the original may be shared.
func showFiltered(result *tools.Result, out Output) *tools.Result {
	shown := *result
	if shown.Whole == "" && out.Dropped {
		shown.Whole = result.Text
	}
	shown.Text = out.Text
	return &shown
}
