package config

import "github.com/zephbot/zephbot/policy/redact"

// credentialPatterns checks that every pattern for credentials is valid: a credential that is not found is shown.
func (k *checker) credentialPatterns() {
	const key = "tools.filters.security.extra_patterns"
	for i, pattern := range k.c.Tools.Filters.Security.ExtraPatterns {
		if err := redact.Check(pattern); err != nil {
			k.wrong(key, "pattern %d: %v; correct it, or take it out", i+1, err)
		}
	}
}
