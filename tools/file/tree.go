package file

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// maxDepth limits the depth of a walk, because every level holds a handle.
const maxDepth = 200

// listEntries returns the entries of a directory, sorted by name, without those that no tool may reach.
func (s *scope) listEntries(d dir) ([]fs.DirEntry, error) {
	var all []fs.DirEntry
	check := s.hidesIn(d.path)
	for {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		part, err := d.f.ReadDir(1024)
		for _, e := range part {
			if !check || !s.isHidden(d.joinName(e.Name())) {
				all = append(all, e)
			}
		}
		if errors.Is(err, io.EOF) || (err == nil && len(part) == 0) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(all) > s.MaxEntries {
			return nil, failedError("Use find_path with a narrower pattern, or a directory further down.",
				"%s holds more than %d names", quoteName(s.displayPath(d.path)), s.MaxEntries)
		}
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return all, nil
}

// walkTree visits everything in and below d, directories before their contents. It follows no links.
func (s *scope) walkTree(d dir, depth int, visit func(d dir, e fs.DirEntry) error) error {
	if depth > maxDepth {
		return failedError("", "%s is nested deeper than %d directories", quoteName(s.displayPath(d.path)), maxDepth)
	}
	list, err := s.listEntries(d)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := visit(d, e); err != nil {
			return err
		}
		if !e.IsDir() {
			continue
		}
		sub, err := d.openSub(e.Name())
		if err != nil {
			return err
		}
		err = s.walkTree(sub, depth+1, visit)
		sub.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// census counts the contents of a tree.
type census struct{ files, dirs, others int }

func (c census) total() int { return c.files + c.dirs + c.others }

// countTree counts the contents of the directory at p. each can refuse an entry by its canonical path.
func (s *scope) countTree(p place, each func(abs string) error) (census, error) {
	var c census
	d, err := s.dirAt(p.root, p.abs)
	if err != nil {
		return c, err
	}
	defer d.close()
	err = s.walkTree(d, 0, func(d dir, e fs.DirEntry) error {
		switch {
		case e.IsDir():
			c.dirs++
		case e.Type().IsRegular():
			c.files++
		default:
			c.others++
		}
		if c.total() > s.MaxEntries {
			return failedError("Take a directory further down.", "%s holds more than %d files and directories",
				quoteName(p.given), s.MaxEntries)
		}
		if each != nil {
			return each(d.joinName(e.Name()))
		}
		return nil
	})
	return c, err
}

// contentNotes describes what is at p, for the person who is asked.
func (s *scope) contentNotes(p place) (notes []reason.Reason) {
	add := func(code reason.Code, n int64) {
		if n > 0 {
			notes = append(notes, reason.New(code, strconv.FormatInt(n, 10)))
		}
	}
	switch {
	case !p.doesExist():
		return nil
	case p.isRegular():
		return []reason.Reason{reason.New(reason.FileSize, strconv.FormatInt(p.info.size, 10))}
	case p.info.mode&fs.ModeSymlink != 0:
		return []reason.Reason{reason.New(reason.IsLink)}
	case !p.isDir():
		return []reason.Reason{reason.New(reason.IsSpecial)}
	}
	c, err := s.countTree(p, nil)
	if err == nil && c.total() == 0 {
		return []reason.Reason{reason.New(reason.EmptyDirectory)}
	}
	notes = append(notes, reason.New(reason.IsDirectory))
	if err != nil {
		return append(notes, reason.New(reason.EntriesAtLeast, strconv.Itoa(c.total())))
	}
	add(reason.HoldsFiles, int64(c.files))
	add(reason.HoldsDirectories, int64(c.dirs))
	add(reason.HoldsOthers, int64(c.others))
	return notes
}

type createArgs struct {
	Path string `json:"path" jsonschema:"directory to make, relative to the working directory or absolute"`
}

func (t *toolset) createDirectory() (tools.Tool, error) {
	return onPath[createArgs]{
		def: tools.Definition{
			Name:        "create_directory",
			Description: "Makes a directory and those above it. That it is there already is fine.",
		},
		path: func(in createArgs) string { return in.Path }, follow: true,
		deed: func(s *scope, p place, _ createArgs) tools.Effect {
			if p.doesExist() {
				return tools.Effect{}
			}
			return tools.Effect{Created: []tools.FileEffect{{Path: showName(s.displayPath(p.abs)) + "/"}}}
		},
		may:    mayCreate,
		writes: true,
		run: func(s *scope, p place, in createArgs) (*tools.Result, error) {
			if err := mayCreate(s, p, in); err != nil {
				return nil, err
			}
			if !p.doesExist() {
				if err := s.Disk.Admit(s.ctx, p.abs, 1); err != nil {
					return nil, err
				}
			}
			d, made, err := s.makeDirs(p.root, p.abs)
			if err != nil {
				return nil, systemError(err, "create", p.given)
			}
			d.close()
			if made == 0 {
				return &tools.Result{Text: "The directory exists already: " + showName(s.displayPath(p.abs))}, nil
			}
			return &tools.Result{Text: "Created directory " + showName(s.displayPath(p.abs))}, nil
		},
	}.newTool(t)
}

// mayCreate refuses to create a directory in place of something else.
func mayCreate(_ *scope, p place, _ createArgs) error {
	if p.doesExist() && !p.isDir() {
		return failedError("", "%s exists already and is %s", quoteName(p.given), kindName(p.info.mode))
	}
	return nil
}

type deleteArgs struct {
	Path      string `json:"path" jsonschema:"file, link or directory to delete, relative to the working directory or absolute"`
	Recursive *bool  `json:"recursive,omitempty" jsonschema:"false: delete a directory only when it is empty; otherwise it goes with all that is in it"`
}

func (t *toolset) deletePath() (tools.Tool, error) {
	return onPath[deleteArgs]{
		def: tools.Definition{
			Name: "delete_path", Destructive: true,
			Description: "Deletes a file, a link (not what it leads to) or a directory with all that is in it. This " +
				"cannot be undone.",
		},
		path: func(in deleteArgs) string { return in.Path },
		note: func(s *scope, p place, _ deleteArgs) []reason.Reason { return s.contentNotes(p) },
		deed: func(s *scope, p place, _ deleteArgs) tools.Effect {
			return tools.Effect{Deleted: []string{s.shownPlace(p)}}
		},
		may:    func(s *scope, p place, _ deleteArgs) error { return s.mayGo(p, "deleted") },
		writes: true,
		run:    removeFile,
	}.newTool(t)
}

func removeFile(s *scope, p place, in deleteArgs) (*tools.Result, error) {
	if err := s.mayGo(p, "deleted"); err != nil {
		return nil, err
	}
	what := reason.Notes(s.contentNotes(p)...).String()
	d, err := s.openParent(p)
	if err != nil {
		return nil, systemError(err, "delete", p.given)
	}
	defer d.close()
	if p.isDir() && (in.Recursive == nil || *in.Recursive) {
		if _, err := s.countTree(p, nil); err != nil { // refuse before anything is deleted
			return nil, systemError(err, "delete", p.given)
		}
		gone := 0
		if err = s.removeTree(d, p.base(), &gone); err != nil && gone > 0 {
			err = partlyError(err, "only a part of %s is deleted", quoteName(p.given))
		}
	} else {
		err = d.removeName(p.base(), p.isDir())
	}
	if err != nil {
		return nil, systemError(err, "delete", p.given)
	}
	if err := d.syncNames(); err != nil {
		return nil, systemError(err, "delete", p.given)
	}
	return &tools.Result{Text: "Deleted " + showName(s.displayPath(p.abs)) + " (" + what + ")"}, nil
}

// mayGo refuses to delete or move a root, what contains one, and what contains something that no tool may reach.
func (s *scope) mayGo(p place, done string) error {
	stays := func(code reason.Code) reason.Reason {
		return reason.Reason{Code: code, Args: []string{quoteName(p.given)}, Detail: done}
	}
	switch {
	case s.holdsRoot(p.abs):
		return tools.Refused(stays(reason.HoldsDirectory), "Name something inside it.")
	case !p.doesExist():
		return s.missingError(p)
	case s.holdsHidden(p.abs):
		return tools.Refused(stays(reason.HoldsService), "")
	}
	return nil
}

// removeTree deletes a directory in d with its contents, and follows no links. It adds to gone what is deleted.
func (s *scope) removeTree(d dir, name string, gone *int) error {
	sub, err := d.openSub(name)
	if err != nil {
		return err
	}
	defer sub.close()
	list, err := s.listEntries(sub)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if e.IsDir() {
			err = s.removeTree(sub, e.Name(), gone)
		} else {
			err = sub.removeName(e.Name(), false)
		}
		if err = ignoreMissing(err); err != nil {
			return err
		}
		*gone++
	}
	return d.removeName(name, true)
}
