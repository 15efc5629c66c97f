package doctor

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/check"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
	"github.com/zephbot/zephbot/tools/diagnostics"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/shell/toolchain"
	"github.com/zephbot/zephbot/tools/skill"
	"github.com/zephbot/zephbot/tools/workspace"
)

// Free space, in bytes, below which the disk of data_dir is reported.
const (
	spaceLow  = 1 << 30
	spaceNone = 64 << 20
)

// unusable returns why a directory cannot be used, with the key that names it; "" = it can, or can be made.
func (d *doctor) unusable(key, dir string) string {
	return check.Unwritable(d.c, key, dir)
}

// place checks data_dir: whether it can be written, by whom it can be read, how much room it has, and where it is.
func (d *doctor) place(context.Context) []Row {
	const about = "data_dir"
	if text := d.unusable(about, d.dir); text != "" {
		return []Row{fail(about, "%s", text)("change its owner or mode, or set data_dir to another place")}
	}
	var rows []Row
	info, err := os.Stat(d.dir)
	there := err == nil
	if there && info.Mode().Perm()&0o077 != 0 {
		rows = append(rows, warn(
			about, "%s can be read by other accounts of this machine (mode %04o)", d.dir, info.Mode().Perm(),
		)("chmod 700 "+d.dir))
	}
	left, err := workspace.FreeSpace(d.dir)
	switch {
	case err != nil:
		rows = append(rows, warn(
			about, "the free space of %s cannot be determined: %v", d.dir, check.Reason(err),
		)("look at the disk"))
	case left < spaceNone:
		rows = append(rows, fail(about, "the disk of %s is full: %s are free", d.dir, workspace.FormatSize(left))(
			"make room, or set data_dir to another disk",
		))
	case left < max(spaceLow, d.c.Workspaces.ReserveBytes):
		rows = append(rows, warn(about, "only %s are free on the disk of %s", workspace.FormatSize(left), d.dir)(
			"make room, or set data_dir to another disk",
		))
	}
	if kind := foreignDisk(d.dir); kind != "" && d.c.Database.URL == "" {
		rows = append(rows, warn(
			about, "%s is on %s: SQLite cannot be sure there that a commit is on the disk, or that its locks hold",
			d.dir, kind,
		)(
			"set data_dir to a local disk, or use PostgreSQL (database.url)"))
	}
	switch {
	case len(rows) > 0:
		return rows
	case there:
		return ok(about, "%s can be written, %s are free", d.dir, workspace.FormatSize(left))
	default:
		return ok(about, "%s will be made at the first start, %s are free", d.dir, workspace.FormatSize(left))
	}
}

// sandbox says what the kernel enforces for commands.
func (d *doctor) sandbox(ctx context.Context) []Row {
	const about = "sandbox"
	mode := d.c.Tools.Shell.Sandbox
	if mode == shell.SandboxOff {
		return []Row{
			warn(
				about, "it is off: only rules and approvals limit what commands reach, and commands that read ask too",
			)(`set tools.shell.sandbox = "auto"`),
		}
	}
	level := sandbox.Probe(ctx, sandbox.Self)
	switch {
	case level.Full():
		return ok(about, "%s", level)
	case mode == shell.SandboxRequired:
		return []Row{fail(about, "%s; commands are refused, because tools.shell.sandbox is %q", level, mode)(
			`use a Linux with Landlock (5.13 or later), or set tools.shell.sandbox = "auto"`)}
	default:
		return []Row{warn(about, "%s; only rules and approvals limit what commands reach", level)(
			"use a Linux with Landlock (5.13 or later); in a container, allow its calls in the seccomp profile")}
	}
}

// previews says whether people read what a command would do before they approve it.
func (d *doctor) previews(ctx context.Context) []Row {
	const about = "previews"
	if s := d.c.Tools.Shell; !d.c.Tools.Enabled || !s.Preview || s.Sandbox == shell.SandboxOff {
		return nil
	}
	dir, err := os.MkdirTemp(d.dir, "doctor-")
	if err != nil {
		return nil // data_dir is not there yet, or its own row says what is wrong with it
	}
	if err := errors.Join(shell.TryLayer(ctx, sandbox.Self, dir), os.RemoveAll(dir)); err != nil {
		return ok(about, "questions about commands show their text, not what they would do: %s", check.Reason(err))
	}
	return ok(about, "a command is tried without effect before a person is asked about it")
}

// programs looks for those that the tools need.
func (d *doctor) programs(ctx context.Context) []Row {
	const about = "programs"
	if !d.c.Tools.Enabled {
		return ok(about, "none is needed: tools.enabled is false")
	}
	found := func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	}
	if !found("bash") && !found("sh") {
		return []Row{
			fail(about, "neither bash nor sh was found: the tool bash cannot run anything")(
				"install bash, and see that it is in PATH",
			),
		}
	}
	text := "a shell is there; " + d.checkers(ctx)
	if !found("bash") {
		return []Row{
			warn(about, "there is no bash: commands run in sh, which lacks some of its syntax")(
				"install bash, and see that it is in PATH",
			),
		}
	}
	return ok(about, "%s", text)
}

// checkers says what the tool diagnostics can use where its commands run.
func (d *doctor) checkers(ctx context.Context) string {
	serving, atHome := d.usable(ctx, layout.Serve), d.usable(ctx, layout.Chat)
	atHome = slices.DeleteFunc(atHome, func(p string) bool { return slices.Contains(serving, p) })
	switch {
	case len(serving)+len(atHome) == 0:
		return "the tool diagnostics finds no checker (" + strings.Join(diagnostics.Programs(), ", ") + ")"
	case len(serving) == 0:
		return "the tool diagnostics can use " + strings.Join(atHome, ", ") + " in the terminal and editors"
	case len(atHome) == 0:
		return "the tool diagnostics can use " + strings.Join(serving, ", ")
	}
	return "the tool diagnostics can use " + strings.Join(serving, ", ") + ", in the terminal and editors also " +
		strings.Join(atHome, ", ")
}

// usable returns the checkers that commands of a mode can run.
func (d *doctor) usable(ctx context.Context, mode string) []string {
	_, runner, err := shell.New(shell.Options{
		Workspace:  func(tools.Origin) (string, error) { return d.dir, nil }, // nothing is run
		Toolchains: app.Toolchains(d.c, mode), Sandbox: d.c.Tools.Shell.Sandbox, Helper: sandbox.Self,
	})
	if err != nil {
		return nil // reported with the configuration
	}
	var list []string
	for _, program := range diagnostics.Programs() {
		if _, ok := runner.FindProgram(ctx, program); ok {
			list = append(list, program)
		}
	}
	return list
}

// toolchains says what is installed below the home directory, and who may use it.
func (d *doctor) toolchains(context.Context) []Row {
	const about = "toolchains"
	var list []string
	for _, t := range toolchain.Find(d.c.Path("~"), os.Environ()).Found {
		list = append(list, t.Name+" in "+t.Dir)
	}
	if len(list) == 0 {
		return ok(about, "none that is known is below the home directory")
	}
	text := strings.Join(list, ", ") + "; "
	switch set := d.c.Tools.Shell.Toolchains; {
	case len(set) == 0:
		text += "commands can use them in the terminal and editors, not in serve (tools.shell.toolchains)"
	case set[0] == config.ToolchainsAuto:
		text += "commands can use them"
	case set[0] == config.ToolchainsNone:
		text += "commands cannot use them (tools.shell.toolchains)"
	default:
		text += "commands can use " + strings.Join(set, ", ") + " (tools.shell.toolchains)"
	}
	return ok(about, "%s", text)
}

// skills reads the folders of skills.
func (d *doctor) skills(context.Context) []Row {
	const about = "skills"
	if !d.c.Skills.Enabled || len(d.c.Skills.Paths) == 0 {
		return nil
	}
	var roots []string
	for _, p := range d.c.Skills.Paths {
		roots = append(roots, d.c.Path(p))
	}
	list, problems := skill.Find(roots)
	var rows []Row
	for _, p := range problems {
		rows = append(rows, warn(about, "%s", p)("correct the skill; docs/skills.md describes the form"))
	}
	if len(list) == 0 && len(rows) == 0 {
		return []Row{
			warn(about, "there is no skill in %s", strings.Join(d.c.Skills.Paths, ", "))(
				"put folders with a SKILL.md there, or empty skills.paths",
			),
		}
	}
	return append(rows, ok(about, "%d found; /skills in the chat accepts them", len(list))...)
}

// workspaces checks the directory of the working directories.
func (d *doctor) workspaces(context.Context) []Row {
	const about = "workspaces"
	dir := d.c.Path(d.c.Workspaces.Dir)
	if dir == "" {
		dir = filepath.Join(d.dir, "workspaces")
	}
	if text := d.unusable("workspaces.dir", dir); text != "" {
		return []Row{fail(about, "%s", text)("change its owner or mode, or set workspaces.dir to another place")}
	}
	return ok(about, "in %s", dir)
}

// ports checks the addresses that the service listens on.
func (d *doctor) ports(ctx context.Context) []Row {
	var rows []Row
	if at := d.c.Metrics.Listen; at != "" {
		rows = append(rows, d.port(ctx, "metrics", "metrics.listen", at))
		if !check.OnlyHere(at) {
			rows = append(rows, warn(
				"metrics", "metrics.listen is %s: whoever reaches this machine can read the metrics", at,
			)(
				`set metrics.listen = "127.0.0.1:9090", or see that a firewall is before it`))
		}
	}
	if t := d.c.Triggers; t.Listen != "" && (d.c.Telegram.WebhookURL == "" || t.Listen != d.c.Telegram.WebhookListen) {
		rows = append(rows, d.port(ctx, "hooks", "triggers.listen", t.Listen))
	}
	if t := d.c.Telegram; t.WebhookURL != "" {
		rows = append(rows, d.port(ctx, "webhook port", "telegram.webhook_listen", t.WebhookListen))
	}
	return rows
}

// port checks whether an address can be listened on.
func (d *doctor) port(ctx context.Context, about, key, address string) Row {
	if d.running {
		return Row{Check: about, Status: OK, Text: address + " belongs to the running service"}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err == nil {
		_ = listener.Close() // nothing was received
		return Row{Check: about, Status: OK, Text: address + " is free"}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return fail(about, "%s cannot be listened on: %v", address, err)("stop the program that uses it, or change " + key)
}

// zones checks the database of time zones.
func (d *doctor) zones(context.Context) []Row {
	if _, err := time.LoadLocation("Europe/Berlin"); err != nil {
		return []Row{
			warn(
				"time zones",
				"this machine has no database of time zones: /timezone and telegram.time_zone know UTC only",
			)("install the package tzdata"),
		}
	}
	return ok("time zones", "known")
}

// audit checks that the audit log can be written, and that its chain is whole.
func (d *doctor) audit(ctx context.Context) []Row {
	const about = "audit"
	a := d.c.Audit
	switch {
	case !a.Enabled:
		return []Row{warn(about, "it is off: nobody can see later what the tools did")("set audit.enabled = true")}
	case a.Destination == "stdout":
		return ok(about, "it goes to stdout")
	}
	var rows []Row
	seen := false
	for _, log := range d.opts.Options.Layout().Logs() {
		if log.Mode != layout.Serve {
			continue
		}
		if text := d.unusable("audit.destination", filepath.Dir(log.Path)); text != "" {
			return []Row{fail(about, "%s", text)("change its owner or mode, or set audit.destination to another place")}
		}
		if text := check.NotWritable(log.Path); text != "" {
			return []Row{fail(about, "%s", text)("change its owner or mode, or set audit.destination to another place")}
		}
		if log.Exists() {
			seen = true
			rows = append(rows, d.chain(ctx, log))
		}
	}
	if !seen {
		return ok(about, "%s will be made at the first start", d.opts.Layout().OneLog(d.dir))
	}
	return rows
}

// chain verifies one audit log.
func (d *doctor) chain(ctx context.Context, log layout.Log) Row {
	const about, cure = "audit", "zephbot audit verify names the places; keep the file, and find out who changed it"
	mark, err := layout.MarkOf(ctx, log)
	unmarked := err != nil // the database has a row of its own
	names, err := audit.Files(log.Path)
	if err != nil {
		return fail(about, "%s cannot be read: %v", log.Path, check.Reason(err))("change its owner or its mode")
	}
	files := make([]audit.File, 0, len(names))
	for _, path := range names {
		f, err := os.Open(path)
		if err != nil {
			return fail(about, "%s cannot be read: %v", path, check.Reason(err))("change its owner or its mode")
		}
		defer func() { _ = f.Close() }() // it is only read
		files = append(files, audit.File{Name: path, Reader: timed{ctx, f}})
	}
	report, err := audit.Verify(mark, files...)
	switch {
	case ctx.Err() != nil:
		return warn(about, "%s is too long to be verified here", log.Path)("zephbot audit verify takes its time")
	case err != nil:
		return fail(about, "%s cannot be read: %v", log.Path, check.Reason(err))("change its owner or its mode")
	case len(report.Problems) > 0:
		return fail(
			about, "%s: its chain is broken in %d places, first: %s",
			log.Path, len(report.Problems), report.Problems[0].Text,
		)(cure)
	case unmarked || mark == nil:
		return Row{Check: about, Status: OK, Text: log.Path + ": the chain is whole, as far as the file goes"}
	default:
		return Row{Check: about, Status: OK, Text: log.Path + ": the chain is whole"}
	}
}

// timed is a reader that ends with a context.
type timed struct {
	ctx context.Context //nolint:containedctx // the reader lives as long as the call
	io.Reader
}

// Read implements io.Reader.
func (t timed) Read(p []byte) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	return t.Reader.Read(p)
}
