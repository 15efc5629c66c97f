package file

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/charset"
)

type writeArgs struct {
	Path    string `json:"path" jsonschema:"file to write, relative to the working directory or absolute"`
	Content string `json:"content" jsonschema:"the whole new content of the file"`
}

func (t *toolset) writeTool() (tools.Tool, error) {
	return onPath[writeArgs]{
		def: tools.Definition{
			Name: "write", Destructive: true,
			Description: "Writes a text file: makes it, with the directories above it, or replaces its whole " +
				"content. To change a part of a file use edit.",
		},
		path: func(in writeArgs) string { return in.Path }, follow: true,
		show: func(s *scope, p place, in writeArgs) string {
			return showName(s.displayPath(p.abs)) + "\n" + in.Content
		},
		note: func(_ *scope, p place, _ writeArgs) []reason.Reason {
			if p.isRegular() {
				return []reason.Reason{overwriteReason(p)}
			}
			return []reason.Reason{reason.New(reason.NewFile)}
		},
		check: func(s *scope, p place, in writeArgs) error {
			if !strings.Contains(in.Content, redact.Mask) || strings.Count(in.Content, redact.Mask) <= s.countMasks(p) {
				return nil
			}
			return maskedError(p)
		},
		may:    mayWrite,
		writes: true,
		preview: func(_ place, before string, in writeArgs) (string, error) {
			after, _ := keepLineEnds(before, in.Content)
			return after, nil
		},
		run: func(s *scope, p place, in writeArgs) (*tools.Result, error) {
			if err := mayWrite(s, p, in); err != nil {
				return nil, err
			}
			content, notes := s.keepForm(p, in.Content)
			if len(content) > s.MaxWrite {
				return nil, argumentError("Write less at once.", "the file would have %d bytes; at most %d may be written",
					len(content), s.MaxWrite)
			}
			if err := s.replaceFile(p, content, nil); err != nil {
				return nil, systemError(err, "write", p.given)
			}
			verb := "Wrote"
			if p.doesExist() {
				verb = "Replaced the content:"
			}
			text := fmt.Sprintf("%s %s to %s", verb, countNoun(len(content), "byte", "bytes"),
				showName(s.displayPath(p.abs)))
			return &tools.Result{Text: text + notes}, nil
		},
	}.newTool(t)
}

// mayWrite refuses content that is too long, and paths where no file can be created.
func mayWrite(s *scope, p place, in writeArgs) error {
	if len(in.Content) > s.MaxWrite {
		return argumentError("Write less at once.", "content has %d bytes; at most %d may be written", len(in.Content),
			s.MaxWrite)
	}
	if err := s.checkWritable(p); err != nil {
		return err
	}
	return s.soleAt(p)
}

// keepLineEnds gives content the line ends of the text that it replaces, unless it has some of its own.
func keepLineEnds(before, content string) (after string, kept bool) {
	if hasCRLF(before) && !strings.Contains(content, "\r\n") && strings.Contains(content, "\n") {
		return toCRLF(content), true
	}
	return content, false
}

// keepForm returns content as it is written over a file that exists: with its line ends, its byte order mark and in its
// encoding, unless content brings its own. The notes say for the model what was kept.
func (s *scope) keepForm(p place, content string) (raw, notes string) {
	var before string
	var encoding charset.Encoding
	if s.ReadText == nil {
		old := s.peekContent(p)
		var ok bool
		if encoding, ok = charset.Detect(old, true); !ok || len(old) == 0 {
			return content, ""
		}
		before = encoding.Decode(old)
	} else if p.isRegular() {
		before, _ = s.readBuffered(p) // if it cannot be read, nothing is kept of it
	}
	content, kept := keepLineEnds(before, content)
	if kept {
		notes = "\n[its line ends were kept: CRLF]"
	}
	own, marked := strings.CutPrefix(content, "\ufeff")
	if marked && encoding.Marked() {
		content = own
	}
	raw, err := encoding.Encode(content)
	switch {
	case err != nil:
		return content, notes + fmt.Sprintf("\n[it is UTF-8 now: %v]", err)
	case !encoding.IsUTF8():
		notes += "\n[its encoding was kept: " + encoding.Name + "]"
	case encoding.Marked() && !marked:
		notes += "\n[its byte order mark was kept]"
	}
	return raw, notes
}

// soleAt refuses a path whose file has several names. The directories above it need not exist.
func (s *scope) soleAt(p place) error {
	if !p.doesExist() {
		return nil
	}
	d, err := s.openParent(p)
	if err != nil {
		return err
	}
	defer d.close()
	return checkSole(d, p.base(), p.given)
}

// overwriteReason says that a file loses its content.
func overwriteReason(p place) reason.Reason {
	if p.info.size == 1 {
		return reason.New(reason.ReplacesByte)
	}
	return reason.New(reason.ReplacesBytes, fmt.Sprint(p.info.size))
}

// newMode is the mode of a new file, before the umask.
const newMode = 0o644

// fileMode returns the mode of a file written at p: that of the file it replaces.
func (p place) fileMode() fs.FileMode {
	if p.doesExist() {
		return p.info.mode.Perm()
	}
	return 0
}

// checkWritable refuses to replace something other than a file, and a file with several names.
func (s *scope) checkWritable(p place) error {
	switch {
	case p.isRoot() || p.isDir():
		return failedError("Give the path of a file.", "%s is a directory", quoteName(p.given))
	case !p.doesExist():
		return nil
	case !p.isRegular():
		return failedError("", "%s is %s, not a regular file", quoteName(p.given), kindName(p.info.mode))
	case p.info.mode.Perm()&0o222 == 0:
		return failedError("", "%s is read-only", quoteName(p.given))
	}
	return nil
}

// checkSole refuses a file with several names: the change would also appear, or be missing, under the other name.
func checkSole(d dir, name, given string) error {
	st, ok, err := d.statName(name)
	switch {
	case err != nil || !ok:
		return err
	case fileKind(st) == unix.S_IFDIR:
		return failedError("", "%s is a directory", quoteName(given))
	case fileKind(st) != unix.S_IFREG:
		return failedError("", "%s is not a regular file", quoteName(given))
	case st.Nlink > 1:
		return refusedError("Write to another name instead.", reason.LinkedNotWritten,
			quoteName(given))
	}
	return nil
}

// replaceFile puts content at p atomically: a reader sees the old or the new file, even after a crash. With read, the
// file must still be the one that was read.
func (s *scope) replaceFile(p place, content string, read *unix.Stat_t) error {
	growth := int64(len(content))
	if p.doesExist() {
		growth -= p.info.size
	}
	if err := s.Disk.Admit(s.ctx, p.abs, growth); err != nil {
		return err
	}
	d, _, err := s.makeDirs(p.root, p.parent())
	if err != nil {
		return err
	}
	defer d.close()
	if err := checkSole(d, p.base(), p.given); err != nil {
		return err
	}
	s.wrote = stateOfText(content) // if it succeeds
	if s.WriteText != nil {
		return s.WriteText(s.ctx, p.abs, content)
	}
	temp := tempName()
	err = d.createFile(temp, content, p.fileMode())
	if err == nil {
		err = s.ctx.Err()
	}
	if err == nil && read != nil {
		err = checkUnchanged(d, p, *read)
	}
	if err == nil {
		err = d.renameTo(temp, d, p.base())
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(d.removeName(temp, false)))
	}
	return d.syncNames()
}

// checkUnchanged refuses to overwrite a file that was changed since it was read.
func checkUnchanged(d dir, p place, read unix.Stat_t) error {
	now, ok, err := d.statName(p.base())
	if err != nil {
		return err
	}
	if !ok || inodeOf(now) != inodeOf(read) || now.Size != read.Size || now.Mtim != read.Mtim {
		return failedError(
			"Read it again, then edit what is there now.", "%s changed while it was edited", quoteName(p.given),
		)
	}
	return nil
}

func tempName() string { return ".zephbot-" + rand.Text() + ".tmp" }

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// createFile creates a new file in d with content, and syncs it before it returns.
func (d dir) createFile(name, content string, mode fs.FileMode) error {
	f, err := d.openName(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, newMode)
	if err != nil {
		return err
	}
	if err := putContent(f, content, mode); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

func putContent(f *os.File, content string, mode fs.FileMode) error {
	if mode != 0 {
		if err := f.Chmod(mode.Perm()); err != nil {
			return err
		}
	}
	if _, err := f.WriteString(content); err != nil {
		return err
	}
	return f.Sync()
}
