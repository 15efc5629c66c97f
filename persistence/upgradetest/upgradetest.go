// Package upgradetest records the statements that the store of a released version sends to its database, so that later
// versions can replay them: a process of the previous version continues to write after a new one has brought the schema
// up to date. A trace contains the statements with their arguments, as sent during the store suite, and does not need
// the code that it was recorded from.
package upgradetest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Run is one run of a statement. Args are nil, int64, float64, bool, string or []byte.
type Run struct {
	Query string
	Args  []any
}

// Ordered reports whether the rows of the answer come in an order that the statement determines. Rows of others come in
// any, which is another one with another plan.
func (r Run) Ordered() bool { return strings.Contains(strings.ToUpper(r.Query), "ORDER BY") }

// Group is sent to the database together: in one transaction if the engine uses one for it.
type Group []Run

// Section is what one test made the store send to a database that was empty at first.
type Section struct {
	Name   string
	Groups []Group
}

// Trace is what the store of a schema sent.
type Trace struct {
	Schema   int64
	Sections []Section
}

// Recorder collects the sections of a Trace. Safe for concurrent use.
type Recorder struct {
	mu       sync.Mutex
	sections map[string]*Section
}

// Record adds a group to a section. It retains the slices.
func (r *Recorder) Record(section string, group Group) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sections == nil {
		r.sections = map[string]*Section{}
	}
	s := r.sections[section]
	if s == nil {
		s = &Section{Name: section}
		r.sections[section] = s
	}
	s.Groups = append(s.Groups, group)
}

// Trace returns the recorded sections, ordered by name.
func (r *Recorder) Trace(schema int64) *Trace {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &Trace{Schema: schema}
	for _, s := range r.sections {
		t.Sections = append(t.Sections, *s)
	}
	slices.SortFunc(t.Sections, func(a, b Section) int { return strings.Compare(a.Name, b.Name) })
	return t
}

// Queries returns the texts of the statements, each once, sorted.
func (t *Trace) Queries() []string {
	var all []string
	for _, s := range t.Sections {
		for _, g := range s.Groups {
			for _, r := range g {
				all = append(all, r.Query)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// line is one line of a file. A file contains the schema, then each query once, then for each section its name and its
// groups: runs, each with the number of a query and its arguments.
type line struct {
	Schema  int64   `json:"schema,omitempty"`
	Query   string  `json:"query,omitempty"`
	Section string  `json:"section,omitempty"`
	Group   [][]any `json:"group,omitempty"`
}

// Save writes a file, compressed by gzip.
func (t *Trace) Save(path string) error {
	var file bytes.Buffer
	out := gzip.NewWriter(&file)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	queries := t.Queries()
	lines := []line{{Schema: t.Schema}}
	for _, q := range queries {
		lines = append(lines, line{Query: q})
	}
	for _, s := range t.Sections {
		lines = append(lines, line{Section: s.Name})
		for _, g := range s.Groups {
			lines = append(lines, line{Group: packed(queries, g)})
		}
	}
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return fmt.Errorf("save %s: %w", path, err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	return os.WriteFile(path, file.Bytes(), 0o600)
}

func packed(queries []string, g Group) [][]any {
	runs := make([][]any, 0, len(g))
	for _, r := range g {
		at, _ := slices.BinarySearch(queries, r.Query)
		run := []any{at}
		for _, arg := range r.Args {
			if data, ok := arg.([]byte); ok {
				arg = packedBytes(data)
			}
			run = append(run, arg)
		}
		runs = append(runs, run)
	}
	return runs
}

// long is how many bytes are written out; of longer values, only the length is written.
const long = 4096

// packedBytes encodes bytes for JSON: in hex, or as their number if the content does not matter.
func packedBytes(data []byte) map[string]any {
	if len(data) > long {
		return map[string]any{"bytes": len(data)}
	}
	return map[string]any{"hex": hex.EncodeToString(data)}
}

// Load reads a file.
func Load(path string) (*Trace, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load a trace: %w", err)
	}
	text, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	t := &Trace{}
	var queries []string
	in := bufio.NewScanner(text)
	in.Buffer(nil, 1<<24)
	for n := 1; in.Scan(); n++ {
		dec := json.NewDecoder(bytes.NewReader(in.Bytes()))
		dec.UseNumber()
		dec.DisallowUnknownFields()
		var l line
		if err := dec.Decode(&l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		if l.Query != "" {
			queries = append(queries, l.Query)
		}
		if err := t.add(queries, &l); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if t.Schema == 0 || len(t.Sections) == 0 {
		return nil, fmt.Errorf("%s: there is no trace in it", path)
	}
	return t, nil
}

// add adds a line to the trace.
func (t *Trace) add(queries []string, l *line) error {
	switch {
	case l.Schema != 0:
		t.Schema = l.Schema
	case l.Section != "":
		t.Sections = append(t.Sections, Section{Name: l.Section})
	case l.Group != nil:
		if len(t.Sections) == 0 {
			return errors.New("a group before the first section")
		}
		group, err := unpacked(queries, l.Group)
		if err != nil {
			return err
		}
		last := &t.Sections[len(t.Sections)-1]
		last.Groups = append(last.Groups, group)
	}
	return nil
}

func unpacked(queries []string, runs [][]any) (Group, error) {
	var group Group
	for _, run := range runs {
		if len(run) == 0 {
			return nil, errors.New("a run without a query")
		}
		at, err := number(run[0])
		if err != nil || at < 0 || at >= int64(len(queries)) {
			return nil, fmt.Errorf("no query has the number %v", run[0])
		}
		r := Run{Query: queries[at]}
		for _, packed := range run[1:] {
			arg, err := argument(packed)
			if err != nil {
				return nil, err
			}
			r.Args = append(r.Args, arg)
		}
		group = append(group, r)
	}
	return group, nil
}

func number(v any) (int64, error) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("%v is not a number", v)
	}
	return n.Int64()
}

// argument decodes a JSON value.
func argument(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	case map[string]any:
		if n, ok := v["bytes"]; ok {
			size, err := number(n)
			return bytes.Repeat([]byte{'x'}, int(size)), err
		}
		text, ok := v["hex"].(string)
		if !ok {
			return nil, fmt.Errorf("%v is no argument", v)
		}
		return hex.DecodeString(text)
	default:
		return v, nil // nil, bool, string
	}
}

// Shown formats values for the report of a test; long bytes as a checksum.
func Shown(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case []byte:
			texts[i] = shownBytes(v)
		case string:
			texts[i] = strconv.Quote(v)
		default:
			texts[i] = fmt.Sprint(v)
		}
	}
	return "[" + strings.Join(texts, " ") + "]"
}

func shownBytes(data []byte) string {
	if len(data) > long {
		return fmt.Sprintf("%d bytes %x", len(data), sha256.Sum256(data))
	}
	return strconv.Quote(string(data))
}
