package redact

import (
	"slices"
	"strings"
)

// prefixed is a kind of token with a unique prefix. The table contains at least the public list of gitleaks. Lengths
// are lower limits.
type prefixed struct {
	name, keywords, pattern string
	mixed                   bool // it must contain a digit or an upper-case letter
}

// uuid matches a UUID.
const uuid = `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`

// vendors returns the table. TestVendors generates a token for each row, and an incomplete one.
func vendors() []prefixed {
	return slices.Concat(vendorsAToE(), vendorsFToM(), vendorsNToZ())
}

func vendorsAToE() []prefixed {
	return []prefixed{
		{
			"1password", "a3-",
			`A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}`, false,
		},
		{"1password", "ops_eyj", `ops_eyJ[A-Za-z0-9+/]{40,}`, false},
		{"adobe", "p8e-", `(?i:p8e-)[A-Za-z0-9]{32}`, true},
		{"airtable", "pat", `pat[A-Za-z0-9]{14}\.[a-f0-9]{64}`, false},
		{"alibaba", "ltai", `LTAI[A-Za-z0-9]{17,}`, true},
		{"artifactory", "akcp", `AKCp[A-Za-z0-9]{60,}`, false},
		{"artifactory", "cmvmd", `cmVmd[A-Za-z0-9]{50,}`, false},
		{"atlassian", "atatt3 atctt3", `AT[AC]TT3[A-Za-z0-9_=-]{60,}`, false},
		{
			"authress", "sc_ ext_ scauth_ authress_",
			`(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,}`, false,
		},
		{"bedrock", "absk", `ABSK[A-Za-z0-9+/]{60,}={0,2}`, false},
		{"bedrock", "bedrock-api-key-", `bedrock-api-key-[A-Za-z0-9+/=]{20,}`, true},
		{"buildkite", "bkua_", `bkua_[a-z0-9]{30,}`, false},
		{"circleci", "ccipat_ ccipra_", `CCIP(?:AT|RA)_[A-Za-z0-9_]{30,}`, false},
		{"clickhouse", "4b1d", `4b1d[A-Za-z0-9]{38}`, false},
		{"clojars", "clojars_", `(?i:CLOJARS_)[A-Za-z0-9]{60}`, false},
		{"cloudflare", "v1.0-", `v1\.0-[a-f0-9]{24}-[a-f0-9]{146}`, false},
		{"cratesio", "cio", `cio[A-Za-z0-9]{32}`, true},
		{"definednetworking", "dnkey-", `dnkey-[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}`, false},
		{
			"doppler", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
			`dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{40,}`, false,
		},
		{"dropbox", "sl.", `sl\.[A-Za-z0-9_=-]{130,}`, false},
		{"duffel", "duffel_test_ duffel_live_", `duffel_(?:test|live)_[A-Za-z0-9_=-]{30,}`, false},
		{"dynatrace", "dt0", `dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}`, false},
		{"easypost", "ezak eztk", `EZ[AT]K[A-Za-z0-9]{54}`, false},
	}
}

func vendorsFToM() []prefixed {
	return []prefixed{
		{"facebook", "eaam eaac", `EAA[MC][A-Za-z0-9]{60,}`, false},
		{"figma", "figd_", `figd_[A-Za-z0-9_-]{36,}`, true},
		{"flutterwave", "flwseck flwpubk", `FLW(?:SECK|PUBK)(?:_TEST)?-[A-Za-z0-9]{12,}(?:-X)?`, false},
		{
			"flyio", "fo1_ fm1a_ fm1r_ fm2_",
			`(?:fo1_[A-Za-z0-9_-]{43}|fm1[ar]_[A-Za-z0-9+/]{60,}={0,3}|fm2_[A-Za-z0-9+/]{60,}={0,3})`, false,
		},
		{"frameio", "fio-u-", `fio-u-[A-Za-z0-9_=-]{60,}`, false},
		{"gitlab", "glffct-", `glffct-[A-Za-z0-9_.-]{20,}`, false},
		{"gitlab", "gr1348941", `GR1348941[A-Za-z0-9_-]{20,}`, false},
		{"gitlab", "_gitlab_session=", `_gitlab_session=[0-9a-z]{32}`, false},
		{"google", "1//0", `1//0[A-Za-z0-9_-]{30,}`, false},
		{"grafana", "glc_ glsa_", `(?:glc_[A-Za-z0-9+/]{32,}={0,3}|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8})`, false},
		{"grafana", "eyjrijoi", `eyJrIjoi[A-Za-z0-9+/]{60,}={0,3}`, false},
		{"harness", "pat. sat.", `(?:pat|sat)\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}`, false},
		{"heroku", "hrku-", `HRKU-[A-Za-z0-9_-]{36,}`, false},
		{"hubspot", "pat-na pat-eu", `pat-(?:na|eu)\d-` + uuid, false},
		{"huggingface", "api_org_", `api_org_[A-Za-z0-9]{34}`, false},
		{"infracost", "ico-", `ico-[A-Za-z0-9]{32}`, true},
		{"intra42", "s-s4t2", `s-s4t2(?:ud|af)-[a-f0-9]{64}`, false},
		{"langsmith", "lsv2_", `lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}`, false},
		{"launchdarkly", "sdk-", `sdk-` + uuid, false},
		{"lob", "live_ test_", `(?:live|test)_(?:pub_)?[a-f0-9]{31,}`, false},
		{"mailgun", "pubkey-", `pubkey-[a-f0-9]{32}`, false},
		{"mapbox", "pk. sk.", `[ps]k\.[A-Za-z0-9]{60,}\.[A-Za-z0-9_-]{20,}`, false},
	}
}

func vendorsNToZ() []prefixed {
	return []prefixed{
		{"netlify", "nfp_", `nfp_[A-Za-z0-9]{36,}`, false},
		{"newrelic", "nrjs- nrii-", `NR(?:JS-[a-f0-9]{19}|II-[A-Za-z0-9-]{32})`, false},
		{"notion", "secret_", `secret_[A-Za-z0-9]{43}`, true},
		{"octopus", "api-", `API-[A-Z0-9]{25,}`, true},
		{"openai", "sk-none-", `sk-None-[A-Za-z0-9_-]{20,}`, false},
		{"openshift", "sha256~", `sha256~[A-Za-z0-9_-]{43}`, false},
		{"pinecone", "pcsk_", `pcsk_[A-Za-z0-9_]{40,}`, true},
		{"plaid", "access-sandbox- access-development- access-production-", `access-(?:sandbox|development|production)-` + uuid, false},
		{"planetscale", "pscale_", `pscale_(?:tkn|oauth|pw)_[A-Za-z0-9=._-]{32,}`, false},
		{"posthog", "phx_ phc_", `ph[cx]_[A-Za-z0-9]{40,}`, true},
		{"prefect", "pnu_", `pnu_[a-zA-Z0-9]{36}`, true},
		{"pulumi", "pul-", `pul-[a-f0-9]{40}`, false},
		{"razorpay", "rzp_live_ rzp_test_", `rzp_(?:live|test)_[A-Za-z0-9]{14,}`, true},
		{"readme", "rdme_", `rdme_[a-z0-9]{70}`, false},
		{"resend", "re_", `re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}`, true},
		{"rubygems", "rubygems_", `rubygems_[a-f0-9]{48}`, false},
		{"scalingo", "tk-us-", `tk-us-[A-Za-z0-9_-]{48}`, false},
		{"sendinblue", "xkeysib-", `xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}`, false},
		{"sentry", "sntrys_ sntryu_", `sntry(?:s_[A-Za-z0-9+/=_-]{40,}|u_[a-f0-9]{64})`, false},
		{"settlemint", "sm_aat_ sm_pat_ sm_sat_", `sm_[aps]at_[A-Za-z0-9]{16,}`, true},
		{"shippo", "shippo_live_ shippo_test_", `shippo_(?:live|test)_[a-fA-F0-9]{40}`, false},
		{"sonar", "squ_ sqp_ sqa_", `sq[upa]_[A-Za-z0-9]{40}`, true},
		{"sourcegraph", "sgp_", `sgp_(?:[a-zA-Z0-9]{16}_|local_)?[a-f0-9]{40}`, false},
		{"square", "eaaae", `EAAAE[A-Za-z0-9_-]{59}`, true},
		{"square", "sq0atp- sq0csp- sq0idp-", `sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}`, false},
		{"stripe", "sk_prod_ rk_prod_", `[sr]k_prod_[A-Za-z0-9]{10,}`, false},
		{"supabase", "sbp_", `sbp_[a-f0-9]{40}`, false},
		{"tailscale", "tskey-", `tskey-[a-z]+-[A-Za-z0-9]{10,}(?:-[A-Za-z0-9]{10,})?`, false},
		{"tavily", "tvly-", `tvly-[A-Za-z0-9-]{20,}`, true},
		{"typeform", "tfp_", `tfp_[A-Za-z0-9_.=-]{40,}`, true},
		{"yandex", "t1.", `t1\.[A-Z0-9a-z_-]+=*\.[A-Z0-9a-z_-]{86}={0,2}`, false},
		{"yandex", "aqvn", `AQVN[A-Za-z0-9_-]{35,38}`, false},
		{"yandex", "yc", `YC[A-Za-z0-9_-]{38}`, true},
		{"webhook", "webhook.office.com/", `webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{40,}`, false},
		{"webhook", "hooks.zapier.com/", `hooks\.zapier\.com/hooks/catch/[0-9]+/[A-Za-z0-9]{5,}`, false},
		{"webhook", "maker.ifttt.com/", `maker\.ifttt\.com/trigger/[^\s/"']{1,80}/with/key/[A-Za-z0-9_-]{10,}`, false},
		{"password_hash", "$1$ $5$ $6$ $7$ $y$ $gy$ $2a$ $2b$ $2x$ $2y$ $apr1$ $sha1$", `\$(?:[1567]|y|gy|2[abxy]|apr1|sha1)\$[^\s:"'<>,;{}()$]{1,64}\$?[^\s:"'<>,;{}()]{16,}`, true},
		{"password_hash", "$argon2 $pbkdf2 $scrypt", `\$(?:argon2(?:id|i|d)|pbkdf2(?:-sha\d+)?|scrypt)\$[^\s:"'<>;{}()]{20,}`, true},
		{"password_hash", "{sha {ssha {smd5", `\{(?:S?SHA(?:256|384|512)?|SMD5)\}[A-Za-z0-9+/]{20,}={0,2}`, true},
		{"password_hash", "scram-sha-", `SCRAM-SHA-(?:1|256)\$\d{2,9}:[A-Za-z0-9+/=]{8,}\$[A-Za-z0-9+/=]{20,}:[A-Za-z0-9+/=]{20,}`, false},
		{"password_hash", "pbkdf2_sha pbkdf2:sha", `pbkdf2[_:]sha\d+[$:]\d+[$:][^\s$:"']{4,64}[$:][A-Za-z0-9+/=]{20,}`, false},
	}
}

// suffixed returns the rules for tokens that are recognised by their end, or by a part in the middle.
func suffixed() []rule {
	return []rule{
		{name: "mailchimp", keywords: "-us", re: lazily(`\A(-us\d\d?)(?:[^\w-]|\z)`), back: 32, body: "0123456789abcdef"},
		{name: "maxmind", keywords: "_mmk", re: lazily(`\A(_mmk)(?:[^\w-]|\z)`), back: 36},
		{name: "terraform", keywords: ".atlasv1.", re: lazily(`\A(\.atlasv1\.[A-Za-z0-9_=-]{60,70})`), back: 14},
	}
}

// services lists vendors whose keys have no recognisable form: a value is a key only next to their name.
const services = "adafruit adobe airtable algolia asana auth0 beamer bitbucket bittrex braintree cloudflare codecov cohere coinbase confluent contentful datadog deepseek discord droneci dropbox etsy facebook " +
	"fastly finicity finnhub flickr freshbooks gitter gocardless heroku hubspot intercom jfrog kraken kucoin launchdarkly linkedin looker mailchimp mailgun mapbox mattermost meraki messagebird mistral netlify " +
	"newrelic nytimes okta openai pagerduty plaid privateai rapidapi sendbird sendgrid sentry snyk squarespace sumologic telegram travis trello twilio twitch twitter yandex zendesk"

// fixed matches the expressions of tokens with a fixed length.
var fixed = lazily(`\{\d+\}$`)

// tokenRules converts the table to rules.
func tokenRules() []rule {
	var list []rule
	for _, v := range vendors() {
		t := token(v.name, v.keywords, v.pattern)
		t.mixed = v.mixed
		t.exact = fixed.matches(v.pattern)
		if strings.HasPrefix(v.keywords, "$") || strings.HasPrefix(v.keywords, "{") || strings.HasPrefix(v.keywords, "_") || strings.Contains(v.keywords, ".com/") {
			t.edge = false // it may follow a colon, a letter or a host
		}
		list = append(list, t)
	}
	return append(list, suffixed()...)
}
