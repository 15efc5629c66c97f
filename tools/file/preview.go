package file

import (
	"context"
	"strings"

	"github.com/zephbot/zephbot/tools"
)

// previews returns the tool's function of that name; nil for a tool that has none.
func (o onPath[In]) previews(t *toolset) func(ctx context.Context, call *tools.Call, in In) (tools.Preview, error) {
	if o.preview == nil {
		return nil
	}
	return func(ctx context.Context, call *tools.Call, in In) (tools.Preview, error) {
		s, err := t.enter(ctx, call.Origin, false)
		if err != nil {
			return tools.Preview{}, err
		}
		defer s.close()
		p, err := o.place(s, in)
		if err != nil {
			return tools.Preview{}, err
		}
		before := ""
		if p.exists() {
			if before, _, err = s.editable(p); err != nil {
				return tools.Preview{}, err
			}
		}
		after, err := o.preview(p, before, in)
		return tools.Preview{Path: show(s.display(p.abs)), Before: before, After: after}, err
	}
}

// edited returns the text of a file after an edit.
func edited(p place, content string, in editArgs) (string, error) {
	if strings.Contains(content, "\r\n") && strings.Count(content, "\n") == strings.Count(content, "\r\n") {
		in.OldString, in.NewString = crlf(in.OldString), crlf(in.NewString)
	}
	found := occurrences(content, in.OldString)
	if in.OldString == "" || len(found) == 0 || len(found) > 1 && !in.ReplaceAll {
		return "", absent(p, content, in.OldString)
	}
	return change{old: content, found: found, from: in.OldString, to: in.NewString}.apply(0, len(content)), nil
}
