package redact_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/redact"
)

func TestNamesSecret(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"GITHUB_TOKEN": true, "github_token": true, "MY-KEY": true, "db.pass": true, "APIKEY": true, "MYSECRETS": true, "DB_PWD": true, "SSH_AUTH_SOCK": true, "SENTRY_DSN": true,
		"PWD": false, "OLDPWD": false, "PATH": false, "HOME": false, "KEYBOARD": false, "AUTHOR": false, "MONKEY": false, "": false,
	} {
		if got := redact.NamesSecret(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}

// TestAttackCredentialInVariable has credentials in variables whose names do not suggest them.
func TestAttackCredentialInVariable(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		fake("sk_", "live_", letters36): true, fake("AKIA", "IOSFODNN7EXAMPLE"): true, "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----": true, "https://hooks.slack.com/services/" + fake("T00000000/", "B00000000/XXXXXXXXXXXX"): true,
		"postgres://u:password@h/db": true, fake("eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0", ".abcdefghij"): true, "Server=h;Password=" + chosenOne: true, "https://outlook.webhook.office.com/webhookb2/" + strings.Repeat("ab12-", 12): true,
		"/usr/local/bin:/usr/bin": false, "en_US.UTF-8": false, "rs=0:di=01;34:ln=01;36": false, "https://proxy.example:3128": false, "4096": false, "": false, "development": false, "0.0.0.0:8080": false,
	} {
		if got := redact.HoldsCredential(value); got != want {
			t.Errorf("%q: %t", value, got)
		}
	}
}

func TestHoldsPassword(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"postgres://u:p@h/db": true, "https://u:@h": true, "https://user@h": false, "https://h/a@b": false, "a@b": false, "https://h": false, "x://%zz@h": true, "": false,
	} {
		if got := redact.HoldsPassword(value); got != want {
			t.Errorf("%q: %t", value, got)
		}
	}
}
