package redact_test

import (
	"encoding/base64"
	"math/rand/v2"
	"net/url"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/redact"
)

// made writes a text that an expression matches.
func made(random *rand.Rand, re *syntax.Regexp) string {
	var b strings.Builder
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		var fit []rune
		for _, c := range "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_./+=" {
			for i := 0; i < len(re.Rune); i += 2 {
				if re.Rune[i] <= c && c <= re.Rune[i+1] {
					fit = append(fit, c)
				}
			}
		}
		if len(fit) == 0 {
			fit = re.Rune[:1]
		}
		b.WriteRune(fit[random.IntN(len(fit))])
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			b.WriteString(made(random, sub))
		}
	case syntax.OpAlternate:
		b.WriteString(made(random, re.Sub[random.IntN(len(re.Sub))]))
	case syntax.OpQuest, syntax.OpStar:
		if random.IntN(2) == 0 {
			b.WriteString(made(random, re.Sub[0]))
		}
	case syntax.OpPlus:
		b.WriteString(made(random, re.Sub[0]))
	case syntax.OpRepeat:
		for range re.Min {
			b.WriteString(made(random, re.Sub[0]))
		}
	}
	return b.String()
}

// TestVendors generates tokens for every row: alone, in a sentence, in quotes, in a URL, coloured and split, and an
// incomplete one. None is in the source, so that nobody takes them for real ones.
func TestVendors(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	r := redact.New(nil)
	for name, patterns := range redact.Patterns() {
		for _, pattern := range patterns {
			re, err := syntax.Parse(pattern, syntax.Perl)
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				token := made(random, re)
				if !strings.ContainsAny(token, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
					continue
				}
				for _, text := range []string{token, "use " + token + " now", `"` + token + `"`, "\x1b[1m" + token + "\x1b[0m", token[:len(token)/2] + "\x1b[31m" + token[len(token)/2:], token[:len(token)/2] + "\\\n" + token[len(token)/2:]} {
					if got := r.String(text); strings.Contains(got, token[len(token)/2:]) || !strings.Contains(got, redact.Mask) {
						t.Errorf("%s: %q became %q", name, text, got)
					}
				}
				if got := r.String(token[:5]); got != token[:5] {
					t.Errorf("%s: %q became %q", name, token[:5], got)
				}
			}
		}
	}
}

// random text that a machine may have made.
const (
	generated = "k7Qz93LmXp2vRt8Wc5Yd"
	chosenOne = "hunter2"
)

// TestAttackHiddenValues has credentials that were once missed: values in formats, split, with blanks, over several
// lines.
func TestAttackHiddenValues(t *testing.T) {
	t.Parallel()
	r := redact.New(nil)
	b64 := base64.StdEncoding.EncodeToString([]byte("user:" + chosenOne))
	hash := strings.Repeat("aB3dE5gH", 3)
	for text, gone := range map[string]string{
		`password = "correct horse battery staple"`: "horse",
		"password: opensesame\nx: 1":                "opensesame",
		`"password":"opensesame"`:                   "opensesame",
		"password=493817":                           "493817",
		"password = 'a(b)!c9XqLm2'":                 "9XqLm2",
		"session_token = \"" + "abcdefghij" + "ZYXWVUTSRQPONMLK01kjhgfedcbaQWE77rtyuiop" + "\"": "kjhg",
		"secret=k7Qz93Lm":                                                              "k7Qz93Lm",
		"token: 9f86d081884c7d65":                                                      "884c7d65",
		"password: \"пароль-мой\"":                                                     "мой",
		`password: 'tr0ub4dor and 3'`:                                                  "tr0ub",
		"password: |\n  line-one-9\n  line-two-8\nnext: 1":                             "line-two-8",
		"pass\x1b[0mword=" + chosenOne:                                                 chosenOne,
		"password=hun\\\nter2":                                                         "ter2",
		"password=hun\u200bter2":                                                       "ter2",
		"q=password%3Dhunter2":                                                         chosenOne,
		"postgres://app:p@ss/w0rd@db:5432/x":                                           "w0rd",
		"postgres://app:pa/ss:w0rd@db/x":                                               "w0rd",
		"<password>" + chosenOne + "</password>":                                       chosenOne,
		"<add key=\"Password\" value=\"" + chosenOne + "\"/>":                          chosenOne,
		"ENV DB_PASSWORD " + chosenOne:                                                 chosenOne,
		"kind: Secret\ndata:\n  a: " + b64 + "\n  b.c: aGVsbG8=\ntype: x":              "aGVsbG8",
		"apiVersion: v1\n---\nstringData:\n  note: plainvalue\nkind: Secret\n---":      "plainvalue",
		`{"auths":{"r.example":{"auth":"` + b64 + `"}}}`:                               b64,
		"machine h.example login joe password " + chosenOne:                            chosenOne,
		"db.example:5432:shop:app:" + chosenOne:                                        chosenOne,
		"//registry.example/:_authToken=" + generated:                                  generated,
		"    client-key-data: " + base64.StdEncoding.EncodeToString([]byte(generated)): "az",
		"curl -s -u joe:" + chosenOne + " https://h.example":                           chosenOne,
		"mysql --password " + chosenOne + "x9 shop":                                    chosenOne,
		"root:$6$saltsalt$" + hash + hash + ":19000:0:::":                              hash,
		"joe:$2y$10$" + hash + hash:                                                    hash,
		"joe:$apr1$saltsalt$" + hash:                                                   hash,
		"joe:{SHA}" + hash + "abc=":                                                    hash,
		"x $argon2id$v=19$m=65536,t=3,p=4$" + hash + "$" + hash:                        hash,
		"SCRAM-SHA-256$4096:" + hash + "$" + hash + ":" + hash:                         hash,
		"heroku_api_key=" + generated:                                                  generated,
		"DATADOG_APP_KEY: " + generated:                                                generated,
		`"apiKey": "` + generated + `"`:                                                generated,
		"secret.token=" + generated:                                                    generated,
		"https://" + generated + "Aa1@h.example/x":                                     generated,
		"[default]\naws_secret_access_key = " + generated + generated:                  generated,
	} {
		got := r.String(text)
		if strings.Contains(got, gone) {
			t.Errorf("%q became %q", text, got)
		}
		if strings.Count(got, "\n") != strings.Count(text, "\n") {
			t.Errorf("%q became %q: another number of lines", text, got)
		}
		if again := r.String(got); again != got {
			t.Errorf("%q became %q and then %q", text, got, again)
		}
	}
}

// TestAttackAddresses has credentials within addresses: of the Bot API, in parameters, of people, encoded once and twice.
func TestAttackAddresses(t *testing.T) {
	t.Parallel()
	r := redact.New(nil)
	bot := fake("123456789:AA", letters36[:33])
	for text, want := range map[string]string{
		"https://api.telegram.org/bot" + bot + "/getMe":                      "https://api.telegram.org/bot[redacted]/getMe",
		"https://api.telegram.org/file/bot" + bot + "/voice/f.oga":           "https://api.telegram.org/file/bot[redacted]/voice/f.oga",
		"http://localhost:8081/BOT" + bot:                                    "http://localhost:8081/BOT[redacted]",
		"https%3A%2F%2Fapi.telegram.org%2F" + url.QueryEscape("bot"+bot+"/"): "https%3A%2F%2Fapi.telegram.org%2Fbot[redacted]%2F",
		"next=" + url.QueryEscape(url.QueryEscape("/bot"+bot+"/getMe")):      "next=%252Fbot[redacted]%252FgetMe",
		"backup_" + bot + ".tar":                                             "backup_[redacted].tar",
		`{"u":"h?a=1\u0026sig=` + letters36 + `"}`:                           `{"u":"h?a=1\u0026sig=[redacted]"}`,
		"Bearer%20" + fake("ghp_", letters36):                                "Bearer%20[redacted]",
		"h?key=" + generated + "&x=1":                                        "h?key=[redacted]&x=1",
		"h?a=1&auth=" + generated:                                            "h?a=1&auth=[redacted]",
		"h?jwt=" + generated + "#x":                                          "h?jwt=[redacted]#x",
		"h?pass=hunter2x9&x=1":                                               "h?pass=[redacted]&x=1",
		"s3?X-Amz-Signature=" + hex32 + hex32 + "&x-id=GetObject":            "s3?X-Amz-Signature=[redacted]&x-id=GetObject",
		"gs?X-Goog-Signature=" + hex32 + hex32:                               "gs?X-Goog-Signature=[redacted]",
		"h/cb#access_token=" + generated + "&state=1":                        "h/cb#access_token=[redacted]&state=1",
		"https://" + generated + ":x-oauth-basic@github.com/x":               "https://[redacted]:x-oauth-basic@github.com/x",
		"https://joe%3A" + generated + "%40h.example/":                       "https://joe%3A[redacted]%40h.example/",
		"https://joe:pa%40ss1@h.example/":                                    "https://joe:[redacted]@h.example/",
	} {
		if got := r.String(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{
		"robots12345:" + hex32, "h?key=2024-01-02T03:04:05", "h?key=main-menu-settings", "h?auth=required&session=new", "see ?pass=<password>", "bot123456:too-short", "sha-12345:" + hex32 + hex32, "h?sort=key&key=name",
		"100%20percent", `a\u0026b`, "%E2%82%AC%20", "h?signature=none",
	} {
		if got := r.String(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestAttackKeys has private keys whose body begins with each sign of base64, and keys behind signs of diffs, comments
// and source code.
func TestAttackKeys(t *testing.T) {
	t.Parallel()
	r := redact.New(nil)
	const begin, end = "-----BEGIN " + "PRIVATE KEY-----", "-----END " + "PRIVATE KEY-----"
	key := letters36[:20]
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		for _, first := range []string{string(c), string([]rune{c, c}), "/" + string(c), "+" + string(c)} {
			for _, format := range []string{
				"B\nK\nE", "B\r\nK\r\nE", `B\nK\nE`, "B K E", "+B\n+K\n+E", "-B\n-K\n-E", " B\n K\n E", "# B\n# K\n# E", "// B\n// K\n// E", " * B\n * K\n * E", "| B\n| K\n| E", "> B\n> K\n> E",
				"\"B\\n\" +\n\t\"K\\n\" +\n\t\"E\"", "'B',\n'K',\n'E'", "    1\tB\n    2\tK\n    3\tE", "k.pem:1: B\nk.pem:2: K\nk.pem:3: E", "+# B\n+# K\n+# E", "B\n\n\nK\n", "+B\n+K\n",
				"B%0AK%0AE", "[]string{\"B\", \"K\", \"E\"}",
			} {
				text := strings.NewReplacer("B", begin, "K", first+key, "E", end).Replace(format)
				if got := r.String(text); strings.Contains(got, key) || strings.Count(got, "\n") != strings.Count(text, "\n") {
					t.Errorf("%q became %q", text, got)
				}
			}
		}
	}
	for _, text := range []string{
		`const pem = "` + begin + `"` + "\n// see https://example.com/docs/PEM1/Key.html for the format", begin + "\n" + end, "+" + begin + "\n+...\n+" + end, "// " + begin + "\n// (the key)\n// " + end,
		`strings.HasPrefix(s, "` + begin + `") && strings.HasSuffix(s, "` + end + `")`, begin + "\n/etc/ssl/private\n",
	} {
		if got := r.String(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestNoValues has texts from source, configuration and messages that were once masked by mistake, so that a model
// wrote the mask back.
func TestNoValues(t *testing.T) {
	t.Parallel()
	r := redact.New(nil)
	for _, text := range []string{
		"token := getToken(ctx)", "token = cfg.Token", "Token: s.opts.Token,", "password = os.Getenv(\"X_PASS\")", "password = args[1]", "token = tokens[0]", "secret = null", "password: nil", "token = None", "password: undefined;",
		"password: string", "token: string;", "password?: string | null", "Password string `json:\"password\"`", "api_key = <your api key>", "api_key: your-api-key-here", "password=changeme", "password: example", "password = \"****\"",
		"password=${DB_PASSWORD}", "password=$(cat /run/secrets/db)", "password={{ .Values.password }}", "password=%s", "token=xxxxxxxxxxxx", "token=aaaaaaaaaaa1", "password: must be at least 8 characters", "password: authentication failed",
		"token: unexpected end of input", "error: invalid token: expected \"=\"", "Password: Enter your password", "\"password\": \"Please enter your password\"", "password_file=/run/secrets/password", "token_url: https://auth.example/token",
		"tokenizer: bert-base-uncased-v2", "max_tokens=4096", "password_length: 12345", "secretName: my-secret-2", "secret_id = 1234567890", "if (password === confirmPassword) {", "self.password = password", "password: password,", "password=password&user=joe",
		"passwd:         files systemd", "//\tgroupname:password:GID:user_list", "Authorization: Basic <token>", "Authorization: Bearer ${TOKEN}", "HTTP Basic Authentication", "\"Authorization\": req.Header[\"Proxy-Authorization\"]", "cookie: &Cookie{Name: 1}",
		"Cookie: cookie(family)", "FS_KEY = 0xc0506617", "SIOCGLIFTOKEN = -0x3f879678", "https://user:password@host/", "https://user:xxxxx@host/", "http://h:8080/a@b", "token(\"abc\")", "#define TOKEN 12345678", "token = token[1:]", "apiKey: process.env.API_KEY",
		"secret=vault:kv/data/app", "private_key = file(\"key.pem\")", "const tokenTTLHeader = \"X-Aws-Ec2-Metadata-Token-Ttl-Seconds\"", "key: 2024-01-02T03:04:05Z", "docker run -u 1000:1000", "curl -u user:password h", "$1$2$3", "s/a/$1$/",
		"password = \"\"", "password:", "token", "password=\n", "password: \"", "password: |", "password: |\nx: 1", "<password></password>", "<password>", "token>8 && x", "login with password authentication", "kind: Secret\ntype: Opaque", "kind: SecretStore\ndata:\n  a: bcdefgh1",
		"kind: Secret\ndata:\n  a: " + redact.Mask + "\n", "kind: Secret\ndata:\nx: abcdef", "100% of 5%", "%zz%4", "\x1b", "\x1b[", "\x1b]0;title\x07x", "\x1b]0;t\x1b\\x", "\x1b(B", "a\\\r\nb", "\x1bP", "é\u00ad", "pattern: [a-z]token", "OTHER_TOKEN = TOKEN_PREFIX",
		"heroku_region: " + generated, "twilio: " + generated, "password=12345", "password=Passwort1234567890abcdef(x)", "password='a b c'", "password: new Foo", "password->value", "db::password = db::secret", "token: Option<String>", "password=1234567890" + "(x)",
		"api_key=abababab12", "password = \"!!!!####????\"", "password=x1y", "password=\"oneTwoThreeFour\"", "AKIA" + "ABCDEFGHIJKLxy", "a\\b \x1b[0m", "PASSWD_NOTVALID = -2146368492", "LOGON_PASSWORD = 2147483648", "type PASSWORD = T_PASSWORD_DATA\n", "sk-ssh-ed25519@openssh.com", "key=\"-----BEGIN PRIVATE KEY-----\\nXXXX\\nXXXX\\n-----END PRIVATE KEY-----\"",
		"match \"-----BEGIN PGP PRIVATE KEY BLOCK-----\" offset", "-us21", "0123456789abcdef0123456789abcde-us6", "zz0123456789abcdef0123456789abcdef-us6", "x_mmk", "token = \\", "token: \\\"", "password: \"a\\\"\nb", "\"token\":\"" + strings.Repeat("ab", 9) + "\"", "password = \"x\" + y", "Token: \"123456:xxx\"",
	} {
		if got := r.String(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		"password=hun\\\nter2", "a\x1b[0mb", "kind: Secret\ndata:\n  a: abcdefgh\n", "password: |\n  x1y2z3\n  b\nc", "%5Bredacted%5D", "ghp_\u200babcdefgh1234", "-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----", "token=[redacted]%41",
		"<password>hunter2</password>", "machine a login b password c1d2", "a://b:c/d@e", "password=\"a b c d\" password=\\\"x1y2\\\"",
	} {
		f.Add(seed)
	}
	r := redact.New([]string{"hunter2hunter2"})
	f.Fuzz(func(t *testing.T, text string) {
		once := r.String(text)
		if strings.Count(once, "\n") != strings.Count(text, "\n") {
			t.Errorf("%q became %q: another number of lines", text, once)
		}
		if len(once) > 11*len(text)+len(redact.Mask) {
			t.Errorf("%q became %q", text, once)
		}
		if twice := r.String(once); twice != once {
			t.Errorf("%q became %q and then %q", text, once, twice)
		}
	})
}
