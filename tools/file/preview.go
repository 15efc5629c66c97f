package file

import (
	"context"

	"github.com/zephbot/zephbot/tools"
)

// previewsFunc returns the tool's function of that name; nil for a tool that has none.
func (o onPath[In]) previewsFunc(t *toolset) func(ctx context.Context, call *tools.Call, in In) (tools.Preview, error) {
	if o.preview == nil {
		return nil
	}
	return func(ctx context.Context, call *tools.Call, in In) (tools.Preview, error) {
		s, err := t.enterScope(ctx, call.Origin, false)
		if err != nil {
			return tools.Preview{}, err
		}
		defer s.close()
		p, err := o.placeOf(s, in)
		if err != nil {
			return tools.Preview{}, err
		}
		before := ""
		if p.doesExist() {
			if before, _, _, err = s.readEditable(p); err != nil {
				return tools.Preview{}, err
			}
		}
		after, err := o.preview(p, before, in)
		return tools.Preview{Path: showName(s.displayPath(p.abs)), Before: before, After: after}, err
	}
}

// editedText returns the text of a file after an edit.
func editedText(p place, content string, in editArgs) (string, error) {
	if hasCRLF(content) {
		in.OldString, in.NewString = toCRLF(in.OldString), toCRLF(in.NewString)
	}
	found := findOccurrences(content, in.OldString)
	if in.OldString == "" || len(found) == 0 || len(found) > 1 && !in.ReplaceAll {
		return "", absentError(p, content, in.OldString)
	}
	return change{old: content, found: found, from: in.OldString, to: in.NewString}.changedText(0, len(content)), nil
}
