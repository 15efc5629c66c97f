package app

import (
	"regexp"
	"strings"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/redis"
)

// secrets returns the values that must never appear anywhere.
func secrets(cfg *config.Config) []string {
	list := []string{cfg.Telegram.Token.Reveal(), cfg.Telegram.WebhookSecret.Reveal(), cfg.Vector.APIKey.Reveal(), cfg.WebSearch.APIKey.Reveal()}
	for _, p := range cfg.LLM.Providers {
		for _, key := range p.Keys() {
			list = append(list, key.Reveal())
		}
	}
	list = append(list, redis.Passwords(cfg.Redis.URL.Reveal())...)
	list = append(list, persistence.Passwords(cfg.Database.URL.Reveal())...)
	list = append(list, serverSecrets(cfg)...)
	for _, value := range cfg.Tracing.Headers {
		list = append(list, credential(value))
	}
	var set []string
	for _, s := range list {
		if s != "" {
			set = append(set, s)
		}
	}
	return set
}

// serverSecrets returns what MCP servers are given that the configuration keeps secret, except what contains the
// caller's name.
func serverSecrets(cfg *config.Config) []string {
	var list []string
	for _, s := range cfg.MCP.Servers {
		list = append(list, s.OAuth.ClientSecret.Reveal())
		for _, values := range []map[string]config.Secret{s.Headers, s.Env} {
			for name, value := range values {
				if secretName.MatchString(name) && !strings.Contains(value.Reveal(), "${") {
					list = append(list, credential(value))
				}
			}
		}
	}
	return list
}

// secretName matches names of headers and variables whose values are credentials. Others are ordinary words, such as
// application/json, which must not be masked wherever they occur.
var secretName = regexp.MustCompile(`(?i)auth|key|token|secret|pass|cookie|credential`)

// credential returns the credential in the value of a header, which may begin with its kind.
func credential(value config.Secret) string {
	text := value.Reveal()
	if kind, rest, ok := strings.Cut(text, " "); ok && (strings.EqualFold(kind, "Bearer") || strings.EqualFold(kind, "Basic")) {
		return strings.TrimSpace(rest)
	}
	return text
}
