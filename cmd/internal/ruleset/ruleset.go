// Package ruleset converts the rules of a configuration to those of the policy.
package ruleset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/pathrule"
)

// Unasked returns which commands run without a question.
func Unasked(s *config.Shell) policy.Unasked {
	if !s.AllowReading {
		return policy.UnaskedNothing
	}
	return policy.Unasked(s.Unasked)
}

// Source is what rules are made of.
type Source struct {
	Config  *config.Config
	Tools   []act.Tool      // what our own tools say of themselves
	WorkDir string          // of the process: a policy file is below it
	Files   *pathrule.Rules // those of Files
	Reader  *command.Reader // of the texts of commands
}

// Files converts tools.file.deny_read and allow_read.
func Files(cfg *config.Config) (*pathrule.Rules, error) {
	return pathrule.New(
		expandGlobs(cfg.Path, cfg.Tools.File.DenyRead, "*/"), expandGlobs(cfg.Path, cfg.Tools.File.AllowRead, ""),
	)
}

// Build converts all rules. One invalid rule refuses all.
func Build(src Source) (*policy.Set, error) {
	cfg := src.Config
	opts := policy.Options{
		Tools:           src.Tools,
		Level:           policy.Level(cfg.Security.AutonomyLevel),
		BlockedCommands: cfg.Tools.Shell.BlockedCommands,
		AllowedCommands: cfg.Tools.Shell.AllowedCommands,
		ConfirmPatterns: cfg.Tools.Shell.ConfirmPatterns,
		AllowNetwork:    cfg.Tools.Shell.AllowNetwork != config.ReachNone,
		Unasked:         Unasked(&cfg.Tools.Shell),
		QuietHosts:      cfg.Tools.Web.QuietHosts,
		Files:           src.Files,
		Reader:          src.Reader,
	}
	if cfg.Tools.Permissions != nil {
		opts.Permissions = map[string][]policy.Permission{}
	}
	for tool, rules := range cfg.Tools.Permissions {
		list := []policy.Permission{}
		for _, r := range rules {
			list = append(list, policy.Permission{Pattern: r.Pattern, Action: policy.Effect(r.Action)})
		}
		opts.Permissions[tool] = list
	}
	p, a := cfg.Tools.Policy, cfg.Tools.Authorization
	list, err := convertRules(p.Rules, "tools.policy.rules")
	if err != nil {
		return nil, err
	}
	opts.Policy = policy.Rules{
		Enabled:       p.Enabled,
		DefaultEffect: policy.Effect(p.DefaultEffect),
		Evaluation:    policy.Evaluation(p.Evaluation),
		List:          list,
	}
	if p.File != "" {
		path := cfg.Path(p.File)
		if opts.Policy.List, err = readFile(cfg, path, src.WorkDir); err != nil {
			return nil, err
		}
		opts.Policy.File = path
	}
	if list, err = convertRules(a.Rules, "tools.authorization.rules"); err != nil {
		return nil, err
	}
	opts.Authorization = policy.Rules{Enabled: a.Enabled, List: list}
	return policy.New(opts)
}

func convertRules(raw []config.Rule, table string) ([]policy.Rule, error) {
	var list []policy.Rule
	var errs []error
	for i, r := range raw {
		rule, err := policy.RawRule{
			Effect:       r.Effect,
			Tool:         []string(r.Tool),
			Paths:        r.Paths,
			Env:          r.Env,
			TrustLevel:   r.TrustLevel,
			ArgsMatch:    r.ArgsMatch,
			Capabilities: r.Capabilities,
			Comment:      r.Comment,
		}.Rule()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s[%d]: %w", table, i, err))
			continue
		}
		list = append(list, rule)
	}
	return list, errors.Join(errs...)
}

// maxFile is the maximum size of a policy file (seed 003).
const maxFile = 256 << 10

// readFile reads a policy file, which must be below the working directory after links are resolved: a link must not
// bring in rules from elsewhere.
func readFile(cfg *config.Config, path, workDir string) ([]policy.Rule, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("tools.policy.policy_file %s: %w", path, err)
	}
	root, err := filepath.EvalSymlinks(workDir)
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	if !pathrule.Inside(root, real) {
		return nil, fmt.Errorf(
			"tools.policy.policy_file %s escapes the working directory %s: put the file below it", path, root,
		)
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, fmt.Errorf("tools.policy.policy_file: %w", err)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf(
			"tools.policy.policy_file %s has %d bytes; at most %d are read", path, info.Size(), maxFile,
		)
	}
	data, err := os.ReadFile(real)
	if err != nil {
		return nil, fmt.Errorf("tools.policy.policy_file: %w", err)
	}
	list, err := policy.ParseRules(path, data)
	if err != nil {
		return nil, err
	}
	return list, refuseUnknownTools(cfg, path, list)
}

// refuseUnknownTools refuses rules of a policy file about tools that do not exist.
func refuseUnknownTools(cfg *config.Config, path string, list []policy.Rule) error {
	var errs []error
	for i, rule := range list {
		for _, tool := range rule.Tools {
			if problem, sure := cfg.ToolProblem(tool, true); problem.Known() && sure {
				errs = append(errs, fmt.Errorf("%s:%d rules[%d].tool: %s", path, rule.Line, i, problem))
			}
		}
	}
	return errors.Join(errs...)
}

// expandGlobs makes globs that begin with ~ absolute. It prepends before to relative ones; if that is empty, they are
// left as they are, to be refused later.
func expandGlobs(path func(string) string, globs []string, before string) []string {
	out := make([]string, len(globs))
	for i, g := range globs {
		switch out[i] = g; {
		case strings.HasPrefix(g, "~"):
			out[i] = path(g)
		case g != "" && g[0] != '/' && g[0] != '*':
			out[i] = before + strings.TrimPrefix(g, "./")
		}
	}
	return out
}
