package pathrule_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/pathrule"
)

// TestHoldsSecret has the names under which programs keep credentials, and their neighbours that hold none.
func TestHoldsSecret(t *testing.T) {
	t.Parallel()
	for name := range strings.FieldsSeq(`.env .ENV .env.local .env.production .npmrc npmrc .yarnrc.yml .netrc _netrc .pypirc .git-credentials .pgpass
		credentials credentials.toml credentials.json .credentials.json client_secret_123.json service-account.json secrets.yml token.json auth.json
		.token id_ed25519 server.key tls.pem keystore.jks .git .ssh .aws`) {
		if !pathrule.HoldsSecret(name) {
			t.Errorf("%s is not taken for a secret", name)
		}
	}
	for name := range strings.FieldsSeq(`.env.example .env.template .environment env.js package.json package-lock.json index.js token.js tokens.ts
		tokenizer.json secrets.js authors.json keys.json id_rsa.pub .gitignore .github key pem README LICENSE settings.toml config.toml`) {
		if pathrule.HoldsSecret(name) {
			t.Errorf("%s is taken for a secret", name)
		}
	}
}
