package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Report is the result of Verify.
type Report struct {
	Lines    int    // audit lines, including markers
	Torn     int    // incomplete lines after a crash, which a marker accounts for
	Lost     int    // lines that could not be written, according to the markers
	Last     string // hash of the last line; stored elsewhere, it shows later whether lines were cut off
	Problems []Problem
}

// Problem is one place at which the log cannot be trusted.
type Problem struct {
	File string
	Line int // from 1; 0 = the whole log
	Text string
}

// File is one file of a chain.
type File struct {
	Name string
	io.Reader
}

// Verify checks the hash chain through its files, oldest first. mark says how far the log had come, according to its
// [Anchor]; nil = not known. The error is about reading; problems of the log itself are in Problems.
func Verify(mark *Mark, files ...File) (Report, error) {
	v := verifier{mark: mark}
	for _, f := range files {
		if err := v.read(f); err != nil {
			return v.report, err
		}
	}
	switch {
	case mark == nil || mark.Lines == 0:
	case v.marked == 0:
		v.problem(0,
			fmt.Sprintf("the service remembers line %d with hash %s, which is not here: lines were cut off or rewritten", mark.Lines, mark.Hash))
	case v.whole && v.marked != mark.Lines:
		v.problem(0,
			fmt.Sprintf("the service remembers %d lines up to the hash %s, here are %d: lines were taken out or added", mark.Lines, mark.Hash, v.marked))
	}
	return v.report, nil
}

func (v *verifier) read(f File) error {
	v.file = f.Name
	in := bufio.NewReader(f)
	for number := 1; ; number++ {
		raw, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read audit log: %w", err)
		}
		if len(raw) > 0 {
			// a complete line without newline is valid: the newline is just being written
			v.line(number, bytes.TrimSuffix(raw, []byte("\n")))
		}
		if err != nil {
			break
		}
	}
	v.settle("it is cut short or no audit line, and nothing accounts for it yet")
	return nil
}

type verifier struct {
	report Report
	mark   *Mark
	marked int64 // number of lines up to the one in the mark; 0 = not found yet
	whole  bool  // the chain was read from its first line
	file   string
	broken *brokenLines // invalid lines, until a marker accounts for them
}

type brokenLines struct {
	first int
	sum   hash.Hash
}

func (v *verifier) line(number int, line []byte) {
	body, hash, ok := unseal(line)
	var r record
	if !ok || json.Unmarshal(body, &r) != nil {
		if v.broken == nil {
			v.broken = &brokenLines{first: number, sum: sha256.New()}
		}
		v.broken.sum.Write(line)
		v.broken.sum.Write([]byte("\n"))
		return
	}
	v.report.Lines++
	if digest(body) != hash {
		v.problem(number, "it was changed: its hash does not fit its text")
	}
	v.link(number, &r)
	v.report.Last = hash
	if v.mark != nil && hash == v.mark.Hash {
		v.marked = int64(v.report.Lines)
	}
	if r.Kind == kindDamage {
		v.problem(number, "when this line was written the log was damaged: "+r.Reason)
	}
}

// link checks that the line continues the one before.
func (v *verifier) link(number int, r *record) {
	first := v.report.Lines == 1 && v.broken == nil
	accounted := v.broken != nil && r.Kind == kindRestart && r.TornHash == hex.EncodeToString(v.broken.sum.Sum(nil))
	switch {
	case accounted:
		v.broken = nil
		v.report.Torn++
	case v.broken != nil:
		v.settle("it is no audit line, and the line after it does not account for it")
	}
	if r.Kind == kindRestart {
		v.report.Lost += r.Lost
	}
	switch {
	case r.PrevHash == v.report.Last:
		v.whole = v.whole || first
	case first:
		v.problem(number,
			"it continues a chain whose earlier lines are not here: name their files too, the oldest first")
	case r.PrevHash == "":
		v.problem(number, "a new chain begins here: the lines before it may have been replaced")
	default:
		v.problem(number, "it does not follow the line before: lines were removed, added or moved")
	}
}

func (v *verifier) settle(text string) {
	if v.broken != nil {
		v.problem(v.broken.first, text)
		v.broken = nil
	}
}

func (v *verifier) problem(line int, text string) {
	v.report.Problems = append(v.report.Problems, Problem{File: v.file, Line: line, Text: text})
}

// hashField is the beginning of the last field of a line.
const hashField = `,"hash":"`

// unseal splits a line into the hashed bytes and the hash.
func unseal(line []byte) (body []byte, hash string, ok bool) {
	const tail = len(hashField) + 64 + len(`"}`)
	if len(line) < tail+1 || !bytes.HasPrefix(line[len(line)-tail:], []byte(hashField)) ||
		!bytes.HasSuffix(line, []byte(`"}`)) {
		return nil, "", false
	}
	hash = string(line[len(line)-66 : len(line)-2])
	for _, c := range hash {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return nil, "", false
		}
	}
	return append(bytes.Clone(line[:len(line)-tail]), '}'), hash, true
}

// Tail returns the last n lines of a log, oldest first, without their newlines.
func Tail(r io.Reader, n int) ([]string, error) {
	if n <= 0 {
		return nil, nil
	}
	var ring []string
	in := bufio.NewReader(r)
	for {
		raw, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		if raw != "" {
			if len(ring) == n {
				ring = append(ring[:0], ring[1:]...)
			}
			ring = append(ring, string(bytes.TrimSuffix([]byte(raw), []byte("\n"))))
		}
		if err != nil {
			return ring, nil
		}
	}
}
