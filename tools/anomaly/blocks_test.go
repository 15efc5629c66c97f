package anomaly_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/anomaly"
)

// TestEndsByItself: a block lasts ten minutes, twice as long if the tool continues to fail, and ten minutes again after
// a day without failures.
func TestEndsByItself(t *testing.T) {
	t.Parallel()
	kept := &store{}
	s := newSetup(t, anomaly.Options{Window: 3, AutoBlock: true, Store: kept})
	for i, want := range []time.Duration{10 * time.Minute, 20 * time.Minute, 40 * time.Minute, 80 * time.Minute} {
		if ran := s.play(t.Context(), "fetch", "ffff"); ran != 3 {
			t.Fatalf("block %d: %d calls ran", i, ran)
		}
		if b, ok := s.blocked("fetch"); !ok || b.Until.Sub(s.now) != want || s.events[i].Until != b.Until || s.events[i].Session != home {
			t.Errorf("block %d: %+v, event %+v", i, b, s.events[i])
		}
		s.now = s.now.Add(want - time.Second)
		if s.gate(t.Context(), "fetch") == nil {
			t.Errorf("block %d ends early", i)
		}
		if s.now = s.now.Add(time.Second); s.gate(t.Context(), "fetch") != nil || len(s.Blocks()) != 0 {
			t.Errorf("block %d does not end", i)
		}
	}
}

// TestOneConversation: what fails in one conversation is not taken away from another.
func TestOneConversation(t *testing.T) {
	t.Parallel()
	s := newSetup(t, anomaly.Options{Window: 3, AutoBlock: true})
	s.play(t.Context(), "bash", "fff")
	s.session = "telegram:43"
	if ran := s.play(t.Context(), "bash", "ooof"); ran != 4 {
		t.Errorf("%d calls of another conversation ran", ran)
	}
	if _, ok := s.blocked("bash"); !ok {
		t.Error("the one that failed is not blocked")
	}
}

// TestAttackBlockOthers: in a conversation of several people, a tool is taken away only from whom it fails for; and one
// person cannot have a server taken away from everybody, in however many conversations they fail.
func TestAttackBlockOthers(t *testing.T) {
	t.Parallel()
	s := newSetup(t, anomaly.Options{Window: 8, AutoBlock: true})
	s.session, s.caller = "group", "telegram:1"
	if s.play(t.Context(), "bash", strings.Repeat("f", 9)) != 8 {
		t.Error("not blocked")
	}
	s.caller = "telegram:2"
	if s.play(t.Context(), "bash", "of") != 2 {
		t.Error("blocked for another member")
	}
	s.server, s.caller = "srv", "telegram:1"
	for _, s.session = range []string{"group", "topic", "telegram:1"} {
		s.play(t.Context(), "srv:x", "ffffff")
	}
	s.session, s.caller = "telegram:2", "telegram:2"
	s.play(t.Context(), "srv:y", "f") // one failure of somebody else does not make it everybody's
	for _, b := range s.Blocks() {
		if b.Session == "" || b.Caller != "telegram:1" {
			t.Errorf("blocked: %+v", b)
		}
	}
	if s.play(t.Context(), "srv:x", "f") != 1 {
		t.Error("another person cannot use the server")
	}
	s.play(t.Context(), "srv:x", "f")
	if _, blocked := s.Blocked(origin("telegram:3"), tools.Definition{Name: "srv:z", Server: "srv"}); !blocked {
		t.Error("a server that fails for several people is not blocked")
	}
}

// TestServerEverywhere: the tools of a server are blocked for everybody only if its calls fail for every person, and for
// more than one.
func TestServerEverywhere(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		calls [][2]string // conversation and calls
		want  string      // what is blocked
	}{
		{"one conversation", [][2]string{{"a", "ffff"}}, "a srv:x"},
		{"two", [][2]string{{"a", "ff"}, {"b", "ff"}}, " srv:*"},
		{"two, of which one goes well", [][2]string{{"a", "fff"}, {"b", "o"}}, ""},
		{"two, of which one began well", [][2]string{{"b", "o"}, {"a", "fff"}, {"c", "fff"}}, " srv:*"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(t, anomaly.Options{Window: 4, AutoBlock: true})
			s.server = "srv"
			for _, c := range tc.calls {
				s.session = c[0]
				s.play(t.Context(), "srv:x", c[1])
			}
			var got []string
			for _, b := range s.Blocks() {
				got = append(got, b.Session+" "+b.Tool)
			}
			if strings.Join(got, ",") != tc.want {
				t.Fatalf("blocked %q, want %q", got, tc.want)
			}
			other := tools.Definition{Name: "srv:y", Server: "srv"}
			if _, blocked := s.Blocked(origin("z"), other); blocked != (tc.want == " srv:*") {
				t.Errorf("another tool in another conversation: blocked %t", blocked)
			}
			if strings.HasSuffix(tc.want, "*") {
				if ok, err := s.Unblock(t.Context(), "srv:*"); !ok || err != nil || s.Gate(t.Context(), origin("z"), other) != nil {
					t.Errorf("unblock: %t, %v", ok, err)
				}
			}
		})
	}
}
