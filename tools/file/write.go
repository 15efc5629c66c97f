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
)

type writeArgs struct {
	Path    string `json:"path" jsonschema:"file to write, relative to the working directory or absolute"`
	Content string `json:"content" jsonschema:"the whole new content of the file"`
}

func (t *toolset) write() (tools.Tool, error) {
	return onPath[writeArgs]{
		def: tools.Definition{
			Name: "write", Destructive: true,
			Description: "Writes a text file: makes it, with the directories above it, or replaces its whole content. To change a part of a file use edit.",
		},
		path: func(in writeArgs) string { return in.Path }, follow: true,
		show: func(s *scope, p place, in writeArgs) string {
			return fmt.Sprintf("write %s (%s)\n%s", show(s.display(p.abs)), count(len(in.Content), "byte", "bytes"),
				in.Content)
		},
		note: func(_ *scope, p place, _ writeArgs) reason.Reason {
			if p.regular() {
				return replaces(p)
			}
			return reason.New(reason.NewFile)
		},
		check: func(s *scope, p place, in writeArgs) error {
			if !strings.Contains(in.Content, redact.Mask) || strings.Count(in.Content, redact.Mask) <= s.masks(p) {
				return nil
			}
			return masked(p)
		},
		may:     mayWrite,
		writes:  true,
		preview: func(_ place, _ string, in writeArgs) (string, error) { return in.Content, nil },
		run: func(s *scope, p place, in writeArgs) (*tools.Result, error) {
			if err := mayWrite(s, p, in); err != nil {
				return nil, err
			}
			if err := s.replace(p, in.Content, nil); err != nil {
				return nil, because(err, "write", p.given)
			}
			verb := "Wrote"
			if p.exists() {
				verb = "Replaced the content:"
			}
			return &tools.Result{Text: fmt.Sprintf("%s %s to %s", verb, count(len(in.Content), "byte", "bytes"),
				show(s.display(p.abs)))}, nil
		},
	}.tool(t)
}

// mayWrite refuses content that is too long, and paths where no file can be created.
func mayWrite(s *scope, p place, in writeArgs) error {
	if len(in.Content) > s.MaxWrite {
		return wrong("Write less at once.", "content has %d bytes; at most %d may be written", len(in.Content),
			s.MaxWrite)
	}
	if err := s.writable(p); err != nil {
		return err
	}
	return s.soleAt(p)
}

// soleAt refuses a path whose file has several names. The directories above it need not exist.
func (s *scope) soleAt(p place) error {
	if !p.exists() {
		return nil
	}
	d, err := s.parent(p)
	if err != nil {
		return err
	}
	defer d.close()
	return sole(d, p.base(), p.given)
}

// replaces says that a file loses its content.
func replaces(p place) reason.Reason {
	if p.info.size == 1 {
		return reason.New(reason.ReplacesByte)
	}
	return reason.New(reason.ReplacesBytes, fmt.Sprint(p.info.size))
}

// newMode is the mode of a new file, before the umask.
const newMode = 0o644

// mode returns the mode of a file written at p: that of the file it replaces.
func (p place) mode() fs.FileMode {
	if p.exists() {
		return p.info.mode.Perm()
	}
	return 0
}

// writable refuses to replace something other than a file, and a file with several names.
func (s *scope) writable(p place) error {
	switch {
	case p.isRoot() || p.isDir():
		return failed("Give the path of a file.", "%s is a directory", quote(p.given))
	case !p.exists():
		return nil
	case !p.regular():
		return failed("", "%s is %s, not a regular file", quote(p.given), kindName(p.info.mode))
	case p.info.mode.Perm()&0o222 == 0:
		return failed("", "%s is read-only", quote(p.given))
	}
	return nil
}

// sole refuses a file with several names: the change would also appear, or be missing, under the other name.
func sole(d dir, name, given string) error {
	st, ok, err := d.lstat(name)
	switch {
	case err != nil || !ok:
		return err
	case kind(st) == unix.S_IFDIR:
		return failed("", "%s is a directory", quote(given))
	case kind(st) != unix.S_IFREG:
		return failed("", "%s is not a regular file", quote(given))
	case st.Nlink > 1:
		return refused("Write to another name instead.", "%s has several names (hard links) and is not written",
			quote(given))
	}
	return nil
}

// replace puts content at p atomically: a reader sees the old or the new file, even after a crash. With read, the file
// must still be the one that was read.
func (s *scope) replace(p place, content string, read *unix.Stat_t) error {
	growth := int64(len(content))
	if p.exists() {
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
	if err := sole(d, p.base(), p.given); err != nil {
		return err
	}
	s.wrote = stateOfText(content) // if it succeeds
	if s.WriteText != nil {
		return s.WriteText(s.ctx, p.abs, content)
	}
	temp := tempName()
	err = d.fill(temp, content, p.mode())
	if err == nil {
		err = s.ctx.Err()
	}
	if err == nil && read != nil {
		err = unchanged(d, p, *read)
	}
	if err == nil {
		err = d.rename(temp, d, p.base())
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(d.remove(temp, false)))
	}
	return d.sync()
}

// unchanged refuses to overwrite a file that was changed since it was read.
func unchanged(d dir, p place, read unix.Stat_t) error {
	now, ok, err := d.lstat(p.base())
	if err != nil {
		return err
	}
	if !ok || inodeOf(now) != inodeOf(read) || now.Size != read.Size || now.Mtim != read.Mtim {
		return failed("Read it again, then edit what is there now.", "%s changed while it was edited", quote(p.given))
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

// fill creates a new file in d with content, and syncs it before it returns.
func (d dir) fill(name, content string, mode fs.FileMode) error {
	f, err := d.openat(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, newMode)
	if err != nil {
		return err
	}
	if err := put(f, content, mode); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

func put(f *os.File, content string, mode fs.FileMode) error {
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
