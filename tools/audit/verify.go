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

// Report is what Verify found.
type Report struct {
	Lines    int    // audit lines, markers included
	Torn     int    // lines cut short by a crash and accounted for by the marker after them
	Lost     int    // lines that the markers say could not be written
	Last     string // hash of the last line: kept elsewhere, it shows later whether lines were cut off at the end
	Problems []Problem
}

// Problem is one place where the log cannot be trusted.
type Problem struct {
	Line int // counted from 1
	Text string
}

// Verify walks the hash chain of a log. The error is one of reading; what is wrong with the log itself stands in Problems.
func Verify(r io.Reader) (Report, error) {
	v := verifier{}
	in := bufio.NewReader(r)
	for number := 1; ; number++ {
		raw, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return v.report, fmt.Errorf("read audit log: %w", err)
		}
		if len(raw) > 0 {
			v.line(number, bytes.TrimSuffix(raw, []byte("\n"))) // a whole line without newline is whole: somebody is writing the next bytes
		}
		if err != nil {
			break
		}
	}
	v.settle("it is cut short or no audit line, and nothing accounts for it yet")
	return v.report, nil
}

type verifier struct {
	report Report
	broken *brokenLines // lines that are none, until a marker accounts for them
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
}

// link checks that the line follows the one before.
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
	case first:
		v.problem(number, "it continues a chain whose earlier lines are not in this file")
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
	v.report.Problems = append(v.report.Problems, Problem{Line: line, Text: text})
}

// hashField is how a line ends.
const hashField = `,"hash":"`

// unseal splits a line into the bytes that were hashed and the hash.
func unseal(line []byte) (body []byte, hash string, ok bool) {
	const tail = len(hashField) + 64 + len(`"}`)
	if len(line) < tail+1 || !bytes.HasPrefix(line[len(line)-tail:], []byte(hashField)) || !bytes.HasSuffix(line, []byte(`"}`)) {
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
