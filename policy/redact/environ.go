package redact

import (
	"net/url"
	"strings"
	"sync"
)

// NamesSecret reports whether the name of a variable suggests a secret, in any case of letters. Child processes do not
// get such variables by default.
func NamesSecret(name string) bool {
	name = strings.ToUpper(name)
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	for _, w := range words {
		switch w {
		case "KEY", "KEYS", "PASS", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "CREDS", "AUTH", "COOKIE",
			"DSN":
			return true
		case "PWD": // on its own it is the working directory
			if len(words) > 1 {
				return true
			}
		}
	}
	for _, part := range []string{"PASSWORD", "APIKEY", "SECRET", "TOKEN"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// shapes is a Redactor without exact values.
var shapes = sync.OnceValue(func() *Redactor { return New(nil) })

// HoldsCredential reports whether the value of a variable is or contains a credential, whatever its name: a token of a
// vendor, a private key, a JWT, the address of a webhook, a URL with a password, an assignment in a connection string.
func HoldsCredential(value string) bool {
	return HoldsPassword(value) || len(shapes().Scan(value)) > 0
}

// HoldsPassword reports whether a value is a URL with a password, as in DATABASE_URL.
func HoldsPassword(value string) bool {
	if !strings.Contains(value, "://") || !strings.Contains(value, "@") {
		return false
	}
	u, err := url.Parse(value)
	if err != nil {
		return true // it looks like one and cannot be parsed: remove it to be safe
	}
	_, has := u.User.Password()
	return has
}
