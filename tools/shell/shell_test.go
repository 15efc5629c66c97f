package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/zephbot/zephbot/policy/grant"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// TestMain makes the test binary its own helper, as the program's main does.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// kit is a tool with a workspace.
type kit struct {
	t      *testing.T
	dir    string
	tool   tools.Tool
	r      *shell.Runner
	ledger *shell.Memory
}

// setup makes the tool; o needs no workspace.
func setup(t *testing.T, o shell.Options) *kit {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "ws")
	if o.Workspace == nil {
		o.Workspace = func(tools.Origin) (string, error) { return dir, nil }
	}
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Minute // slow machines
	}
	ledger := &shell.Memory{}
	if o.Ledger == nil {
		o.Ledger = ledger
	}
	tool, r, err := shell.New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		if err := r.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	return &kit{t: t, dir: dir, tool: tool, r: r, ledger: ledger}
}

func args(t *testing.T, in shell.In) string {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// call runs a command.
func (k *kit) call(ctx context.Context, in shell.In) (*tools.Result, *tools.Trail, error) {
	k.t.Helper()
	c := toolstest.Call(shell.Name, args(k.t, in))
	res, err := k.tool.Run(ctx, c)
	if err == nil && res.Failure != nil {
		err = res.Failure
	}
	return res, c.Trail, err
}

// run runs a command that must give a result.
func (k *kit) run(text string) *tools.Result {
	k.t.Helper()
	res, _, err := k.call(k.t.Context(), shell.In{Command: text})
	if err != nil {
		k.t.Fatalf("%s: %v", text, err)
	}
	return res
}

func (k *kit) write(path, text string) {
	k.t.Helper()
	path = filepath.Join(k.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		k.t.Fatal(err)
	}
}

// fails wants an error of a category that says all of says.
func fails(t *testing.T, err error, want tools.Category, says ...string) {
	t.Helper()
	e, ok := errors.AsType[*tools.Error](err)
	if !ok || e.Category != want {
		t.Fatalf("error %v, want category %s", err, want)
	}
	for _, part := range says {
		if !strings.Contains(e.Message+"\n"+e.Suggestion, part) {
			t.Errorf("the error says %q and suggests %q, want %q in it", e.Message, e.Suggestion, part)
		}
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	for _, helper := range []string{sandbox.Self, ""} {
		k := setup(t, shell.Options{Helper: helper})
		tests := []struct {
			name string
			text string
			want tools.Result
		}{
			{"output", "echo hi", tools.Result{Text: "hi", Raw: shell.Envelope{Stdout: "hi\n", ExitCode: new(0)}, ExitCode: new(0)}},
			{"nothing", "true", tools.Result{Text: "(no output)", Raw: shell.Envelope{ExitCode: new(0)}, ExitCode: new(0)}},
			{"stderr", "echo a; echo b >&2", tools.Result{Text: "a\n[stderr] b", Raw: shell.Envelope{Stdout: "a\n", Stderr: "b\n", ExitCode: new(0)}, ExitCode: new(0)}},
			{"exit code", "echo no; exit 3", tools.Result{Text: "no\n[exit code 3]", Raw: shell.Envelope{Stdout: "no\n", ExitCode: new(3)}, ExitCode: new(3), Error: true}},
			{"exit code 1 without output", "false", tools.Result{Text: "(no output)\n[exit code 1]", Raw: shell.Envelope{ExitCode: new(1)}, ExitCode: new(1), Error: true}},
			{"signal", "kill -9 $$", tools.Result{Text: "(no output)\n[killed by signal: killed]", Raw: shell.Envelope{Signal: "killed"}, Error: true}},
			{"empty stdin", "cat; echo end", tools.Result{Text: "end", Raw: shell.Envelope{Stdout: "end\n", ExitCode: new(0)}, ExitCode: new(0)}},
			{"binary", `printf '\001\000\377\376'; echo warn >&2`, tools.Result{
				Text: "[binary output, 4 bytes]\n[stderr] warn",
				Raw:  shell.Envelope{Stdout: "[binary output, 4 bytes]", Stderr: "warn\n", ExitCode: new(0)}, ExitCode: new(0),
			}},
			{"Latin-1", `printf 'caf\351 au lait, croissant\n'`, tools.Result{
				Text: "café au lait, croissant\n[not UTF-8, read as windows-1252: letters beyond ASCII may be wrong]",
				Raw:  shell.Envelope{Stdout: "café au lait, croissant\n", ExitCode: new(0)}, ExitCode: new(0),
			}},
			{"short Latin-1", `printf 'Gr\366\337e 12 M\n'; echo warn >&2`, tools.Result{
				Text: "Größe 12 M\n[stderr] warn\n[not UTF-8, read as windows-1252: letters beyond ASCII may be wrong]",
				Raw:  shell.Envelope{Stdout: "Größe 12 M\n", Stderr: "warn\n", ExitCode: new(0)}, ExitCode: new(0),
			}},
			{"GBK", `printf '\304\343\272\303\312\300\275\347\n\275\361\314\354\317\302\316\347\n'`, tools.Result{
				Text: "你好世界\n今天下午\n[not UTF-8, read as GBK, judging by its bytes]",
				Raw:  shell.Envelope{Stdout: "你好世界\n今天下午\n", ExitCode: new(0)}, ExitCode: new(0),
			}},
			{"UTF-8 with a byte that is none", `printf 'ä ö ü \377\n'`, tools.Result{
				Text: "ä ö ü \uFFFD",
				Raw:  shell.Envelope{Stdout: "ä ö ü \uFFFD\n", ExitCode: new(0)}, ExitCode: new(0),
			}},
			{"packed", `head -c 3000 /dev/zero | gzip -nc | head -c 30`, tools.Result{
				Text: "[binary output, 30 bytes]",
				Raw:  shell.Envelope{Stdout: "[binary output, 30 bytes]", ExitCode: new(0)}, ExitCode: new(0),
			}},
			{"colours stay", `printf '\033[31mred\033[0m\n'`, tools.Result{Text: "\x1b[31mred\x1b[0m", Raw: shell.Envelope{Stdout: "\x1b[31mred\x1b[0m\n", ExitCode: new(0)}, ExitCode: new(0)}},
			{"words in the output are no failure", "echo permission denied", tools.Result{Text: "permission denied", Raw: shell.Envelope{Stdout: "permission denied\n", ExitCode: new(0)}, ExitCode: new(0)}},
		}
		if helper != "" {
			tests = tests[:6] // how a run is started and ends; a helper takes long to start with the race detector
		}
		for _, tc := range tests {
			t.Run(tc.name+" helper "+helper, func(t *testing.T) {
				t.Parallel()
				res, trail, err := k.call(t.Context(), shell.In{Command: tc.text})
				if err != nil {
					t.Fatal(err)
				}
				// two pipes keep no order between them
				if strings.Contains(tc.want.Text, "[stderr]") && cmp.Equal(linesOf(res.Text), linesOf(tc.want.Text)) {
					res.Text = tc.want.Text
				}
				if tc.name == "binary" {
					res.Text = strings.TrimSpace(res.Text)
				}
				if diff := cmp.Diff(&tc.want, res, cmpopts.IgnoreFields(shell.Envelope{}, "Millis")); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.want.ExitCode, trail.ExitCode); diff != "" {
					t.Errorf("trail (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	k := setup(t, shell.Options{})
	k.write("script", "#!/bin/sh\n")
	tests := []struct {
		name, text string
		want       tools.Category
		says       string
		exit       *int
	}{
		{"not found", "no-such-command-here", tools.PermanentFailure, "exit code 127", new(127)},
		{"may not be executed", "./script", tools.PolicyBlocked, "what came before it may have been done", new(126)},
		{"empty", "  \n", tools.InvalidParameters, "empty", nil},
		{"too long", "echo " + strings.Repeat("x", 70_000), tools.InvalidParameters, "write it to a file", nil},
		{"NUL", "echo \x00", tools.InvalidParameters, "NUL", nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, trail, err := k.call(t.Context(), shell.In{Command: tc.text})
			fails(t, err, tc.want, tc.says)
			if diff := cmp.Diff(tc.exit, trail.ExitCode); diff != "" {
				t.Errorf("exit code (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTidy: a directory for temporary files is gone at the end if nothing is in it and nobody else made it.
func TestTidy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tidy, before, stays bool
		text                string
	}{
		"empty":           {tidy: true, text: "true"},
		"with a file":     {tidy: true, text: `echo x >"$TMPDIR/x"`, stays: true},
		"was there":       {tidy: true, before: true, text: "true", stays: true},
		"of all of them":  {text: "true", stays: true},
		"not for reading": {tidy: true, text: "cat /dev/null"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := setup(t, shell.Options{Tidy: tt.tidy})
			dir := filepath.Join(k.dir, ".tmp")
			if tt.before {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			k.run(tt.text)
			if err := k.r.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(dir); (err == nil) != tt.stays {
				t.Errorf("%v, stays: %v", err, tt.stays)
			}
		})
	}
}

func TestWorkspace(t *testing.T) {
	t.Parallel()
	k := setup(t, shell.Options{})
	if got := k.run(`pwd; cd "$TMPDIR" && pwd; mktemp >/dev/null && echo ok`).Text; got != k.dir+"\n"+k.dir+"/.tmp\nok" {
		t.Errorf("directories %q", got)
	}
	if got := k.run(`rm -r .tmp; ln -s /nowhere .tmp; echo x > kept; echo ok`).Text; got != "ok" {
		t.Errorf("got %q", got)
	}
	if got := k.run(`echo "$TMPDIR"; cat kept`).Text; got != k.dir+"\nx" {
		t.Errorf("with a link in the place of the directory for temporary files: %q", got)
	}
	for name, ws := range map[string]func(tools.Origin) (string, error){
		"error":    func(tools.Origin) (string, error) { return "", errors.New("secret detail") },
		"relative": func(tools.Origin) (string, error) { return "ws", nil },
		"a file":   func(tools.Origin) (string, error) { return filepath.Join(k.dir, "kept"), nil },
	} {
		broken := setup(t, shell.Options{Workspace: ws})
		_, _, err := broken.call(t.Context(), shell.In{Command: "true"})
		fails(t, err, tools.PermanentFailure)
		if told := tools.Feedback(err); strings.Contains(told, "secret detail") {
			t.Errorf("%s: the model is told internals: %s", name, told)
		}
	}
}

// TestDescriptionSaysWhereToWrite: a model learns before its first call where files can be written.
func TestDescriptionSaysWhereToWrite(t *testing.T) {
	t.Parallel()
	many := make([]string, 10)
	for i := range many {
		many[i] = fmt.Sprint("/p", i)
	}
	for want, o := range map[string]shell.Options{
		"It can write only there; temporary files belong into $TMPDIR, because /tmp is read-only. ": {},
		"It can write only there and in /a, /b; temporary files":                                    {AllowedPaths: []string{"/a", "/b"}},
		"and in /p0, /p1, /p2, /p3, /p4, /p5, /p6, /p7 and 2 more; ":                                {AllowedPaths: many},
		"It can write only there and in /tmp. ":                                                     {AllowedPaths: []string{"/tmp"}},
	} {
		if got := setup(t, o).tool.Definition.Description; !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if got := setup(t, shell.Options{Sandbox: shell.SandboxOff}).tool.Definition.Description; strings.Contains(got, "write") {
		t.Errorf("without a sandbox: %q", got)
	}
}

// TestHome: the home directory of a command that nobody approved is empty, its own and gone afterwards; nothing in the
// workspace configures it. That of an approved command is the workspace.
func TestHome(t *testing.T) {
	t.Parallel()
	needGit(t)
	scratch := t.TempDir()
	k := setup(t, shell.Options{SnapshotDir: scratch, MaxBackgroundRuns: 1})
	k.write(".gitconfig", "[user]\n\tname = planted\n")
	k.write(".config/git/config", "[user]\n\temail = planted\n")
	asks := `git config --get-regexp '^user'; ls -A ~; [ "$HOME" = "$PWD" ] && echo workspace; cd ~ && echo x >left && mkdir -p a/b && chmod 500 a`
	for range 2 {
		if got := k.run(asks).Text; got != "(no output)" {
			t.Errorf("unasked, the home directory is not empty: %q", got)
		}
		if left, err := filepath.Glob(filepath.Join(scratch, "zephbot-home-*")); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
	for name, trail := range map[string]*tools.Trail{
		"approved": {ApprovedBy: "telegram:1"}, "by a standing approval": {Rule: grant.RulePrefix + "bash git"},
	} {
		c := toolstest.Call(shell.Name, args(t, shell.In{Command: `git config --get-regexp '^user'; echo "$HOME"`}))
		c.Trail = trail
		res, err := k.tool.Run(t.Context(), c)
		if err != nil || res.Text != "user.email planted\nuser.name planted\n"+k.dir {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	for name, trail := range map[string]*tools.Trail{"no trail": nil, "a rule": {Rule: "permissions.bash[0]"}} {
		c := toolstest.Call(shell.Name, args(t, shell.In{Command: `ls -A ~; [ "$HOME" = "$PWD" ] && echo workspace; true`}))
		c.Trail = trail
		if res, err := k.tool.Run(t.Context(), c); err != nil || res.Text != "(no output)" {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	environ := []string{
		"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "EDITOR=vi", "HOME=/root", "GOFLAGS=-v", "JAVA_HOME=/opt/jdk", "https_proxy=http://proxy:3128", "MONKEY_BUSINESS=s3cret", "NODE_OPTIONS=s3cret", "PYTHONSTARTUP=s3cret", "LESSOPEN=s3cret", "MAKEFILES=s3cret",
		"ZEPH_TELEGRAM_TOKEN=s3cret", "aws_region=s3cret", "OPENAI_API_BASE=s3cret", "GITHUB_TOKEN=s3cret", "MY_KEY=s3cret", "db_password=s3cret", "PGPASSWORD=s3cret",
		"DATABASE_URL=postgres://u:s3cret@db/x", "REDIS_URL=redis://:s3cret@[bad", "SSH_AUTH_SOCK=/s3cret", "LD_PRELOAD=/s3cret.so", "BASH_ENV=/s3cret", "BASH_FUNC_ls%%=() { echo s3cret; }",
		"STRIPE_SECRET=s3cret", "SESSION_COOKIE=s3cret", "XDG_RUNTIME_DIR=/s3cret", "nonsense",
	}
	k := setup(t, shell.Options{Environ: func() []string { return environ }})
	got := k.run("env | sort").Text
	if strings.Contains(got, "s3cret") {
		t.Errorf("a secret got through:\n%s", got)
	}
	for _, want := range []string{"EDITOR=vi", "GOFLAGS=-v", "JAVA_HOME=/opt/jdk", "https_proxy=http://proxy:3128", "GOPATH=" + k.dir + "/go", "TERM=dumb"} {
		if !strings.Contains("\n"+got+"\n", "\n"+want+"\n") {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	own := setup(t, shell.Options{Environ: func() []string { return environ }, EnvBlocklist: []string{"edi"}})
	if got := own.run("env").Text; strings.Contains(got, "EDITOR") || !strings.Contains(got, "GOFLAGS") {
		t.Errorf("with an own blocklist:\n%s", got)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	for _, helper := range []string{sandbox.Self, ""} {
		k := setup(t, shell.Options{Helper: helper, Timeout: 300 * time.Millisecond})
		for _, text := range []string{"sleep 600 & wait", `trap "" TERM; while :; do sleep 600; done`, "setsid -w sleep 600"} {
			_, _, err := k.call(t.Context(), shell.In{Command: text})
			fails(t, err, tools.Timeout, "300ms", "background")
		}
	}
}

// TestOutputOfCancelled cancels when the first line is there, so that it cannot come too late.
func TestOutputOfCancelled(t *testing.T) {
	t.Parallel()
	for _, helper := range []string{sandbox.Self, ""} {
		k := setup(t, shell.Options{Helper: helper})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := toolstest.Call(shell.Name, args(t, shell.In{Command: "echo working on it; sleep 600"}))
		c.Progress = func(line string) { // comes once there is a line
			if line != "working on it" {
				t.Errorf("progress %q", line)
			}
			cancel()
		}
		res, err := k.tool.Run(ctx, c)
		if err != nil || res.Failure == nil {
			t.Fatalf("%+v, %v", res, err)
		}
		fails(t, res.Failure, tools.Cancelled)
		env, ok := res.Raw.(shell.Envelope)
		if res.Text != "working on it" || !ok || env.Stdout != "working on it\n" || env.Ended != "cancelled" || env.ExitCode != nil || env.Signal != "" {
			t.Errorf("text %q, envelope %+v", res.Text, env)
		}
	}
}

func TestDeadlineOfTheCall(t *testing.T) {
	t.Parallel()
	k := setup(t, shell.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, _, err := k.call(ctx, shell.In{Command: "sleep 600"})
	fails(t, err, tools.Timeout)
	_, _, err = k.call(ctx, shell.In{Command: "sleep 600"})
	fails(t, err, tools.Timeout)
}

func TestMuchOutput(t *testing.T) {
	t.Parallel()
	k := setup(t, shell.Options{})
	var want strings.Builder
	want.WriteString("first\n")
	for i := range 200_000 { // more than is held in memory
		fmt.Fprintf(&want, "line %d über\n", i)
	}
	want.WriteString("last")
	res := k.run(`echo first; for ((i=0; i<200000; i++)); do echo "line $i über"; done; echo last`)
	if res.Text != want.String() || res.Truncated {
		t.Errorf("%d of %d bytes, truncated %t", len(res.Text), want.Len(), res.Truncated)
	}
	if env, ok := res.Raw.(shell.Envelope); !ok || len(env.Stdout) > 129<<10 || env.Truncated {
		t.Errorf("envelope of %d bytes, truncated %t", len(env.Stdout), env.Truncated)
	}

	k = setup(t, shell.Options{MaxCapture: 3 << 20})
	res, trail, err := k.call(t.Context(), shell.In{Command: `head -c 5000000 /dev/zero | tr '\0' x; echo; echo last`})
	if err != nil {
		t.Fatal(err)
	}
	left := int64(5_000_000 + len("\nlast\n") - 3<<20)
	note := fmt.Sprintf("\n[… %d bytes left out …]\n", left)
	env, ok := res.Raw.(shell.Envelope)
	if !strings.Contains(res.Text, note) || !strings.HasSuffix(res.Text, "x\nlast") || !ok || env.Omitted != left || !env.Truncated || !res.Truncated || !trail.Truncated {
		t.Errorf("want %q in %d bytes, truncated %t %t, omitted %d: …%q", note, len(res.Text), res.Truncated, trail.Truncated, env.Omitted, res.Text[len(res.Text)-50:])
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	k := setup(t, shell.Options{})
	note := reason.Notes(reason.New(reason.InWorkspace), reason.New(reason.WithoutNetwork))
	tests := []struct {
		in   shell.In
		want tools.Subject
	}{
		{shell.In{Command: "ls -l"}, tools.Subject{Inputs: []string{"ls -l"}, Show: "ls -l", Note: note}},
		{shell.In{Command: "cat /etc/../etc/passwd 'a b' > /tmp/x; cat /etc/passwd", Background: true}, tools.Subject{
			Inputs: []string{"cat /etc/../etc/passwd 'a b' > /tmp/x; cat /etc/passwd"}, Paths: []string{"/etc/passwd", "/tmp/x"},
			Show: "cat /etc/../etc/passwd 'a b' > /tmp/x; cat /etc/passwd", Note: note.And(reason.New(reason.InBackground)),
		}},
		{shell.In{Command: "grep --file=/srv/p x"}, tools.Subject{
			Inputs: []string{"grep --file=/srv/p x"}, Paths: []string{"/srv/p"}, Show: "grep --file=/srv/p x",
			Note: note,
		}},
	}
	for _, tc := range tests {
		got, err := k.tool.Describe(t.Context(), toolstest.Call(shell.Name, args(t, tc.in)))
		if err != nil {
			t.Fatal(err)
		}
		if got.Files == nil {
			t.Error("nobody looked at the files")
		}
		got.Files = nil
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("subject (-want +got):\n%s", diff)
		}
	}
	if _, err := os.Stat(k.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("describing made the workspace: %v", err)
	}
	if _, err := k.tool.Describe(t.Context(), toolstest.Call(shell.Name, `{"command":""}`)); err == nil {
		t.Error("an empty command was described")
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	ws := func(tools.Origin) (string, error) { return "/tmp", nil }
	for name, o := range map[string]shell.Options{
		"no workspace":   {},
		"sandbox":        {Workspace: ws, Sandbox: "maybe"},
		"relative path":  {Workspace: ws, AllowedPaths: []string{"a/b"}},
		"negative":       {Workspace: ws, Timeout: -1},
		"broken pattern": {Workspace: ws, TransactionScope: []string{"[a"}},
	} {
		if _, _, err := shell.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSandbox(t *testing.T) {
	t.Parallel()
	required := setup(t, shell.Options{Sandbox: shell.SandboxRequired})
	_, _, err := required.call(t.Context(), shell.In{Command: "true"})
	fails(t, err, tools.PermanentFailure, "kernel sandbox")
	off := setup(t, shell.Options{Sandbox: shell.SandboxOff, Helper: sandbox.Self})
	if l := off.r.Level(t.Context()); l.Full() || !strings.Contains(l.String(), "off") {
		t.Errorf("level %s", l)
	}
	secret := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := off.run("cat " + secret).Text; got != "s3cret" {
		t.Errorf("without a sandbox: %q", got)
	}
	on := setup(t, shell.Options{Helper: sandbox.Self, Limits: sandbox.Limits{Procs: 200, Files: 500, FileSize: 1 << 30}})
	if level := on.r.Level(t.Context()); !level.Full() {
		t.Skipf("no full sandbox on this machine: %s", level)
	}
	if res := on.run("cat " + secret + "; echo ok > new; cat new"); strings.Contains(res.Text, "s3cret") || !strings.Contains(res.Text, "ok\n") && !strings.HasSuffix(res.Text, "ok") {
		t.Errorf("in the sandbox: %q", res.Text)
	}
	denied := setup(t, shell.Options{Helper: sandbox.Self, Sandbox: shell.SandboxRequired, AllowedPaths: []string{filepath.Dir(secret)}, DeniedPaths: []string{secret}})
	if res := denied.run("cat " + secret + "; true"); strings.Contains(res.Text, "s3cret") {
		t.Errorf("a denied file in an allowed directory was read: %q", res.Text)
	}
}

// TestDeniedInside: the working directory may hold the data directory and the config file, as a terminal's does.
func TestDeniedInside(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	k := setup(t, shell.Options{
		Helper: sandbox.Self, Workspace: func(tools.Origin) (string, error) { return dir, nil }, Transactional: true, AutoRollback: true,
		DeniedPaths: []string{filepath.Join(dir, "data"), filepath.Join(dir, "zephbot.toml")},
	})
	if level := k.r.Level(t.Context()); !level.Full() {
		t.Skipf("no full sandbox on this machine: %s", level)
	}
	k.dir = dir
	k.write("data/secret", "s3cret")
	k.write("zephbot.toml", "s3cret")
	k.write("notes", "old")
	if got := k.run("ls").Text; got != "data\nnotes\nzephbot.toml" {
		t.Errorf("ls: %q", got)
	}
	if got := k.run("cat data/secret zephbot.toml; echo new > data/secret; echo new > zephbot.toml; echo new > notes; exit 2").Text; strings.Contains(got, "s3cret") || !strings.Contains(got, "[rolled back: 1 restored, 0 deleted]") {
		t.Errorf("text %q", got)
	}
	for path, want := range map[string]string{"data/secret": "s3cret", "zephbot.toml": "s3cret", "notes": "old"} {
		if raw, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(raw) != want {
			t.Errorf("afterwards %s holds %q, %v", path, raw, err)
		}
	}
	res := k.run("touch x && rm x")
	if res.Error && strings.Contains(res.Text, "Permission denied") { // carved instead of covered
		t.Skip("neither root's mounts nor user namespaces on this machine: denied paths cannot be covered")
	}
	if res.Error {
		t.Errorf("touch x: %q", res.Text)
	}
}

// linesOf returns the lines of a text in alphabetical order.
func linesOf(text string) []string { return slices.Sorted(strings.SplitSeq(text, "\n")) }
