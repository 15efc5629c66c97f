package shell_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/toolstest"
	"github.com/zephbot/zephbot/tools/workspace"
)

// trial is a kit whose commands can be previewed.
type trial struct {
	*kit

	previews string
}

func newTrial(t *testing.T, o shell.Options) *trial {
	t.Helper()
	o.Helper = sandbox.Self
	o.PreviewDir = filepath.Join(t.TempDir(), "previews")
	k := &trial{kit: setup(t, o), previews: o.PreviewDir}
	if !k.r.Previews(t.Context()) {
		t.Skipf("no previews here: %s", k.r.Level(t.Context()))
	}
	return k
}

// ask previews a command, as the approve stage does.
func (k *trial) ask(text string) (*tools.Call, *tools.Effect) {
	k.t.Helper()
	c := toolstest.Call(shell.Name, args(k.t, shell.In{Command: text}))
	c.Def = k.tool.Definition
	return c, k.r.Preview(k.t.Context(), c)
}

// approve runs a call that a person has approved.
func (k *trial) approve(c *tools.Call, e *tools.Effect) (*tools.Result, error) {
	k.t.Helper()
	c.Trail.ApprovedBy = "telegram:1"
	if e != nil && e.Layer != "" && k.r.Holds(k.t.Context(), c, e.Layer) {
		c.Layer = e.Layer
	}
	return k.tool.Run(k.t.Context(), c)
}

func (k *trial) files() map[string]string {
	k.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(k.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(k.dir, path)
		all[rel] = string(raw)
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return all
}

// kept lists the layers that are kept.
func (k *trial) kept() []string {
	k.t.Helper()
	list, err := filepath.Glob(filepath.Join(k.previews, "*", "*", "record"))
	if err != nil {
		k.t.Fatal(err)
	}
	return list
}

// TestPreview: a preview says what an approved command does, changes nothing, and what it said happens without running
// the command again.
func TestPreview(t *testing.T) {
	t.Parallel()
	k := newTrial(t, shell.Options{Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") }})
	k.write("notes.txt", "one\ntwo\n")
	k.write("old.tmp", "x")
	before := k.files()
	c, e := k.ask(`rm *.tmp; echo three hunter2 >> notes.txt; echo $RANDOM$RANDOM$RANDOM > new.txt; cat new.txt; echo hunter2 >&2; exit 3`)
	want := &tools.Effect{
		Created: []tools.FileEffect{{Path: "new.txt", Added: 1}},
		Changed: []tools.FileEffect{{Path: "notes.txt", Added: 1, Bytes: 22}},
		Deleted: []string{"old.tmp"}, Exit: 3,
	}
	ignored := cmpopts.IgnoreFields(tools.Effect{}, "Diff", "Output", "Layer", "Compared")
	if diff := cmp.Diff(want, e, ignored, cmpopts.IgnoreFields(tools.FileEffect{}, "Bytes")); diff != "" {
		t.Fatal(diff)
	}
	for name, text := range map[string]string{"diff": e.Diff, "output": e.Output} {
		if strings.Contains(text, "hunter2") || !strings.Contains(text, "[redacted]") {
			t.Errorf("%s: %q", name, text)
		}
	}
	if diff := cmp.Diff(before, k.files()); diff != "" {
		t.Fatalf("the preview has changed files: %s", diff)
	}
	if raw, err := os.ReadFile(k.kept()[0]); err != nil || strings.Contains(string(raw), "hunter2") {
		t.Errorf("the record holds a credential: %s %v", raw, err)
	}
	res, err := k.approve(c, e)
	if err != nil {
		t.Fatal(err)
	}
	after := k.files()
	if number := strings.TrimSpace(after["new.txt"]); number == "" || !strings.Contains(res.Text, number) || !strings.Contains(e.Output, number) {
		t.Errorf("shown %q, applied %q, result %q: want one run", e.Output, after["new.txt"], res.Text)
	}
	if res.ExitCode == nil || *res.ExitCode != 3 || !strings.Contains(res.Text, "[exit code 3]") {
		t.Errorf("%+v", res)
	}
	if after["notes.txt"] != "one\ntwo\nthree hunter2\n" {
		t.Errorf("%q", after)
	}
	if list := k.kept(); len(list) > 0 {
		t.Errorf("left behind: %v", list)
	}
}

// TestPreviewChanged: what was approved is not applied to files that have changed; the command runs not at all.
func TestPreviewChanged(t *testing.T) {
	t.Parallel()
	k := newTrial(t, shell.Options{})
	k.write("a", "1\n")
	c, e := k.ask(`echo 2 >> a`)
	k.write("a", "other\n")
	if k.r.Holds(t.Context(), c, e.Layer) {
		t.Error("the layer holds")
	}
	c.Layer, c.Trail.ApprovedBy = e.Layer, "telegram:1" // it changed after the stage had looked
	_, err := k.tool.Run(t.Context(), c)
	fails(t, err, tools.PolicyBlocked, "changed just after a person had approved")
	if got := k.files()["a"]; got != "other\n" {
		t.Errorf("a = %q", got)
	}
	again, e2 := k.ask(`echo 2 >> a`)
	if _, err := k.approve(again, e2); err != nil || k.files()["a"] != "other\n2\n" {
		t.Errorf("%v %q", err, k.files())
	}
}

// TestPreviewNot: what is not previewed, and what is only known not to be knowable.
func TestPreviewNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want tools.Unknown
	}{
		"slow":           {`sleep 60`, tools.UnknownSlow},
		"much":           {`head -c 70M /dev/zero > big`, tools.UnknownLarge},
		"two names":      {`echo x > a; ln a b`, tools.UnknownSpecial},
		"pipe":           {`mkfifo p`, tools.UnknownSpecial},
		"a name":         {`echo x > $'caf\xe9'`, tools.UnknownSpecial}, // JSON would make another one of it
		"a target":       {`ln -s $'\xe9' link`, tools.UnknownSpecial},
		"a replacement":  {`rm -r dir; ln -s $'\xe9' dir`, tools.UnknownSpecial},
		"a directory":    {`mkdir kept; cd kept && mv ../dir ../moved; true`, tools.UnknownRename},
		"network":        {`exec 2>/dev/null; (exec 3<>/dev/tcp/192.0.2.1/80); true`, tools.UnknownNetwork},
		"killed":         {`kill -9 $$`, tools.UnknownFailed},
		"ends by itself": {`echo x > a`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTrial(t, shell.Options{})
			if err := os.MkdirAll(filepath.Join(k.dir, "dir", "sub"), 0o700); err != nil {
				t.Fatal(err)
			}
			_, e := k.ask(c.text)
			if e == nil || e.Unknown != c.want {
				t.Errorf("%+v, want %q", e, c.want)
			}
			if files := k.files(); len(files) > 0 {
				t.Errorf("left in the workspace: %v", files)
			}
			if kept := k.kept(); (len(kept) > 0) != (c.want == "") {
				t.Errorf("kept: %v", kept)
			}
		})
	}
	k := newTrial(t, shell.Options{})
	background := toolstest.Call(shell.Name, args(t, shell.In{Command: "echo x > a", Background: true}))
	background.Def = k.tool.Definition
	says := func(what string, c *tools.Call, want bool, why tools.Unknown) {
		t.Helper()
		if can, got := k.r.Previewable(t.Context(), c); can != want || got != why {
			t.Errorf("%s can be tried: %t, %q", what, can, got)
		}
	}
	says("a command", toolstest.Call(shell.Name, args(t, shell.In{Command: "echo x > a"})), false, "") // not defined as one
	if e := k.r.Preview(t.Context(), background); e != nil {
		t.Errorf("a command in the background was tried: %+v", e)
	}
	says("a command in the background", background, false, tools.UnknownBackground)
	outside := toolstest.Call(shell.Name, args(t, shell.In{Command: "echo x > a"}))
	outside.Def = k.tool.Definition
	outside.Def.Outside = true
	if e := k.r.Preview(t.Context(), outside); e != nil {
		t.Errorf("a command of an editor was tried here: %+v", e)
	}
	says("a command of an editor", outside, false, tools.UnknownOutside)
	outside.Def.Outside = false
	says("a command", outside, true, "")
	if _, _, err := k.call(t.Context(), shell.In{Command: "sleep 60", Background: true}); err != nil {
		t.Fatal(err)
	}
	if _, e := k.ask("echo x > a"); e == nil || e.Unknown != tools.UnknownBusy {
		t.Errorf("while a command runs in the background: %+v", e)
	}
}

// TestPreviewChangesItsList: what a call may change is the list of its layer, and nothing else, if its layer is applied.
func TestPreviewChangesItsList(t *testing.T) {
	t.Parallel()
	k := newTrial(t, shell.Options{Network: sandbox.NetworkAll, AllowedPaths: []string{t.TempDir()}})
	if err := os.MkdirAll(filepath.Join(k.dir, "old"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"old/a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, e := k.ask("rm -r old; echo y >> b; mkdir new; touch new/d; cat c")
	c.Layer = e.Layer
	got, err := k.tool.Changes(t.Context(), c)
	if err != nil || len(got.Beyond) > 0 || len(got.Files) != 1 || !got.Files[0].Alone {
		t.Fatalf("%+v, %v", got, err)
	}
	var names []string
	for _, path := range got.Files[0].Paths {
		name, err := filepath.Rel(k.dir, path)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	if want := []string{"b", "new", "new/d", "old", "old/a"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if c, e = k.ask("cat c"); e.Layer == "" {
		t.Fatalf("%+v", e)
	}
	c.Layer = e.Layer
	if got, err = k.tool.Changes(t.Context(), c); err != nil || len(got.Files)+len(got.Beyond) > 0 {
		t.Errorf("nothing changes: %+v, %v", got, err)
	}
	c.Layer = strings.Repeat("0", 64)
	if got, err = k.tool.Changes(t.Context(), c); err == nil {
		t.Errorf("another layer: %+v", got)
	}
}

// TestPreviewOff: without the key, or without the sandbox, nothing runs before a person said yes.
func TestPreviewOff(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]shell.Options{
		"key":     {Helper: sandbox.Self},
		"sandbox": {Helper: sandbox.Self, Sandbox: shell.SandboxOff, PreviewDir: t.TempDir()},
		"helper":  {PreviewDir: t.TempDir()},
	} {
		k := &trial{kit: setup(t, o)}
		if c, e := k.ask("echo x > a"); e != nil {
			t.Errorf("%s: %+v", name, e)
		} else if can, why := k.r.Previewable(t.Context(), c); can || (why == tools.UnknownMachine) != (name != "key") {
			t.Errorf("%s: can be tried: %t, %q", name, can, why)
		} else {
			k.r.Drop(t.Context(), c)
		}
	}
}

// TestPreviewEnds: a layer goes with the decision against it, with the workspace, and in a sweep.
func TestPreviewEnds(t *testing.T) {
	t.Parallel()
	k := newTrial(t, shell.Options{})
	no := func(error) func(string, string, string, time.Time) (bool, error) {
		return func(string, string, string, time.Time) (bool, error) { return false, nil }
	}
	for name, end := range map[string]func(c *tools.Call) error{
		"drop":   func(c *tools.Call) error { k.r.Drop(t.Context(), c); return nil },
		"forget": func(*tools.Call) error { _, err := k.r.ForgetPreviews(t.Context(), k.dir); return err },
		"sweep":  func(*tools.Call) error { return k.r.SweepPreviews(t.Context(), no(nil)) },
	} {
		c, e := k.ask("echo " + name + " > a")
		if e == nil || e.Layer == "" || len(k.kept()) != 1 {
			t.Fatalf("%s: %+v %v", name, e, k.kept())
		}
		if err := end(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if k.r.Holds(t.Context(), c, e.Layer) || len(k.kept()) > 0 {
			t.Errorf("%s: the layer is still there", name)
		}
	}
}

// TestPreviewQuota: what is kept counts as files of the workspace, and a preview gets no more room than there is.
func TestPreviewQuota(t *testing.T) {
	t.Parallel()
	var k *trial
	var later atomic.Int64 // others change how much is free: what was measured before must be too old
	root := t.TempDir()
	guard := workspace.NewGuard(workspace.GuardOptions{
		Root: root, MaxBytes: 8 << 20, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }, Beside: func(ws string) string { return k.r.PreviewsOf(ws) },
	})
	k = newTrial(t, shell.Options{Disk: guard, Workspace: func(tools.Origin) (string, error) { return filepath.Join(root, "w"), nil }})
	k.dir = filepath.Join(root, "w")
	if _, e := k.ask("head -c 20M /dev/zero > big"); e == nil || e.Unknown != tools.UnknownLarge {
		t.Errorf("too much: %+v", e)
	}
	if _, e := k.ask("head -c 6M /dev/urandom > big"); e == nil || e.Layer == "" {
		t.Fatalf("some: %+v", e)
	}
	real, err := filepath.EvalSymlinks(k.dir)
	if err != nil {
		t.Fatal(err)
	}
	later.Store(int64(time.Hour))
	if err := guard.Admit(t.Context(), filepath.Join(real, "more"), 4<<20); err == nil {
		t.Error("what is kept does not count")
	}
}

// TestPreviewTransaction: a failed command that is to be rolled back leaves nothing, previewed or not.
func TestPreviewTransaction(t *testing.T) {
	t.Parallel()
	k := newTrial(t, shell.Options{Transactional: true, AutoRollback: true})
	k.write("a", "1\n")
	c, e := k.ask(`echo 2 > a; exit 2`)
	res, err := k.approve(c, e)
	if err != nil || !strings.Contains(res.Text, "[rolled back:") || k.files()["a"] != "1\n" {
		t.Errorf("%+v %v %v", res, err, k.files())
	}
}

// TestAttackPreview: before a person said yes, nothing outside the layer changes, and nobody is told.
func TestAttackPreview(t *testing.T) {
	t.Parallel()
	other := t.TempDir()
	k := newTrial(t, shell.Options{AllowedPaths: []string{other}, Network: sandbox.NetworkAll})
	k.write("hooked", "")
	for name, text := range map[string]string{
		"another root":       `echo x > ` + other + `/x; true`,
		"a link to a root":   `ln -s ` + other + ` l; echo x > l/x; rm l; true`,
		"the layers":         `echo x > ` + k.previews + `/x; rm -rf ` + k.previews + `/*; true`,
		"a time":             `touch -d 2001-01-01 ` + other + `; true`,
		"the machine's /tmp": `echo x > /tmp/zephbot-preview-attack; true`,
	} {
		_, e := k.ask(text)
		if e == nil || (e.Unknown == tools.UnknownElsewhere) != strings.Contains(text, other) {
			t.Errorf("%s: %+v", name, e)
		}
		if entries, err := os.ReadDir(other); err != nil || len(entries) > 0 {
			t.Errorf("%s: %v %v (%+v)", name, entries, err, e)
		}
		if _, err := os.Stat("/tmp/zephbot-preview-attack"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: reached /tmp", name)
		}
	}
	if info, err := os.Stat(other); err != nil || info.ModTime().Before(time.Now().Add(-time.Hour)) {
		t.Errorf("its time was set: %v %v", info, err)
	}
}
