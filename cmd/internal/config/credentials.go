package config

import (
	"net/url"
	"regexp"
	"strings"
)

// Credentials returns the values that must never appear anywhere: tokens, keys, and the passwords in addresses.
func (c *Config) Credentials() []string {
	list := []string{
		c.Telegram.Token.Reveal(),
		c.Telegram.WebhookSecret.Reveal(),
		c.Vector.APIKey.Reveal(),
		c.WebSearch.APIKey.Reveal(),
	}
	for _, p := range c.LLM.Providers {
		for _, key := range p.Keys() {
			list = append(list, key.Reveal())
		}
	}
	for _, h := range c.Hooks {
		list = append(list, h.Secret.Reveal())
	}
	list = append(list, passwords(c.Redis.URL)...)
	list = append(list, passwords(c.Database.URL)...)
	list = append(list, c.serverCredentials()...)
	for _, value := range c.Tracing.Headers {
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

// serverCredentials returns what MCP servers are given that the configuration keeps secret, except what contains the
// caller's name.
func (c *Config) serverCredentials() []string {
	var list []string
	for _, s := range c.MCP.Servers {
		list = append(list, s.OAuth.ClientSecret.Reveal())
		for _, values := range []map[string]Secret{s.Headers, s.Env} {
			for name, value := range values {
				if secretName.MatchString(name) && !strings.Contains(value.Reveal(), "${") {
					list = append(list, credential(value))
				}
			}
		}
	}
	return list
}

// passwords returns the passwords in the address of a database or of a Redis server, as written and decoded.
func passwords(address Secret) []string {
	u, err := url.Parse(address.Reveal())
	if err != nil {
		return nil // it is refused
	}
	var list []string
	for _, key := range []string{"password", "sslpassword", "sentinel_password"} {
		list = append(list, u.Query().Get(key))
	}
	if password, ok := u.User.Password(); ok {
		_, encoded, _ := strings.Cut(u.User.String(), ":")
		list = append(list, password, encoded)
	}
	return list
}

// secretName matches names of headers and variables whose values are credentials. Others are ordinary words, such as
// application/json, which must not be masked wherever they occur.
var secretName = regexp.MustCompile(`(?i)auth|key|token|secret|pass|cookie|credential`)

// credential returns the credential in the value of a header, which may begin with its kind.
func credential(value Secret) string {
	text := value.Reveal()
	if kind, rest, ok := strings.Cut(text, " "); ok &&
		(strings.EqualFold(kind, "Bearer") || strings.EqualFold(kind, "Basic")) {
		return strings.TrimSpace(rest)
	}
	return text
}
