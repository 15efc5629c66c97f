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
	"os"
)

// Report is the result of Verify.
type Report struct {
	Lines int `json:"lines"` // audit lines, including markers
	Torn  int `json:"torn"`  // incomplete lines after a crash, which a marker accounts for
	Lost  int `json:"lost"`  // lines that could not be written, according to the markers
	// hash of the last line; stored elsewhere, it shows later whether lines were cut off
	Last     string    `json:"last"`
	Problems []Problem `json:"problems,omitempty"`
	More     int       `json:"more,omitempty"` // problems beyond the first maxProblems
	// What is not as it was written, and accounted for:
	Removed *Removed    `json:"removed,omitempty"` // lines that retention removed
	Erased  []Pseudonym `json:"erased,omitempty"`  // lines that were pseudonymised
	// Unfinished: the last line is cut short, after everything that the mark covers. The process is just writing it, or
	// died in the last second; the next start accounts for it.
	Unfinished bool `json:"unfinished,omitempty"`
}

// Kind says what is wrong with a line.
type Kind string

// Kinds of problems.
const (
	Changed   Kind = "changed"   // its text was changed
	Missing   Kind = "missing"   // lines before it are not here
	Reordered Kind = "reordered" // it belongs elsewhere
	Foreign   Kind = "foreign"   // it was not written by the log
	Truncated Kind = "truncated" // it, or the log, was cut off
	Damaged   Kind = "damaged"   // the log itself found it damaged when it wrote this line
)

// Problem is one place at which the log cannot be trusted.
type Problem struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"` // from 1; 0 = the whole log
	Time string `json:"time,omitempty"` // of the line, as it says itself; "" = it says none
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
}

// Removed accounts for lines that retention removed.
type Removed struct {
	Lines int64  `json:"lines"`
	Until string `json:"until"` // time of the last of them
	At    string `json:"at"`    // when they were removed
}

// Pseudonym accounts for lines that were pseudonymised.
type Pseudonym struct {
	Receipt string `json:"receipt"`
	Lines   int64  `json:"lines"` // that are here
	At      string `json:"at"`
	// Gone: other lines of the receipt are not here; retention removed their file, or they are not replaced yet.
	Gone int64 `json:"gone,omitempty"`
}

// maxProblems limits what a report contains; one damage can be followed by many.
const maxProblems = 200

// File is one file of a chain. If Reader is also an io.Seeker, Verify can tell what happened at the first bad line.
type File struct {
	Name string
	io.Reader
}

// VerifyLog verifies the chain that ends in the log at path, with its rotated files, see
// [Verify]. files is their number.
func VerifyLog(path string, mark *Mark) (report Report, files int, err error) {
	names, err := Files(path)
	if err != nil {
		return report, 0, err
	}
	report, err = VerifyFiles(mark, names...)
	return report, len(names), err
}

// VerifyFiles is [Verify] for the files with these names.
func VerifyFiles(mark *Mark, names ...string) (report Report, err error) {
	files := make([]File, 0, len(names))
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return report, fmt.Errorf("audit log: %w", err)
		}
		defer func() { _ = f.Close() }() // read only
		files = append(files, File{Name: name, Reader: f})
	}
	return Verify(mark, files...)
}

// Verify checks the hash chain through its files, oldest first. mark says how far the log had come, according to its
// [Anchor]; nil = not known. The error is about reading; problems of the log itself are in Problems, in the order of
// the lines: the first one names the first bad line. It needs little memory, however large the files are.
func Verify(mark *Mark, files ...File) (Report, error) {
	v := verifier{mark: mark, groups: map[group]*tally{}}
	for i, f := range files {
		if err := v.readFile(f, i == len(files)-1); err != nil {
			return v.report, err
		}
	}
	v.checkRemoval()
	v.checkErasures()
	v.checkEnd()
	if v.gap != nil {
		if err := v.explainGap(files); err != nil {
			return v.report, err
		}
	}
	v.sortProblems(files)
	return v.report, nil
}

func (v *verifier) readFile(f File, last bool) error {
	v.file, v.number = f.Name, 0
	in := bufio.NewReaderSize(f, 64<<10)
	for {
		raw, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read audit log: %w", err)
		}
		if len(raw) > 0 {
			v.number++
			// a complete line without newline is valid: the newline is just being written
			v.checkLine(bytes.TrimSuffix(raw, []byte("\n")), err == nil)
		}
		if err != nil {
			break
		}
	}
	v.endOfFile(last)
	return nil
}

type verifier struct {
	report Report
	mark   *Mark
	marked int64 // number of lines up to the one in the mark; 0 = not found yet
	chain  string
	first  *opening
	file   string
	number int          // of the line within its file
	broken *brokenLines // invalid lines, until a marker accounts for them
	groups map[group]*tally
	gap    *gap      // the first line that does not follow the one before
	late   []Problem // found after the lines were read
	gone   *Removed  // according to the line that fits the first one
}

// opening is the first line of all.
type opening struct {
	problemAt
	hash  string // of the line before
	lines int64  // before it
}

type problemAt struct {
	file string
	line int
	time string
}

type brokenLines struct {
	first problemAt
	cut   bool // the last of them does not end with a newline
	one   bool // it is the only one
	sum   hash.Hash
}

func (v *verifier) problemPlace(r *record) problemAt {
	at := problemAt{file: v.file, line: v.number}
	if r != nil {
		at.time = r.Timestamp
	}
	return at
}

func (v *verifier) checkLine(line []byte, whole bool) {
	body, hash, ok := unsealLine(line)
	var r record
	if !ok || json.Unmarshal(body, &r) != nil {
		if v.broken == nil {
			v.broken = &brokenLines{first: v.problemPlace(nil), sum: sha256.New(), one: true}
		} else {
			v.broken.one = false
		}
		v.broken.cut = !whole
		v.broken.sum.Write(line)
		v.broken.sum.Write([]byte("\n"))
		return
	}
	v.report.Lines++
	if hexDigest(body) != hash {
		v.addProblem(v.problemPlace(&r), Changed, "it was changed: its hash does not fit its text")
	}
	link := r.chainHash(hash)
	v.checkLink(&r, link)
	v.countVersions(&r, hash)
	v.chain, v.report.Last = link, link
	if v.mark != nil && link == v.mark.Hash {
		v.marked = int64(v.report.Lines)
	}
	switch r.Kind {
	case kindDamage:
		v.addProblem(v.problemPlace(&r), Damaged, "when this line was written the log was damaged: "+r.Reason)
	case kindRemoved:
		// what is here before its end was to be removed as well, and a kill was faster
		if f := v.first; f != nil && f.hash != "" &&
			(r.UntilHash == f.hash || f.lines > 0 && f.lines < r.ledger.Lines) {
			v.gone = &Removed{Lines: r.ledger.Lines, Until: r.Until, At: r.Timestamp}
		}
	}
}

// checkLink checks that the line continues the one before.
func (v *verifier) checkLink(r *record, link string) {
	first := v.report.Lines == 1 && v.broken == nil
	accounted := v.broken != nil && r.Kind == kindRestart && r.TornHash == hex.EncodeToString(v.broken.sum.Sum(nil))
	switch {
	case accounted:
		v.broken = nil
		v.report.Torn++
	case v.broken != nil:
		v.settleGap("it is no audit line, and the line after it does not account for it")
	}
	if r.Kind == kindRestart {
		v.report.Lost += r.Lost
	}
	switch {
	case first:
		v.first = &opening{problemAt: v.problemPlace(r), hash: r.PrevHash, lines: r.linesBefore()}
	case r.PrevHash == v.chain:
	case r.PrevHash == "":
		v.reportBreak(r, link, Foreign, "a new chain begins here: the lines before it may have been replaced")
	default:
		v.reportBreak(r, link, Missing, "it does not follow the line before: lines were removed, added or moved")
	}
}

// endOfFile settles what is incomplete at the end of a file.
func (v *verifier) endOfFile(last bool) {
	b := v.broken
	if b == nil {
		return
	}
	if last && b.one && b.cut && v.mark != nil && v.marked > 0 {
		v.report.Unfinished = true
		return
	}
	v.settleGap("it is cut short or no audit line, and nothing accounts for it yet")
}

func (v *verifier) settleGap(text string) {
	if v.broken == nil {
		return
	}
	kind := Foreign
	if v.broken.cut {
		kind = Truncated
	}
	v.addProblem(v.broken.first, kind, text)
	v.broken = nil
}

func (v *verifier) addProblem(at problemAt, kind Kind, text string) {
	if len(v.report.Problems) >= maxProblems {
		v.report.More++
		return
	}
	v.report.Problems = append(v.report.Problems, Problem{
		File: at.file,
		Line: at.line,
		Time: at.time,
		Kind: kind,
		Text: text,
	})
}

// checkEnd compares the end of the chain with the mark.
func (v *verifier) checkEnd() {
	whole := v.first != nil && v.first.hash == ""
	lines := v.marked
	if v.first != nil && v.first.lines > 0 {
		whole, lines = true, v.first.lines+v.marked
	}
	switch {
	case v.mark == nil || v.mark.Lines == 0:
	case v.marked == 0:
		v.addProblem(problemAt{file: v.file}, Truncated,
			fmt.Sprintf(
				"the service remembers line %d with hash %s, which is not here: lines were cut off or rewritten",
				v.mark.Lines, v.mark.Hash,
			))
	case whole && lines != v.mark.Lines:
		v.addProblem(problemAt{file: v.file}, Missing,
			fmt.Sprintf(
				"the service remembers %d lines up to the hash %s, here are %d: lines were taken out or added",
				v.mark.Lines, v.mark.Hash, lines,
			))
	}
}
