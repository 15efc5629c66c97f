package deploytest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// unitFile is a unit of systemd: section, directive, values in their order.
type unitFile map[string]map[string][]string

// directives are those that the unit may use; systemd ignores what it does not know, with a line in a log that nobody
// reads.
const directives = "Description Documentation After Wants Type ExecStartPre ExecStart Environment EnvironmentFile Restart RestartSec RestartPreventExitStatus KillMode " +
	"KillSignal TimeoutStopSec DynamicUser StateDirectory StateDirectoryMode WorkingDirectory UMask NoNewPrivileges CapabilityBoundingSet ProtectSystem ProtectHome " +
	"PrivateTmp PrivateDevices ProtectClock ProtectHostname ProtectKernelModules ProtectControlGroups RestrictRealtime RestrictSUIDSGID RestrictAddressFamilies " +
	"LockPersonality SystemCallArchitectures SystemCallFilter SystemCallErrorNumber WantedBy"

func readUnit(t *testing.T) unitFile {
	t.Helper()
	out, section := unitFile{}, ""
	for line := range strings.Lines(read(t, "zephbot.service")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if name, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSuffix(name, "]")
			out[section] = map[string][]string{}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || section == "" || !slices.Contains(strings.Fields(directives), key) {
			t.Fatalf("not a directive: %s", line)
		}
		out[section][key] = append(out[section][key], value)
	}
	return out
}

func TestUnit(t *testing.T) {
	t.Parallel()
	u := readUnit(t)
	if len(u) != 3 || len(u["Unit"]) == 0 || !slices.Equal(u["Install"]["WantedBy"], []string{"multi-user.target"}) {
		t.Errorf("sections %v", u)
	}
	s := u["Service"]
	vars := map[string]string{}
	for field := range strings.FieldsSeq(s["Environment"][0]) {
		name, value, _ := strings.Cut(field, "=")
		vars[name] = value
	}
	if home := "/var/lib/" + s["StateDirectory"][0]; vars["ZEPH_DATA_DIR"] != home || s["WorkingDirectory"][0] != home || vars["HOME"] != home {
		t.Errorf("state in %s, program in %v, %s", home, vars, s["WorkingDirectory"])
	}
	load(t, "", vars)
	for key, want := range map[string]string{
		"ExecStart": "/usr/local/bin/zephbot serve --config /etc/zephbot/zephbot.toml", "ExecStartPre": "/usr/local/bin/zephbot config check --config /etc/zephbot/zephbot.toml",
		"KillMode": "mixed", "KillSignal": "SIGTERM", "RestartPreventExitStatus": "2", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "CapabilityBoundingSet": "", "DynamicUser": "yes",
	} {
		if !slices.Equal(s[key], []string{want}) {
			t.Errorf("%s=%v, want %s", key, s[key], want)
		}
	}
	for _, call := range []string{"@mount", "seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"} {
		if !slices.Contains(strings.Fields(s["SystemCallFilter"][0]), call) {
			t.Errorf("the sandbox of commands needs %s", call)
		}
	}
	if s["RestrictNamespaces"] != nil {
		t.Error("the sandbox of commands needs namespaces")
	}
}

// TestSystemdAgrees lets systemd itself read the unit, where it is installed.
func TestSystemdAgrees(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not on PATH")
	}
	file := filepath.Join(t.TempDir(), "zephbot.service")
	text := strings.ReplaceAll(read(t, "zephbot.service"), "/usr/local/bin/zephbot", "/bin/true") // it must exist
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput()
	if err != nil || strings.Contains(string(out), "zephbot.service") {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}

// TestTimeToStop: whoever stops the program waits for longer than its shutdown takes.
func TestTimeToStop(t *testing.T) {
	t.Parallel()
	source := read(t, "cmd/internal/app/running.go")
	var drain time.Duration
	for _, name := range []string{"graceTurns", "graceOutbox", "graceAudit"} {
		m := regexp.MustCompile(name + `\s*= (\d+) \* time\.Second`).FindStringSubmatch(source)
		if m == nil {
			t.Fatalf("cmd/internal/app/running.go has no %s", name)
		}
		seconds, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		drain += time.Duration(seconds) * time.Second
	}
	drain += 2 * time.Second // the server of metrics and health
	given := map[string]string{
		"docker-compose.yml": readCompose(t).Services["zephbot"].GracePeriod, "zephbot.service": readUnit(t)["Service"]["TimeoutStopSec"][0] + "s",
		"fly.toml": regexp.MustCompile(`kill_timeout = (\d+)`).FindStringSubmatch(read(t, "fly.toml"))[1] + "s",
	}
	var chart struct {
		Grace string `yaml:"terminationGracePeriodSeconds"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "charts/zephbot/values.yaml")), &chart); err != nil {
		t.Fatal(err)
	}
	given["the chart"] = chart.Grace + "s"
	for what, text := range given {
		wait, err := time.ParseDuration(text)
		if err != nil || wait < drain+5*time.Second {
			t.Errorf("%s gives %s (%v), the program needs %s", what, text, err, drain)
		}
	}
}
