package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/pathrule"
)

// unasked returns which commands run without a question.
func unasked(s *config.Shell) policy.Unasked {
	if !s.AllowReading {
		return policy.UnaskedNothing
	}
	return policy.Unasked(s.Unasked)
}

// buildPolicy converts the configuration to rules. One invalid rule refuses all.
func buildPolicy(cfg *config.Config, workDir string, files *pathrule.Rules, reader *command.Reader) (*policy.Set, error) {
	opts := policy.Options{
		Tools:           Tools(),
		Level:           policy.Level(cfg.Security.AutonomyLevel),
		BlockedCommands: cfg.Tools.Shell.BlockedCommands,
		AllowedCommands: cfg.Tools.Shell.AllowedCommands,
		ConfirmPatterns: cfg.Tools.Shell.ConfirmPatterns,
		AllowNetwork:    cfg.Tools.Shell.AllowNetwork != config.ReachNone,
		Unasked:         unasked(&cfg.Tools.Shell),
		QuietHosts:      cfg.Tools.Web.QuietHosts,
		Files:           files,
		Reader:          reader,
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
	list, err := rules(p.Rules, "tools.policy.rules")
	if err != nil {
		return nil, err
	}
	opts.Policy = policy.Rules{Enabled: p.Enabled, DefaultEffect: policy.Effect(p.DefaultEffect), Evaluation: policy.Evaluation(p.Evaluation), List: list}
	if p.File != "" {
		path := cfg.Path(p.File)
		if opts.Policy.List, err = policyFile(cfg, path, workDir); err != nil {
			return nil, err
		}
		opts.Policy.File = path
	}
	if list, err = rules(a.Rules, "tools.authorization.rules"); err != nil {
		return nil, err
	}
	opts.Authorization = policy.Rules{Enabled: a.Enabled, List: list}
	return policy.New(opts)
}

func rules(raw []config.Rule, table string) ([]policy.Rule, error) {
	var list []policy.Rule
	var errs []error
	for i, r := range raw {
		rule, err := policy.RawRule{
			Effect: r.Effect, Tool: []string(r.Tool), Paths: r.Paths, Env: r.Env, TrustLevel: r.TrustLevel, ArgsMatch: r.ArgsMatch,
			Capabilities: r.Capabilities, Comment: r.Comment,
		}.Rule()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s[%d]: %w", table, i, err))
			continue
		}
		list = append(list, rule)
	}
	return list, errors.Join(errs...)
}

// maxPolicyFile is the maximum size of a policy file (seed 003).
const maxPolicyFile = 256 << 10

// policyFile reads a policy file, which must be below the working directory after links are resolved: a link must not
// bring in rules from elsewhere.
func policyFile(cfg *config.Config, path, workDir string) ([]policy.Rule, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("tools.policy.policy_file %s: %w", path, err)
	}
	root, err := filepath.EvalSymlinks(workDir)
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	if !pathrule.Inside(root, real) {
		return nil, fmt.Errorf("tools.policy.policy_file %s escapes the working directory %s: put the file below it", path, root)
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, fmt.Errorf("tools.policy.policy_file: %w", err)
	}
	if info.Size() > maxPolicyFile {
		return nil, fmt.Errorf("tools.policy.policy_file %s has %d bytes; at most %d are read", path, info.Size(), maxPolicyFile)
	}
	data, err := os.ReadFile(real)
	if err != nil {
		return nil, fmt.Errorf("tools.policy.policy_file: %w", err)
	}
	list, err := policy.ParseRules(path, data)
	if err != nil {
		return nil, err
	}
	return list, namedRules(cfg, path, list)
}

// namedRules refuses rules of a policy file about tools that do not exist.
func namedRules(cfg *config.Config, path string, list []policy.Rule) error {
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
