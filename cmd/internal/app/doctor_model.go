package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/anthropic"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy/nearest"
)

// noModel says that no model is configured.
func (d *doctor) noModel(context.Context) []Row {
	switch {
	case len(d.c.LLM.Providers) > 0:
		return nil
	case d.c.Telegram.Token == "":
		return []Row{warn("model", "none is configured: the simulator answers with the built-in offline model")("zephbot setup, or add [[llm.providers]]")}
	default:
		return []Row{fail("model", "none is configured: serve does not start")("zephbot setup, or add [[llm.providers]]")}
	}
}

// model asks one provider for one word, and looks for the other models that are used of it. One that nothing depends on
// is only a warning.
func (d *doctor) model(ctx context.Context, i int, p *config.Provider) []Row {
	about := "model " + p.Name
	if p.Type == "offline" {
		row := Row{Check: about, Status: OK, Text: "the built-in model without intelligence, to try things out"}
		if d.c.Telegram.Token != "" && p.Name == d.c.LLM.Primary {
			row.Status, row.Cure = Warn, "choose a real model: zephbot setup, or llm.providers"
		}
		return []Row{row}
	}
	if p.BaseURL == "" {
		return []Row{placeless(about)}
	}
	rows := []Row{}
	trouble := TryModel(ctx, d.opts.Options, *p)
	switch {
	case trouble == nil:
		rows = ok(about, "%s answers", p.Model)
		if what := d.known(ctx)[p.Name+" "+p.Model]; what != "" {
			rows = ok(about, "%s answers; learnt of its server: %s", p.Model, what)
		}
		rows = append(rows, d.refusedKeys(ctx, about, i, p)...)
	default:
		row := fail
		if !d.depends(p.Name) || trouble.Passing {
			row = warn
		}
		rows = append(rows, row(about, "%s", trouble.Text)(trouble.cure(d.c, i, p)))
	}
	return append(rows, d.otherModels(ctx, i, p, trouble)...)
}

// placeless is the row of a provider whose address, type or preset is wrong: it is not asked, because the default address
// is that of a vendor whom its key may be nothing to.
func placeless(about string) Row {
	return warn(about, "is not asked: the configuration does not say whose server it is")("see the row config")
}

// maxKeys bounds how many keys of a pool are tried.
const maxKeys = 16

// refusedKeys asks a provider that answers with each key of its pool alone: of those that rest, nobody would know else.
func (d *doctor) refusedKeys(ctx context.Context, about string, i int, p *config.Provider) []Row {
	keys := p.Keys()
	if len(keys) < 2 {
		return nil
	}
	tried := keys[:min(len(keys), maxKeys)]
	troubles := make([]*ModelTrouble, len(tried))
	var running sync.WaitGroup
	for n, key := range tried {
		alone := *p
		alone.APIKey, alone.APIKeys = key, nil
		running.Go(func() { troubles[n] = TryModel(ctx, d.opts.Options, alone) })
	}
	running.Wait()
	var rows []Row
	for n, t := range troubles {
		if t != nil {
			rows = append(rows, warn(about, "key %d of %d: %s", n+1, len(keys), t.Text)(t.cure(d.c, i, p)))
		}
	}
	return rows
}

// depends says whether turns or searches depend on a provider.
func (d *doctor) depends(name string) bool {
	l := d.c.LLM
	return slices.Contains(slices.Concat([]string{l.Primary, l.Embedding, d.c.MCP.ToolDiscovery.Provider}, l.Fallback, l.Choices), name)
}

// otherModels looks for the models for embeddings and transcription in the list that a provider has, which costs nothing.
func (d *doctor) otherModels(ctx context.Context, i int, p *config.Provider, trouble *ModelTrouble) []Row {
	wanted := []struct{ check, key, model string }{}
	if p.EmbeddingModel != "" && (d.c.LLM.Embedding == p.Name || d.c.MCP.ToolDiscovery.Provider == p.Name) {
		wanted = append(wanted, struct{ check, key, model string }{"embedding", "embedding_model", p.EmbeddingModel})
	}
	if p.TranscriptionModel != "" {
		wanted = append(wanted, struct{ check, key, model string }{"transcription", "transcription_model", p.TranscriptionModel})
	}
	if len(wanted) == 0 {
		return nil
	}
	names, err := Models(ctx, d.opts.Options, *p)
	var rows []Row
	for _, w := range wanted {
		key := fmt.Sprintf("llm.providers[%d].%s", i, w.key)
		switch {
		case trouble != nil && trouble.Kind != UnknownModel:
			rows = append(rows, warn(w.check, "%s cannot be looked for: %s", w.model, trouble.Text)("see the row model "+p.Name))
		case err != nil || len(names) == 0:
			rows = append(rows, ok(w.check, "%s of %s is used; the server has no list in which it could be looked up", w.model, p.Name)...)
		case listed(names, w.model):
			rows = append(rows, ok(w.check, "%s offers %s", p.Name, w.model)...)
		default:
			rows = append(rows, fail(w.check, "%s does not offer %s%s", p.Name, w.model, meant(w.model, names))("correct "+key))
		}
	}
	return rows
}

// listed says whether a list of models has one. Ollama lists "name:latest" for "name".
func listed(names []string, model string) bool {
	return slices.Contains(names, model) || slices.Contains(names, model+":latest")
}

// meant suggests the nearest model of a list.
func meant(model string, names []string) string {
	if near, ok := nearest.Nearest(model, names); ok {
		return "; did you mean " + near + "?"
	}
	return ""
}

// ModelKind says why a model does not answer.
type ModelKind string

// The reasons.
const (
	WrongKey     ModelKind = "key"       // missing, wrong, or without permission
	NoCredit     ModelKind = "credit"    // the account is empty
	UnknownModel ModelKind = "model"     // the vendor has no such model
	NotReached   ModelKind = "reach"     // no answer, or not one of such an API
	ModelBusy    ModelKind = "busy"      // it works, but not at this moment
	ModelRefused ModelKind = "refused"   // anything else
	ModelInvalid ModelKind = "configure" // the configuration of the provider is wrong
)

// ModelTrouble says why a model does not answer, in a sentence without secrets.
type ModelTrouble struct {
	Kind    ModelKind
	Text    string
	Near    string // the model that was probably meant; "" = none
	Passing bool   // it may work a moment later
}

// Error implements error.
func (t *ModelTrouble) Error() string { return t.Text }

// cure says what to do about it.
func (t *ModelTrouble) cure(c *config.Config, i int, p *config.Provider) string {
	key := func(setting string) string {
		name := fmt.Sprintf("llm.providers[%d].%s", i, setting)
		if from := c.Origin(name).String(); from != "default" {
			return name + " (" + from + ")"
		}
		return name
	}
	switch t.Kind {
	case WrongKey:
		switch {
		case len(p.APIKeys) > 0 && p.APIKey == "":
			return "correct " + key("api_keys")
		case len(p.APIKeys) > 0:
			return "correct " + key("api_key") + " or " + key("api_keys")
		}
		return "correct " + key("api_key") + ", or " + keyVariables(p)
	case NoCredit:
		return "add credit at the vendor, or use another provider"
	case UnknownModel:
		return "correct " + key("model")
	case NotReached:
		return "see that the server runs and this machine reaches it; its address is " + key("base_url")
	case ModelBusy:
		return "wait, or add a second provider to llm.fallback"
	default:
		return "look at " + fmt.Sprintf("llm.providers[%d]", i)
	}
}

// TryModel asks a provider for one word, and returns why it does not answer; nil = it does. It costs next to nothing.
func TryModel(ctx context.Context, opts Options, p config.Provider) *ModelTrouble {
	opts.Log, opts.Now = zerolog.Nop(), now(opts)
	c := newCore(opts)
	provider, err := c.newModel(p)
	if err != nil {
		return &ModelTrouble{Kind: ModelInvalid, Text: err.Error()}
	}
	_, err = spend.Try(ctx, provider)
	if err == nil {
		return nil
	}
	t := troubleOf(&p, err)
	if t.Kind == UnknownModel {
		if names, err := Models(ctx, opts, p); err == nil {
			if t.Near, _ = nearest.Nearest(p.Model, names); t.Near != "" {
				t.Text += "; did you mean " + t.Near + "?"
			}
		}
	}
	return t
}

// troubleOf says what the failure of a call means.
func troubleOf(p *config.Provider, err error) *ModelTrouble {
	text, status, at := err.Error(), 0, address(*p)
	if e, ok := errors.AsType[*llm.Error](err); ok {
		text, status = fmt.Sprint(e.Err), e.Status
	}
	trouble := func(kind ModelKind, format string, args ...any) *ModelTrouble {
		return &ModelTrouble{Kind: kind, Passing: kind == ModelBusy, Text: at + " " + fmt.Sprintf(format, args...)}
	}
	switch kind := llm.KindOf(err); kind {
	case llm.NoCredit:
		return trouble(NoCredit, "accepts the key, but the account has no credit (%s)", text)
	case llm.UnknownModel:
		return trouble(UnknownModel, "has no model %s", p.Model)
	case llm.Region:
		return trouble(ModelRefused, "does not serve the country of this machine (%s)", text)
	case llm.WrongAddress:
		if status == http.StatusNotFound {
			return trouble(NotReached, "is no such API (404); most addresses end with /v1")
		}
		return trouble(NotReached, "is not a model server with this API (%s)", text)
	case llm.Unauthorized:
		if p.Keys()[0] == "" {
			return trouble(WrongKey, "wants a key, and none is configured")
		}
		return trouble(WrongKey, "does not accept the key (%s)", text)
	case llm.RateLimited:
		return trouble(ModelBusy, "is asked too often (%s)", text)
	case llm.Timeout, llm.Overtime:
		return trouble(NotReached, "does not answer in time")
	case llm.Unavailable, llm.Truncated:
		if status == 0 && kind == llm.Unavailable {
			return trouble(NotReached, "cannot be reached (%s)", text)
		}
		return trouble(ModelBusy, "does not work at the moment (%s)", text)
	default:
		return trouble(ModelRefused, "refuses the request (%s)", text)
	}
}

// Models returns the names of the models that a provider offers, as far as its server has a list.
func Models(ctx context.Context, opts Options, p config.Provider) ([]string, error) {
	if p.Model == "" {
		p.Model = "unknown" // it is not asked
	}
	switch p.Type {
	case "offline":
		return nil, nil
	case "anthropic":
		provider, err := anthropic.New(anthropic.Options{Name: p.Name, BaseURL: p.BaseURL, Key: anthropic.Key(p.Keys()[0].Reveal()), Model: p.Model})
		if err != nil {
			return nil, err
		}
		return provider.Models(ctx)
	default:
		opts.Log, opts.Now = zerolog.Nop(), now(opts)
		members, err := newCore(opts).openaiMembers(p)
		if err != nil {
			return nil, err
		}
		return members[0].Models(ctx)
	}
}
