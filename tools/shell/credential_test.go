package shell_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// TestWithheldVariables: which variables commands do not get is for the log at debug, where none is called a credential:
// most of them are harmless. How many they are is for the start of the service.
func TestWithheldVariables(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	environ := []string{"PATH=/usr/bin:/bin", "GNOME_TERMINAL_SCREEN=/org/gnome", "XDG_SEAT=seat0", "TOKENIZERS_PARALLELISM=false"}
	k := setup(t, shell.Options{Environ: func() []string { return environ }, Log: zerolog.New(&log).Level(zerolog.DebugLevel)})
	if diff := cmp.Diff([]string{"GNOME_TERMINAL_SCREEN", "TOKENIZERS_PARALLELISM", "XDG_SEAT"}, k.r.WithheldVariables()); diff != "" {
		t.Errorf("withheld (-want +got):\n%s", diff)
	}
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, `"level":"debug"`) || strings.Contains(line, "credential") {
			t.Errorf("the log says %s", line)
		}
	}
	if !strings.Contains(log.String(), "XDG_SEAT") {
		t.Errorf("the names are not in the log: %s", &log)
	}
}
