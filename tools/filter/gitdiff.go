package filter

import (
	"fmt"
	"path"
	"strings"
)

// gitDiff keeps the file headers and, up to a limit of lines, the hunks (seed 003).
type gitDiff struct{ most int }

func (gitDiff) isNaming() bool { return false }

// fileDiff is the part of a diff about one file.
type fileDiff struct {
	name       string
	from, body int // first line, and first line of the hunks
	to         int
	plus       int
	minus      int
}

func (d gitDiff) applyTo(j *job) ([]line, Confidence) {
	files := diffFiles(j.lines)
	if len(files) == 0 || j.limited {
		return nil, Fallback
	}
	out := make([]line, 0, min(len(j.lines), d.most)+4*len(files))
	out = append(out, j.lines[:files[0].from]...) // a commit message, a note
	budget, dropped, cut := d.most, 0, false
	over := len(j.lines) > d.most
	for _, f := range files {
		for _, l := range j.lines[f.from:f.body] {
			if strings.HasPrefix(l.bodyText(), "index ") && !l.keep {
				dropped++
				continue
			}
			out = append(out, l)
			budget--
		}
		room := max(budget, 0)
		if over && isGenerated(f.name) {
			room = 0
		}
		hunks := j.lines[f.body:f.to]
		if len(hunks) <= room || len(hunks) <= 2 {
			out = append(out, hunks...)
			budget -= len(hunks)
			continue
		}
		cut = true
		budget -= room
		kept, left := upTo(hunks, room)
		out = append(out, kept...)
		out = append(out,
			writtenLine(fmt.Sprintf("(%d lines omitted of %s: +%d -%d in all)", left, f.name, f.plus, f.minus)))
	}
	if dropped == 0 && !cut {
		return nil, Fallback
	}
	if cut {
		return append(out, writtenLine(diffCounts(files)+
			fmt.Sprintf(" (truncated from %d lines)", len(j.lines)))), Partial
	}
	if len(files) > 1 {
		out = append(out, writtenLine(diffCounts(files)))
	}
	return out, Full
}

// diffCounts returns a line like the last one of git diff --stat.
func diffCounts(files []fileDiff) string {
	plus, minus := 0, 0
	for _, f := range files {
		plus, minus = plus+f.plus, minus+f.minus
	}
	return fmt.Sprintf("%d files changed, %d insertions(+), %d deletions(-)", len(files), plus, minus)
}

// upTo keeps the first lines, and among the rest those that must be kept.
func upTo(lines []line, room int) (kept []line, left int) {
	kept = append(kept, lines[:room]...)
	for _, l := range lines[room:] {
		if l.keep {
			kept = append(kept, l)
		} else {
			left++
		}
	}
	return kept, left
}

// diffFiles returns the files of a diff, which may be a combined one.
func diffFiles(lines []line) []fileDiff {
	var files []fileDiff
	for i := range lines {
		s := lines[i].bodyText()
		switch {
		case strings.HasPrefix(s, "diff --git "), strings.HasPrefix(s, "diff --cc "),
			strings.HasPrefix(s, "diff --combined "):
			if n := len(files); n > 0 {
				files[n-1].endHunk(i)
			}
			files = append(files, fileDiff{name: diffName(s), from: i, body: -1})
			continue
		}
		if len(files) == 0 {
			continue
		}
		f := &files[len(files)-1]
		switch {
		case f.body < 0 && strings.HasPrefix(s, "@@"):
			f.body = i
		case f.body < 0:
		case strings.HasPrefix(s, "+"):
			f.plus++
		case strings.HasPrefix(s, "-"):
			f.minus++
		}
	}
	if n := len(files); n > 0 {
		files[n-1].endHunk(len(lines))
	}
	return files
}

func (f *fileDiff) endHunk(at int) {
	f.to = at
	if f.body < 0 {
		f.body = at
	}
}

// diffName returns the name of the file in "diff --git a/x b/x".
func diffName(head string) string {
	if i := strings.LastIndex(head, " b/"); i >= 0 {
		return head[i+3:]
	}
	return head[strings.LastIndexByte(head, ' ')+1:]
}

// isGenerated reports whether the changes of a file are rarely read: they are dropped first when a diff is too long.
func isGenerated(name string) bool {
	switch path.Base(name) {
	case "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "Cargo.lock", "go.sum", "poetry.lock", "uv.lock",
		"Gemfile.lock", "composer.lock", "bun.lock", "flake.lock":
		return true
	}
	return strings.HasSuffix(name, ".min.js") || strings.HasSuffix(name, ".min.css") ||
		strings.HasSuffix(name, ".map") || strings.HasSuffix(name, ".snap")
}
