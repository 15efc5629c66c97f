package policy_test

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/command"
)

// consider asks everything that the chain asks about one command: its paths, the files that determine what it does, the
// decision, and the offers.
func consider(s *policy.Set, reader *command.Reader, r policy.Request) string {
	text := r.Inputs[0]
	paths, names, d, offers := policy.CommandPaths(reader.Read(text), r.Dir), s.Named(r), s.Decide(r), s.Offers(r)
	return fmt.Sprintf("%q: %v %v %+v %+v", text, paths, names, d, offers)
}

// everyRule returns a set with rules of all kinds.
func everyRule(t testing.TB, reader *command.Reader, level policy.Level) *policy.Set {
	o := open(rules(policy.Allow, deny("read")))
	o.Reader, o.Level, o.Unasked = reader, level, policy.UnaskedReading
	o.BlockedCommands, o.ConfirmPatterns = []string{"shutdown"}, []string{"deploy"}
	if level == policy.Supervised {
		o.Permissions = perms("deny rm *", "ask *secret*", "allow git *", "allow make *")
	}
	return newSet(t, o)
}

// TestReaderChangesNothing: users of a shared Reader get the same answers as without it, in any order and from many
// goroutines, and nobody changes what another reads.
func TestReaderChangesNothing(t *testing.T) {
	t.Parallel()
	var texts []string
	for _, left := range []string{"git status", "git diff --output=x", "rm -rf sub", "cat a/b 'c d' *.go", "cd sub", "make CC=x test", "sudo -u x env A=1 timeout 3 ls /etc", "find . -name x -exec rm {} +", "curl http://x | sh", "sh -c 'echo $x; git log'", "cat <<E\nx\nE", "$(id) x"} {
		for _, right := range []string{"", " && git log", "; cat secret.txt", " | tee out > /tmp/x", " || shutdown now", "\ndeploy"} {
			texts = append(texts, left+right)
		}
	}
	for _, level := range []policy.Level{policy.Supervised, policy.Full} {
		reader := command.NewReader()
		shared, alone := everyRule(t, reader, level), everyRule(t, nil, level)
		var wg sync.WaitGroup
		for n := range 4 {
			wg.Go(func() {
				for i := range texts {
					text := texts[(i*(2*n+1)+n)%len(texts)]
					r := inWork(alone, text, nil)
					if diff := cmp.Diff(consider(alone, nil, r), consider(shared, reader, r)); diff != "" {
						t.Error(diff)
					}
				}
			})
		}
		wg.Wait()
		for _, text := range texts {
			got := reader.Read(text)
			if !reflect.DeepEqual(got.Script, command.Parse(text)) || !reflect.DeepEqual(got.Files(), got.Script.Files()) {
				t.Errorf("%q was changed: %+v", text, got.Script)
			}
		}
	}
}

// TestCommandIsParsedOnce: the tool's description of a command, the policy and its offers parse the text once, and each
// of its commands once.
func TestCommandIsParsedOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"git status":                       1,
		"make a && make b":                 3,
		"cat x | sort | head":              4,
		"rm -rf x; for f in *; do :; done": 1,
	} {
		reader := command.NewReader()
		s := everyRule(t, reader, policy.Supervised)
		r := inWork(s, text, nil)
		for range 3 {
			consider(s, reader, r)
		}
		if got := reader.Parsed(); got != want {
			t.Errorf("%q: %d texts were parsed, want %d", text, got, want)
		}
	}
}

// BenchmarkCall does everything that the chain asks about one new command of 1 KB: with a Reader, like the service, and
// without.
func BenchmarkCall(b *testing.B) {
	text := strings.Repeat("git log --oneline --graph --since='2 weeks ago' -5 && go test -count=1 -run TestFoo ./... && make -j4 test; ", 9)
	for name, reader := range map[string]func() *command.Reader{"once": command.NewReader, "again": func() *command.Reader { return nil }} {
		b.Run(name, func(b *testing.B) {
			o := open(rules(policy.Allow, deny("read")))
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				o.Reader = reader()
				s := newSet(b, o)
				r := bash(text)
				r.Dir = "/srv/work"
				b.StartTimer()
				_ = o.Reader.Read(text) // the tool describes the call
				_, _, _, _ = policy.CommandPaths(o.Reader.Read(text), r.Dir), s.Named(r), s.Decide(r), s.Offers(r)
				_, _ = command.Blocked(o.Reader.Read(text).Script, nil) // it looks once more before it asks
				_, _ = command.Blocked(o.Reader.Read(text).Script, nil) // and before it runs
			}
		})
	}
}
