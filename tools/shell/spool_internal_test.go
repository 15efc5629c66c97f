package shell

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"
)

var gap = regexp.MustCompile(`\[… (\d+) (bytes|characters) left out …\]\n`)

// truth checks a text with a note: the parts before and after it are the ends of the whole, and the number in the note
// is the length of what is between them.
func truth(whole, shown, unit string, measure func(string) int) error {
	at := gap.FindStringSubmatchIndex(shown)
	if at == nil {
		if shown != whole {
			return fmt.Errorf("%d of %d bytes without a word", len(shown), len(whole))
		}
		return nil
	}
	head, tail := shown[:at[0]], shown[at[1]:]
	if !strings.HasPrefix(whole, head) { // a line that was cut has an end of our own
		head = strings.TrimSuffix(head, "\n")
	}
	if !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) || shown[at[4]:at[5]] != unit {
		return fmt.Errorf("the ends are not those of the whole: %.80q … %.80q", head, tail)
	}
	said, err := strconv.Atoi(shown[at[2]:at[3]])
	// +1: if the text continues with a newline, ours is at its place
	if is := measure(whole[len(head) : len(whole)-len(tail)]); err != nil || said != is && said != is+1 {
		return fmt.Errorf("it says that %d %s are left out, and it is %d", said, unit, is)
	}
	return nil
}

// noise is lines of any length, with characters of one to four bytes.
func noise(r *rand.Rand, size int) string {
	signs := []rune("abc \tüß€😀")
	var b strings.Builder
	for b.Len() < size {
		for range r.IntN([]int{3, 80, 5000}[r.IntN(3)]) {
			b.WriteRune(signs[r.IntN(len(signs))])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestSpoolTellsTheTruth: whatever is written in whatever pieces under whatever limit, all is there, or the ends and
// the number of what is not.
func TestSpoolTellsTheTruth(t *testing.T) {
	t.Parallel()
	check := func(seed uint64) bool {
		r := rand.New(rand.NewPCG(seed, 1))
		limit, size := 2+r.IntN(9000), r.IntN(40_000)
		if r.IntN(10) == 0 { // the first half is in the file too
			limit, size = 2*inMemory+r.IntN(inMemory), 2*inMemory+r.IntN(4*inMemory)
		}
		s := spool{max: int64(limit), dir: t.TempDir()}
		defer s.close()
		whole := noise(r, size)
		for rest := whole; rest != ""; {
			n := min(len(rest), 1+r.IntN(1+size/(1+r.IntN(50))))
			s.writeBytes([]byte(rest[:n]))
			rest = rest[n:]
		}
		shown, missing, err := s.keptText()
		if err == nil {
			err = truth(whole, shown, "bytes", func(s string) int { return len(s) })
		}
		if err != nil || (missing > 0) != (len(whole) > limit) || !utf8.ValidString(shown) || len(shown) > limit+100 {
			t.Errorf("seed %d, limit %d, %d bytes: %d missing, %v", seed, limit, len(whole), missing, err)
		}
		short, cut := shortenText(whole, limit)
		if err := truth(whole, short, "characters", utf8.RuneCountInString); err != nil || cut != (utf8.RuneCountInString(whole) > limit) {
			t.Errorf("seed %d, shortened to %d characters: %v", seed, limit, err)
		}
		return !t.Failed()
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 150}); err != nil {
		t.Error(err)
	}
}

// TestSpoolWithoutFile: where there is no room for the file, before or in the middle, nothing is lost.
func TestSpoolWithoutFile(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	whole := noise(r, 3*inMemory)
	for name, spoil := range map[string]func(s *spool){
		"no directory": func(s *spool) { s.dir = filepath.Join(t.TempDir(), "none") },
		"full": func(s *spool) { // it takes no more
			s.writeBytes([]byte(whole[:2*inMemory]))
			f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", s.file.Fd()))
			if err != nil {
				t.Fatal(err)
			}
			s.close()
			s.file = f
		},
	} {
		s := spool{max: 10 << 20, dir: t.TempDir()}
		spoil(&s)
		s.writeBytes([]byte(whole[s.total:]))
		if shown, missing, err := s.keptText(); err != nil || missing != 0 || shown != whole || s.file != nil {
			t.Errorf("%s: %d of %d bytes, %d missing, %v", name, len(shown), len(whole), missing, err)
		}
		s.close()
	}
}

// TestSpoolLeavesNothing: the file has no name, so that it ends with the process at the latest.
func TestSpoolLeavesNothing(t *testing.T) {
	t.Parallel()
	s := spool{max: 10 << 20, dir: t.TempDir()}
	defer s.close()
	s.writeBytes(make([]byte, 2*inMemory))
	if list, err := os.ReadDir(s.dir); err != nil || len(list) > 0 || s.file == nil {
		t.Errorf("%v, %v", list, err)
	}
	if len(s.front) != inMemory || s.rest != nil {
		t.Errorf("%d bytes are held in memory", len(s.front)+len(s.rest))
	}
}
