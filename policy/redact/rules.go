package redact

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"sync"
)

// rule describes one form of credential.
type rule struct {
	name     string
	keywords string // in lower case, separated by blanks; the expression is tried where one of them occurs
	re       *pattern
	edge     bool    // the keyword must not follow a letter, digit, _ or -
	digits   bool    // the five to twelve digits before the keyword belong to the credential and are required: a bot's token
	back     int     // bytes before the keyword that belong to the credential
	mixed    bool    // it must contain a digit or an upper-case letter
	entropy  float64 // minimum bits per byte
	digit    bool    // it must contain a digit
	host     bool    // it is not a credential before an @
	exact    bool    // it has a fixed length and must not continue
	written  bool    // people write such values, and placeholders for them
	encoded  bool    // it is the base64 of name, colon and password
	kind     kind    // it is a value that is assigned to a name with the keyword; the expression is not used
	body     string  // with back: the allowed bytes before the keyword; empty = letters, digits and underscores
	pem      bool    // the expression matches the first line; the credential continues to the last one
}

const (
	// window is how many bytes an expression is applied to. A token that fills it is masked up to its end.
	window = 512
	// maxKey is how many bytes of a private key are searched for its last line.
	maxKey = 64 << 10
)

// token returns the rule for tokens with a fixed prefix.
func token(name, keywords, pattern string) rule {
	return rule{name: name, keywords: keywords, re: lazily(`\A(` + pattern + `)`), edge: true}
}

// rules is the table, shared by all Redactors. The prefixes come from the vendors' documentation. Lengths are lower
// limits, because vendors change them.
var rules = sync.OnceValue(func() []rule { return slices.Concat(tokens(), tokenRules(), values()) })

// tokens returns the rules for credentials that are recognised by their prefix.
func tokens() []rule {
	word := `[A-Za-z0-9_-]`
	list := []rule{
		token("aws", "akia asia abia acca", `(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}`),
		token("gcp", "aiza", `AIza`+word+`{8,}`),
		token("gcp", "ya29.", `ya29\.[A-Za-z0-9_.-]{8,}`),
		token("gcp", "gocspx-", `GOCSPX-`+word+`{8,}`),
		token("github", "ghp_ gho_ ghu_ ghs_ ghr_", `gh[pousr]_[A-Za-z0-9_]{8,}`),
		token("github", "github_pat_", `github_pat_[A-Za-z0-9_]{8,}`),
		token("gitlab", "glpat- gldt- glrt- glcbt- glptt- gloas- glft- glimt- glagent- glsoat-",
			`gl(?:pat|dt|rt|cbt|ptt|oas|ft|imt|agent|soat)-[A-Za-z0-9_.-]{8,}`),
		token("slack", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp-",
			`(?:xox[a-eoprs]|xapp)[-.][A-Za-z0-9.%-]{8,}`),
		token("slack", "hooks.slack.com/", `hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_+-]{20,}`),
		token("discord", "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
			`discord(?:app)?\.com/api/webhooks/[0-9]+/`+word+`{20,}`),
		token("anthropic", "sk-ant-", `sk-ant-`+word+`{8,}`),
		token("openai", "sk-proj- sk-svcacct- sk-admin- sk-or-", `sk-(?:proj|svcacct|admin|or)-`+word+`{8,}`),
		token("stripe", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_",
			`(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9+/=]{8,}`),
		token("pypi", "pypi-", `pypi-`+word+`{16,}`),
		token("docker", "dckr_pat_ dckr_oat_", `dckr_[po]at_`+word+`{8,}`),
		token("sendgrid", "sg.", `SG\.`+word+`{16,}\.`+word+`{16,}`),
		token("twilio", "sk", `SK[0-9a-f]{32}`),
		token("digitalocean", "dop_v1_ doo_v1_ dor_v1_", `do[opr]_v1_[a-f0-9]{16,}`),
		token("shopify", "shpat_ shpca_ shppa_ shpss_", `shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{16,}`),
		token("vault", "hvs. hvb.", `hv[sb]\.`+word+`{16,}`),
		token("age", "age-secret-key-1", `(?i:AGE-SECRET-KEY-1)[A-Za-z0-9]{16,}`),
		token("newrelic", "nrak-", `NRAK-[A-Z0-9]{16,}`),
		token("postman", "pmak-", `PMAK-[a-f0-9-]{24,}`),
		token("linear", "lin_api_ lin_oauth_", `lin_(?:api|oauth)_[A-Za-z0-9]{16,}`),
		token("jwt", "eyj", `eyJ`+word+`{8,}(?:\.`+word+`*){1,4}`),
	}
	for _, t := range []rule{
		token("openai", "sk-", `sk-`+word+`{8,}`),
		token("huggingface", "hf_", `hf_[A-Za-z0-9]{8,}`),
		token("npm", "npm_", `npm_[A-Za-z0-9]{8,}`),
		token("groq", "gsk_", `gsk_[A-Za-z0-9]{16,}`),
		token("xai", "xai-", `xai-`+word+`{16,}`),
		token("perplexity", "pplx-", `pplx-[A-Za-z0-9]{16,}`),
		token("replicate", "r8_", `r8_[A-Za-z0-9]{16,}`),
		token("databricks", "dapi", `dapi[a-f0-9]{32}`),
		token("mailgun", "key-", `key-[a-f0-9]{32}`),
		token("notion", "ntn_", `ntn_[A-Za-z0-9]{16,}`),
	} {
		t.mixed, t.host = true, t.name == "openai"
		list = append(list, t)
	}
	list[0].exact = true // the key of AWS: its prefix can also occur in base64
	return append(list,
		rule{name: "telegram", keywords: ":", re: lazily(`\A:(` + word + `{35,})`), digits: true},
		rule{name: "azure", keywords: "q~", re: lazily(`\A(Q~[A-Za-z0-9_~.-]{31,34})`), back: 4, mixed: true},
	)
}

// values returns the rules for credentials that are recognised by the text before them. The first group is the
// credential.
func values() []rule {
	const quote = `["'` + "`" + `]`
	list := []rule{
		{
			name: "private_key", keywords: "-----begin",
			re: lazily(`\A(-----BEGIN[ +][A-Z0-9 +]{0,40}PRIVATE[ +]KEY(?:[ +]BLOCK)?-----)`), pem: true,
		},
		{name: "url_password", keywords: "://", re: lazily(`\A://([A-Za-z0-9_-]{20,128}):x-oauth-basic@`), mixed: true},
		{name: "url_password", keywords: "://", re: lazily(`\A://[^\s/@:"'<>\[\]]{0,128}:([^\s/"'<>]{1,256})@`), written: true},
		{name: "url_password", keywords: "://", re: lazily(`\A://[^\s/@:"'<>\[\]]{1,128}:([^\s/"'<>]*[^\s/"'<>\d][^\s/"'<>]*/[^\s"'<>]*)@[A-Za-z0-9.-]+(?:[:/?\s"']|\z)`)},
		{name: "url_password", keywords: "://", re: lazily(`\A://([A-Za-z0-9_-]{20,128})@`), mixed: true, entropy: 3},
		{name: "netrc", keywords: "machine", edge: true, re: lazily(`\A(?i:machine)\s+\S{1,128}\s+login\s+\S{1,128}\s+(?:account\s+\S{1,128}\s+)?password\s+(\S{2,256})`), written: true},
		{name: "pgpass", keywords: ":5432: :5433: :6432:", re: lazily(`\A:(?:5432|5433|6432):[^:\s]{1,64}:[^:\s"']{1,64}:((?:\\.|[^\s\\:]){3,256})`)},
		{name: "curl_user", keywords: "curl", edge: true, re: lazily(`\A(?i:curl)\b[^\n|;]{0,300}?\s(?:-u|--user)[ =]?["']?[^\s:"'$<{]{1,64}:([^\s"'$<{]{3,256})`), written: true},
		{name: "docker_auth", keywords: `"auth"`, re: lazily(`\A"auth"\s*:\s*"([A-Za-z0-9+/]{8,}={0,2})"`), mixed: true},
		{name: "npmrc", keywords: "_auth", re: lazily(`\A_auth(?i:token)?\s*=\s*["']?([^\s"'$]{8,})`), mixed: true},
		{name: "kubeconfig", keywords: "client-key-data", re: lazily(`\Aclient-key-data["']?\s*:\s*["']?([A-Za-z0-9+/]{16,}={0,2})`)},
		{name: "environment", keywords: "env arg", edge: true, re: lazily(`\A(?:ENV|ARG)[ \t]+[A-Z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|ACCESS_KEY)[A-Z0-9_]*[ \t]+["']?([^\s"'$=]{4,256})`), mixed: true},
		{name: "flag", keywords: "--password --passwd --token --secret --api-key --auth-token --access-token", re: lazily(`\A--[a-z-]+[ \t]+["']?([^\s"'$<>\[\](){}|,;=-][^\s"'$<>\[\](){}|,;=]{5,256})`), mixed: true, entropy: 2.2, digit: true},
		{
			name: "authorization", keywords: "authorization x-api-key x-auth-token x-amz-security-token private-token",
			re:      lazily(`(?i)\A[a-z-]+\\?` + quote + `?\s{0,4}[:=]\s{0,4}\\?` + quote + `?(?:(?:bearer|basic|token|digest|negotiate|apikey|bot)\s+)?([^\s"'` + "`" + `\\,;\[]{6,})`),
			written: true, digit: true,
		},
		{
			name: "authorization", keywords: "bearer", edge: true,
			re: lazily(`(?i)\Abearer[ \t]+([A-Za-z0-9._~+/=-]{16,})`), mixed: true,
		},
		{
			name: "authorization", keywords: "basic", edge: true,
			re: lazily(`(?i)\Abasic[ \t]+([A-Za-z0-9+/]{12,}={0,2})`), encoded: true,
		},
		{
			name: "cookie", keywords: "cookie:",
			re: lazily(`(?i)\Acookie:[ \t]*([^\s"'\[=;]{1,64}=[^;\s"'\[%&{]{6,}[^\r\n"'\[]*)`), digit: true,
		},
		{
			name: "azure", keywords: "accountkey= sharedaccesskey= sharedaccesssignature=",
			re: lazily(`(?i)\A[a-z]+=([A-Za-z0-9+/=%]{16,})`),
		},
		{
			name:     "signed_url", // who has the address may do what was signed
			keywords: "x-amz-signature= x-goog-signature=", re: lazily(`(?i)\A[a-z-]+=([0-9a-f]{32,})`),
		},
		{
			name:     "url_parameter",
			keywords: "?key= &key= ?auth= &auth= ?jwt= &jwt= ?sid= &sid= ?sessionid= &sessionid= ?session= &session= ?signature= &signature=",
			re:       lazily(`\A[?&][A-Za-z]+=([A-Za-z0-9_.~+/=%-]{16,256})`), digit: true, mixed: true, entropy: 3.2,
		},
		{name: "url_parameter", keywords: "?pass= &pass=", re: lazily(`(?i)\A[?&]pass=([^\s&"'<>#]{6,256})`), written: true, digit: true},
		{name: "azure", keywords: "sig=", edge: true, re: lazily(`(?i)\Asig=([A-Za-z0-9+/=%]{32,})`)},
		{name: "password", keywords: "password passwd passphrase passwort pgpassword", kind: password},
		{name: "password", keywords: "pwd", re: lazily(`(?i)\Apwd=([^\s"'` + "`" + `,;&<>(){}\[\]\\$|/.]{4,})`)},
	}
	return append(list,
		rule{
			name:     "secret_value",
			keywords: "secret api_key apikey api-key access_key accesskey access-key private_key credential auth_key authkey encryption_key encryptionkey signing_key signingkey", kind: secret,
		},
		rule{name: "token_value", keywords: "token", kind: secret},
		rule{name: "service_key", keywords: services, kind: service},
	)
}

// text is a text during a scan.
type text struct {
	s    string
	done int // end of the last finding or mask, which counts as an edge
}

// match applies the rule at one of its keywords.
func (r *rule) match(t *text, i int) (start, end int, ok bool) {
	from, ok := r.begin(t, i)
	if !ok {
		return 0, 0, false
	}
	if r.kind != none {
		return r.value(t, i)
	}
	limit := min(len(t.s), i+window)
	at := r.re.get().FindStringSubmatchIndex(t.s[i:limit])
	if at == nil {
		return 0, 0, false
	}
	start, end = i+at[2], i+at[3]
	if from < i {
		start = from
	}
	end, ok = r.ending(t, end, limit)
	if !ok {
		return 0, 0, false
	}
	if value := t.s[start:end]; value == Mask || !r.likely(value) {
		return 0, 0, false
	}
	return start, end, true
}

// ending returns the end of a credential, and whether what follows allows it to be one. The expression was applied up
// to limit and matched up to end.
func (r *rule) ending(t *text, end, limit int) (last int, ok bool) {
	switch {
	case r.pem:
		if !body(t.s[end:min(len(t.s), end+near)]) {
			return 0, false
		}
		end = t.keyEnd(end)
	case r.host && end < len(t.s) && t.s[end] == '@':
		return 0, false // the name of a type of SSH key
	case end == limit:
		end = goesOn(t.s, end)
	}
	return end, !r.exact || end >= len(t.s) || !wordByte(t.s[end])
}

// value applies the rule to a name that contains its keyword and to which something is assigned.
func (r *rule) value(t *text, i int) (start, end int, ok bool) {
	size := 0
	for keyword := range strings.FieldsSeq(r.keywords) {
		if len(keyword) > size && foldPrefix(t.s[i:], keyword) {
			size = len(keyword)
		}
	}
	if !assigns(t.s, i+size) {
		return 0, 0, false
	}
	v, ok := assigned(t.s, i, size)
	if !ok || v.start < t.done || !credential(r.kind, t.s, v) {
		return 0, 0, false
	}
	return v.start, v.end, true
}

// assigns reports whether an assignment operator may follow the name that continues at n. This saves further work where
// the word is only mentioned.
func assigns(s string, n int) bool {
	for n < len(s) && (wordByte(s[n]) || s[n] == '.') {
		n++
	}
	for skipped := 0; skipped < 3 && n < len(s) && strings.IndexByte("\\\"'`] \t", s[n]) >= 0; n++ {
		if s[n] != ' ' && s[n] != '\t' {
			skipped++
		}
	}
	return n < len(s) && (s[n] == '=' || s[n] == ':' || s[n] == '>' || s[n] == 'v')
}

// holds reports whether the bytes before the keyword can be the body of the credential.
func (r *rule) holds(s string) bool {
	for i := range len(s) {
		if r.body != "" && strings.IndexByte(r.body, s[i]) < 0 || r.body == "" && !wordByte(s[i]) {
			return false
		}
	}
	return true
}

// begin returns the start of a credential with its keyword at i, and whether it may start there.
func (r *rule) begin(t *text, i int) (from int, ok bool) {
	switch {
	case r.digits:
		from = i
		for from > t.done && t.s[from-1] >= '0' && t.s[from-1] <= '9' && i-from < 13 {
			from--
		}
		return from, i-from >= 5 && i-from <= 12 &&
			(from == t.done || !wordByte(t.s[from-1]) || botToken(t.s[t.done:from], t.s[i+1:]))
	case r.back > 0:
		return i - r.back, i-r.back >= t.done && r.holds(t.s[i-r.back:i]) &&
			(i-r.back == 0 || !wordByte(t.s[i-r.back-1]))
	case r.edge:
		return i, i == t.done || !wordByte(t.s[i-1])
	}
	return i, true
}

// botToken reports whether digits that follow a letter, digit, _ or - are nevertheless the first part of a bot's token:
// after "bot", as in the addresses of the Bot API, or if the second part has the form that all tokens have today.
func botToken(before, secret string) bool {
	if n := len(before) - len("bot"); n >= 0 && foldPrefix(before[n:], "bot") {
		return true
	}
	const length = 35
	for i := range min(len(secret), length) {
		if !wordByte(secret[i]) {
			return false
		}
	}
	return strings.HasPrefix(secret, "AA") && len(secret) >= length && (len(secret) == length || !wordByte(secret[length]))
}

// near is how many bytes after the first line of a private key are looked at to find out whether the key follows.
const near = 128

// body reports whether the text after the first line of a private key may be the key: it is on a line of its own and
// not only dots or Xs, or it looks like base64 behind the signs of a diff, a comment or a string in source code.
func body(s string) bool {
	plain := strings.TrimLeft(s, "\r\n\t \\nr[]s>")
	if plain == "" || wordByte(plain[0]) && plain[0] != '-' {
		return !strings.HasPrefix(plain, "XXXX")
	}
	const signs = "\r\n\t \\\"'`nr[]s>,;:#*|.-("
	key := strings.TrimLeft(s, signs)
	return base64Body(key) || base64Body(strings.TrimLeft(key, signs+"+/"))
}

// base64Body reports whether s begins with base64: long and of mixed characters, or up to the last line of the key.
func base64Body(s string) bool {
	end := 0
	for end < len(s) && (wordByte(s[end]) && s[end] != '_' && s[end] != '-' || strings.IndexByte("+/=", s[end]) >= 0) {
		end++
	}
	if rest := strings.TrimLeft(s[end:], "\r\n\t \\nr"); end >= 8 && strings.HasPrefix(rest, "-----END") {
		return true
	}
	const upper, small, digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", "0123456789"
	return end >= 20 && strings.ContainsAny(s[:end], upper) && strings.ContainsAny(s[:end], small) &&
		strings.ContainsAny(s[:end], digits)
}

// keyEnd returns the end of the private key whose first line ends at from: after its last line or, if that is missing,
// after what looks like the key.
func (t *text) keyEnd(from int) int {
	rest := t.s[from:min(len(t.s), from+maxKey)]
	if at := strings.Index(rest, "-----END"); at >= 0 {
		at += len("-----END")
		if last := strings.Index(rest[at:min(len(rest), at+64)], "-----"); last >= 0 {
			at += last + len("-----")
		}
		return from + at
	}
	end := from
	for end < len(t.s) && (wordByte(t.s[end]) || strings.IndexByte("+/=:,. \t\r\n\\\"'`#*|", t.s[end]) >= 0) {
		end++
	}
	return end
}

// goesOn returns the end of a credential that is longer than the window.
func goesOn(s string, end int) int {
	for end < len(s) && (wordByte(s[end]) || strings.IndexByte("+/=.~%", s[end]) >= 0) {
		end++
	}
	return end
}

// wordByte reports whether c may be part of a longer name.
func wordByte(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// likely checks what an expression cannot express.
func (r *rule) likely(s string) bool {
	switch strings.ToLower(s[:min(len(s), 10)]) {
	case "bearer", "basic", "digest", "negotiate", "apikey":
		return false // the name of a scheme whose value is already masked
	}
	if r.mixed && !strings.ContainsAny(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		return false
	}
	if r.encoded && !pairInside(s) || r.written && (placeholder(s) || repeated(s) || variable.matches(s)) {
		return false
	}
	if r.digit && !strings.ContainsAny(s, "0123456789") {
		return false
	}
	return r.entropy == 0 || entropy(s) >= r.entropy
}

// entropy returns the Shannon entropy of s in bits a byte.
func entropy(s string) (bits float64) {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// pairInside reports whether base64 contains a name and a password, as in HTTP basic authentication.
func pairInside(s string) bool {
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	return err == nil && strings.Contains(string(plain), ":")
}
