package file

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

type pairArgs struct {
	Source      string `json:"source" jsonschema:"what to take, relative to the working directory or absolute"`
	Destination string `json:"destination" jsonschema:"its full new path, with the new name; the directories above it are made"`
}

// pairTool builds a tool that works on a source and a destination. The policy gets both. may returns why the call
// cannot be executed at present, and changed which of the two it changes.
func (t *toolset) pairTool(
	def tools.Definition, verb string, may func(s *scope, from, to place) error,
	changed func(from, to place) []place, run func(*scope, place, place) (*tools.Result, error),
) (tools.Tool, error) {
	return tools.New(tools.Typed[pairArgs]{
		Definition: def,
		Describe: func(ctx context.Context, call *tools.Call, in pairArgs) (subject tools.Subject, err error) {
			err = t.withBoth(ctx, call, in, false, func(s *scope, from, to place) error {
				subject = s.describePair(from, to)
				return nil
			})
			return subject, err
		},
		Check: func(ctx context.Context, call *tools.Call, in pairArgs) error {
			return t.withBoth(ctx, call, in, false, func(s *scope, from, to place) error {
				if err := s.mayTake(from, to); err != nil {
					return err
				}
				if err := s.soleAt(to); err != nil {
					return err
				}
				return may(s, from, to)
			})
		},
		Deed: func(ctx context.Context, call *tools.Call, in pairArgs) (e tools.Effect, err error) {
			err = t.withBoth(ctx, call, in, false, func(s *scope, from, to place) error {
				pair := []tools.MoveEffect{{From: s.shownPlace(from), To: showName(s.displayPath(to.abs))}}
				if verb == "move" {
					e.Moved = pair
				} else {
					e.Copied = pair
				}
				return nil
			})
			return e, err
		},
		State: func(ctx context.Context, call *tools.Call, in pairArgs) (list []tools.FileState, err error) {
			err = t.withBoth(ctx, call, in, false, func(s *scope, from, to place) error {
				list, err = s.statesOf(from, to)
				return err
			})
			return list, err
		},
		Changes: func(ctx context.Context, call *tools.Call, in pairArgs) (c tools.Changes, err error) {
			err = t.withBoth(ctx, call, in, false, func(s *scope, from, to place) error {
				c, err = s.changesOf(changed(from, to)...)
				return err
			})
			return c, err
		},
		Run: func(ctx context.Context, call *tools.Call, in pairArgs) (res *tools.Result, err error) {
			err = t.withBoth(ctx, call, in, true, func(s *scope, from, to place) error {
				if err := s.mayTake(from, to); err != nil {
					return err
				}
				if err := may(s, from, to); err != nil {
					return err
				}
				if err := s.asShown(call, from, to); err != nil {
					return err
				}
				res, err = run(s, from, to)
				return systemError(err, verb, from.given)
			})
			return res, err
		},
	})
}

// withBoth calls do with the two places of a call. create says whether missing directories are created.
func (t *toolset) withBoth(ctx context.Context, call *tools.Call, in pairArgs, create bool,
	do func(s *scope, from, to place) error,
) error {
	s, err := t.enterScope(ctx, call.Origin, create)
	if err != nil {
		return err
	}
	defer s.close()
	from, to, err := s.resolvePair(in)
	if err != nil {
		return err
	}
	return do(s, from, to)
}

// describePair returns what the policy and a person check.
func (s *scope) describePair(from, to place) tools.Subject {
	paths := []string{from.abs, to.abs}
	note := s.locationNote(to).And(s.contentNotes(from)...)
	if to.isRegular() {
		note = note.And(overwriteReason(to))
	}
	what := showName(s.displayPath(from.abs)) + " → " + showName(s.displayPath(to.abs))
	return tools.Subject{Inputs: paths, Paths: paths, Show: what, Note: note}
}

func (s *scope) resolvePair(in pairArgs) (from, to place, err error) {
	if from, err = s.resolvePlace(in.Source, false); err != nil {
		return from, to, err
	}
	to, err = s.resolvePlace(in.Destination, false)
	return from, to, err
}

// mayTake refuses what can neither be moved nor copied.
func (s *scope) mayTake(from, to place) error {
	switch {
	case !from.doesExist():
		return s.missingError(from)
	case from.abs == to.abs:
		return argumentError("", "source and destination are the same")
	case pathrule.Inside(from.abs, to.abs):
		return argumentError("", "%s lies inside %s", quoteName(to.given), quoteName(from.given))
	case !from.isDir() && !from.isLink() && !from.isRegular():
		return failedError("", "%s is %s and stays where it is", quoteName(from.given), kindName(from.info.mode))
	case to.isDir():
		return failedError(fmt.Sprintf("Give the full new path, for example %s.",
			quoteName(filepath.Join(to.given, from.base()))),
			"%s is a directory and is not overwritten", quoteName(to.given))
	case to.doesExist() && from.isDir():
		return failedError("", "%s exists already; a directory does not overwrite it", quoteName(to.given))
	}
	if err := s.checkWritable(to); err != nil {
		return err
	}
	return s.checkDenied(from.abs, from.given)
}

func (t *toolset) movePath() (tools.Tool, error) {
	return t.pairTool(tools.Definition{
		Name: "move_path", Destructive: true,
		Description: "Moves or renames a file, a link or a directory. A file at the destination is replaced, a " +
			"directory is not.",
	}, "move", mayMove, func(from, to place) []place { return []place{from, to} }, moveFile)
}

// mayMove refuses what must not be moved.
func mayMove(s *scope, from, to place) error {
	if err := s.mayGo(from, "moved"); err != nil {
		return err
	}
	if from.isDir() {
		// Under another name, a denied file would be readable.
		_, err := s.countTree(from, func(abs string) error { return s.checkDenied(abs, s.displayPath(abs)) })
		return err
	}
	if !from.isLink() {
		return nil
	}
	src, err := s.openParent(from)
	if err != nil {
		return err
	}
	defer src.close()
	return s.linkStays(src, from, to)
}

func moveFile(s *scope, from, to place) (*tools.Result, error) {
	src, err := s.openParent(from)
	if err != nil {
		return nil, err
	}
	defer src.close()
	dst, _, err := s.makeDirs(to.root, to.parent())
	if err != nil {
		return nil, err
	}
	defer dst.close()
	if err := checkSole(dst, to.base(), to.given); err != nil {
		return nil, err
	}
	err = src.renameTo(from.base(), dst, to.base())
	if errors.Is(err, unix.EXDEV) {
		err = s.carryAcross(src, from, dst, to)
	}
	if err == nil {
		err = errors.Join(dst.syncNames(), src.syncNames())
	}
	if err != nil {
		return nil, err
	}
	return &tools.Result{
		Text: fmt.Sprintf("Moved %s to %s", showName(s.displayPath(from.abs)), showName(s.displayPath(to.abs))),
	}, nil
}

// carryAcross moves between file systems: it copies everything and then deletes the source.
func (s *scope) carryAcross(src dir, from place, dst dir, to place) error {
	c, err := s.newCopier(to)
	if err != nil {
		return err
	}
	if err = c.runCopy(src, from, dst, to, true); err != nil {
		return err
	}
	if gone := 0; from.isDir() {
		err = s.removeTree(src, from.base(), &gone)
	} else {
		err = src.removeName(from.base(), false)
	}
	if err != nil {
		return partlyError(
			err, "%s is copied to %s, and not all of it could be deleted where it was",
			quoteName(from.given), quoteName(to.given),
		)
	}
	return nil
}

// linkStays refuses to move a link to where it would lead out of the allowed places.
func (s *scope) linkStays(d dir, from, to place) error {
	target, err := d.readLink(from.base())
	if err != nil {
		return err
	}
	if !s.staysInside(target, to.abs) {
		return refusedError("", reason.LinkLeadsOut, quoteName(from.given))
	}
	return nil
}

// staysInside reports whether a link at a canonical path leads to an allowed place. Its target may be a link too, which
// is checked when it is followed.
func (s *scope) staysInside(target, at string) bool {
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(at), target)
	}
	target = filepath.Clean(target)
	_, ok := s.rootOf(target)
	return ok && !s.isHidden(target)
}
