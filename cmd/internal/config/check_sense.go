package config

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ownWords are the tables whose `enabled` only turns off a part of them, or about which another check has a better
// sentence.
func ownWords() []string {
	return []string{
		"tools", "index", "tools.policy", "tools.authorization", "tools.adversarial_policy", "tools.filters",
	}
}

// dormant warns about tables that are off although something in them was changed, once for each.
func (k *checker) dormant() {
	off := map[string]bool{}
	walk(k.c, func(l leaf) {
		if table, ok := strings.CutSuffix(l.key, ".enabled"); ok &&
			!l.value.Bool() && !slices.Contains(ownWords(), table) {
			off[table] = true
		}
	})
	walk(k.c, func(l leaf) {
		if l.idle != "" || !k.set(l.key) || formatValue(l.value) == formatValue(defaultOf(l.field)) {
			return
		}
		for table := range off {
			if strings.HasPrefix(l.key, table+".") && l.key != table+".enabled" {
				delete(off, table)
				k.warn(l.key, "has no effect: %s.enabled is false; set that to true, or take this out", table)
			}
		}
	})
}

// untidy looks for what copying leaves around tokens and keys, also in lists and tables of them. What is said names the
// key, or the variable, and never the value.
func (k *checker) untidy(l leaf) {
	switch {
	case l.typ == secretType:
		k.untidySecret(l.key, l.value.String())
	case l.typ.Kind() == reflect.Slice && l.typ.Elem() == secretType:
		for i := range l.value.Len() {
			k.untidySecret(item(l.key, i), l.value.Index(i).String())
		}
	case l.typ.Kind() == reflect.Map && l.typ.Elem() == secretType:
		for _, name := range slices.SortedFunc(slices.Values(l.value.MapKeys()), func(a, b reflect.Value) int {
			return strings.Compare(a.String(), b.String())
		}) {
			k.untidySecret(join(l.key, name.String()), l.value.MapIndex(name).String())
		}
	}
}

// quotationMarks are those of keyboards and of text processors.
const quotationMarks = "\"'`´“”„‟‘’‚‛«»‹›＂＇"

// untidySecret refuses white space around a secret, which no server takes, and warns about quotation marks, which an
// env file passes on where a shell would remove them.
func (k *checker) untidySecret(key, secret string) {
	text := strings.TrimFunc(secret, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
	if text != secret {
		k.wrong(key, "has spaces or line breaks around it; take them out")
	}
	first, _ := utf8.DecodeRuneInString(text)
	last, _ := utf8.DecodeLastRuneInString(text)
	if strings.ContainsRune(quotationMarks, first) || strings.ContainsRune(quotationMarks, last) {
		k.warn(key, "still has quotation marks around it, which belong to it as it is; take them out where it is set")
	}
}

// useless warns about keys that the type of a provider, the transport of a server or another key makes useless.
func (k *checker) useless() {
	for i, p := range k.c.LLM.Providers {
		k.uselessOf(item("llm.providers", i), &p)
	}
	for i, s := range k.c.MCP.Servers {
		if (s.Command == "") == (s.URL == "") {
			continue // refused
		}
		k.unused(item("mcp.servers", i), &s)
	}
	if t := k.c.Telegram; len(t.AllowedBots) > 0 && !t.BotToBot {
		k.warn(
			"telegram.allowed_bots", "has no effect: telegram.bot_to_bot is false; set that to true, or take this out",
		)
	}
	if v := k.c.Vector; v.Backend == "embedded" && v.URL != "" {
		k.warn("vector.url", "has no effect: vector.backend is \"embedded\"; set that to \"qdrant\", or take this out")
	}
	if w := k.c.WebSearch; w.Backend == "" && (w.URL != "" || w.APIKey != "") {
		k.warn("web_search", "has no effect: there is no web_search.backend; choose searxng, brave or tavily")
	}
}

// uselessOf checks what the type of a provider uses.
func (k *checker) uselessOf(at string, p *Provider) {
	for _, key := range []string{"model", "base_url", "api_key", "api_keys"} {
		if key = join(at, key); k.set(key) && p.Type == "offline" {
			k.warn(key, "has no effect: this provider has type offline, the built-in model without intelligence; "+
				"set its type to that of your model (%s)",
				envName(envName(envName(envName(envPrefix, "llm"), "providers"), p.Name), "type"))
		}
	}
	for _, u := range []struct {
		key   string
		types []string // that use it
	}{
		{"pace", []string{"offline"}},
		{"wire", []string{"openai", "ollama"}},
		{"embedding_model", []string{"openai", "ollama"}},
	} {
		if key := join(at, u.key); k.set(key) && !k.bad[key] && !slices.Contains(u.types, p.Type) {
			k.warn(
				key, "has no effect: it is for type %s, and this provider has type %s; take it out",
				strings.Join(u.types, " and "), p.Type,
			)
		}
	}
	if p.ContextTokens > 0 && p.ContextTokens <= p.MaxTokens {
		k.wrong(
			join(at, "context_tokens"),
			"%d leaves no room for a conversation beside an answer of max_tokens (%d); make it larger, or that smaller",
			p.ContextTokens, p.MaxTokens,
		)
	}
}

// unused checks what the transport of a server uses.
func (k *checker) unused(at string, s *MCPServer) {
	keys, other := []string{"args", "dir", "env", "env_isolation", "confine", "network", "read"}, "command"
	if s.URL == "" {
		keys, other = []string{"headers"}, "url"
	}
	for _, key := range keys {
		if k.set(join(at, key)) || key == "env" && len(s.Env) > 0 || key == "headers" && len(s.Headers) > 0 {
			k.warn(join(at, key), "has no effect: it is for servers with a %s; take it out", other)
		}
	}
}

// placeholder is a name in examples that somebody else may have.
const placeholder = "@your_name"

// opposed finds numbers and ids that contradict each other.
func (k *checker) opposed() {
	for name, l := range map[string]Limits{"user": k.c.Quotas.User, "chat": k.c.Quotas.Chat, "bot": k.c.Quotas.Bot} {
		k.limits("quotas."+name, &l)
	}
	for id, chat := range k.c.Telegram.Chats {
		if chat.Quota != nil {
			k.limits(join("telegram.chats", id)+".quota", chat.Quota)
		}
	}
	if l := k.c.LLM; l.Idle > l.Timeout && k.set("llm.idle_timeout") {
		k.warn(
			"llm.idle_timeout", "has no effect: llm.timeout (%s) ends a call before; make it smaller, or that larger",
			formatDuration(l.Timeout),
		)
	}
	if slices.Contains(k.c.Telegram.AllowedUsers, placeholder) {
		k.wrong("telegram.allowed_users", "%s is the placeholder of an example, and whoever has this name in Telegram "+
			"could talk to the bot; write your own, or leave it out: the first start shows a code for its admin", placeholder)
	}
	for _, id := range k.c.Telegram.AllowedChats {
		if id != "*" && !strings.HasPrefix(id, "-") {
			k.warn("telegram.allowed_chats", "%s is the id of a person, and those of groups begin with a minus; "+
				"people belong into telegram.allowed_users", id)
		}
	}
	if t := k.c.Telegram; t.APIURL == "https://api.telegram.org" && t.MaxUploadBytes > telegramUpload {
		k.warn(
			"telegram.max_upload_bytes",
			"Telegram itself takes %d bytes; larger files need a Bot API server of your own (telegram.api_url)",
			telegramUpload,
		)
	}
}

// telegramUpload is the largest file that Telegram's own Bot API server takes, in bytes.
const telegramUpload = 50 << 20

// limits compares limits of a day with those of a month.
func (k *checker) limits(at string, l *Limits) {
	for _, pair := range []struct {
		unit       string
		day, month float64
	}{
		{"turns", float64(l.TurnsPerDay), float64(l.TurnsPerMonth)},
		{"tokens", float64(l.TokensPerDay), float64(l.TokensPerMonth)},
		{"usd", l.USDPerDay, l.USDPerMonth},
	} {
		if pair.month > 0 && pair.day > pair.month {
			k.warn(
				at+"."+pair.unit+"_per_day", "%g is more than %s_per_month (%g), which ends it before; make it smaller",
				pair.day, pair.unit, pair.month,
			)
		}
	}
}
