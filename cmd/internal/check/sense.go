package check

import (
	"maps"
	"slices"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools/shell"
)

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// contradictions checks for settings that disable each other.
func (k *inspector) contradictions() {
	k.uselessRules()
	k.uselessShell()
	t := k.c.Tools
	if n := t.MaxToolCallsPerSession; n != nil && *n == 0 {
		k.wrong(
			"tools.max_tool_calls_per_session",
			"0 lets no tool run at all; take the key out for no limit, or set tools.enabled = false",
		)
	}
	if t.Anomaly.Enabled && t.Anomaly.ErrorThreshold > t.Anomaly.FailureThreshold {
		k.warn(
			"tools.anomaly.error_threshold",
			"%g is above failure_threshold (%g): a tool is blocked before anybody is warned; make it smaller",
			t.Anomaly.ErrorThreshold, t.Anomaly.FailureThreshold,
		)
	}
	if t.Retry.MaxAttempts > 0 && t.Retry.BaseMS > t.Retry.MaxMS {
		k.warn(
			"tools.retry.base_ms", "%d is above max_ms (%d), which wins; make it smaller",
			t.Retry.BaseMS, t.Retry.MaxMS,
		)
	}
	if o := t.Overflow; o.MaxOverflowBytes > 0 && o.MaxOverflowBytes < int64(o.Threshold) {
		k.warn(
			"tools.overflow.max_overflow_bytes",
			"%d is below threshold (%d): what is cut off is kept nowhere; make it larger",
			o.MaxOverflowBytes, o.Threshold,
		)
	}
	for _, d := range t.Scrape.AllowedDomains {
		if slices.Contains(t.Scrape.DeniedDomains, d) {
			k.warn(
				"tools.scrape.allowed_domains", "%s is also in denied_domains, which win; take it out of one of them",
				d,
			)
		}
	}
	if len(t.File.AllowRead) > 0 && len(t.File.DenyRead) == 0 {
		k.warn("tools.file.allow_read", "has no effect: it lists exceptions from deny_read, which is empty")
	}
	k.circles()
}

// uselessRules checks for rules that are never consulted.
func (k *inspector) uselessRules() {
	p, a, t := k.c.Tools.Policy, k.c.Tools.Authorization, k.c.Tools
	noRule := len(p.Rules) == 0 && p.File == "" && (!a.Enabled || len(a.Rules) == 0)
	for _, w := range []struct {
		when      bool
		key, text string
	}{
		{
			!p.Enabled && (len(p.Rules) > 0 || p.File != ""),
			"tools.policy",
			"its rules are not in force: set tools.policy.enabled = true",
		},
		{
			!a.Enabled && len(a.Rules) > 0,
			"tools.authorization",
			"its rules are not in force: set tools.authorization.enabled = true",
		},
		{
			p.File != "" && len(p.Rules) > 0,
			"tools.policy.rules",
			"have no effect: tools.policy.policy_file replaces them; keep one of them",
		},
		{
			p.Enabled && p.DefaultEffect == "deny" && noRule, "tools.policy.enabled",
			"every call is denied: there is no rule, and default_effect is deny; add rules, or set " +
				"default_effect = \"allow\"",
		},
		{
			!t.Adversarial.Enabled && k.c.Set("tools.adversarial_policy.policy_file"),
			"tools.adversarial_policy.policy_file",
			"has no effect: set tools.adversarial_policy.enabled = true",
		},
		{
			!t.Filters.Enabled && k.c.Set("tools.filters.filters_path"),
			"tools.filters.filters_path",
			"has no effect: tools.filters.enabled is false",
		},
		{
			len(t.Permissions[shell.Name]) > 0 && k.c.Set("tools.shell.confirm_patterns"),
			"tools.shell.confirm_patterns",
			"has no effect: tools.permissions.bash decides what is asked; write a rule there",
		},
	} {
		if w.when {
			k.warn(w.key, "%s", w.text)
		}
	}
}

// uselessShell checks for settings of transactions that do not exist.
func (k *inspector) uselessShell() {
	if k.c.Tools.Shell.Transactional {
		return
	}
	for _, key := range []string{
		"auto_rollback",
		"auto_rollback_exit_codes",
		"snapshot_required",
		"transaction_scope",
		"max_snapshot_bytes",
	} {
		if key = "tools.shell." + key; k.c.Set(key) {
			k.warn(key, "has no effect: set tools.shell.transactional = true")
		}
	}
}

// circles finds tools that wait for each other.
func (k *inspector) circles() {
	d := k.c.Tools.Dependencies
	if !d.Enabled {
		return
	}
	for _, tool := range sortedKeys(d.Rules) {
		seen, next := map[string]bool{}, d.Rules[tool].Requires
		for len(next) > 0 {
			name := next[0]
			if next = next[1:]; name == tool {
				k.wrong(config.Entry("tools.dependencies.rules", tool)+
					".requires", "%s waits for itself, so it is never offered; take one of the names out", tool)
				break
			}
			if !seen[name] {
				seen[name] = true
				next = append(slices.Clone(next), d.Rules[name].Requires...)
			}
		}
	}
}
