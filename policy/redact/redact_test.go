package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/redact"
)

// fake joins the pieces of a made-up credential, so that scanners of source code do not take it for a real one.
func fake(parts ...string) string { return strings.Join(parts, "") }

const (
	letters36 = "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2"
	hex32     = "0123456789abcdef0123456789abcdef"
)

func TestRules(t *testing.T) {
	t.Parallel()
	pem := "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabcd/+==\n-----END RSA PRIVATE KEY-----"
	tests := []struct{ rule, in, want string }{
		{"aws", "key " + fake("AKIA", "IOSFODNN7EXAMPLE") + ".", "key [redacted]."},
		{"gcp", fake("AIza", letters36), "[redacted]"},
		{"gcp", fake("ya29", ".a0AfH6SMBx-1234"), "[redacted]"},
		{"gcp", fake("GOCSPX", "-abcdefgh12"), "[redacted]"},
		{"github", "git clone " + fake("ghp_", letters36), "git clone [redacted]"},
		{"github", fake("github_pat_", letters36), "[redacted]"},
		{"gitlab", fake("glpat-", "abcdefghij0123456789"), "[redacted]"},
		{"slack", fake("xoxb-", "1234567890-abcdefghij"), "[redacted]"},
		{"slack", "https://hooks.slack.com/services/" + fake("T00000000/", "B00000000/XXXXXXXXXXXX"), "https://[redacted]"},
		{"discord", "https://discord.com/api/webhooks/123/" + letters36, "https://[redacted]"},
		{"telegram", "bot " + fake("123456789", ":AA", letters36[:33]) + " runs", "bot [redacted] runs"},
		{"openai", fake("sk-", "abcDEF1234567890"), "[redacted]"},
		{"openai", fake("sk-proj-", "abcdefgh"), "[redacted]"},
		{"anthropic", fake("sk-ant-", "api03-abcdefgh"), "[redacted]"},
		{"huggingface", fake("hf_", letters36), "[redacted]"},
		{"npm", fake("npm_", letters36), "[redacted]"},
		{"pypi", fake("pypi-", "AgEIcHlwaS5vcmc"+letters36), "[redacted]"},
		{"docker", fake("dckr_pat_", "abcdefghijkl"), "[redacted]"},
		{"stripe", fake("sk_live_", letters36), "[redacted]"},
		{"twilio", fake("SK", hex32), "[redacted]"},
		{"sendgrid", fake("SG.", letters36[:22], ".", letters36), "[redacted]"},
		{"jwt", fake("eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0", ".abcdefghij"), "[redacted]"},
		{"jwt", fake("eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0.", strings.Repeat("a", 9000)), "[redacted]"},
		{"azure", fake("abc8Q~", letters36[:34]), "[redacted]"},
		{"azure", "AccountName=x;AccountKey=" + fake(letters36, "=="), "AccountName=x;AccountKey=[redacted]"},
		{"azure", "?sv=1&sig=" + letters36, "?sv=1&sig=[redacted]"},
		{"private_key", "a\n" + pem + "\nb", "a\n[redacted]\n\n\n\nb"},
		{"private_key", strings.ReplaceAll(pem, "\n", `\n`), "[redacted]"},
		{"private_key", "-----BEGIN PRIVATE KEY-----\nMIIEabcd\ncut off!", "[redacted]\n\n!"},
		{"url_password", "postgres://app:hunter2@db:5432/x", "postgres://app:[redacted]@db:5432/x"},
		{"authorization", "Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted]"},
		{"authorization", `{"Authorization": "Basic dXNlcjpwYXNz"}`, `{"Authorization": "Basic [redacted]"}`},
		{"authorization", "x-api-key: 1234567", "x-api-key: [redacted]"},
		{"authorization", "use bearer abcdefghijklmnop1", "use bearer [redacted]"},
		{"authorization", "basic dXNlcjpwYXNzMTI=", "basic [redacted]"},
		{"cookie", "Set-Cookie: sid=abc1234567", "Set-Cookie: [redacted]"},
		{"password", "password=hunter2", "password=[redacted]"},
		{"password", `DB_PASSWORD: "hunter2"`, `DB_PASSWORD: "[redacted]"`},
		{"password", `{\"password\":\"hunter2\"}`, `{\"password\":\"[redacted]\"}`},
		{"password", "Server=x;Pwd=hunter2;", "Server=x;Pwd=[redacted];"},
		{"secret_value", "client_secret = 8fK2mQ9xLp4z", "client_secret = [redacted]"},
		{"secret_value", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "AWS_SECRET_ACCESS_KEY=[redacted]"},
		{"token_value", "auth_token: 8fK2mQ9xLp4z", "auth_token: [redacted]"},
		{"openai", fake("sk-", strings.Repeat("aB1", 400)), "[redacted]"},
	}
	r := redact.New(nil)
	for _, test := range tests {
		t.Run(test.rule+" "+test.in[:min(20, len(test.in))], func(t *testing.T) {
			t.Parallel()
			if got := r.String(test.in); got != test.want {
				t.Errorf("String(%q) = %q, want %q", test.in, got, test.want)
			}
			found := r.Scan(test.in)
			if len(found) != 1 || found[0].Rule != test.rule {
				t.Errorf("Scan(%q) = %+v, want one finding of %s", test.in, found, test.rule)
			}
		})
	}
}

func TestLeavesAlone(t *testing.T) {
	t.Parallel()
	r := redact.New([]string{"short", "redacted"})
	for _, text := range []string{
		"", "x", "task-list disk-usage risk-free sk-learning-rate", "npm_config_registry hf_transformers", "max_tokens: 4096", "tokens used: 12345678",
		"password: [redacted]", "https://example.com:8080/a@b", "12:34:56.789 started", "the token is missing", "secret=$SECRET_FROM_VAULT", "short",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "[redacted]", "PWD=/srv/app", "basic understanding", "token=aaaaaaaaaaa1",
		"1234:" + letters36, "12345678901234:" + letters36, "~Q~" + letters36[:34], "AKIAxyz", "git@github.com:zephbot/zephbot.git", "sig=",
	} {
		if got := r.String(text); got != text {
			t.Errorf("String(%q) = %q, want it unchanged", text, got)
		}
	}
}

func TestExactSecrets(t *testing.T) {
	t.Parallel()
	secret := `p@ss "w/ord+1`
	r := redact.New([]string{secret, "hunter2hunter2", "hunter2"})
	escaped, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, spelling := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(string(escaped), `"`), "hunter2hunter2"} {
		if got := r.String("a " + spelling + " b"); got != "a [redacted] b" {
			t.Errorf("String(%q) = %q", spelling, got)
		}
	}
	for _, before := range []string{"", "x", "xy", "user:"} {
		encoded := base64.StdEncoding.EncodeToString([]byte(before + secret + "after"))
		if got := r.String(encoded); !strings.Contains(got, redact.Mask) {
			t.Errorf("String(base64 of %q + secret) = %q, want a mask", before, got)
		}
	}
}

func TestExtraPatterns(t *testing.T) {
	t.Parallel()
	r, err := redact.NewWith(redact.Options{ExtraPatterns: []string{`emp-(\d+)`, `zeta`, `ta-\w+`, `x*`, `d\] end`, `z \[red`, `dact`}})
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"emp-1234 and emp-5":     "emp-[redacted] and emp-[redacted]",
		"zeta-one":               "[redacted]",
		"[redacted] end":         "[redacted]",
		"z [redacted]":           "[redacted]",
		"of a mask: [redacted]":  "of a mask: [redacted]",
		"a [redacted]b emp-9":    "a [redacted]b emp-[redacted]",
		"z [redacted] end":       "[redacted]",
		"password=hunter2 emp-1": "password=[redacted] emp-[redacted]",
	} {
		if got := r.String(in); got != want {
			t.Errorf("String(%q) = %q, want %q", in, got, want)
		}
	}
	_, err = redact.NewWith(redact.Options{ExtraPatterns: []string{"fine", "(bad"}})
	if err == nil || !strings.Contains(err.Error(), `extra pattern 2: "(bad"`) {
		t.Errorf("NewWith with a bad pattern = %v, want an error that names it", err)
	}
}

// TestNeverSettles has a pattern that uncovers one more character in each pass.
func TestNeverSettles(t *testing.T) {
	t.Parallel()
	r, err := redact.NewWith(redact.Options{ExtraPatterns: []string{`^(?:\[redacted\])*([a-z])`}})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.String("abcdefghijklmnop"); got != redact.Mask {
		t.Errorf("String = %q, want only the mask", got)
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	r := redact.New([]string{"hunter2"})
	deep := any("hunter2")
	for range 80 {
		deep = []any{deep}
	}
	in := map[string]any{
		"text": "say hunter2", "password": "x", "api_key": 5, "token": "", "auth": true, "secret": nil, "n": 3.5, "max_token": 9, "session_token": []any{1},
		"list": []any{"hunter2", nil, json.Number("7")}, "strings": []string{"hunter2"}, "cookie": map[string]any{"a": "b"},
		"env": map[string]string{"TOKEN": "abc", "HOME": "/hunter2", "PASSWORD": ""}, "hunter2 key": "v",
		"struct": struct{ Password, Other string }{"abc", "hunter2"}, "raw": json.RawMessage(`{"pin":1,"a":"hunter2"}`), "bad": func() {}, "raw-bad": json.RawMessage(`{`),
	}
	want := map[string]any{
		"text": "say [redacted]", "password": redact.Mask, "api_key": redact.Mask, "token": "", "auth": true, "secret": nil, "n": 3.5, "max_token": 9, "session_token": redact.Mask,
		"list": []any{redact.Mask, nil, json.Number("7")}, "strings": []string{redact.Mask}, "cookie": redact.Mask,
		"env": map[string]string{"TOKEN": redact.Mask, "HOME": "/[redacted]", "PASSWORD": ""}, "[redacted] key": "v",
		"struct": map[string]any{"Password": redact.Mask, "Other": redact.Mask}, "raw": map[string]any{"a": redact.Mask, "pin": redact.Mask}, "bad": redact.Mask, "raw-bad": redact.Mask,
	}
	if diff := cmp.Diff(want, r.Value(in)); diff != "" {
		t.Errorf("Value (-want +got):\n%s", diff)
	}
	if in["text"] != "say hunter2" {
		t.Error("Value changed its argument")
	}
	got, depth := r.Value(deep), 0
	for {
		list, ok := got.([]any)
		if !ok {
			break
		}
		got = list[0]
		depth++
	}
	if got != redact.Mask || depth != 65 {
		t.Errorf("Value of a deep tree ends with %v at depth %d, want the mask at 65", got, depth)
	}
}

// TestHostile uses long texts with many keywords close together.
func TestHostile(t *testing.T) {
	t.Parallel()
	r := redact.New([]string{"hunter2"})
	for _, piece := range []string{
		"-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN", "password", "password=", "token_", "secret:", "://a:", "eyJ", "eyJ.", "sk-", ".sk-", "ghp_", " ghp_", "123456:", "authorization: ", "cookie:", "q~", "[redacted]", "hunter",
		"bearer ", "SG.", "1:",
	} {
		text := strings.Repeat(piece, (1<<11)/len(piece))
		once := r.String(text)
		if twice := r.String(once); twice != once {
			t.Errorf("String is not idempotent for repeated %q", piece)
		}
	}
}

func FuzzString(f *testing.F) {
	for _, seed := range []string{"", "password=hunter2", fake("ghp_", letters36), "a://b:c@d", "[redacted]", fake("1234567", ":AA", letters36), "hunter2", "-----BEGIN PRIVATE KEY-----"} {
		f.Add(seed)
	}
	r := redact.New([]string{"hunter2", "s3cret value"})
	f.Fuzz(func(t *testing.T, text string) {
		once := r.String(text)
		if twice := r.String(once); twice != once {
			t.Errorf("String(%q) = %q, again %q", text, once, twice)
		}
		if strings.Contains(once, "hunter2") {
			t.Errorf("String(%q) = %q still has the secret", text, once)
		}
		end := 0
		for _, found := range r.Scan(text) {
			if found.Start < end || found.End <= found.Start || found.End > len(text) {
				t.Errorf("Scan(%q): bad finding %+v", text, found)
			}
			end = found.End
		}
		r.Value(map[string]any{text: text})
	})
}

func BenchmarkString(b *testing.B) {
	line := `2026-11-21T12:00:00Z INFO request id=42 path="/v1/items/7" took 12ms user=alice; go test ./... ok github.com/x/y 0.012s` + "\n"
	text := strings.Repeat(strings.Repeat(line, 20)+"password=hunter2hunter\n", 100)
	r := redact.New([]string{"s3cret value", "another secret"})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r.String(text)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		`emp-\d+`: "", strings.Repeat("x", 512): "", "": "",
		`(bad`: `"(bad": error parsing regexp: missing closing ): `, strings.Repeat("x", 513): "it has 513 bytes, at most 512 are allowed",
	} {
		if err := redact.Check(pattern); (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%.20q: %v", pattern, err)
		}
	}
}

func TestWarning(t *testing.T) {
	t.Parallel()
	for hidden, want := range map[int]string{
		0: "", 1: "[security] 1 credential in this output was hidden", 2: "[security] 2 credentials in this output were hidden",
	} {
		if got := redact.Warning(hidden); got != want {
			t.Errorf("%d: %q", hidden, got)
		}
	}
}

// TestEveryExpressionCompiles: expressions are compiled on first use, when it is too late to find a mistake.
func TestEveryExpressionCompiles(t *testing.T) {
	t.Parallel()
	if n := redact.Compile(); n < 100 {
		t.Errorf("%d expressions, which cannot be all", n)
	}
}

// TestDigitsInWords: digits that end a word, followed by what is no token, are no part of one.
func TestDigitsInWords(t *testing.T) {
	t.Parallel()
	const text = "id_123456789:AA.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	if got := redact.New(nil).String(text); got != text {
		t.Errorf("%q", got)
	}
}
