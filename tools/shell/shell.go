// Package shell is the bash tool. It runs a command written by a model in the session's working directory, inside a
// sandbox, with a filtered environment and with limits on time, output and processes, and returns the output.
//
// The policy decides beforehand whether a command may run. Only the blocklist is checked again here.
package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/shell/toolchain"
	"github.com/zephbot/zephbot/tools/workspace"
)

// Says returns the tool's statement for the policy.
func Says() []act.Tool {
	return []act.Tool{{Name: Name, Statement: act.Statement{
		Act: act.Runs, Verb: act.Run, Gain: 0.6,
		Aliases: []string{"shell", "sh"},
	}}}
}

// Name is the name of the tool.
const Name = "bash"

// Defaults of Options.
const (
	defaultTimeout           = 30 * time.Second
	defaultMaxCapture        = 10 << 20 // bytes
	defaultMaxBackgroundRuns = 8
	defaultBackgroundTimeout = 30 * time.Minute
)

// Sandbox modes (tools.shell.sandbox).
const (
	SandboxAuto     = "auto"
	SandboxRequired = "required"
	SandboxOff      = "off"
)

// Options configure the tool. A field named after a key of [tools.shell] has the meaning of that key (seed 003). Only
// Workspace is required.
type Options struct {
	Timeout time.Duration // for a foreground run; 0 = defaultTimeout
	// Workspace returns the session's working directory as an absolute path. The directory is created if it does not
	// exist.
	Workspace    func(tools.Origin) (string, error)
	AllowedPaths []string // readable and writable in addition to the workspace
	// readable and executable in addition to the system's directories, such as a toolchain in a home directory
	ReadPaths []string
	// Tidy: an empty directory for temporary files that the Runner has made in a workspace is removed by Shutdown. It is
	// for workspaces that no other process works in.
	Tidy bool
	// Toolchains are programs below the home directory that commands may use and not change.
	Toolchains toolchain.Set
	// Readable returns further directories that the commands of a conversation may read and execute from: its skills.
	// It is asked before each command; nil = none.
	Readable func(tools.Origin) []string
	// DeniedPaths cannot be reached even inside the workspace and AllowedPaths: the config file, the data directory.
	// See sandbox.Spec.Deny. A rollback does not touch them. A path that does not exist when a command starts is
	// ignored; the policy decides whether a command may create it.
	DeniedPaths []string
	// Unreadable returns which files commands in a directory must not read; the file tools have the same restriction.
	// ok is false when reading is not restricted; a nil function never restricts it. Such files are found and hidden
	// when a command starts. Files created while it runs are not hidden.
	Unreadable func(dir string) (Unreadable, bool)
	// Disk ends commands that fill the disk; nil = no limit.
	Disk    *workspace.Guard
	Network sandbox.Network
	// Unasked: the policy lets commands run where they can change nothing, without a question.
	Unasked bool
	// shared with the policy, so that a command is parsed only once; nil = it is parsed each time
	Reader *command.Reader
	// prefixes of names; nil = defaultEnvBlocklist. Of the rest, commands get what command.Passed lists and what
	// does not look like a credential
	EnvBlocklist []string
	Environ      func() []string // nil = os.Environ
	// MaxCapture is how many bytes of a command's output are kept: all of a shorter output, the first and the last half
	// of a longer one; 0 = defaultMaxCapture. The first MiB is held in memory. The rest is in an unnamed file in
	// SnapshotDir until the command ends.
	MaxCapture int

	Transactional         bool
	AutoRollback          bool
	AutoRollbackExitCodes []int    // empty = 2 and above
	SnapshotRequired      bool     // do not run commands that cannot be rolled back
	TransactionScope      []string // globs, relative to the workspace, of what a snapshot contains; empty = everything
	MaxSnapshotBytes      int64    // 0 = unlimited
	// for copies and long output while a command runs; "" = the system's directory for temporary files
	SnapshotDir string

	// PreviewDir is where layers of previewed commands are kept; see Runner.Preview. No command may reach
	// it. "" = nothing is previewed.
	PreviewDir string

	// of everybody; one person leaves a fourth, at least one; 0 = defaultMaxBackgroundRuns, negative = none
	MaxBackgroundRuns int
	BackgroundTimeout time.Duration // 0 = defaultBackgroundTimeout
	Ledger            Ledger        // records background runs; nil = in memory, and their ends are not reported

	Sandbox string // "auto" (also ""), "required", "off"
	// Helper is how the program starts itself as the sandbox helper: sandbox.Self, or "". Without a helper there is no
	// kernel sandbox.
	Helper string
	Limits sandbox.Limits
	// MaxOutput is how many bytes a command may print before it is ended; 0 = no limit.
	MaxOutput int64

	// Redact removes credentials from text that does not pass through the chain: progress lines, and the output of
	// background runs without Shape. nil = the text is unchanged.
	Redact func(string) string
	// Shape passes the result of a background run through the stages that every result passes, and returns the text for
	// the model. nil = Redact, limited to 50 000 characters.
	Shape func(ctx context.Context, call *tools.Call, result *tools.Result) string
	Now   func() time.Time // nil = time.Now
	Log   zerolog.Logger
}

// In is the tool's argument.
type In struct {
	Command    string `json:"command" jsonschema:"the bash text to run"`
	Background bool   `json:"background,omitempty" jsonschema:"return at once with a run id; the output comes with a later message"`
}

// maxStream is how many bytes of each stream the envelope contains, half from its beginning and half from its end. The
// text contains the whole stream.
const maxStream = 128 << 10

// Envelope is Result.Raw: both streams separately (seed 003, shell output envelope). Every run that began has one.
type Envelope struct {
	Stdout    string `json:"stdout"` // at most 128 KiB, like Stderr: the first and the last half of a longer stream
	Stderr    string `json:"stderr"`
	ExitCode  *int   `json:"exit_code"`               // null when a signal or we ended the process
	Truncated bool   `json:"truncated"`               // Result.Text is incomplete
	Omitted   int64  `json:"omitted_bytes,omitempty"` // bytes missing in Result.Text
	Signal    string `json:"signal,omitempty"`
	Ended     string `json:"ended,omitempty"` // timeout, cancelled, output_limit, disk_full, unknown; "" = by itself
	Millis    int64  `json:"duration_ms"`
}

// Runner runs commands. It is safe for concurrent use. Shutdown stops it.
type Runner struct {
	opts  Options
	shell []string // program and flags before the text
	note  string   // said once per result if the shell is not bash
	log   zerolog.Logger
	locks locks
	bg    background
	tmp   sync.Map // the directories for temporary files that were made, as keys

	neutral struct { // the git of calls that nobody approved word for word
		once sync.Once
		dir  string
	}

	probe    sync.Mutex
	level    *sandbox.Level
	previews previews
	unseen   unseenSearch
}

// New returns the tool and its runner. The error is about the options.
func New(o Options) (tools.Tool, *Runner, error) {
	if err := o.setDefaults(); err != nil {
		return tools.Tool{}, nil, fmt.Errorf("bash tool: %w", err)
	}
	r := &Runner{opts: o, log: o.Log}
	r.findShell()
	if names := r.WithheldVariables(); len(names) > 0 {
		r.log.Debug().Strs("names", names).Msg("commands do not get these variables")
	}
	r.bg.initOnce()
	r.openPreviews()
	tool, err := tools.New(tools.Typed[In]{
		Definition: tools.Definition{
			Name: Name, Description: r.toolDescription(), Destructive: true,
			Says: act.Of(Says(), Name),
		},
		Describe: r.describeCall,
		Check:    r.checkPossible,
		Changes:  r.changesOf,
		Run:      r.runTool,
	})
	if err != nil {
		return tools.Tool{}, nil, err
	}
	return tool, r, nil
}

// setDefaults sets defaults and checks the options.
func (o *Options) setDefaults() error {
	if o.Workspace == nil {
		return errors.New("no workspace given")
	}
	switch o.Sandbox {
	case "":
		o.Sandbox = SandboxAuto
	case SandboxAuto, SandboxRequired, SandboxOff:
	default:
		return fmt.Errorf("sandbox is %q: want auto, required or off", o.Sandbox)
	}
	if o.Timeout < 0 || o.BackgroundTimeout < 0 || o.MaxCapture < 0 || o.MaxSnapshotBytes < 0 || o.MaxOutput < 0 {
		return errors.New("a timeout or limit is negative")
	}
	o.Timeout = orDefault(o.Timeout, defaultTimeout)
	o.BackgroundTimeout = orDefault(o.BackgroundTimeout, defaultBackgroundTimeout)
	o.MaxCapture = orDefault(o.MaxCapture, defaultMaxCapture)
	o.MaxBackgroundRuns = orDefault(o.MaxBackgroundRuns, defaultMaxBackgroundRuns)
	if o.EnvBlocklist == nil {
		o.EnvBlocklist = defaultEnvBlocklist()
	}
	o.setCollaborators()
	if err := checkAbsolute(o.AllowedPaths, o.ReadPaths, o.DeniedPaths, o.Toolchains.Read); err != nil {
		return err
	}
	return checkScope(o.TransactionScope)
}

// setCollaborators sets defaults for the collaborators that are nil.
func (o *Options) setCollaborators() {
	if o.Environ == nil {
		o.Environ = os.Environ
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Ledger == nil {
		o.Ledger = &Memory{}
	}
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
}

// checkAbsolute returns an error unless every path in the lists is absolute.
func checkAbsolute(lists ...[]string) error {
	for _, p := range slices.Concat(lists...) {
		if !filepath.IsAbs(p) {
			return fmt.Errorf("path %q is not absolute", p)
		}
	}
	return nil
}

func orDefault[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

// findShell looks for bash, then for sh.
func (r *Runner) findShell() {
	if path, err := exec.LookPath("bash"); err == nil {
		r.shell = []string{path, "--noprofile", "--norc", "-c"}
		return
	}
	if path, err := exec.LookPath("sh"); err == nil {
		r.shell, r.note = []string{path, "-c"}, "[note] there is no bash on this machine; sh ran the text"
	}
}

// writableNote says where commands may write, unless they may write anywhere.
func (r *Runner) writableNote() string {
	if r.opts.Sandbox == SandboxOff {
		return ""
	}
	places := "there"
	if n := len(r.opts.AllowedPaths); n > 0 {
		const most = 8
		places += " and in " + strings.Join(r.opts.AllowedPaths[:min(n, most)], ", ")
		if n > most {
			places += fmt.Sprintf(" and %d more", n-most)
		}
	}
	if slices.Contains(r.opts.AllowedPaths, "/tmp") {
		return "It can write only " + places + ". "
	}
	return "It can write only " + places + "; temporary files belong into $TMPDIR, because /tmp is read-only. "
}

func (r *Runner) toolDescription() string {
	var b strings.Builder
	b.WriteString(
		"Execute a bash command in the working directory of this conversation, which keeps its files between calls. ",
	)
	b.WriteString(r.writableNote())
	fmt.Fprintf(&b, "Standard input is empty; it has %s, then it is stopped. ", r.opts.Timeout)
	switch r.opts.Network {
	case sandbox.NetworkOff:
		b.WriteString("There is no network. ")
	case sandbox.NetworkInternet:
		b.WriteString("The network reaches the internet, not this machine (localhost). ")
	default:
	}
	if r.opts.Unasked && r.opts.Sandbox != SandboxOff {
		b.WriteString("What only reads runs at once, where nothing can be changed and there is no network; " +
			"if that is too little for it, a person is asked, and it runs again. ")
	}
	if r.opts.Toolchains.Env["CARGO_HOME"] != "" && r.opts.Sandbox != SandboxOff {
		b.WriteString("Cargo's packages are those of the home directory, which is read-only: " +
			"to add others, set CARGO_HOME to a directory here. ")
	}
	if r.opts.MaxBackgroundRuns > 0 {
		fmt.Fprintf(
			&b, "With background=true it returns at once and may run %s; its output comes with a later message. ",
			r.opts.BackgroundTimeout,
		)
	}
	b.WriteString("Lines of standard error begin with [stderr].")
	return b.String()
}

// describeCall returns what the policy and a person check. The paths are absolute words and
// targets of redirections in the text.
func (r *Runner) describeCall(_ context.Context, call *tools.Call, in In) (tools.Subject, error) {
	if err := checkText(in.Command); err != nil {
		return tools.Subject{}, err
	}
	ws, err := r.opts.Workspace(call.Origin) // not created: describing changes nothing
	if err != nil {
		return tools.Subject{}, noWorkspace(err)
	}
	script := r.opts.Reader.Read(in.Command)
	seen := map[string]bool{}
	var paths []string
	add := func(word string) {
		if !strings.HasPrefix(word, "/") {
			return
		}
		word = filepath.Clean(word)
		if !seen[word] {
			seen[word] = true
			paths = append(paths, word)
		}
	}
	for _, c := range script.Commands {
		for _, w := range c.Words {
			add(w)
			if _, value, ok := strings.Cut(w, "="); ok { // --file=/etc/passwd, of=/dev/sda
				add(value)
			}
		}
	}
	for _, red := range script.Redirects {
		add(red.Target)
	}
	network := reason.New(reason.WithoutNetwork)
	if r.opts.Network != sandbox.NetworkOff {
		network = reason.New(reason.WithNetwork)
	}
	note := reason.Notes(reason.New(reason.InWorkspace), network)
	if in.Background {
		note = note.And(reason.New(reason.InBackground))
	}
	return tools.Subject{
		Inputs: []string{in.Command}, Paths: paths, Files: lookAt(script, sandbox.Canonical(ws)),
		Show: in.Command, Note: note,
	}, nil
}

// maxCommand is the maximum length of the text in bytes. It is what the parser reads, and less than the kernel accepts
// as one argument.
const maxCommand = command.MaxText

func checkText(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return tools.Errorf(tools.InvalidParameters, "command is empty")
	case len(text) > maxCommand:
		return tools.Errorf(tools.InvalidParameters, "command is %d bytes long, more than %d: write it to a file first",
			len(text), maxCommand)
	case strings.ContainsRune(text, 0):
		return tools.Errorf(tools.InvalidParameters, "command holds a NUL byte")
	}
	return nil
}

// checkPossible returns why a command cannot run here even if it is approved. What is never
// permitted is the policy's decision.
func (r *Runner) checkPossible(ctx context.Context, _ *tools.Call, in In) error {
	if err := checkText(in.Command); err != nil {
		return err
	}
	if len(r.shell) == 0 {
		return tools.Errorf(tools.PermanentFailure, "there is neither bash nor sh on this machine")
	}
	if r.opts.Sandbox == SandboxRequired {
		if level := r.Level(ctx); !level.Full() {
			return &tools.Error{
				Category:   tools.PermanentFailure,
				Message:    "commands may run only inside the kernel sandbox, which is not there: " + level.String(),
				Suggestion: "Tell the user that the operator has to enable it or set tools.shell.sandbox.",
			}
		}
	}
	return nil
}

// runTool executes the tool.
func (r *Runner) runTool(ctx context.Context, call *tools.Call, in In) (*tools.Result, error) {
	if err := r.checkPossible(ctx, call, in); err != nil {
		return nil, err
	}
	ws, err := r.workspaceOf(call.Origin)
	if err != nil {
		return nil, err
	}
	if in.Background {
		return r.startBackground(ctx, call, in.Command, ws)
	}
	return r.runForeground(ctx, call, in.Command, ws)
}

// Level returns what the kernel enforces. The result is determined once; if ctx ends first, the next call tries again.
func (r *Runner) Level(ctx context.Context) sandbox.Level {
	r.probe.Lock()
	defer r.probe.Unlock()
	if r.level != nil {
		return *r.level
	}
	if r.opts.Sandbox == SandboxOff {
		return sandbox.Level{Reason: reason.New(reason.SandboxOff)}
	}
	level := sandbox.Probe(ctx, r.opts.Helper)
	if ctx.Err() == nil {
		r.level = &level
	}
	return level
}
