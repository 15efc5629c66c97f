package filter

import (
	"fmt"
	"strings"
)

// listing shortens long lists of files. It keeps the first entries of each directory and counts the others. It
// understands paths (tar, find, unzip), with or without columns before them (tar -tv, unzip -l), and the blocks of ls
// -R.
type listing struct{ most int }

func (listing) isNaming() bool { return true } // it drops only entries that it recognises

func (s listing) applyTo(j *job) ([]line, Confidence) {
	out := make([]line, 0, len(j.lines)/4+8)
	run, gap := 0, 0
	folder, block := "", "" // block: the directory whose entries ls -R lists
	flush := func(i int) {
		switch {
		case gap == 1:
			out = append(out, j.lines[i-1])
		case gap > 1:
			out = append(out, writtenLine(fmt.Sprintf("(%d more in %s)", gap, folder)))
		}
		run, gap = 0, 0
	}
	for i := range j.lines {
		l := &j.lines[i]
		body := l.bodyText()
		here := block
		switch head := headOfBlock(body); {
		case head != "" && (i == 0 || isBlank(j.lines[i-1].bodyText())):
			flush(i)
			block, folder = head, head
			out = append(out, *l)
			continue
		case isBlank(body):
			flush(i)
			block = ""
			out = append(out, *l)
			continue
		case block == "":
			here = folderOf(body)
		}
		if here != folder || here == "" || l.keep || l.off > 0 {
			flush(i)
			folder = here
			out = append(out, *l)
			run = 1
			continue
		}
		if run++; run > s.most {
			gap++
		} else {
			out = append(out, *l)
		}
	}
	flush(len(j.lines))
	if len(j.lines)-len(out) < 2 {
		return nil, Fallback
	}
	return out, Partial
}

// headOfBlock returns the directory in a line "./a/b:" of ls -R; "" for other lines.
func headOfBlock(body string) string {
	name, ok := strings.CutSuffix(body, ":")
	if !ok || name == "" || name[0] == ' ' || strings.Contains(name, ": ") {
		return ""
	}
	return name
}

// folderOf returns the directory of the path at the end of a line; "" without one.
func folderOf(body string) string {
	at := len(body)
	if arrow := strings.Index(body, " -> "); arrow > 0 {
		at = arrow
	} else if link := strings.Index(body, " link to "); link > 0 {
		at = link
	}
	path := strings.TrimSuffix(body[:at], "/")
	path = path[strings.LastIndexByte(path, ' ')+1:]
	slash := strings.LastIndexByte(path, '/')
	if slash <= 0 {
		return ""
	}
	return path[:slash+1]
}
