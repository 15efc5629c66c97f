package redact_test

import (
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
