package audit_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools/audit"
)

// chainText is a chain in memory: the lines of its files, each with its newline.
type chainText [][]string

func (c chainText) clone() chainText {
	list := make(chainText, len(c))
	for i := range c {
		list[i] = slices.Clone(c[i])
	}
	return list
}

func (c chainText) verify(t *testing.T, mark audit.Mark) audit.Report {
	t.Helper()
	files := make([]audit.File, len(c))
	for i := range c {
		files[i] = audit.File{Name: fmt.Sprint(i), Reader: strings.NewReader(strings.Join(c[i], ""))}
	}
	r, err := audit.Verify(&mark, files...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sealed returns a line with a hash that fits, after the line with the hash prev.
func sealed(prev, text string) string {
	body := fmt.Sprintf(`{"timestamp":"2026-03-04T04:06:07.008Z","tool":%q,"writer":"w","prev_hash":"%s"`, text, prev)
	return body + `,"hash":"` + audit.Digest(body+"}") + "\"}\n"
}

func hashOf(line string) string { return line[len(line)-67 : len(line)-3] }

// place is a line: file and number from 0. The whole log is {-1, -1}.
type place struct{ file, line int }

// next returns where the line after the last one of a file is found: what is missed at the end is missed there.
func (c chainText) next(file int) place {
	for f := file + 1; f < len(c); f++ {
		if len(c[f]) > 0 {
			return place{f, 0}
		}
	}
	return place{-1, -1}
}

// at returns a place that was valid before lines were removed from it.
func (c chainText) at(p place) place {
	if p.line < len(c[p.file]) {
		return p
	}
	return c.next(p.file)
}

func (c chainText) pick(r *rand.Rand) place {
	f := r.IntN(len(c))
	return place{f, r.IntN(len(c[f]))}
}

// before returns the hash of the line before a place.
func (c chainText) before(p place) string {
	for f := p.file; f >= 0; f-- {
		if f == p.file && p.line > 0 {
			return hashOf(c[f][p.line-1])
		}
		if f < p.file {
			return hashOf(c[f][len(c[f])-1])
		}
	}
	return ""
}

// harms damage a chain, and return which line Verify has to name first; several if nobody can know.
func harms() map[string]func(r *rand.Rand, c chainText) []place {
	return map[string]func(r *rand.Rand, c chainText) []place{
		"edit": func(r *rand.Rand, c chainText) []place {
			p := c.pick(r)
			line := []byte(c[p.file][p.line])
			at := r.IntN(len(line) - 1)
			line[at] = byte(33 + (int(line[at])-33+1+r.IntN(90))%94)
			c[p.file][p.line] = string(line)
			return []place{p}
		},
		"edit and seal": func(r *rand.Rand, c chainText) []place {
			p := c.pick(r)
			c[p.file][p.line] = sealed(c.before(p), "forged")
			return []place{p, c.at(place{p.file, p.line + 1})}
		},
		"remove a line": func(r *rand.Rand, c chainText) []place {
			p := c.pick(r)
			c[p.file] = slices.Delete(c[p.file], p.line, p.line+1)
			return []place{c.at(p)}
		},
		"remove many": func(r *rand.Rand, c chainText) []place {
			p := c.pick(r)
			c[p.file] = slices.Delete(c[p.file], p.line, p.line+1+r.IntN(len(c[p.file])-p.line))
			return []place{c.at(p)}
		},
		"swap": func(r *rand.Rand, c chainText) []place {
			a, b := c.pick(r), c.pick(r)
			for a == b {
				b = c.pick(r)
			}
			c[a.file][a.line], c[b.file][b.line] = c[b.file][b.line], c[a.file][a.line]
			if b.file < a.file || b.file == a.file && b.line < a.line {
				a = b
			}
			return []place{a}
		},
		"move": func(r *rand.Rand, c chainText) []place {
			p := c.pick(r)
			line := c[p.file][p.line]
			c[p.file] = slices.Delete(c[p.file], p.line, p.line+1)
			f := r.IntN(len(c))
			to := place{f, r.IntN(len(c[f]) + 1)}
			if to == p { // it is back where it was
				to = place{p.file, (p.line + 1) % (len(c[p.file]) + 1)}
			}
			c[to.file] = slices.Insert(c[to.file], to.line, line)
			first := to
			if p.file < to.file || p.file == to.file && p.line < to.line {
				first = c.at(p)
			}
			return []place{first}
		},
		"truncate": func(r *rand.Rand, c chainText) []place {
			p := c.pick(r)
			rest := c[p.file][p.line]
			cut := r.IntN(len(rest) - 1)
			c[p.file] = c[p.file][:p.line]
			if cut > 0 {
				c[p.file] = append(c[p.file], rest[:cut])
				return []place{p}
			}
			return []place{c.next(p.file)}
		},
		"insert garbage": func(r *rand.Rand, c chainText) []place {
			p := c.pick(r)
			c[p.file] = slices.Insert(c[p.file], p.line, "garbage\n")
			return []place{p}
		},
		"insert a line of another log": func(r *rand.Rand, c chainText) []place {
			p := c.pick(r)
			c[p.file] = slices.Insert(c[p.file], p.line, sealed(strings.Repeat("ab", 32), "other"))
			return []place{p}
		},
		"insert lines that follow": func(r *rand.Rand, c chainText) []place {
			p := c.pick(r)
			prev := c.before(p)
			for prev == "" { // nothing is before the first line
				p = c.pick(r)
				prev = c.before(p)
			}
			for i := range 1 + r.IntN(3) {
				line := sealed(prev, "forged")
				prev = hashOf(line)
				c[p.file] = slices.Insert(c[p.file], p.line+i, line)
			}
			return []place{p}
		},
		"repeat a line": func(r *rand.Rand, c chainText) []place {
			from, p := c.pick(r), c.pick(r)
			line := c[from.file][from.line]
			c[p.file] = slices.Insert(c[p.file], p.line, line)
			if from == p { // two equal lines: the second one is the copy
				p.line++
			}
			return []place{p}
		},
		"remove a file": func(r *rand.Rand, c chainText) []place {
			f := r.IntN(len(c))
			c[f] = nil
			return []place{c.next(f)}
		},
	}
}

// TestDamageIsNamed: whatever is done to a log, Verify finds it, and names the first bad line.
func TestDamageIsNamed(t *testing.T) {
	t.Parallel()
	path, m := filepath.Join(t.TempDir(), "audit.jsonl"), &memory{}
	l, c := days(t, path, 2, audit.Options{Anchor: m})
	record(l, 5)
	c.add(24 * time.Hour)
	record(l, 3)
	c.add(24 * time.Hour)
	record(l, 4)
	closeLog(t, l)
	names, err := audit.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	var good chainText
	for _, name := range names {
		good = append(good, slices.Collect(strings.Lines(read(t, name))))
	}
	if r := good.verify(t, m.mark); len(good) != 4 || len(r.Problems) > 0 {
		t.Fatalf("%d files, %+v", len(good), r)
	}
	for name, harm := range harms() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(60) {
				bad := good.clone()
				want := harm(rand.New(rand.NewPCG(seed, 1)), bad)
				r := bad.verify(t, m.mark)
				if len(r.Problems) == 0 {
					t.Fatalf("seed %d: not found: %v", seed, want)
				}
				p := r.Problems[0]
				got := place{-1, -1}
				if p.Line > 0 {
					_, _ = fmt.Sscan(p.File, &got.file)
					got.line = p.Line - 1
				}
				if !slices.Contains(want, got) {
					t.Errorf("seed %d: named %v (%s: %s), want %v", seed, got, p.Kind, p.Text, want)
				}
			}
		})
	}
}

// FuzzRead: no content of a file makes a reader panic, and what is read without its hash fitting is called broken.
func FuzzRead(f *testing.F) {
	f.Add([]byte(sealed("", "a")))
	f.Add([]byte(sealed(strings.Repeat("0", 64), "a") + "garbage\n" + sealed("x", "b")))
	f.Add([]byte(`{"timestamp":"","erased":[{"receipt":"r","part":-1,"from":"x"}],"hash":"` + strings.Repeat("0", 64) + "\"}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := audit.Verify(&audit.Mark{Lines: 1, Hash: "x"}, audit.File{Name: "a", Reader: strings.NewReader(string(data))})
		if err != nil || r.Lines > 0 && len(r.Problems) == 0 && r.Last != "x" {
			t.Errorf("%+v, %v", r, err)
		}
		for line := range strings.Lines(string(data)) {
			raw := strings.TrimSuffix(line, "\n")
			if l := audit.ReadLine([]byte(raw)); l.Broken == "" && !strings.HasSuffix(raw, `"}`) {
				t.Errorf("%q is a line: %+v", raw, l)
			}
		}
	})
}
