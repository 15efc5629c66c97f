package redact_test

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/redact"
)

// TestConfigurations has credentials in the formats in which programs keep them, hashes of passwords, and commands that
// are given one.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/configurations.txt")
	if err != nil {
		t.Fatal(err)
	}
	const hash, hex = "aB3dE5gHaB3dE5gHaB3dE5gH", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"
	values := strings.NewReplacer(`\n`, "\n", `\\`, `\`, "{pass}", chosenOne, "{key}", generated, "{hash}", hash, "{hash22}", hash[:22],
		"{hex}", hex, "{hex32}", hex[:32], "{hex24}", hex[:24], "{pair}", base64.StdEncoding.EncodeToString([]byte("user:"+chosenOne)))
	r, cases := redact.New(nil), 0
	for line := range strings.Lines(string(data)) {
		text, gone, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			continue
		}
		cases++
		text, gone = values.Replace(text), values.Replace(gone)
		if got := r.String(text); strings.Contains(got, gone) || r.String(got) != got || strings.Count(got, "\n") != strings.Count(text, "\n") {
			t.Errorf("%q became %q", text, got)
		}
	}
	if cases < 130 {
		t.Errorf("only %d cases", cases)
	}
	for _, text := range []string{
		"pass: 12 of 14 tests", "pass = compile.step2()", "PASS: step-two", "--- PASS: TestCase00 (0.00s)", "PASS: tests/run17.sh", "psk: optional", "password=<<EOF", "token = <<X\nX\n", "token = << 3\nabc12345\n", "x = token << 3", "secret = <<A1\nhunter2\nA1\n", "a;password=$X;b",
		"machine and password hashes", "default login and password are", "requirepass is off", "<password type=\"hidden\">Password</password>", "<string name=\"password\">Passwort</string>", "<key>Token</key><string>none</string>",
		"variable \"db_password\" {\n  type = string\n}", "name: DB_PASSWORD\nvalueFrom: x1", "name: DB_PASSWORD\n  value: $(X1)", "echo step2 | tee x", "mysql -P3306 shop1", "docker run -p 8080:80 nginx1", "docker login -p $PASS9", "zip -r a1.zip .",
		"enable password encryption 12345678", "username is required 12345678", "identified by name1", "create user name1 with password", "bundle_path: vendor1/x", "-pass env:X1", "aad3b435 x", "$S$ and $P$ and $H$", "scrypt:32768", "a:*:b:c:d",
	} {
		if got := r.String(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
