package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/providers"
	"github.com/zephbot/zephbot/policy/nearest"
)

// mainName is the name of the provider that is written, which llm.primary names by default.
const mainName = "main"

// source is a place where a model can come from.
type source struct {
	title   string
	kind    string // type of the provider, or its preset
	address string // "" = the default of the kind, "?" = it is asked for
	example string // of an address that is asked for
	key     bool   // it wants a key
	propose string // a model that most people take
}

// modelSources lists where a model can come from: first the servers that were found on this machine, then the vendors.
func modelSources(local []providers.LocalServer) []source {
	var list []source
	for _, m := range local {
		one := source{kind: "openai", address: "http://" + m.Address + "/v1", propose: m.Models[0]}
		one.title = fmt.Sprintf("a server on this machine at %s (%s)", m.Address, some(m.Models))
		d, known := dialect.Named(m.Preset)
		if !known {
			d, known = dialect.OfAddress(one.address)
		}
		if known {
			one.kind, one.title = d.Name, fmt.Sprintf("%s on this machine (%s)", d.Title, some(m.Models))
			if _, port, _ := strings.Cut(m.Address, ":"); port == strconv.Itoa(d.Port) {
				one.address = "" // the usual one
			} else {
				one.title = fmt.Sprintf("%s on this machine at %s (%s)", d.Title, m.Address, some(m.Models))
			}
		}
		list = append(list, one)
	}
	list = append(
		list,
		source{title: "OpenAI", kind: "openai", key: true, propose: "gpt-5-mini"},
		source{title: "Anthropic", kind: "anthropic", key: true, propose: "claude-sonnet-4-5"},
	)
	presets, err := dialect.All()
	if err != nil { // the table is part of the program, and tested
		presets = nil
	}
	for _, d := range presets {
		if d.Port > 0 || d.Name == "openai" || d.Name == "anthropic" {
			continue
		}
		one := source{title: d.Title, kind: d.Name, key: true}
		if d.BaseURL == "" {
			one.address, one.example = "?", "https://RESOURCE.openai.azure.com/openai/v1"
		}
		list = append(list, one)
	}
	return append(
		list,
		source{
			title:   "another server with OpenAI's API, such as LiteLLM or vLLM",
			kind:    "openai",
			address: "?",
			example: "https://host/v1",
			key:     true,
		},
		source{title: "none for now: a built-in one without intelligence, to see how things work", kind: "offline"},
	)
}

// some names the first models of a list.
func some(models []string) string {
	const most = 3
	if len(models) <= most {
		return strings.Join(models, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(models[:most], ", "), len(models)-most)
}

// askModel asks for the model, until it answers.
func (s *setup) askModel(ctx context.Context) error {
	s.in.explain("\n3 of 5: the model")
	if len(s.env.LLM.Providers) > 0 {
		return s.modelOfEnvironment(ctx)
	}
	if s.f.provider != "" || !s.in.person {
		return s.modelOfFlags(ctx)
	}
	addresses := s.c.env.Local
	if addresses == nil {
		addresses = providers.LocalAddresses()
	}
	list := modelSources(providers.FindLocal(ctx, addresses))
	for {
		one, err := s.pick(list)
		if err != nil {
			return err
		}
		p, done, err := s.askProvider(ctx, one)
		if err != nil {
			return err
		}
		if done {
			s.out.Provider = p
			return nil
		}
	}
}

// modelOfEnvironment checks the models that the environment describes.
func (s *setup) modelOfEnvironment(ctx context.Context) error {
	if s.f.provider+s.f.model+s.f.keyFile+s.f.baseURL != "" {
		return usageError{
			errors.New("the models are set by ZEPH_LLM_PROVIDERS_… already; unset these variables, or leave out " +
				"--provider, --model, --base-url and --key-file"),
		}
	}
	for _, p := range s.env.LLM.Providers {
		if s.f.unchecked {
			continue
		}
		if trouble := s.try(ctx, &p); trouble != nil {
			return refused(trouble)
		}
	}
	return nil
}

// modelOfFlags checks the model that the command line describes.
func (s *setup) modelOfFlags(ctx context.Context) error {
	if s.f.provider == "" {
		return need("the model with --provider, --model and --key-file, or with ZEPH_LLM_PROVIDERS_MAIN_MODEL and " +
			"ZEPH_LLM_PROVIDERS_MAIN_API_KEY")
	}
	if all := append(types(), presets()...); !slices.Contains(all, s.f.provider) {
		if d, known := dialect.Meant(s.f.provider); known {
			if d.Name == "" {
				return usageError{
					fmt.Errorf(
						"--provider %q: %s has no preset; write --provider openai --base-url %s",
						s.f.provider, d.Title, d.BaseURL,
					),
				}
			}
			return usageError{fmt.Errorf("--provider %q: for %s write --provider %s", s.f.provider, d.Title, d.Name)}
		}
		text := fmt.Sprintf("--provider %q: there are %s", s.f.provider, strings.Join(types(), ", "))
		text += "; presets: " + strings.Join(presets(), ", ")
		if near, ok := nearest.Nearest(s.f.provider, all); ok {
			text += "; did you mean " + near + "?"
		}
		return usageError{errors.New(text)}
	}
	p := newProvider(s.f.provider)
	p.BaseURL, p.Model = cmp.Or(s.f.baseURL, p.BaseURL), s.f.model
	if p.BaseURL == "" && p.Type != "offline" {
		return need("the address of your own resource with --base-url")
	}
	if s.f.baseURL != "" && !address(s.f.baseURL) {
		return usageError{
			fmt.Errorf("--base-url: want an address such as https://host/v1, without user name and query"),
		}
	}
	if s.f.keyFile != "" {
		var err error
		if p.APIKey, err = s.c.secretFile("--key-file", s.f.keyFile); err != nil {
			return err
		}
	} else {
		_, p.APIKey = s.vendorKey(p)
	}
	if p.Model == "" && p.Type != "offline" {
		return need("the name of the model with --model")
	}
	if trouble := s.tryUnlessTold(ctx, p); trouble != nil {
		return refused(trouble)
	}
	s.out.Provider = p
	return nil
}

// types are the types of providers.
func types() []string { return []string{"openai", "anthropic", "ollama", "offline"} }

// presets are the presets, which --provider names too.
func presets() []string {
	var list []string
	all, err := dialect.All()
	if err != nil { // the table is part of the program, and tested
		return nil
	}
	for _, d := range all {
		list = append(list, d.Name)
	}
	return list
}

// newProvider returns a provider with the defaults of its kind: a type, or a preset.
func newProvider(kind string) *config.Provider {
	if slices.Contains(types(), kind) {
		return config.NewProvider(mainName, kind)
	}
	p, _ := config.NewPreset(mainName, kind)
	return p
}

// address says whether a text is the address of an API.
func address(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && (u.RawQuery == "" || strings.HasPrefix(u.RawQuery, "api-version="))
}

// pick asks which source it is.
func (s *setup) pick(list []source) (source, error) {
	for i, one := range list {
		s.in.say("  %*d  %s", len(strconv.Itoa(len(list))), i+1, one.title)
	}
	for {
		answer, err := s.in.line("Which one? [1]: ")
		if err != nil {
			return source{}, err
		}
		n, err := strconv.Atoi(cmp.Or(answer, "1"))
		if err == nil && n >= 1 && n <= len(list) {
			return list[n-1], nil
		}
		s.in.say("Please type a number from 1 to %d.", len(list))
	}
}

// askProvider asks for what a source needs, until the model answers; done is false if the person wants another source.
func (s *setup) askProvider(ctx context.Context, from source) (p *config.Provider, done bool, err error) {
	p = newProvider(from.kind)
	if from.kind == "offline" {
		return p, true, nil
	}
	if p.BaseURL, err = s.askAddress(from.address, p.BaseURL, from.example); err != nil {
		return nil, false, err
	}
	if err = s.askKey(p, from.key); err != nil {
		return nil, false, err
	}
	names, err := s.listModels(ctx, p)
	if err != nil {
		return nil, false, err
	}
	if err = s.askModelName(p, names, from.propose); err != nil {
		return nil, false, err
	}
	for {
		trouble := s.tryUnlessTold(ctx, p)
		if trouble == nil {
			return p, true, nil
		}
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		s.in.sentence(trouble.Text, "")
		switch next, err := s.mend(ctx, p, trouble); {
		case err != nil || next == another:
			return nil, false, err
		case next == keep:
			return p, true, nil
		}
	}
}

// remedy is what becomes of a model that does not answer.
type remedy int

const (
	retry   remedy = iota // it is asked again
	keep                  // it is taken anyway
	another               // another one is chosen
)

// mend asks for what made a model not answer.
func (s *setup) mend(ctx context.Context, p *config.Provider, trouble *providers.Trouble) (remedy, error) {
	switch trouble.Kind {
	case providers.WrongKey:
		key, err := s.in.secret("Key, once more; Enter chooses another model")
		if err != nil || key == "" {
			return another, err
		}
		p.APIKey = key
		return retry, nil
	case providers.UnknownModel:
		names, err := s.listModels(ctx, p)
		if err != nil {
			return retry, err
		}
		return retry, s.askModelName(p, names, trouble.Near)
	default:
		answer, err := s.in.line("Enter tries it again, k keeps it anyway, o chooses another one: ")
		switch strings.ToLower(answer) {
		case "k":
			return keep, err
		case "o":
			return another, err
		default:
			return retry, err
		}
	}
}

// askAddress asks for the address of an API if it is not known.
func (s *setup) askAddress(known, byDefault, example string) (string, error) {
	if known != "?" {
		return cmp.Or(known, byDefault), nil
	}
	for {
		answer, err := s.in.line("Address of its API, such as " + example + ": ")
		if err != nil {
			return "", err
		}
		if address(answer) {
			return strings.TrimRight(answer, "/"), nil
		}
		s.in.say("That is no address: it begins with https:// or http://, and has no user name and no query.")
	}
}

// askKey asks for a key. Only servers that somebody runs for themselves need none.
func (s *setup) askKey(p *config.Provider, wanted bool) error {
	if !wanted {
		return nil
	}
	own := p.Preset == "" && p.BaseURL != newProvider(p.Type).BaseURL
	prompt := "Key of the API"
	variable, value := s.vendorKey(p)
	switch {
	case value != "":
		prompt += "; Enter takes the one of " + variable
	case own:
		prompt += "; Enter if it needs none"
	}
	for {
		key, err := s.in.secret(prompt)
		if err != nil {
			return err
		}
		if key = cmp.Or(key, value); key != "" || own {
			p.APIKey = key
			return nil
		}
	}
}

// vendorKey returns the variable in which the vendor of a provider keeps its keys, and its value.
func (s *setup) vendorKey(p *config.Provider) (variable string, value config.Secret) {
	d, known := dialect.Named(p.Preset)
	if !known {
		d, known = dialect.OfAddress(p.BaseURL)
	}
	if !known || d.Key == "" {
		return "", ""
	}
	for _, one := range s.c.source().Env {
		if text, found := strings.CutPrefix(one, d.Key+"="); found {
			return d.Key, config.Secret(text)
		}
	}
	return d.Key, ""
}

// listModels returns the models that the vendor has, as far as its server has a list. A key that is refused is asked
// for again; one that may not read the list can be kept.
func (s *setup) listModels(ctx context.Context, p *config.Provider) ([]string, error) {
	for !s.f.unchecked {
		names, err := providers.New(providers.Options{Config: s.env, Log: zerolog.Nop()}).List(ctx, *p)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			return names, nil
		}
		trouble := providers.TroubleOf(p, err)
		if trouble.Kind != providers.WrongKey {
			return nil, nil // the call that follows says what is wrong
		}
		s.in.sentence(trouble.Text, "")
		key, err := s.in.secret("Key, once more; Enter goes on with this one")
		if err != nil || key == "" {
			return nil, err
		}
		p.APIKey = key
	}
	return nil, nil
}

// askModelName asks which model, and names some that the vendor has.
func (s *setup) askModelName(p *config.Provider, names []string, propose string) error {
	if propose != "" && len(names) > 0 && !slices.Contains(names, propose) {
		propose = ""
	}
	if len(names) > 0 {
		const most = 12
		s.in.say(
			"It has %d models: %s%s",
			len(names),
			strings.Join(names[:min(len(names), most)], ", "),
			map[bool]string{true: " …"}[len(names) > most],
		)
	}
	prompt := "Model: "
	if propose != "" {
		prompt = "Model [" + propose + "]: "
	}
	for {
		answer, err := s.in.line(prompt)
		if err != nil {
			return err
		}
		if p.Model = cmp.Or(answer, propose); p.Model != "" {
			return nil
		}
	}
}

// try asks a model for one word.
func (s *setup) try(ctx context.Context, p *config.Provider) *providers.Trouble {
	trouble := providers.New(providers.Options{Config: s.env, Log: zerolog.Nop()}).Try(ctx, *p)
	if trouble == nil && p.Type != "offline" {
		s.in.say("ok: %s answers.", p.Model)
	}
	return trouble
}

func (s *setup) tryUnlessTold(ctx context.Context, p *config.Provider) *providers.Trouble {
	if s.f.unchecked || p.Type == "offline" {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, s.env.LLM.Idle)
	defer cancel()
	return s.try(within, p)
}
