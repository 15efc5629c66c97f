package difftest

import (
	_ "embed"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// seedText has one script a line; ⏎ stands for a newline.
//
//go:embed testdata/seeds.txt
var seedText string

func seeds() []string {
	return strings.Split(strings.TrimSpace(strings.ReplaceAll(seedText, "⏎", "\n")), "\n")
}

// size is how many scripts one process of a shell runs.
const size = 64

// round is one search.
type round struct {
	made, ran int
	findings  []finding
}

// search makes up scripts and runs those that decide allows, until there is a finding or more says no.
func search(s *shell, m *maker, decide decider, more func(made int) bool) (r round) {
	shells := []string{"bash", "bash", "bash"}
	if _, err := exec.LookPath("dash"); err == nil {
		shells = append(shells, "sh") // where sh is another shell
	}
	seen := make(map[string]bool)
	var allowed []string
	for batches := 0; len(r.findings) == 0; batches++ {
		for len(allowed) < size && more(r.made) {
			script := m.next()
			r.made++
			if !seen[script] && !strings.Contains(script, "\x00") && decide(script) {
				allowed = append(allowed, script)
				seen[script] = true
			}
		}
		if len(allowed) == 0 {
			break
		}
		r.findings = s.batch(shells[batches%len(shells)], allowed)
		r.ran += len(allowed)
		allowed = allowed[:0]
	}
	return r
}

func (r round) report(t *testing.T, seed uint64) {
	t.Helper()
	t.Logf("seed %d: %d scripts made up, %d different ones allowed and run", seed, r.made, r.ran)
	for i, f := range r.findings {
		if i == 5 {
			break
		}
		t.Errorf("seed %d: allowed without a question, and %v", seed, f)
	}
}

// What the policy allows without a question runs nothing that no rule allows and writes no file: a fixed set of
// scripts.
func TestAttackDifferential(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	r := search(s, newMaker(1, seeds()), byPolicy(t, s.work), func(made int) bool { return made < 4000 })
	r.report(t, 1)
	if r.ran < r.made/5 {
		t.Errorf("only %d of %d scripts were allowed: that proves little", r.ran, r.made)
	}
}

// The same for one of ZEPH_DIFF_PARTS equal parts of the time that ZEPH_DIFF says, from ZEPH_DIFF_SEED or a new seed.
func TestDifferential(t *testing.T) {
	t.Parallel()
	long := os.Getenv("ZEPH_DIFF")
	if long == "" {
		t.Skip("ZEPH_DIFF is not set; .ci/run differential sets it")
	}
	d, err := time.ParseDuration(long)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64() //nolint:gosec // printed and repeatable
	if text := os.Getenv("ZEPH_DIFF_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	if parts, err := strconv.Atoi(os.Getenv("ZEPH_DIFF_PARTS")); err == nil && parts > 0 {
		d /= time.Duration(parts)
	}
	s := newShell(t)
	end := time.Now().Add(d)
	r := search(s, newMaker(seed, seeds()), byPolicy(t, s.work), func(int) bool { return time.Now().Before(end) })
	r.report(t, seed)
}

// The search finds a decider that looks at the first word only.
func TestBlindDeciderIsCaught(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	r := search(s, newMaker(2, seeds()), blind, func(made int) bool { return made < 4000 })
	t.Logf("%d scripts made up, %d run", r.made, r.ran)
	if len(r.findings) == 0 {
		t.Error("nothing was found")
	}
}

// The shells notice what they are there to notice, alone and in a batch, and nothing else.
func TestShellNotices(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, script := range []string{
		"canary", "no-such-program x", "ls; canary", "echo $(canary)", "bash -c canary", "sh -c canary", "env canary", "command canary", "sleep_ & canary", "(canary &)", "echo $((x))", "[[ x -eq 1 ]]", "read v; [[ $v -eq 1 ]]", "test -v \"$x\"",
		"test -v \"$1\"", "> out", "echo a >> f", "exec canary", "PATH=.; cat", "PATH=. sort", "set -k; cat PATH=.", "eval \"$b\"", "ls # \\\ncanary",
	} {
		if did := s.alone("bash", script); did == "" {
			t.Errorf("%q: nothing noticed", script)
		}
		if found := s.batch("bash", []string{"ls", script, "pwd"}); len(found) != 1 || found[0].script != script {
			t.Errorf("%q: found %v", script, found)
		}
	}
	for _, script := range []string{"ls", "echo a | cat >/dev/null", "while :; do :; done", "exit 3", "(", "git log $x", "wait; read v"} {
		if found := s.batch("bash", []string{script, "pwd"}); len(found) != 0 {
			t.Errorf("%q: found %v", script, found)
		}
	}
}
