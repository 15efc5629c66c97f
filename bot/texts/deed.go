package texts

import (
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/tools"
)

// deedBook is what is said of what a call would do.
type deedBook struct {
	Ask                             string // the deed
	Nothing                         string
	Creates, Writes, Deletes, Modes string // one name, or several
	CreatesN, WritesN, DeletesN     string // number, names of files
	CreatesDirs, DeletesDirs        string // number, names of directories
	Moves, Copies                   string // from, to
	More                            count
	Printed                         string
	Exit                            string // code
	Partial                         count
	Again                           string
	Diff                            string
	Unknown                         map[string]string
}

// Limits of the first line of a card.
const (
	mostDeeds  = 4  // names of each kind
	deedLength = 80 // of each name, in UTF-16 units
)

// Deed says in one line what a call would do to files, with their names marked as code (render.Marked); "" = that is not
// known.
func (w Words) Deed(language string, e *tools.Effect) string {
	if e == nil || e.Unknown != "" {
		return ""
	}
	b := &w.in(language).Card.Deeds
	name := func(path string) string { return render.Code(w.fileName(language, path)) }
	// sorted returns the names of the files and those of the directories.
	sorted := func(list []tools.FileEffect) (files, dirs []string) {
		for _, f := range list {
			if strings.HasSuffix(f.Path, "/") {
				dirs = append(dirs, name(f.Path))
			} else {
				files = append(files, name(f.Path)+lines(f))
			}
		}
		return files, dirs
	}
	var parts []string
	add := func(one, many string, names []string, omitted int) {
		n := len(names) + omitted
		if len(names) > mostDeeds {
			names = names[:mostDeeds:mostDeeds]
		}
		if more := n - len(names); len(names) == 0 {
			names = []string{"…"}
		} else if more > 0 {
			names = append(names, b.More.say(more))
		}
		switch {
		case n == 1:
			parts = append(parts, fmt.Sprintf(one, names[0]))
		case n > 1:
			parts = append(parts, fmt.Sprintf(many, n, strings.Join(names, ", ")))
		}
	}
	var deletes []tools.FileEffect
	var modes []string
	for _, path := range e.Deleted {
		deletes = append(deletes, tools.FileEffect{Path: path})
	}
	for _, m := range e.Modes {
		modes = append(modes, fmt.Sprintf("%s (%04o → %04o)", name(m.Path), m.Before, m.After))
	}
	deleted, deletedDirs := sorted(deletes)
	changed, _ := sorted(e.Changed)
	created, createdDirs := sorted(e.Created)
	add(b.Deletes, b.DeletesN, deleted, e.Omitted.Deleted)
	add(b.Deletes, b.DeletesDirs, deletedDirs, e.Omitted.DeletedDirs)
	add(b.Writes, b.WritesN, changed, e.Omitted.Changed)
	add(b.Creates, b.CreatesN, created, e.Omitted.Created)
	add(b.Creates, b.CreatesDirs, createdDirs, e.Omitted.CreatedDirs)
	for _, m := range e.Moved {
		parts = append(parts, fmt.Sprintf(b.Moves, name(m.From), name(m.To)))
	}
	for _, m := range e.Copied {
		parts = append(parts, fmt.Sprintf(b.Copies, name(m.From), name(m.To)))
	}
	if n := len(modes) + e.Omitted.Modes; n > 0 {
		if len(modes) > mostDeeds {
			modes = modes[:mostDeeds:mostDeeds]
		}
		if more := n - len(modes); more > 0 {
			modes = append(modes, b.More.say(more))
		}
		parts = append(parts, fmt.Sprintf(b.Modes, strings.Join(modes, ", ")))
	}
	if len(parts) == 0 {
		return b.Nothing
	}
	return strings.Join(parts, " · ")
}

// fileName says which file is meant, on cards and in receipts alike.
func (w Words) fileName(language, path string) string {
	return render.Cut(w.shown(language, path), deedLength)
}

// lines says how many lines of a file come and go.
func lines(f tools.FileEffect) string {
	switch {
	case f.Added == 0 && f.Removed == 0:
		return ""
	case f.Removed == 0:
		return fmt.Sprintf(" (+%d)", f.Added)
	case f.Added == 0:
		return fmt.Sprintf(" (−%d)", f.Removed)
	}
	return fmt.Sprintf(" (+%d −%d)", f.Added, f.Removed)
}

// Printed is the label of what a call printed when it was tried.
func (w Words) Printed(language string) string { return w.in(language).Card.Deeds.Printed }

// Untold says why it is not known what a call would do; tried is what it attempted, "" = that is not known.
func (w Words) Untold(language string, why tools.Unknown, tried string) string {
	b := &w.in(language).Card.Deeds
	text, ok := b.Unknown[string(why)]
	if !ok {
		text = b.Unknown[string(tools.UnknownFailed)]
	}
	if tried != "" {
		text += " (" + tried + ")"
	}
	return text
}

// DiffButton is the label of the button that shows the differences.
func (w Words) DiffButton(language string) string { return w.in(language).Card.Deeds.Diff }
