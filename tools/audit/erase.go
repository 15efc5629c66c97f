package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Person says whose traces [Log.Pseudonymise] removes from a log, and what replaces them.
type Person struct {
	// IDs are texts by which the person is known, such as telegram:42 or @ann. They are replaced by Pseudonym wherever
	// they are whole words: in caller_id, approved_by, arguments, reasons and URLs of every line.
	IDs []string
	// Pseudonym replaces the IDs. It must contain none of them.
	Pseudonym string
	// Session returns the key of a session without the person; a key that is not theirs is returned as it is. nil = the
	// IDs are replaced in it as in any text.
	Session func(key string) string
	// Content removes the arguments, reasons and URLs of the person's own calls completely ("[erased]"): they may say
	// anything about the person. Lines of other people only lose the IDs.
	Content bool
	// Receipt names the order to erase in the rewritten lines and in the line that accounts for them. It must not name
	// the person. The same order may be carried out again, when more lines about the person were written.
	Receipt string
}

// Erased says what [Log.Pseudonymise] did.
type Erased struct {
	Lines int // rewritten
	Files int // in which they are
	// Left are lines that name the person and were not rewritten, because they are no valid lines of the log: a line
	// that was changed must not become valid by this.
	Left int
}

// erasedContent replaces what a person's own calls were about.
const erasedContent = "[erased]"

// Pseudonymise removes a person from the lines of the log and of its rotated files. The chain remains verifiable: a
// rewritten line keeps the hash that it had, and a line of the kind erased accounts for all of them, so that Verify
// still proves their order and completeness, and says how many there are.
//
// It may be called while others write to the log. Calls of the person that are running write lines with their name
// later: the caller ends them first. It returns when the new files are on the disk, or with an error when nothing, or
// not everything, was replaced; then the same call, or the next New, completes it. After a kill, New does.
func (l *Log) Pseudonymise(ctx context.Context, p Person) (Erased, error) {
	if err := p.checkPerson(); err != nil {
		return Erased{}, fmt.Errorf("audit: %w", err)
	}
	if l == nil || l.path == "" {
		return Erased{}, nil // what went to stdout is not ours to change
	}
	l.tending.Lock()
	defer l.tending.Unlock()
	e := eraser{person: p, log: l}
	if err := e.runErasure(ctx); err != nil {
		return e.done, fmt.Errorf("pseudonymise %s: %w", l.path, err)
	}
	return e.done, nil
}

// Pseudonymise opens the log that o describes, as [New] does, and removes the person from it. It fails with [ErrHeld]
// while another process writes the log. A log that does not exist is left alone.
func Pseudonymise(ctx context.Context, o Options, p Person) (done Erased, err error) {
	if _, err := os.Stat(o.Path); errors.Is(err, fs.ErrNotExist) {
		return done, nil
	}
	l, err := New(o)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return l.Pseudonymise(ctx, p)
}

func (p Person) checkPerson() error {
	switch {
	case p.Receipt == "" || len(p.Receipt) > maxName:
		return errors.New("pseudonymise: no receipt, or a long one")
	case len(p.IDs) == 0 || slices.Contains(p.IDs, ""):
		return errors.New("pseudonymise: no id")
	case p.Pseudonym == "" || p.namedIn(p.Pseudonym) || p.namedIn(p.Receipt):
		return errors.New("pseudonymise: the pseudonym is empty, or it or the receipt names the person")
	}
	return nil
}

type eraser struct {
	person Person
	log    *Log
	done   Erased
	plan   erasePlan
	used   int // the last part that an earlier call with this receipt has used
}

// erasePlan is what is done if the process dies: the file next to the log that contains it says nothing of the person.
type erasePlan struct {
	Receipt string      `json:"receipt"`
	At      string      `json:"at"`
	Parts   []erasePart `json:"parts"`
}

// erasePart is one file that is replaced. File is its name within the directory.
type erasePart struct {
	File   string `json:"file"`
	Part   int    `json:"part"`
	Lines  int64  `json:"lines"`
	Digest string `json:"digest"`
}

func (e *eraser) runErasure(ctx context.Context) error {
	l := e.log
	if err := l.withLock(l.completeErase); err != nil { // what an earlier call left
		return err
	}
	files, err := Files(l.path)
	if err != nil {
		return err
	}
	named := false
	for _, name := range files {
		found, err := e.namesPerson(ctx, name)
		if err != nil {
			return err
		}
		named = named || found
	}
	if !named {
		return nil
	}
	if err := l.withLock(l.turnOver); err != nil { // the file that is being written is not rewritten
		return err
	}
	if files, err = Files(l.path); err != nil {
		return err
	}
	e.plan = erasePlan{Receipt: e.person.Receipt, At: l.timestampNow()}
	for _, name := range files[:len(files)-1] {
		if err := e.prepareFile(ctx, name); err != nil {
			return err
		}
	}
	if len(e.plan.Parts) == 0 {
		return nil
	}
	if err := e.plan.savePlan(l.path); err != nil {
		return err
	}
	return l.withLock(func() error { return l.carryOut(&e.plan, true) })
}

// withLock calls do with the lock of the file.
func (l *Log) withLock(do func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	return do()
}

// turnOver rotates the file, so that all lines up to now are in rotated files, and begins the new one.
func (l *Log) turnOver() error {
	if _, err := l.writeRecords(nil); err != nil { // accounts for what is incomplete
		return err
	}
	if l.size > 0 {
		if err := l.rotateFile(); err != nil {
			return err
		}
	}
	_, err := l.writeRecords(nil) // the line that continues the chain
	return err
}

// namesPerson reports whether a file has lines that would be rewritten.
func (e *eraser) namesPerson(ctx context.Context, name string) (found bool, err error) {
	receipt := []byte(e.person.Receipt)
	err = eachLine(ctx, name, func(line []byte) error {
		_, changed := e.rewriteLine(line, 0)
		found = found || changed
		if bytes.Contains(line, receipt) {
			e.used = max(e.used, lastPart(line, e.person.Receipt))
		}
		return nil
	})
	return found, err
}

// lastPart returns the highest part of an order that a line belongs to, or accounts for.
func lastPart(line []byte, receipt string) int {
	r, ok := parseLine(line)
	if !ok {
		return 0
	}
	last := 0
	if r.Receipt == receipt {
		last = r.Part
	}
	for _, e := range r.Erased {
		if e.Receipt == receipt {
			last = max(last, e.Part)
		}
	}
	return last
}

// prepareFile writes what a file will be, next to it.
func (e *eraser) prepareFile(ctx context.Context, name string) (err error) {
	part := erasePart{File: filepath.Base(name), Part: e.used + len(e.plan.Parts) + 1}
	sum := sha256.New()
	prepared := preparedName(e.log.path, part.Part)
	out, err := os.OpenFile(prepared, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	to := bufio.NewWriter(out)
	err = eachLine(ctx, name, func(line []byte) error {
		was, changed := e.rewriteLine(line, part.Part)
		if changed {
			line = was.line
			part.Lines++
			addPair(sum, was.from, was.to)
		} else if e.person.mayBeIn(line) && e.person.namedIn(string(line)) {
			e.done.Left++
		}
		_, err := to.Write(line)
		return err
	})
	if err = errors.Join(err, to.Flush(), out.Sync(), out.Close()); err != nil || part.Lines == 0 {
		return errors.Join(err, os.Remove(prepared))
	}
	part.Digest = hex.EncodeToString(sum.Sum(nil))
	e.plan.Parts = append(e.plan.Parts, part)
	e.done.Files++
	e.done.Lines += int(part.Lines)
	return nil
}

// preparedName is the name of what a file will be. It begins like the log, so that the log can remove it.
func preparedName(path string, part int) string {
	return path + "." + strconv.Itoa(part) + erasingSuffix
}

// addPair adds the hashes of a line before and after it was rewritten to the digest of a part.
func addPair(sum hash.Hash, from, to string) { _, _ = io.WriteString(sum, from+" "+to+"\n") } // never fails

// rewritten is a line with its newline, and its hashes before and after.
type rewritten struct {
	line     []byte
	from, to string
}

// rewriteLine rewrites a line, if it is valid and about the person.
func (e *eraser) rewriteLine(raw []byte, part int) (rewritten, bool) {
	if !e.person.mayBeIn(raw) {
		return rewritten{}, false
	}
	text, whole := strings.CutSuffix(string(raw), "\n")
	body, from, ok := unsealLine([]byte(text))
	var r record
	if !ok || !whole || hexDigest(body) != from || json.Unmarshal(body, &r) != nil || !e.person.eraseRecord(&r) {
		return rewritten{}, false
	}
	r.Erased = append(r.Erased, erasure{Receipt: e.person.Receipt, Part: part, From: from})
	line, to, err := sealRecord(&r)
	if err != nil {
		return rewritten{}, false
	}
	return rewritten{line: line, from: from, to: to}, true
}

// eachLine calls do for each line of a file, with its newline.
func eachLine(ctx context.Context, name string, do func(line []byte) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	in := bufio.NewReaderSize(f, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 {
			if err := errors.Join(ctx.Err(), do(line)); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// savePlan writes the plan next to the log. From then on, the plan will be carried out.
func (p *erasePlan) savePlan(path string) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	name := path + journalSuffix
	f, err := os.OpenFile(name+erasingSuffix, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(name+erasingSuffix, name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
