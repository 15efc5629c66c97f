package config

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/policy/nearest"
)

// checker checks the values of a decoded Config and the relations between them.
type checker struct {
	c        *Config
	bad      map[string]bool
	read     Problems // of the file and the environment, before the checks
	problems Problems
	warnings Problems
	names    []string // of all providers
	stat     func(string) (fs.FileInfo, error)
	env      []string // as Source.Env
	unsure   bool     // some provider has no valid name, so unknown names are not reported
}

func (k *checker) wrong(key, format string, args ...any) {
	k.problems = append(k.problems, k.c.place(key).problem(key, fmt.Sprintf(format, args...)))
}

func (k *checker) warn(key, format string, args ...any) {
	k.warnings = append(k.warnings, k.c.place(key).problem(key, fmt.Sprintf(format, args...)))
}

// place returns the origin of key, or of its table if the key itself is not set.
func (c *Config) place(key string) Origin {
	for at := key; at != ""; {
		if o, ok := c.origins[at]; ok {
			return o
		}
		i := max(strings.LastIndexByte(at, '.'), strings.LastIndexByte(at, '['), 0)
		at = at[:i]
	}
	return Origin{File: c.File}
}

func (k *checker) run() {
	k.unsure = k.bad["llm.providers"]
	for _, p := range k.c.LLM.Providers {
		k.names = append(k.names, p.Name)
		k.unsure = k.unsure || p.Name == ""
	}
	walk(k.c, k.leaf)
	k.providers()
	k.routes()
	k.chats()
	k.personas()
	k.servers()
	k.rules()
	k.toolNames()
	k.tasks()
	k.hooks()
	k.credentialPatterns()
	k.granted("tools.shell.allowed_paths", k.c.Tools.Shell.AllowedPaths)
	k.toolchains()
	k.granted("tools.file.allowed_paths", k.c.Tools.File.AllowedPaths)
	k.granted("index.paths", k.c.Index.Paths)
	if k.c.Vector.Backend == "qdrant" && k.c.Vector.URL == "" {
		k.wrong("vector.url", "is empty; backend \"qdrant\" needs the address of Qdrant")
	}
	k.idle(reflect.ValueOf(k.c).Elem(), "", "")
	k.dormant()
	k.useless()
	k.opposed()
}

// leaf checks one value against its tags.
func (k *checker) leaf(l leaf) {
	if l.clamp {
		k.clamp(l)
	}
	if text := checkValue(l); text != "" {
		k.wrong(l.key, "%s", text)
	}
	k.untidy(l)
	if l.form == "provider" && l.value.String() != "" {
		k.provider(l.key, l.value.String())
	}
}

// clamp moves a number into its range and warns. If it is not a number, it becomes the default.
func (k *checker) clamp(l leaf) {
	before := formatValue(l.value)
	switch v := l.value; v.Kind() {
	case reflect.Float64:
		x := v.Float()
		if math.IsNaN(x) || math.IsInf(x, 0) {
			x = defaultOf(l.field).Float()
		}
		v.SetFloat(min(max(x, l.min), l.max))
	default:
		v.SetInt(min(max(v.Int(), int64(l.min)), int64(l.max)))
	}
	if after := formatValue(l.value); after != before {
		k.warn(l.key, "%s is outside %.10g to %.10g; %s is used", before, l.min, l.max, after)
	}
}

// provider checks that name is the name of a provider.
func (k *checker) provider(key, name string) {
	if k.unsure || slices.Contains(k.names, name) {
		return
	}
	if len(k.names) == 0 {
		k.wrong(key, "%s names no provider; no [[llm.providers]] is configured", shorten(name))
		return
	}
	text := ""
	if near, ok := nearest.Nearest(name, k.names); ok {
		text = " (did you mean " + near + "?)"
	}
	k.wrong(key, "%s names no provider; configured: %s%s", shorten(name), strings.Join(k.names, ", "), text)
}

// baseURLs returns the default addresses of the APIs.
func baseURLs() map[string]string {
	return map[string]string{
		"anthropic": "https://api.anthropic.com", "ollama": "http://localhost:11434", "offline": "",
	}
}

// accepts checks what a model is configured to accept.
func (k *checker) accepts(kinds []string, at string) {
	for _, kind := range kinds {
		if kind != "text" && kind != "image" && kind != "file" {
			k.wrong(join(at, "accepts"), "%s is nothing that a model takes; allowed: text, image, file", shorten(kind))
		}
	}
}

func (k *checker) providers() {
	seen := map[string]bool{}
	for i := range k.c.LLM.Providers {
		p, at := &k.c.LLM.Providers[i], item("llm.providers", i)
		if k.bad[at] {
			continue
		}
		fits := k.preset(p, at)
		switch {
		case p.Name == "":
			k.required(join(at, "name"))
		case seen[p.Name]:
			k.wrong(join(at, "name"), "%s is the name of an earlier provider too; names must differ", shorten(p.Name))
		}
		seen[p.Name] = true
		base, other := baseURLs()[p.Type]
		needs := other && p.Type != "offline" || p.Type == "openai" // what an unknown type needs is not known
		if needs && p.Model == "" && !k.bad[join(at, "model")] {
			k.wrong(join(at, "model"), "is empty; a provider of type %s needs the name of a model (%s)", p.Type,
				envName(envName(envName(envName(envPrefix, "llm"), "providers"), p.Name), "model"))
		}
		k.accepts(p.Accepts, at)
		if other && !k.set(join(at, "base_url")) && p.Preset == "" {
			p.BaseURL = base
		}
		if !fits || k.astray(at) {
			p.BaseURL = ""
		}
		k.ollama(p, at)
	}
}

// astray says whether mistakes in the table of a provider leave it unknown whose server it is. The default is the
// address of one vendor, and a key of another one must not be sent there, as doctor would.
func (k *checker) astray(at string) bool {
	wrong := func(setting string) bool {
		key := join(at, setting)
		named := k.c.place(key).problem(key, "").Key
		return slices.ContainsFunc(slices.Concat(k.read, k.problems), func(p Problem) bool {
			return p.Key == named || p.Key == key
		})
	}
	if wrong("base_url") {
		return true
	}
	unknown := func(p Problem) bool {
		return strings.HasPrefix(p.Key, at+".") && strings.HasPrefix(p.Text, "unknown key")
	}
	return !k.set(join(at, "base_url")) && (wrong("preset") || wrong("type") || slices.ContainsFunc(k.read, unknown))
}

// preset sets what the preset of a provider says and nobody has set. A key is only taken from the variable of a vendor
// that is named: the environment may hold keys that are none of ours. It returns false if
// the preset cannot be followed.
func (k *checker) preset(p *Provider, at string) bool {
	d, known := dialect.Named(p.Preset)
	if !known || k.bad[join(at, "preset")] {
		return true
	}
	if p.Type == "openai" && d.Wire == "anthropic" {
		p.Type = "anthropic"
	}
	own := k.set(join(at, "base_url"))
	if other := p.Type != "openai" && p.Type != "ollama"; other != (d.Wire == "anthropic") && !own ||
		p.Type == "ollama" && p.Preset != "ollama" {
		k.wrong(
			join(at, "preset"),
			"%s has not the API of type %s; take out type, or set base_url to an address that has it",
			p.Preset, p.Type,
		)
		return false
	}
	switch {
	case own:
	case d.BaseURL == "":
		k.wrong(
			join(at, "base_url"), "is missing; preset %s needs the address of your own resource (docs/models.md)",
			p.Preset,
		)
		return false
	default:
		p.BaseURL = d.BaseURL
	}
	if d.Key == "" || p.APIKey != "" || len(p.APIKeys) > 0 {
		return true
	}
	for _, variable := range k.env {
		if value, found := strings.CutPrefix(variable, d.Key+"="); found && value != "" {
			p.APIKey = Secret(value)
			k.c.origins[join(at, "api_key")] = Origin{Env: d.Key}
			k.untidySecret(join(at, "api_key"), value)
		}
	}
	return true
}

// ollama handles the other spelling of tool_use.
func (k *checker) ollama(p *Provider, at string) {
	o := k.c.LLM.Ollama.ToolUse
	if o == nil || p.Type != "ollama" {
		return
	}
	if k.set(join(at, "tool_use")) && p.ToolUse != *o {
		k.wrong("llm.ollama.tool_use",
			"is another spelling of %s, which is also set, to something else; keep one of them", join(at, "tool_use"))
	}
	p.ToolUse = *o
}

// set reports whether anybody set key.
func (k *checker) set(key string) bool {
	_, ok := k.c.origins[key]
	return ok
}

func (k *checker) required(key string) {
	if !k.bad[key] {
		k.wrong(key, "is missing; it is required")
	}
}

// primary checks which provider answers. Nobody has written the default, so that no line is at fault.
func (k *checker) primary(name string) {
	if k.set("llm.primary") || k.unsure || slices.Contains(k.names, name) {
		k.provider("llm.primary", name)
		return
	}
	variable := envName(envName(envPrefix, "llm"), "primary")
	at := k.c.place(join(item("llm.providers", 0), "name")).problem("llm.primary", fmt.Sprintf(
		"is not set, and is %q then, which names no provider; configured: %s; write primary = %q under [llm], or set %s",
		name, strings.Join(k.names, ", "), k.names[0], variable,
	))
	if at.File == "" {
		at.Key = variable
	}
	k.problems = append(k.problems, at)
}

// routes checks the names of providers in [llm].
func (k *checker) routes() {
	llm := k.c.LLM
	if llm.Primary == "" {
		k.wrong("llm.primary", "is empty; it must name a provider")
	} else if len(k.names) > 0 || llm.Primary != Default().LLM.Primary {
		k.primary(llm.Primary)
	}
	for i, name := range llm.Fallback {
		k.provider("llm.fallback", name)
		if name == llm.Primary {
			k.wrong("llm.fallback", "%s is the primary provider already; name others", shorten(name))
		}
		if slices.Contains(llm.Fallback[:i], name) {
			k.wrong("llm.fallback", "%s stands there twice", shorten(name))
		}
	}
	for i, name := range llm.Choices {
		k.provider("llm.choices", name)
		if slices.Contains(llm.Choices[:i], name) {
			k.wrong("llm.choices", "%s is listed twice", shorten(name))
		}
	}
	k.media()
	if llm.Embedding == "" {
		return
	}
	k.provider("llm.embedding", llm.Embedding)
	for i, p := range llm.Providers {
		if p.Name == llm.Embedding && p.EmbeddingModel == "" && p.Type != "offline" {
			k.wrong(join(item("llm.providers", i), "embedding_model"), "is empty; llm.embedding names this provider")
		}
	}
}

// media finds providers that are to hear or speak and cannot.
func (k *checker) media() {
	for i, p := range k.c.LLM.Providers {
		if p.Type == "openai" || p.Type == "ollama" {
			continue
		}
		for _, model := range []struct{ key, name, does string }{
			{"transcription_model", p.TranscriptionModel, "write down speech"},
			{"speech_model", p.SpeechModel, "speak"},
			{"image_model", p.ImageModel, "make pictures"},
		} {
			if model.name != "" {
				k.wrong(
					join(item("llm.providers", i), model.key),
					"a provider of type %s cannot %s; leave it empty here and set it at one of type openai",
					p.Type, model.does,
				)
			}
		}
	}
}

func (k *checker) chats() {
	for _, id := range slices.Sorted(maps.Keys(k.c.Telegram.Chats)) {
		if rule, _ := formOf("chatkey"); !rule.pattern().MatchString(id) {
			k.wrong(join("telegram.chats", id), "%s is no chat; allowed: %s", shorten(id), rule.allowed)
		}
	}
}

// mostInstructions is how long the instructions of a persona may be, in bytes: each turn pays for them.
const mostInstructions = 8000

func (k *checker) personas() {
	for _, name := range slices.Sorted(maps.Keys(k.c.Personas)) {
		p, at := k.c.Personas[name], join("personas", name)
		if rule, _ := formOf("persona"); !rule.pattern().MatchString(name) || strings.HasSuffix(name, " ") {
			k.wrong(at, "%s is no name of a persona; allowed: %s", shorten(name), rule.allowed)
		}
		if n := len(p.Instructions); n > mostInstructions {
			k.wrong(join(at, "instructions"), "has %d bytes; allowed: at most %d", n, mostInstructions)
		}
		if p.Model != "" && k.c.ProviderOf(p.Model) == "" {
			k.provider(join(at, "model"), p.Model)
		}
	}
}

// ProviderOf returns the name of the provider that a persona names, or whose model it names; "" = there is none.
func (c *Config) ProviderOf(model string) string {
	for _, same := range []func(p *Provider) bool{
		func(p *Provider) bool { return p.Name == model },
		func(p *Provider) bool { return strings.EqualFold(p.Model, model) },
	} {
		for i := range c.LLM.Providers {
			if same(&c.LLM.Providers[i]) {
				return c.LLM.Providers[i].Name
			}
		}
	}
	return ""
}

func (k *checker) servers() {
	seen := map[string]bool{}
	for i, s := range k.c.MCP.Servers {
		at := item("mcp.servers", i)
		if k.bad[at] {
			continue
		}
		switch {
		case s.ID == "":
			k.required(join(at, "id"))
		case seen[s.ID]:
			k.wrong(join(at, "id"), "%s is the id of an earlier server too; ids must differ", shorten(s.ID))
		}
		seen[s.ID] = true
		if (s.Command == "") == (s.URL == "") && !k.bad[join(at, "command")] && !k.bad[join(at, "url")] {
			k.wrong(at, "needs either command or url, and not both")
		}
		for j, root := range s.Roots {
			if root.URI == "" {
				k.required(join(item(join(at, "roots"), j), "uri"))
			}
		}
	}
}

// rules checks the required keys of permissions and policy rules.
func (k *checker) rules() {
	for _, tool := range slices.Sorted(maps.Keys(k.c.Tools.Permissions)) {
		for i, p := range k.c.Tools.Permissions[tool] {
			at := item(join("tools.permissions", tool), i)
			if k.bad[at] {
				continue
			}
			if p.Pattern == "" {
				k.required(join(at, "pattern"))
			}
			if p.Action == "" {
				k.required(join(at, "action"))
			}
		}
	}
	k.policyRules("tools.policy.rules", k.c.Tools.Policy.Rules)
	k.policyRules("tools.authorization.rules", k.c.Tools.Authorization.Rules)
}

func (k *checker) policyRules(path string, rules []Rule) {
	for i, r := range rules {
		if k.bad[item(path, i)] {
			continue
		}
		if r.Effect == "" {
			k.required(join(item(path, i), "effect"))
		}
		if len(r.Tool) == 0 {
			k.required(join(item(path, i), "tool"))
		}
	}
}

func (k *checker) tasks() {
	seen := map[string]bool{}
	for i, t := range k.c.Scheduler.Tasks {
		at := item("scheduler.tasks", i)
		if k.bad[at] {
			continue
		}
		switch {
		case t.Name == "":
			k.required(join(at, "name"))
		case seen[t.Name]:
			k.wrong(join(at, "name"), "%s is the name of an earlier task too; names must differ", shorten(t.Name))
		}
		seen[t.Name] = true
		if (t.Cron == "") == (t.RunAt == "") {
			k.wrong(at, "needs either cron or run_at, and not both")
		}
		k.atMost(join(at, "name"), t.Name, 128)
		k.atMost(join(at, "cron"), t.Cron, 64)
		k.atMost(join(at, "kind"), t.Kind, 64)
		k.atMost(join(at, "task"), t.Task, 512)
		k.task(at, &t)
	}
}

// atMost limits the characters of a text.
func (k *checker) atMost(key, text string, limit int) {
	if n := len([]rune(text)); n > limit {
		k.wrong(key, "has %d characters; allowed: %d", n, limit)
	}
}

// idle warns about keys that are set, but that nothing reads yet. Of a list or map it names only the whole.
func (k *checker) idle(v reflect.Value, path, part string) {
	for _, f := range fieldsOf(v.Type()) {
		key, value, part := join(path, f.name), v.Field(f.index), part
		if f.idle != "" {
			part = f.idle
		}
		switch shapeOf(f.typ) {
		case leafShape:
			if part != "" && k.set(key) && formatValue(value) != formatValue(defaultOf(f)) {
				k.noEffect(key, part)
			}
		case tableShape:
			k.idle(value, key, part)
		case tablePtr:
			if !value.IsNil() {
				k.idle(value.Elem(), key, part)
			}
		default:
			k.idleEntries(value, key, part)
		}
	}
}

func (k *checker) idleEntries(v reflect.Value, key, part string) {
	switch {
	case part != "":
		if v.Len() > 0 {
			k.noEffect(key, part)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			k.idle(v.Index(i), item(key, i), part)
		}
	case v.Type().Elem().Kind() == reflect.Struct:
		for _, name := range slices.Sorted(maps.Keys(stringKeys(v))) {
			k.idle(v.MapIndex(reflect.ValueOf(name)), join(key, name), part)
		}
	}
}

func (k *checker) noEffect(key, part string) {
	k.warn(key, "has no effect yet: %s is not part of this version", part)
}
