package skill

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/policy/scan"
)

// reading is one pass over a folder.
type reading struct {
	dir      string
	root     *os.Root
	files    []File
	contents map[string][]byte
	entries  int
	size     int64
}

// Read reads the folder of a skill, without following a symbolic link. The error is a *Problem.
func Read(dir string) (*Skill, error) {
	s, _, p := read(dir)
	if p != nil {
		return nil, p
	}
	return s, nil
}

// read is Read, with the contents of the files.
func read(dir string) (*Skill, map[string][]byte, *Problem) {
	if info, err := os.Lstat(dir); err != nil {
		return nil, nil, &Problem{Path: dir, Text: "cannot be read: " + plain(err)}
	} else if info.Mode()&fs.ModeSymlink != 0 {
		return nil, nil, &Problem{Path: dir, Text: "is a symbolic link; put the folder itself here"}
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, nil, &Problem{Path: dir, Text: "cannot be read: " + plain(err)}
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, nil, &Problem{Path: dir, Text: "cannot be read: " + plain(err)}
	}
	defer func() { _ = root.Close() }() // opened for reading
	r := &reading{dir: real, root: root, contents: map[string][]byte{}}
	if p := r.walk(); p != nil {
		return nil, nil, p
	}
	document, ok := r.contents[Document]
	if !ok {
		return nil, nil, &Problem{Path: dir, Text: "has no " + Document}
	}
	t, p := parse(filepath.Join(real, Document), document)
	if p != nil {
		return nil, nil, p
	}
	if base := filepath.Base(real); base != t.skill.Name {
		return nil, nil, &Problem{
			Path: filepath.Join(real, Document),
			Text: fmt.Sprintf("name is %q but the folder is called %.80q; give both the same name", t.skill.Name, base),
		}
	}
	s := t.skill
	s.Dir, s.Files, s.Size, s.Hash = real, r.files, r.size, r.hash()
	s.Findings = append(t.unknown, r.look()...)
	if len(s.Findings) > maxFindings {
		s.Findings = s.Findings[:maxFindings]
	}
	return &s, r.contents, nil
}

// walk reads all files, in the order of their paths.
func (r *reading) walk() *Problem {
	var found *Problem
	fail := func(path, format string, values ...any) error {
		found = &Problem{Path: filepath.Join(r.dir, filepath.FromSlash(path)), Text: fmt.Sprintf(format, values...)}
		return fs.SkipAll
	}
	err := fs.WalkDir(r.root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fail(path, "cannot be read: %s", plain(err))
		case path == ".":
			return nil
		case e.Name() == ".git":
			return fail(path, "is the history of a Git repository; put the skill here without it")
		case e.Type()&fs.ModeSymlink != 0:
			return fail(path, "is a symbolic link; put the file itself into the folder")
		case !e.IsDir() && !e.Type().IsRegular():
			return fail(path, "is neither a file nor a directory; remove it")
		case strings.Count(path, "/") >= maxDepth:
			return fail(path, "is deeper than %d directories; move it up", maxDepth)
		}
		if r.entries++; r.entries > MaxFiles {
			return fail(".", "has more than %d files and directories; remove some", MaxFiles)
		}
		if e.IsDir() {
			return nil
		}
		return r.file(path, fail)
	})
	if found == nil && err != nil {
		found = &Problem{Path: r.dir, Text: "cannot be read: " + plain(err)}
	}
	return found
}

// file reads one file, and no more of it than the limits allow.
func (r *reading) file(path string, fail func(path, format string, values ...any) error) error {
	f, err := r.root.Open(path)
	if err != nil {
		return fail(path, "cannot be read: %s", plain(err))
	}
	defer func() { _ = f.Close() }() // opened for reading
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return fail(path, "cannot be read")
	}
	limit := maxFolder - r.size
	what := fmt.Sprintf("makes the folder larger than %d MiB; remove what the skill does not need", maxFolder>>20)
	if path == Document {
		limit = maxDocument
		what = fmt.Sprintf("is larger than %d KiB; move parts of it into files that it names", maxDocument>>10)
	}
	if info.Size() > limit {
		return fail(path, "%s", what)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return fail(path, "cannot be read: %s", plain(err))
	case int64(len(data)) > limit:
		return fail(path, "%s", what)
	}
	r.size += int64(len(data))
	r.contents[path] = data
	r.files = append(r.files, File{Path: path, Size: int64(len(data)), Program: info.Mode()&0o111 != 0})
	return nil
}

// hash identifies all that was read. Lengths are part of it, so that no two folders collide.
func (r *reading) hash() string {
	h := sha256.New()
	for _, f := range r.files {
		fmt.Fprintf(h, "%d:%s %t %d:", len(f.Path), f.Path, f.Program, f.Size)
		h.Write(r.contents[f.Path])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// hiddenText is the rule of policy/scan for characters that nobody sees.
const hiddenText = "hidden_text"

// look finds what a person should look at.
func (r *reading) look() []Finding {
	var list []Finding
	secrets := redact.New(nil)
	for _, f := range r.files {
		data := r.contents[f.Path]
		if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
			list = append(list, Finding{Kind: Binary, File: f.Path})
			continue
		}
		content := string(data)
		at := func(offset int) int { return 1 + strings.Count(content[:min(offset, len(content))], "\n") }
		for _, m := range scan.Flag(content) {
			if m.Rule == hiddenText {
				continue // listed below, with where it is
			}
			list = append(list, Finding{Kind: Orders, File: f.Path, Line: at(m.Start), What: m.Rule})
		}
		for _, m := range secrets.Scan(content) {
			list = append(list, Finding{Kind: Credential, File: f.Path, Line: at(m.Start), What: m.Rule})
		}
		if offset := unseen(content); offset >= 0 {
			list = append(list, Finding{Kind: Unseen, File: f.Path, Line: at(offset)})
		}
		if len(list) > maxFindings {
			break
		}
	}
	return list
}

// unseen returns where a text first has characters that nobody sees and no script needs; -1 = nowhere.
func unseen(content string) int {
	visible := scan.Visible(content)
	if visible == content {
		return -1
	}
	for i := range content {
		if i >= len(visible) || content[i] != visible[i] {
			return i
		}
	}
	return len(visible)
}

// plain is an error of the file system without its path, which is said already.
func plain(err error) string {
	if pe, ok := err.(*fs.PathError); ok { //nolint:errorlint // only the outermost one repeats the path
		return pe.Err.Error()
	}
	return err.Error()
}
