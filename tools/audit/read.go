package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/zephbot/zephbot/tools"
)

// Line is one line of a log, as readers see it. Its fields are those of the line; they are empty in a broken one.
type Line struct {
	File   string
	Number int    // within the file, from 1
	Raw    []byte // without the newline; valid until the next line is read
	// Broken says why the line is no audit line, or "".
	Broken string

	Time        time.Time
	Kind        string // "" = a call; egress, started, or one of the log's own lines
	Session     string
	Turn        string
	Call        string
	Parent      string
	Tool        string
	Args        json.RawMessage
	Caller      string
	Channel     string
	Result      string
	Reason      string // of the result, or of the log's own line
	Category    tools.Category
	Millis      *int64
	ExitCode    *int
	Truncated   bool
	Effect      string // allow, ask or deny; "" = the rules were not asked, or an earlier version wrote the line
	Rule        string
	ApprovedBy  string
	Cleared     string // flagged source whose mark ApprovedBy has cleared
	Layer       string // SHA-256 of what ApprovedBy saw beforehand, and what was done; "" = the call ran
	Cached      bool
	Attempts    int
	Server      string
	ServerError string
	Judge       string
	Injection   bool
	Correlation string
	Request     Request
	Writer      string
	Hash        string // by which the chain knows the line
	Erased      bool   // the line was pseudonymised
}

// Request is what a line of the kind egress says.
type Request struct {
	URL, Host, Method string
	Status            int
	Bytes             int64
	Blocked           string
}

// ReadLine decodes a line without its newline. It does not check the chain, only whether the line fits its own hash.
func ReadLine(raw []byte) Line {
	l := Line{Raw: raw}
	body, hash, ok := unsealLine(raw)
	var r record
	switch {
	case !ok || json.Unmarshal(body, &r) != nil:
		l.Broken = "no audit line"
		return l
	case hexDigest(body) != hash:
		l.Broken = "changed: its hash does not fit its text"
	}
	at, err := time.Parse(timestamp, r.Timestamp)
	if err != nil && l.Broken == "" {
		l.Broken = "no time"
	}
	l.Time, l.Kind, l.Session, l.Turn, l.Call, l.Parent = at, r.Kind, r.Session, r.Turn, r.Call, r.Parent
	l.Tool, l.Args, l.Caller, l.Channel, l.Reason = r.Tool, r.Args, r.Caller, r.Channel, r.Reason
	if r.Result != nil {
		l.Result, l.Reason = r.Result.Type, r.Result.Reason
	}
	l.Category, l.Millis, l.ExitCode, l.Truncated = r.Category, r.Millis, r.ExitCode, r.Truncated
	l.Effect, l.Rule, l.ApprovedBy, l.Cached, l.Attempts = r.Effect, r.Rule, r.ApprovedBy, r.Cached, r.Attempts
	l.Cleared, l.Layer = r.Cleared, r.Layer
	l.Server = r.Server
	l.ServerError = r.ServerError
	l.Judge = r.Judge
	l.Injection = r.Injection
	l.Correlation = r.Correlation
	l.Request = Request{
		URL:     r.URL,
		Host:    r.Host,
		Method:  r.Method,
		Status:  r.Status,
		Bytes:   r.Bytes,
		Blocked: r.Blocked,
	}
	l.Writer, l.Hash, l.Erased = r.Writer, r.chainHash(hash), len(r.Erased) > 0
	return l
}

// Read calls do for each line of the chain that ends in the log at path, oldest first. Files whose lines are all older
// than since are not read; the zero time is none. It needs little memory. An error of do ends it.
func Read(ctx context.Context, path string, since time.Time, do func(*Line) error) error {
	files, err := chainFiles(path)
	if err != nil {
		return err
	}
	for _, f := range files {
		if isOlder(f, since) {
			continue
		}
		if err := readFile(ctx, f.name, do); err != nil {
			return err
		}
	}
	return nil
}

// isOlder reports whether all lines of a file are older than since.
func isOlder(f piece, since time.Time) bool {
	return !since.IsZero() && f.end.time != "" && f.end.time < since.UTC().Format(timestamp)
}

func readFile(ctx context.Context, name string, do func(*Line) error) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	in := bufio.NewReaderSize(f, 64<<10)
	for number := 1; ; number++ {
		raw, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read audit log: %w", err)
		}
		if len(raw) > 0 {
			l := ReadLine(bytes.TrimSuffix(raw, []byte("\n")))
			l.File, l.Number = name, number
			if err := errors.Join(ctx.Err(), do(&l)); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// Last returns the last n lines of the chain for which keep returns true, oldest first. It reads only as many files as
// it needs, the newest first, and none that is older than since.
func Last(ctx context.Context, path string, n int, since time.Time, keep func(*Line) bool) ([]Line, error) {
	files, err := chainFiles(path)
	if err != nil {
		return nil, err
	}
	var list []Line
	for _, f := range slices.Backward(files) {
		if len(list) >= n || isOlder(f, since) {
			break
		}
		var part []Line
		err := readFile(ctx, f.name, func(l *Line) error {
			if !keep(l) {
				return nil
			}
			if part = append(part, *l); len(part) >= 2*n {
				part = slices.Clone(part[len(part)-n:])
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		list = append(part, list...)
	}
	return list[max(0, len(list)-n):], nil
}
