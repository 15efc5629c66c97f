package file

import (
	"context"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// onPath builds a tool that works on the one path in its arguments.
type onPath[In any] struct {
	def    tools.Definition
	path   func(In) string
	follow bool // if the last component is a link, use its target
	// show returns what a person reads, in no language; nil = the path. It may inspect the place but changes nothing.
	show func(s *scope, p place, in In) string
	note func(s *scope, p place, in In) []reason.Reason // in addition to the location; may be nil
	// check refuses what is wrong with the arguments alone. It runs before a person is asked and again before
	// execution; may be nil.
	check func(s *scope, p place, in In) error
	// may returns why the call cannot be executed at present (tools.Tool.Check); may be nil.
	may    func(s *scope, p place, in In) error
	run    func(s *scope, p place, in In) (*tools.Result, error)
	writes bool // it changes what is at the path
	// preview returns the text of the file after the call; nil = it is not known.
	preview func(p place, before string, in In) (after string, err error)
	// deed returns what the call does to files; nil = what preview says.
	deed   func(s *scope, p place, in In) tools.Effect
	adjust func(*jsonschema.Schema)
}

func (o onPath[In]) newTool(t *toolset) (tools.Tool, error) {
	return tools.New(tools.Typed[In]{
		Definition: o.def,
		Changes:    o.changesFunc(t),
		Preview:    o.previewsFunc(t),
		Deed:       o.deedFunc(t),
		State:      o.statesFunc(t),
		Adjust:     o.adjust,
		Describe: func(ctx context.Context, call *tools.Call, in In) (tools.Subject, error) {
			s, err := t.enterScope(ctx, call.Origin, false)
			if err != nil {
				return tools.Subject{}, err
			}
			defer s.close()
			p, err := o.placeOf(s, in)
			if err != nil {
				return tools.Subject{}, err
			}
			paths := []string{p.abs}
			note := s.locationNote(p)
			if o.note != nil {
				note = note.And(o.note(s, p, in)...)
			}
			show := showName(s.displayPath(p.abs))
			if o.show != nil {
				show = o.show(s, p, in)
			}
			return tools.Subject{Inputs: paths, Paths: paths, Show: show, Note: note}, nil
		},
		Check: func(ctx context.Context, call *tools.Call, in In) error {
			if o.may == nil {
				return nil
			}
			s, err := t.enterScope(ctx, call.Origin, false)
			if err != nil {
				return err
			}
			defer s.close()
			p, err := o.placeOf(s, in)
			if err != nil {
				return err
			}
			return o.may(s, p, in)
		},
		Run: func(ctx context.Context, call *tools.Call, in In) (*tools.Result, error) {
			s, err := t.enterScope(ctx, call.Origin, true)
			if err != nil {
				return nil, err
			}
			defer s.close()
			p, err := o.placeOf(s, in)
			if err != nil {
				return nil, err
			}
			if !o.writes {
				return o.run(s, p, in)
			}
			if err := s.asShown(call, p); err != nil {
				return nil, err
			}
			before := call.Shown
			// a program that has the file is asked for what is shown
			if before == nil && o.preview != nil && s.ReadText == nil {
				before, _ = s.statesOf(p) // what is not known is not said
			}
			res, err := o.run(s, p, in)
			if err == nil && s.wrote != "" && len(before) == 1 {
				call.Trail.Left = []tools.FileState{{Path: p.abs, Before: before[0].Before, After: s.wrote}}
			}
			return res, err
		},
	})
}

// changesFunc returns the tool's function of that name; nil for a tool that changes nothing.
func (o onPath[In]) changesFunc(t *toolset) func(ctx context.Context, call *tools.Call, in In) (tools.Changes, error) {
	return aboutPlaces(o, t, (*scope).changesOf)
}

// statesFunc returns the tool's State; nil for a tool that changes nothing.
func (o onPath[In]) statesFunc(t *toolset) func(
	ctx context.Context, call *tools.Call, in In,
) ([]tools.FileState, error) {
	return aboutPlaces(o, t, (*scope).statesOf)
}

// aboutPlaces returns a function that tells something about the place of a call; nil for a tool that changes nothing.
func aboutPlaces[In, Out any](
	o onPath[In], t *toolset, tell func(*scope, ...place) (Out, error),
) func(ctx context.Context, call *tools.Call, in In) (Out, error) {
	if !o.writes {
		return nil
	}
	return func(ctx context.Context, call *tools.Call, in In) (out Out, err error) {
		s, err := t.enterScope(ctx, call.Origin, false)
		if err != nil {
			return out, err
		}
		defer s.close()
		p, err := o.placeOf(s, in)
		if err != nil {
			return out, err
		}
		return tell(s, p)
	}
}

// placeOf resolves the path in the arguments and checks them.
func (o onPath[In]) placeOf(s *scope, in In) (place, error) {
	p, err := s.resolvePlace(o.path(in), o.follow)
	if err == nil && o.check != nil {
		err = o.check(s, p, in)
	}
	return p, err
}
