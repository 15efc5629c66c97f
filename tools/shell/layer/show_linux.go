package layer

import (
	"bytes"
	"context"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/zephbot/zephbot/tools"
)

// Limits of what is shown.
const (
	mostText = 256 << 10 // bytes of a file whose lines are compared
	mostDiff = 64 << 10  // bytes of the diffs of all files
)

// Show says what applying the changes would do. The diff contains text of the files as it is.
func Show(ctx context.Context, upper, below string, changes []Change) (tools.Effect, error) {
	above, err := openTree(upper)
	if err != nil {
		return tools.Effect{}, err
	}
	defer above.close()
	lower, err := openTree(below)
	if err != nil {
		return tools.Effect{}, err
	}
	defer lower.close()
	s := &shower{above: above, below: lower}
	for i, c := range changes {
		if err := ctx.Err(); err != nil {
			return tools.Effect{}, err
		}
		if err := s.change(c, within(changes, i, c.Path)); err != nil {
			return tools.Effect{}, err
		}
	}
	s.Diff = s.diff.String()
	return s.Effect, nil
}

// within reports whether one of the changes after the first i is inside p.
func within(changes []Change, i int, p string) bool {
	return i+1 < len(changes) && strings.HasPrefix(changes[i+1].Path, p+"/")
}

type shower struct {
	tools.Effect

	above, below *tree
	diff         strings.Builder
}

// put appends to a list that is not longer than is shown.
func put[T any](list *[]T, omitted *int, v T) {
	if len(*list) >= tools.MostEffects {
		*omitted++
		return
	}
	*list = append(*list, v)
}

// change adds a change. filled says that there are changes inside it, which speak for a new or deleted directory.
func (s *shower) change(c Change, filled bool) error {
	isDir := func(st State) bool { return st.Kind == Directory }
	if c.Before.Kind != Absent && (c.After.Kind == Absent || isDir(c.Before) != isDir(c.After)) {
		switch {
		case !isDir(c.Before):
			put(&s.Deleted, &s.Omitted.Deleted, c.Path)
		case !filled:
			put(&s.Deleted, &s.Omitted.DeletedDirs, shown(c.Path, c.Before))
		}
		c.Before = State{}
	}
	switch {
	case c.After.Kind == Absent:
	case isDir(c.After) && isDir(c.Before):
		s.mode(c)
	case isDir(c.After):
		if !filled {
			put(&s.Created, &s.Omitted.CreatedDirs, tools.FileEffect{Path: shown(c.Path, c.After)})
		}
	case c.Before.Kind == Absent:
		f, err := s.lines(c)
		put(&s.Created, &s.Omitted.Created, f)
		return err
	case !c.Before.same(c.After) || c.Before.Time != c.After.Time:
		f, err := s.lines(c)
		put(&s.Changed, &s.Omitted.Changed, f)
		return err
	default:
		s.mode(c)
	}
	return nil
}

func (s *shower) mode(c Change) {
	if c.Before.Mode != c.After.Mode {
		put(&s.Modes, &s.Omitted.Modes, tools.ModeEffect{
			Path: shown(c.Path, c.After), Before: c.Before.Mode, After: c.After.Mode,
		})
	}
}

// shown returns a path as people see it.
func shown(p string, s State) string {
	if s.Kind == Directory {
		return p + "/"
	}
	return p
}

// lines compares the lines of a file, and adds its diff.
func (s *shower) lines(c Change) (tools.FileEffect, error) {
	f := tools.FileEffect{Path: c.Path, Bytes: c.After.Size}
	before, ok, err := text(s.below, c.Path, c.Before)
	if err != nil || !ok {
		return f, err
	}
	after, ok, err := text(s.above, c.Path, c.After)
	if err != nil || !ok || before == after {
		return f, err
	}
	edits := udiff.Lines(before, after)
	from, to := "a/"+c.Path, "b/"+c.Path
	if c.Before.Kind == Absent {
		from = "/dev/null"
	}
	unified, err := udiff.ToUnified(from, to, before, edits, udiff.DefaultContextLines)
	if err != nil {
		return f, err
	}
	body := false // the two lines before the first @@ name the file
	for line := range strings.Lines(unified) {
		switch {
		case strings.HasPrefix(line, "@@"):
			body = true
		case body && strings.HasPrefix(line, "+"):
			f.Added++
		case body && strings.HasPrefix(line, "-"):
			f.Removed++
		}
	}
	if s.diff.Len()+len(unified) > mostDiff {
		if !strings.HasSuffix(s.diff.String(), "…\n") {
			s.diff.WriteString("…\n")
		}
		return f, nil
	}
	s.diff.WriteString(unified)
	return f, nil
}

// text returns the content of a file as text; ok is false if it is none. Of a link it is the target.
func text(t *tree, p string, st State) (content string, ok bool, err error) {
	switch {
	case st.Kind == Link:
		return st.Content + "\n", true, nil
	case st.Kind != File:
		return "", true, nil
	case st.Size > mostText:
		return "", false, nil
	}
	f, err := t.file(p)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = f.Close() }() // opened for reading
	raw, err := io.ReadAll(io.LimitReader(f, mostText))
	if err != nil {
		return "", false, err
	}
	return string(raw), utf8.Valid(raw) && !bytes.ContainsRune(raw, 0), nil
}
