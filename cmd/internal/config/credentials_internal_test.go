package config

import (
	"slices"
	"testing"
)

// TestPasswords: the passwords in an address are returned in every form in which they may be printed.
func TestPasswords(t *testing.T) {
	t.Parallel()
	for address, want := range map[Secret][]string{
		"": nil, "postgres://user@host/name": nil, "://": nil,
		"postgres://user:plain@host/name":                    {"plain", "plain"},
		"postgres://user:a%40b@host/name":                    {"a@b", "a%40b"},
		"postgres://host/name?password=p1&sslpassword=p%202": {"p1", "p 2"},
		"redis://:s1@host?sentinel_password=s2":              {"s2", "s1", "s1"},
	} {
		got := slices.DeleteFunc(passwords(address), func(s string) bool { return s == "" })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", address.Reveal(), got, want)
		}
	}
}
