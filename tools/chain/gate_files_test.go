package chain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/grant"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/shell"
)

// bashAt is the gate before a bash that runs nothing, with its own directory.
type bashAt struct {
	t      *testing.T
	dir    string
	grants []policy.Grant
	set    *policy.Set
}

func newBash(t *testing.T) *bashAt {
	t.Helper()
	set, err := policy.New(policy.Options{Tools: shell.Says()})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &bashAt{t: t, dir: dir, set: set}
}

func (b *bashAt) write(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bashAt) link(to, name string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	_ = os.Remove(path) // it may not be there yet
	if err := os.Symlink(to, path); err != nil {
		b.t.Fatal(err)
	}
}

// call takes a command through the gate.
func (b *bashAt) call(text string) *tools.Call {
	b.t.Helper()
	args, err := json.Marshal(map[string]string{"command": text})
	if err != nil {
		b.t.Fatal(err)
	}
	tool := tools.Tool{
		Definition: tools.Definition{Name: "bash", Says: act.Of(shell.Says(), "bash"), Schema: json.RawMessage(`{"type":"object"}`)},
		Describe: func(context.Context, *tools.Call) (tools.Subject, error) {
			return tools.Subject{Inputs: []string{text}, Show: text}, nil
		},
		Run: func(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{}, nil },
	}
	list, err := tools.NewRegistry(tool)
	if err != nil {
		b.t.Fatal(err)
	}
	c := &tools.Call{ID: "c", Tool: "bash", Def: tool.Definition, Args: args, Trail: &tools.Trail{}, Origin: tools.Origin{Session: "s", Caller: "ann", Chat: "1"}}
	g := chain.NewGate(list, chain.GateOptions{Policy: b.set, Request: func(context.Context, *tools.Call) (policy.Request, error) {
		return policy.Request{Dir: b.dir, InsidePaths: []string{b.dir}, Grants: b.grants}, nil
	}})
	if _, err := g(func(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{}, nil })(b.t.Context(), c); err != nil {
		b.t.Fatalf("%q: %v", text, err)
	}
	return c
}

// bound returns what an approval records about the files of a call.
func bound(c *tools.Call) string { return fmt.Sprint(grant.Relative(c.Subject.Scripts)) }

// TestAttackScriptSwapped: if an allowed script is replaced in any way, the call asks again, an approval of the call
// does not apply, and a replacement after the decision is detected just before the run.
func TestAttackScriptSwapped(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]func(b *bashAt){
		"content":      func(b *bashAt) { b.write("x.sh", "evil") },
		"one byte":     func(b *bashAt) { b.write("x.sh", "gooD") },
		"appended":     func(b *bashAt) { b.write("x.sh", "good\nevil") },
		"removed":      func(b *bashAt) { _ = os.Remove(filepath.Join(b.dir, "x.sh")) },
		"a link":       func(b *bashAt) { b.write("y.sh", "good"); b.link("y.sh", "x.sh") },
		"a dead link":  func(b *bashAt) { b.link("nowhere", "x.sh") },
		"a link loop":  func(b *bashAt) { b.link("x.sh", "x.sh") },
		"a system one": func(b *bashAt) { b.link("/bin/sh", "x.sh") },
		"a directory": func(b *bashAt) {
			_ = os.Remove(filepath.Join(b.dir, "x.sh"))
			_ = os.Mkdir(filepath.Join(b.dir, "x.sh"), 0o755)
		},
		"a pipe": func(b *bashAt) {
			_ = os.Remove(filepath.Join(b.dir, "x.sh"))
			_ = syscall.Mkfifo(filepath.Join(b.dir, "x.sh"), 0o600)
		},
		"a device":  func(b *bashAt) { b.link("/dev/zero", "x.sh") },
		"too large": func(b *bashAt) { b.write("x.sh", "good"); _ = os.Truncate(filepath.Join(b.dir, "x.sh"), 33<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBash(t)
			b.write("x.sh", "good")
			asked := b.call("bash ./x.sh")
			if asked.Trail.Effect != "ask" || len(asked.Trail.Offers) == 0 {
				t.Fatalf("%+v", asked.Trail)
			}
			b.grants = asked.Trail.Offers[0].Grants
			allowed := b.call("bash  ./x.sh")
			if allowed.Trail.Effect != "allow" || len(allowed.Unchanged(t.Context())) != 0 {
				t.Fatalf("unchanged: %+v", allowed.Trail)
			}
			swap(b)
			if got := allowed.Unchanged(t.Context()); len(got) != 1 || got[0] != "./x.sh" {
				t.Errorf("right before the run: %v", got)
			}
			again := b.call("bash ./x.sh")
			if again.Trail.Effect != "ask" || strings.Join(again.Trail.Changed, " ") != "./x.sh" {
				t.Errorf("asked again: %+v", again.Trail)
			}
			if bound(again) == bound(asked) {
				t.Error("an approval of the call would still hold")
			}
		})
	}
}

// TestAttackScriptBehindVariable: a script that is named by a variable or a pattern belongs to what a person approves.
func TestAttackScriptBehindVariable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"x=scripts/one.sh; bash $x", `x=scripts/one.sh; sh "$x"`, "f=scripts; bash ${f}/one.sh", `d=scripts f="$d/one.sh"; python3 "$f"`, "f=one; $SHELL; ./scripts/$f.sh",
		"sh ./scripts/*.sh", "bash scripts/o??.sh a b", "for f in scripts/*.sh; do bash \"$f\"; done", "for f in scripts/two.sh scripts/one.sh; do sh $f; done",
		"while read -r l; do bash $s; s=scripts/one.sh; done", "sh -c 'f=scripts/one.sh; . $f'", "source scripts/[!t]*", "x=scripts/one.sh; $x", "x='scripts/*.sh'; for s in $x; do bash $s; done",
		"export f=scripts/one.sh; bash -c 'bash $f'", "./run scripts/*.sh",
	} {
		b := newBash(t)
		b.write("scripts/one.sh", "good")
		b.write("scripts/two.sh", "good")
		asked := b.call(text)
		if asked.Trail.Effect != "ask" || len(asked.Unchanged(t.Context())) != 0 {
			t.Fatalf("%q: %+v", text, asked.Trail)
		}
		b.write("scripts/one.sh", "evil")
		if len(asked.Unchanged(t.Context())) == 0 {
			t.Errorf("%q: nobody notices another script right before the run", text)
		}
		if bound(b.call(text)) == bound(asked) {
			t.Errorf("%q: an approval of the call would still hold", text)
		}
	}
	b := newBash(t)
	b.write("scripts/one.sh", "good")
	asked := b.call("sh ./scripts/*.sh")
	b.write("scripts/two.sh", "evil")
	if got := asked.Unchanged(t.Context()); len(got) != 1 || got[0] != "./scripts/*.sh" {
		t.Errorf("one script more: %q", got)
	}
}

// TestUnknownScript: for a script that is not known before, the question says so, and nothing is offered for good.
func TestUnknownScript(t *testing.T) {
	t.Parallel()
	b := newBash(t)
	for _, text := range []string{"bash $1", "read f; sh $f", `read f; python3 "$f"`, "sh ./scripts/*.sh"} {
		c := b.call(text)
		if c.Trail.Effect != "ask" || len(c.Trail.Offers) != 0 || !strings.Contains(c.Trail.Reason.String(), "not known before") {
			t.Errorf("%q: %s %q, offers %v", text, c.Trail.Effect, c.Trail.Reason, c.Trail.Offers)
		}
	}
}

// TestAttackDirectorySwapped: if a command changes to a directory that was replaced by a link, it counts as a different
// command.
func TestAttackDirectorySwapped(t *testing.T) {
	t.Parallel()
	b := newBash(t)
	b.write("a/x", "1")
	b.write("b/x", "1")
	b.link("a", "sub")
	b.grants = b.call("cd sub && touch x").Trail.Offers[0].Grants
	if got := b.call("cd sub && touch x"); got.Trail.Effect != "allow" {
		t.Fatalf("unchanged: %+v", got.Trail)
	}
	b.link("b", "sub")
	if got := b.call("cd sub && touch x"); got.Trail.Effect != "ask" {
		t.Errorf("another directory: %+v", got.Trail)
	}
}

// TestScriptsOfOneConversation: the location of the working directory is not part of an approval, its content is.
func TestScriptsOfOneConversation(t *testing.T) {
	t.Parallel()
	a, b := newBash(t), newBash(t)
	a.write("x.sh", "good")
	b.write("x.sh", "good")
	one, two := a.call("./x.sh && cd / && python3 nothing.py"), b.call("./x.sh && cd / && python3 nothing.py")
	if bound(one) != bound(two) {
		t.Errorf("%+v, %+v", one.Subject.Scripts, two.Subject.Scripts)
	}
	b.write("x.sh", "evil")
	if bound(one) == bound(b.call("./x.sh && cd / && python3 nothing.py")) {
		t.Error("another content is the same call")
	}
}

// TestEndedContext: nobody looked, nobody knows.
func TestEndedContext(t *testing.T) {
	t.Parallel()
	b := newBash(t)
	b.write("x.sh", "good")
	b.grants = b.call("./x.sh").Trail.Offers[0].Grants
	c := b.call("./x.sh")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if len(c.Unchanged(ctx)) == 0 {
		t.Error("unchanged although nobody looked")
	}
}
