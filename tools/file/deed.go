package file

import (
	"context"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/zephbot/zephbot/tools"
)

// deedFunc returns the tool's Deed; nil for a tool that changes nothing.
func (o onPath[In]) deedFunc(t *toolset) func(ctx context.Context, call *tools.Call, in In) (tools.Effect, error) {
	previews := o.previewsFunc(t)
	if o.deed == nil && previews == nil {
		return nil
	}
	return func(ctx context.Context, call *tools.Call, in In) (tools.Effect, error) {
		s, err := t.enterScope(ctx, call.Origin, false)
		if err != nil {
			return tools.Effect{}, err
		}
		defer s.close()
		p, err := o.placeOf(s, in)
		if err != nil {
			return tools.Effect{}, err
		}
		if o.deed != nil {
			return o.deed(s, p, in), nil
		}
		v, err := previews(ctx, call, in)
		if err != nil {
			return tools.Effect{}, err
		}
		return writtenEffect(v, p.doesExist())
	}
}

// writtenEffect returns the effect of a call that gives a text file another content.
func writtenEffect(v tools.Preview, existed bool) (e tools.Effect, err error) {
	f := tools.FileEffect{Path: v.Path, Bytes: int64(len(v.After))}
	from := "a/" + v.Path
	if !existed {
		from = "/dev/null"
	}
	if v.Before != v.After {
		e.Diff, err = udiff.ToUnified(
			from, "b/"+v.Path, v.Before, udiff.Lines(v.Before, v.After), udiff.DefaultContextLines,
		)
		if err != nil {
			return tools.Effect{}, err
		}
		body := false // the two lines before the first @@ name the file
		for line := range strings.Lines(e.Diff) {
			switch {
			case strings.HasPrefix(line, "@@"):
				body = true
			case body && strings.HasPrefix(line, "+"):
				f.Added++
			case body && strings.HasPrefix(line, "-"):
				f.Removed++
			}
		}
	}
	switch {
	case !existed:
		e.Created = []tools.FileEffect{f}
	case v.Before != v.After:
		e.Changed = []tools.FileEffect{f}
	}
	return e, nil
}

// shownPlace is a place as people see it: a directory ends with a slash.
func (s *scope) shownPlace(p place) string {
	if p.isDir() {
		return showName(s.displayPath(p.abs)) + "/"
	}
	return showName(s.displayPath(p.abs))
}
