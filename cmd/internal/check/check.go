// Package check finds what is wrong with a configuration, before anything is built from it.
package check

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/cmd/internal/ruleset"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/tools/filter"
)

// Options are what a configuration is checked with.
type Options struct {
	Config  *config.Config
	Tools   []act.Tool       // what our own tools say of themselves
	State   string           // the person's state directory; see layout.Layout
	WorkDir string           // of the process
	Now     func() time.Time // nil = time.Now
}

// Use is what a configuration is checked for.
type Use struct {
	Telegram bool // people talk to it over Telegram
	Model    bool // a model answers
	Terminal bool // it runs at the terminal, with the terminal's state
}

// Findings are the results of Check, each in the order of the file.
type Findings struct {
	Problems config.Problems // nothing can start with this configuration
	Faults   config.Problems // it starts, but the first use of something fails
	Warnings config.Problems // unusual, but perhaps intended
}

// Check finds what start or first use would find in a configuration that config.Load has read: files, patterns,
// programs, directories, and settings that contradict each other. It changes nothing. Findings.Warnings begin with
// those of Load.
func Check(opts Options, use Use) Findings {
	k := &inspector{c: opts.Config, opts: opts, at: layout.Layout{Config: opts.Config, State: opts.State}}
	k.found.Warnings = append(k.found.Warnings, opts.Config.Warnings...)
	k.rules()
	k.patterns()
	k.files()
	k.directories(use)
	k.servers()
	k.skills()
	k.contradictions()
	k.observation()
	k.reachable()
	k.languageServer()
	k.listeners()
	k.hooks()
	k.addresses()
	if use.Model {
		k.models()
	}
	if use.Telegram {
		k.sharing()
		k.operatorPage()
		k.telegram()
	}
	f := k.found
	return Findings{Problems: f.Problems.Sorted(), Faults: f.Faults.Sorted(), Warnings: f.Warnings.Sorted()}
}

// inspector collects the findings.
type inspector struct {
	c     *config.Config
	opts  Options
	at    layout.Layout
	found Findings
}

func (k *inspector) wrong(key, format string, args ...any) {
	k.found.Problems = append(k.found.Problems, k.c.Problem(key, fmt.Sprintf(format, args...)))
}

func (k *inspector) fault(key, format string, args ...any) {
	k.found.Faults = append(k.found.Faults, k.c.Problem(key, fmt.Sprintf(format, args...)))
}

func (k *inspector) warn(key, format string, args ...any) {
	k.found.Warnings = append(k.found.Warnings, k.c.Problem(key, fmt.Sprintf(format, args...)))
}

// refuse reports the errors of a part one by one: at the key that they name, else at key.
func (k *inspector) refuse(key string, err error) {
	for _, one := range leavesOfError(err) {
		k.found.Problems = append(k.found.Problems, k.locate(key, one.Error()))
	}
}

// leavesOfError splits joined errors.
func leavesOfError(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var list []error
		for _, one := range joined.Unwrap() {
			if !errors.Is(one, config.ErrInvalid) || one.Error() != config.ErrInvalid.Error() {
				list = append(list, leavesOfError(one)...)
			}
		}
		// of "configuration: index.lsp.symbols: …", the key is only in the whole text
		if whole, ok := strings.CutPrefix(err.Error(), config.ErrInvalid.Error()+": "); ok && len(list) == 1 {
			return []error{errors.New(whole)}
		}
		return list
	}
	return []error{err}
}

// locate splits "tools.permissions.bash[0].pattern: …" and "rules.toml:7 rules[2].tool: …" into place and problem.
func (k *inspector) locate(key, text string) config.Problem {
	where, rest, ok := strings.Cut(text, ": ")
	if !ok {
		return k.c.Problem(key, text)
	}
	name, of, ok := strings.Cut(where, " rules[")
	if i := strings.LastIndexByte(name, ':'); ok && i > 0 { // of a file of its own
		if line, err := strconv.Atoi(name[i+1:]); err == nil {
			return config.Problem{File: name[:i], Line: line, Key: "rules[" + of, Text: rest}
		}
	}
	if k.c.Set(where) || config.IsKey(where) || strings.HasPrefix(where, "tools.") && !strings.ContainsAny(where, " ") {
		return k.c.Problem(where, rest)
	}
	return k.c.Problem(key, text)
}

// rules reads the rules and the policy file like a start.
func (k *inspector) rules() {
	files, err := ruleset.Files(k.c)
	k.refuse("tools.file", err)
	_, err = ruleset.Build(ruleset.Source{
		Config: k.c, Tools: k.opts.Tools, WorkDir: k.opts.WorkDir, Files: files, Reader: command.NewReader(),
	})
	k.refuse("tools.policy.policy_file", err)
}

// patterns checks the expressions that other parts compile.
func (k *inspector) patterns() {
	for _, err := range leavesOfError(checkScope(k.c.Tools.Shell.TransactionScope)) {
		k.wrong("tools.shell.transaction_scope", "%s", err)
	}
}

// MaxJudgeFile is the maximum size of the policies of the judge, in bytes.
const MaxJudgeFile = 256 << 10

// files checks the files that other parts read.
func (k *inspector) files() {
	if a := k.c.Tools.Adversarial; a.Enabled && a.PolicyFile != "" {
		if text := unreadableFile(k.c.Path(a.PolicyFile), MaxJudgeFile); text != "" {
			k.wrong("tools.adversarial_policy.policy_file", "%s %s", a.PolicyFile, text)
		}
	}
	f := k.c.Tools.Filters
	if !f.Enabled {
		return
	}
	configured, beside := "", ""
	if f.FiltersPath != "" {
		configured = k.c.Path(f.FiltersPath)
	}
	if k.c.File != "" {
		beside = filepath.Dir(k.c.Path(k.c.File))
	}
	path := filter.Find(configured, beside)
	if path == "" {
		return
	}
	_, problems := filter.Load(path)
	for _, p := range problems {
		k.found.Faults = append(k.found.Faults, k.filterFault(p))
	}
}

// filterFault attributes a problem of a filter rule to its file.
func (k *inspector) filterFault(p filter.Problem) config.Problem {
	text := p.What
	if p.Do != "" {
		text += "; " + p.Do
	}
	if p.File == "" {
		return k.c.Problem("tools.filters", text)
	}
	return config.Problem{File: p.File, Key: p.Rule, Text: text}
}

// unreadableFile returns why a file cannot be read; "" = it can.
func unreadableFile(path string, limit int64) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist; make it, or correct the path"
	case err != nil:
		return "cannot be looked at: " + Reason(err)
	case info.IsDir():
		return "is a directory; name a file in it"
	case info.Size() > limit:
		return fmt.Sprintf("has %d bytes; at most %d are read", info.Size(), limit)
	}
	f, err := os.Open(path)
	if err != nil {
		return "cannot be read: " + Reason(err) + "; change its owner or its mode"
	}
	_ = f.Close() // nothing was written
	return ""
}

// Reason returns an error of the file system without the path.
func Reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// Located returns the errors of a part one by one, at the keys that they name.
func Located(cfg *config.Config, err error) config.Problems {
	k := &inspector{c: cfg}
	k.refuse("", err)
	return k.found.Problems
}
