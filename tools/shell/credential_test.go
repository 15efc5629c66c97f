package shell_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools/shell"
)

// TestAttackCredentialInVariable has credentials in variables whose names do not suggest them: no command gets them,
// and the log contains only the names.
func TestAttackCredentialInVariable(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("aB3dE5", 6)
	environ := []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "GOFLAGS=sk_" + "live_" + secret, "PIP_INDEX_URL=https://hooks.slack.com/services/T0000/B0000/" + secret, "CFLAGS=-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----",
		"GRADLE_OPTS=Server=h;Password=" + secret, "EDITOR=vi",
	}
	var log bytes.Buffer
	k := setup(t, shell.Options{Environ: func() []string { return environ }, Log: zerolog.New(&log)})
	if got := k.run("env").Text; strings.Contains(got, secret) || !strings.Contains(got, "EDITOR=vi") {
		t.Errorf("the command sees\n%s", got)
	}
	if said := log.String(); strings.Contains(said, secret) || !strings.Contains(said, `"names":["CFLAGS","GOFLAGS","GRADLE_OPTS","PIP_INDEX_URL"]`) {
		t.Errorf("the log says %s", said)
	}
}
