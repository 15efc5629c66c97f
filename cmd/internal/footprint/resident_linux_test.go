package footprint

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const smapsText = `00400000-01548000 r-xp 00000000 fe:00 247026                             /opt/zephbot
Rss:               14736 kB
Anonymous:             0 kB
01548000-02857000 r--p 01148000 fe:00 247026                             /opt/zephbot
Rss:               13560 kB
Anonymous:             4 kB
02857000-02858000 r--p 02448000 fe:00 247026                             /opt/zephbot
Rss:                   4 kB
Anonymous:             0 kB
02858000-029e0000 rw-p 02458000 fe:00 247026                             /opt/zephbot
Rss:                1060 kB
Anonymous:             0 kB
029e0000-02a00000 r--s 02458000 fe:00 247026                             /opt/zephbot
Anonymous:             0 kB
c000000000-c000c00000 rw-p 00000000 00:00 0 
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 12                         /opt/other
Anonymous:             0 kB
7f0000001000-7f0000002000 r--p 00000000 00:00 0                          [vvar]
Anonymous:             0 kB
`

func TestCleanMappings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		smaps string
		want  []mapping
	}{
		"only what is read-only, private, of the file and unchanged": {smapsText, []mapping{{0x400000, 0x1548000}, {0x2857000, 0x2858000}}},
		"nothing":                            {"", nil},
		"a mapping that does not say":        {"00400000-01548000 r-xp 00000000 fe:00 247026 /opt/zephbot\n", nil},
		"a range that ends before it begins": {"2000-1000 r-xp 00000000 fe:00 1 /opt/zephbot\nAnonymous: 0 kB\n", nil},
	} {
		if diff := cmp.Diff(tt.want, cleanMappings(tt.smaps, "/opt/zephbot"), cmp.AllowUnexported(mapping{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestRelease drops the pages of this very program, which has to go on afterwards.
func TestRelease(t *testing.T) { //nolint:paralleltest // others would touch the pages that it counts
	resident := func() (kB int) {
		exe, err := os.Readlink("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		smaps, err := os.ReadFile("/proc/self/smaps")
		if err != nil {
			t.Fatal(err)
		}
		if len(cleanMappings(string(smaps), exe)) == 0 {
			t.Skip("no mapping of this program is free of changes")
		}
		of := regexp.MustCompile(`(?m)^[0-9a-f]+-[0-9a-f]+ r-[x-]p .* ` + regexp.QuoteMeta(exe) + `\n(?:[A-Z].*\n)*?Rss: +(\d+) kB$`)
		for _, m := range of.FindAllStringSubmatch(string(smaps), -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			kB += n
		}
		return kB
	}
	before := resident()
	release()
	after := resident()
	if before == 0 || after > before*3/4 {
		t.Errorf("%d kB of the program were resident, %d kB after it was released", before, after)
	}
}
