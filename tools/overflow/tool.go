package overflow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// ToolName is the name of the tool that reads stored outputs.
const ToolName = "read_overflow"

// Says returns the tool's statement for the policy.
func Says() []act.Tool {
	return []act.Tool{{Name: ToolName, Statement: act.Statement{Act: act.Recalls}}}
}

type readArgs struct {
	ID     string `json:"id" jsonschema:"the reference from the notice, with or without overflow: before it"`
	Offset int    `json:"offset,omitempty" jsonschema:"how many characters to skip; 0 starts at the beginning"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many characters to give"`
}

// errUnknown returns the same error for everything that cannot be read, so that it reveals nothing about other
// sessions.
func errUnknown() *tools.Error {
	return &tools.Error{
		Category:   tools.PermanentFailure,
		Message:    "this output is not found in this conversation, or it has expired",
		Suggestion: "Check the id against the notice, or run the tool again that gave the output.",
	}
}

// Tool returns read_overflow, which reads Options.Store in pages that are never cut again. A missing Store is an error.
func Tool(options Options) (tools.Tool, error) {
	if options.Store == nil {
		return tools.Tool{}, fmt.Errorf("tool %s: there is no store to read from", ToolName)
	}
	o := options.withDefaults()
	r := &reading{store: o.Store, page: page(o.Threshold), now: o.Now}
	return tools.New(tools.Typed[readArgs]{
		Definition: tools.Definition{
			Name: ToolName, ReadOnly: true, Says: act.Of(Says(), ToolName),
			Description: "Reads a long output that was put aside: a notice names it as overflow:<uuid>. Use offset " +
				"and limit to read it in parts.",
		},
		Adjust: func(s *jsonschema.Schema) {
			s.Properties["offset"].Minimum = new(0.0)
			s.Properties["limit"].Minimum = new(1.0)
			s.Properties["limit"].Description += fmt.Sprintf(
				"; at most %d, or what the window has room for, which is what comes without it", r.page,
			)
		},
		Describe: describe,
		Run:      r.run,
	})
}

// page returns the size of a page, so that it stays below the threshold including its last line.
func page(threshold int) int {
	return max(threshold-Extra, threshold/2, 1)
}

func describe(_ context.Context, _ *tools.Call, in readArgs) (tools.Subject, error) {
	id, err := in.id()
	if err != nil {
		return tools.Subject{}, err
	}
	return tools.Subject{
		Inputs: []string{id},
		Show:   Prefix + id,
		Note:   reason.Notes(reason.New(reason.OfConversation)),
	}, nil
}

// id returns the reference in its stored form.
func (in *readArgs) id() (string, error) {
	id := strings.ToLower(strings.TrimSpace(in.ID))
	id = strings.TrimPrefix(id, Prefix)
	if !isID(id) {
		return "", tools.Errorf(tools.InvalidParameters,
			"id: %.80q is not a reference; want overflow:<uuid> or the bare UUID, as the notice has it", in.ID)
	}
	return id, nil
}

// reading implements the tool.
type reading struct {
	store Store
	page  int // characters
	now   func() time.Time
}

func (r *reading) run(ctx context.Context, call *tools.Call, in readArgs) (*tools.Result, error) {
	id, err := in.id()
	if err != nil {
		return nil, err
	}
	if in.Offset < 0 || in.Limit < 0 {
		return nil, tools.Errorf(tools.InvalidParameters, "offset must be 0 or more, limit 1 or more")
	}
	if call.Origin.Session == "" {
		return nil, errUnknown()
	}
	item, err := r.store.Load(ctx, call.Origin.Session, id, r.now())
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, errUnknown()
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, &tools.Error{
			Category: tools.ServerError, Message: "the stored output cannot be read at the moment",
			Err: err,
		}
	}
	whole := valid(item.Text)
	text, err := r.part(whole, in, min(r.page, fitting(whole, call.Room)))
	if err != nil {
		return nil, err
	}
	return &tools.Result{Text: text, Untrusted: item.Source}, nil
}

// part returns the requested page, and a line that says where to continue.
func (r *reading) part(text string, in readArgs, limit int) (string, error) {
	total := count(text)
	if in.Offset > 0 && in.Offset >= total {
		return "", tools.Errorf(tools.InvalidParameters, "offset: %d is behind the end; the output has %d characters",
			in.Offset, total)
	}
	if in.Limit > 0 {
		limit = min(limit, in.Limit)
	}
	from := after(text, 0, in.Offset)
	to := after(text, from, limit)
	// a character of several code points goes to the next page
	if begin, _ := cluster(text, to); begin > from {
		to = begin
	}
	next := in.Offset + count(text[from:to])
	what := fmt.Sprintf("read on with offset %d", next)
	if next == total {
		what = "this is the end"
	}
	return onNewLine(text[from:to], fmt.Sprintf("[characters %d to %d of %d; %s]", in.Offset, next, total, what)), nil
}
