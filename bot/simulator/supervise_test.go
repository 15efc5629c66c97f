package simulator_test

import (
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/simulator"
)

// stay is a pause that no test waits out.
const stay = 24 * time.Hour

func (s *site) order(do string) {
	s.t.Helper()
	s.post("bot", p{"do": do}, nil)
}

func TestKillLosesNothing(t *testing.T) {
	t.Parallel()
	s := launch(t, func(o *simulator.Options) { o.Pause = stay })
	before := s.awaitBot("running")
	s.order("kill")
	dead := s.awaitBot("dead")
	if dead.PID != 0 || dead.Exit != "signal: killed" || dead.Next.IsZero() {
		t.Errorf("dead: %+v", dead)
	}
	s.say(ann, ann, 0, "one")
	s.say(ben, team, deploys, "@zephbot two")
	if v := s.view(ann, ann, 0); v.Pending != 2 {
		t.Errorf("%d updates wait, want 2", v.Pending)
	}
	s.order("start")
	s.awaitText(ann, ann, 0, "echo: one")
	s.awaitText(ben, team, deploys, "echo: @zephbot two")
	after := s.awaitBot("running")
	if after.PID == before.PID || after.Starts != 2 {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestDeadBotComesBack(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	s.awaitBot("running")
	s.order("kill")
	s.awaitStart(2) // a message that comes before the signal does could still be answered by the first process
	s.say(ann, ann, 0, "still there?")
	s.awaitText(ann, ann, 0, "echo: still there?")
	s.say(ann, ann, 0, "crash")
	s.awaitStart(3)
	s.say(ann, ann, 0, "and now?")
	s.awaitText(ann, ann, 0, "echo: and now?")
}

func TestCrashIsTold(t *testing.T) {
	t.Parallel()
	s := launch(t, func(o *simulator.Options) { o.Pause = stay })
	s.say(ann, ann, 0, "crash")
	dead := s.awaitBot("dead")
	if dead.Exit != "exit status 3" || dead.Last != "bot: boom" {
		t.Errorf("dead: %+v", dead)
	}
	var log struct{ Lines []string }
	s.get("log", &log)
	if diff := cmp.Diff([]string{"bot: up", "bot: boom"}, log.Lines); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if got := s.stderr.String(); got != "bot: up\nbot: boom\n" {
		t.Errorf("passed on: %q", got)
	}
	s.order("stop") // a dead one stays down
	s.awaitBot("stopped")
}

func TestRestartIsGentle(t *testing.T) {
	t.Parallel()
	s := launch(t, func(o *simulator.Options) { o.Grace = stay })
	before := s.awaitBot("running")
	s.order("restart")
	var after simulator.BotStatus
	s.await(ann, ann, 0, func(v *simulator.View) bool {
		after = v.Bot
		return v.Bot.State == "running" && v.Bot.Starts == 2
	})
	if after.PID == before.PID {
		t.Errorf("still pid %d", after.PID)
	}
	s.order("stop")
	if got := s.awaitBot("stopped"); got.Exit != "exit status 0" {
		t.Errorf("stopped: %+v", got)
	}
	if got := s.stderr.String(); got != "bot: up\nbot: bye\nbot: up\nbot: bye\n" {
		t.Errorf("output: %q", got)
	}
	s.say(ann, ann, 0, "later")
	s.order("start")
	s.awaitText(ann, ann, 0, "echo: later")
}

func TestBotThatCannotStart(t *testing.T) {
	t.Parallel()
	s := launch(t, func(o *simulator.Options) {
		o.Pause = stay
		o.Command = func(string, string) *exec.Cmd { return exec.Command("/nonexistent/zephbot") } //nolint:noctx // it never starts
	})
	if dead := s.awaitBot("dead"); !strings.Contains(dead.Exit, "did not start") || !strings.Contains(dead.Exit, "/nonexistent/zephbot") {
		t.Errorf("dead: %+v", dead)
	}
}

// TestNothingIsLeft: what the bot started goes when the bot goes, by kill, by its own death, and at the end.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*site){
		"kill":   func(s *site) { s.order("kill") },
		"crash":  func(s *site) { s.say(ann, ann, 0, "crash") },
		"stop":   func(s *site) { s.order("stop") },
		"finish": func(s *site) { s.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var listen net.ListenConfig
			l, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			s := launch(t, func(o *simulator.Options) { o.Pause = stay })
			s.say(ann, ann, 0, "spawn "+l.Addr().String())
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			b := make([]byte, 1)
			if _, err := conn.Read(b); err != nil {
				t.Fatal(err)
			}
			end(s)
			if n, err := conn.Read(b); err == nil {
				t.Errorf("the grandchild says %q", b[:n])
			}
		})
	}
}
