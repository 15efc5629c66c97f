package audit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	searchChunk = 64 << 10
	// searchBytes is how much of the logs one search reads; it goes on from there if it is asked again.
	searchBytes = 32 << 20
)

// Found is a line of a log, for people.
type Found struct {
	At       time.Time       `json:"at"`
	Kind     string          `json:"kind,omitempty"` // "" = a call
	Session  string          `json:"session,omitempty"`
	Turn     string          `json:"turn,omitempty"`
	Tool     string          `json:"tool,omitempty"`
	Args     json.RawMessage `json:"args,omitempty"`
	Caller   string          `json:"caller,omitempty"`
	Result   string          `json:"result,omitempty"` // success, error, blocked, timeout, cancelled, rollback
	Reason   string          `json:"reason,omitempty"`
	Category string          `json:"category,omitempty"`
	Millis   int64           `json:"millis,omitempty"`
	Rule     string          `json:"rule,omitempty"`
	Approved string          `json:"approved_by,omitempty"`
	Layer    string          `json:"layer_applied,omitempty"`
	Server   string          `json:"server,omitempty"`
	URL      string          `json:"url,omitempty"`
	Writer   string          `json:"writer,omitempty"`
}

// Query selects lines; what is empty selects all.
type Query struct {
	Person string // caller id, or the id alone; of the caller or an approver
	Tool   string // a part of the name
	Result string // type of the result
	Since  time.Time
	Until  time.Time
	// Next continues an earlier search where it ended.
	Next  string
	Limit int // lines; at least 1
}

// Page is what a search found, newest first.
type Page struct {
	Lines []Found
	// Next continues the search; "" = everything was searched. A page may end early, even without lines, because a
	// search reads a limited amount.
	Next string
	// Back is how far the search has come; zero = it has not seen a line.
	Back time.Time
}

// Search looks through logs, each with all files of its chain (Files), newest lines first. A log that cannot be read is
// left out, and its error is returned along with what the others have. Lines that are none are skipped.
func Search(ctx context.Context, logs []string, q Query) (Page, error) {
	s := &search{query: q, left: searchBytes}
	defer s.close()
	at, err := decodePlaces(q.Next)
	if err != nil {
		return Page{}, err
	}
	var errs []error
	for _, path := range logs {
		files, err := Files(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		b := &backwards{log: path, files: files, file: len(files) - 1, at: -1}
		if place, ok := at[path]; ok {
			b.resumeAt(place)
		} else if q.Next != "" {
			continue // that log was searched to its end, or is new
		}
		s.logs = append(s.logs, b)
	}
	page, err := s.readPage(ctx)
	return page, errors.Join(append(errs, err)...)
}

// search merges logs by time.
type search struct {
	query Query
	logs  []*backwards
	left  int64
}

func (s *search) close() {
	for _, b := range s.logs {
		b.close()
	}
}

func (s *search) readPage(ctx context.Context) (page Page, err error) {
	for len(page.Lines) < max(1, s.query.Limit) {
		if err := ctx.Err(); err != nil {
			return page, fmt.Errorf("search the audit log: %w", err)
		}
		b, err := s.newestLog()
		if err != nil {
			return page, err
		}
		if b == nil {
			return page, nil
		}
		line := b.line
		if s.left -= int64(len(b.raw)); s.left < 0 && len(b.raw) > 0 && page.Back != (time.Time{}) {
			break
		}
		b.stepOver()
		page.Back = line.At
		if !s.query.Since.IsZero() && line.At.Before(s.query.Since) {
			b.done = true
			continue
		}
		if s.query.takesLine(&line) {
			page.Lines = append(page.Lines, line)
		}
	}
	page.Next = s.nextCursor()
	return page, nil
}

// newestLog returns the log whose next line is the newest; nil = all are at their ends.
func (s *search) newestLog() (best *backwards, err error) {
	for _, b := range s.logs {
		if err := b.loadLine(); err != nil {
			return nil, err
		}
		if !b.done && (best == nil || b.line.At.After(best.line.At)) {
			best = b
		}
	}
	return best, nil
}

func (s *search) nextCursor() string {
	at := map[string]place{}
	for _, b := range s.logs {
		if !b.done && b.file >= 0 {
			at[b.log] = place{File: filepath.Base(b.files[b.file]), At: b.at}
		}
	}
	if len(at) == 0 {
		return ""
	}
	raw, _ := json.Marshal(at) // texts and numbers only: cannot fail
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (q *Query) takesLine(f *Found) bool {
	of := func(id string) bool { return id == q.Person || strings.HasSuffix(id, ":"+q.Person) }
	switch {
	case q.Person != "" && !of(f.Caller) && !slices.ContainsFunc(strings.Split(f.Approved, ","), func(id string) bool {
		return of(strings.TrimSpace(id))
	}):
	case q.Tool != "" && !strings.Contains(strings.ToLower(f.Tool), strings.ToLower(q.Tool)):
	case q.Result != "" && f.Result != q.Result:
	case !q.Until.IsZero() && !f.At.Before(q.Until):
	default:
		return true
	}
	return false
}

// place is where a search of one log goes on: before a byte of a file.
type place struct {
	File string `json:"f"`
	At   int64  `json:"a"`
}

func decodePlaces(next string) (map[string]place, error) {
	if next == "" {
		return map[string]place{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(next)
	var at map[string]place
	if err == nil {
		err = json.Unmarshal(raw, &at)
	}
	if err != nil {
		return nil, fmt.Errorf("the audit log cannot be searched on from %.40q; search again", next)
	}
	return at, nil
}

// backwards reads the lines of a log from its end.
type backwards struct {
	log   string
	files []string // oldest first
	file  int      // index of the open one
	f     *os.File
	at    int64  // start of what was read; -1 = the end of the file
	buf   []byte // unread bytes before at+len(buf)
	low   int64  // offset of buf in the file
	raw   []byte // the next line, once loaded
	start int64  // where it begins
	line  Found
	has   bool
	done  bool
}

func (b *backwards) resumeAt(p place) {
	i := slices.IndexFunc(b.files, func(f string) bool { return filepath.Base(f) == p.File })
	if i < 0 || p.At < 0 {
		b.done = true
		return
	}
	b.file, b.at = i, p.At
}

func (b *backwards) close() {
	if b.f != nil {
		_ = b.f.Close() // read only
		b.f = nil
	}
}

// stepOver steps over the loaded line.
func (b *backwards) stepOver() { b.at, b.has = b.start, false }

// loadLine finds the next line that is one.
func (b *backwards) loadLine() error {
	for !b.has && !b.done {
		if err := b.openFile(); err != nil {
			return err
		}
		if b.at == 0 {
			b.close()
			if b.file--; b.file < 0 {
				b.done = true
			}
			b.at = -1
			continue
		}
		if err := b.previousLine(); err != nil {
			return err
		}
		line := ReadLine(b.raw)
		if b.line, b.has = line.found(); !b.has {
			b.at = b.start
		}
	}
	return nil
}

func (b *backwards) openFile() error {
	if b.f != nil {
		return nil
	}
	f, err := os.Open(b.files[b.file])
	if err != nil {
		return fmt.Errorf("search the audit log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close() // the first error counts
		return fmt.Errorf("search the audit log: %w", err)
	}
	b.f, b.buf = f, nil
	if b.at < 0 || b.at > info.Size() {
		b.at = info.Size()
	}
	b.low = b.at
	return nil
}

// previousLine finds the line that ends at b.at. A line longer than what a log writes is cut.
func (b *backwards) previousLine() error {
	for {
		head := b.buf[:b.at-b.low]
		body := bytes.TrimSuffix(head, []byte("\n"))
		if i := bytes.LastIndexByte(body, '\n'); i >= 0 || b.low == 0 || len(head) > maxEnd {
			b.raw, b.start = body[i+1:], b.low+int64(i+1)
			b.buf = head
			return nil
		}
		more := min(b.low, searchChunk)
		chunk := make([]byte, int(more)+len(head))
		if _, err := b.f.ReadAt(chunk[:more], b.low-more); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("search the audit log: %w", err)
		}
		copy(chunk[more:], head)
		b.buf, b.low = chunk, b.low-more
	}
}

// found is the line for people; ok is false if it is none.
func (l *Line) found() (f Found, ok bool) {
	f = Found{
		At: l.Time, Kind: l.Kind, Session: l.Session, Turn: l.Turn,
		Tool: l.Tool, Args: l.Args, Caller: l.Caller,
		Result: l.Result, Reason: cmp.Or(l.Request.Blocked, l.Reason), Category: string(l.Category),
		Rule: l.Rule, Approved: l.ApprovedBy, Layer: l.Layer,
		Server: l.Server, URL: l.Request.URL, Writer: l.Writer,
	}
	if l.Millis != nil {
		f.Millis = *l.Millis
	}
	return f, !l.Time.IsZero()
}
