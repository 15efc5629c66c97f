package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/providers"
	"github.com/zephbot/zephbot/cmd/internal/upkeep"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/policy/nearest"
)

// noModel says that no model is configured.
func (d *doctor) noModel(context.Context) []Row {
	switch {
	case len(d.c.LLM.Providers) > 0:
		return nil
	case d.c.Telegram.Token == "":
		return []Row{
			warn("model", "none is configured: the simulator answers with the built-in offline model")(
				"zephbot setup, or add [[llm.providers]]",
			),
		}
	default:
		return []Row{
			fail("model", "none is configured: serve does not start")("zephbot setup, or add [[llm.providers]]"),
		}
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
	trouble := d.providers(nil).Try(ctx, *p)
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
		rows = append(rows, row(about, "%s", trouble.Text+listModels(trouble.Models))(trouble.Cure(d.c, i, p)))
	}
	rows = append(rows, d.otherModels(ctx, i, p, trouble)...)
	if p.SpeechModel != "" && (trouble == nil || trouble.Kind == providers.UnknownModel) {
		rows = append(rows, d.speech(ctx, i, p))
	}
	return rows
}

// listModels lists the models of a vendor that does not have the configured one.
func listModels(models []string) string {
	const most = 12
	switch {
	case len(models) == 0:
		return ""
	case len(models) > most:
		return fmt.Sprintf(" (it has %s and %d more)", strings.Join(models[:most], ", "), len(models)-most)
	}
	return " (it has " + strings.Join(models, ", ") + ")"
}

// speech has a provider speak one word: what it makes is known only then.
func (d *doctor) speech(ctx context.Context, i int, p *config.Provider) Row {
	const about = "speech"
	voice, err := d.providers(nil).VoiceOf(*p)
	if err == nil {
		var sound llm.Sound
		if sound, _, err = voice.Speak(cost.WithPayer(ctx, cost.Unlimited{}), "OK.", ""); err == nil {
			return ok(about, "%s speaks, as %s", p.SpeechModel, sound.Type)[0]
		}
	}
	return warn(about, "%s does not speak: %s", p.SpeechModel, err)(
		fmt.Sprintf("correct llm.providers[%d].speech_model or speech_voice; it has to make Opus or MP3", i),
	)
}

// placeless is the row of a provider whose address, type or preset is wrong: it is not asked, because the default
// address is that of a vendor whom its key may be nothing to.
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
	troubles := make([]*providers.Trouble, len(tried))
	var running sync.WaitGroup
	for n, key := range tried {
		alone := *p
		alone.APIKey, alone.APIKeys = key, nil
		running.Go(func() { troubles[n] = d.providers(nil).Try(ctx, alone) })
	}
	running.Wait()
	var rows []Row
	for n, t := range troubles {
		if t != nil {
			rows = append(rows, warn(about, "key %d of %d: %s", n+1, len(keys), t.Text)(t.Cure(d.c, i, p)))
		}
	}
	return rows
}

// depends says whether turns or searches depend on a provider.
func (d *doctor) depends(name string) bool {
	l := d.c.LLM
	for _, persona := range d.c.Personas {
		if persona.Model != "" && d.c.ProviderOf(persona.Model) == name {
			return true
		}
	}
	return slices.Contains(
		slices.Concat([]string{l.Primary, l.Embedding, d.c.MCP.ToolDiscovery.Provider}, l.Fallback, l.Choices), name,
	)
}

// otherModels looks for the models for embeddings, transcription and pictures in the list that a
// provider has, which costs nothing.
func (d *doctor) otherModels(ctx context.Context, i int, p *config.Provider, trouble *providers.Trouble) []Row {
	wanted := []struct{ check, key, model string }{}
	if p.EmbeddingModel != "" && (d.c.LLM.Embedding == p.Name || d.c.MCP.ToolDiscovery.Provider == p.Name) {
		wanted = append(wanted, struct{ check, key, model string }{"embedding", "embedding_model", p.EmbeddingModel})
	}
	if p.TranscriptionModel != "" {
		wanted = append(wanted, struct{ check, key, model string }{
			"transcription",
			"transcription_model",
			p.TranscriptionModel,
		})
	}
	if p.ImageModel != "" { // not tried: a picture costs cents
		wanted = append(wanted, struct{ check, key, model string }{"pictures", "image_model", p.ImageModel})
	}
	if len(wanted) == 0 {
		return nil
	}
	names, err := d.providers(nil).List(ctx, *p)
	var rows []Row
	for _, w := range wanted {
		key := fmt.Sprintf("llm.providers[%d].%s", i, w.key)
		switch {
		case trouble != nil && trouble.Kind != providers.UnknownModel:
			rows = append(rows, warn(
				w.check, "%s cannot be looked for: %s", w.model, trouble.Text,
			)("see the row model "+p.Name))
		case err != nil || len(names) == 0:
			rows = append(rows, ok(
				w.check, "%s of %s is used; the server has no list in which it could be looked up", w.model, p.Name,
			)...)
		case listed(names, w.model):
			rows = append(rows, ok(w.check, "%s offers %s", p.Name, w.model)...)
		default:
			rows = append(rows, fail(
				w.check, "%s does not offer %s%s", p.Name, w.model, meant(w.model, names),
			)("correct "+key))
		}
	}
	return rows
}

// meant suggests the nearest model of a list.
func meant(model string, names []string) string {
	if near, ok := nearest.Nearest(model, names); ok {
		return "; did you mean " + near + "?"
	}
	return ""
}

// listed says whether a list of models has one. Ollama lists "name:latest" for "name".
func listed(names []string, model string) bool {
	return slices.Contains(names, model) || slices.Contains(names, model+":latest")
}

// limits looks at the limits that were set in the chat, as the database has them.
func (d *doctor) limits(ctx context.Context) []Row {
	const about = "quotas"
	url := d.c.Database.URL.Reveal()
	store, err := persistence.OpenReader(ctx, d.dir, url)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nobody has set any
	}
	unread := warn(
		about, "whether limits that were set in the chat fit the models is not known: the database cannot be read",
	)("see the row database")
	if err != nil {
		return []Row{unread}
	}
	defer func() { _ = store.Close() }() // it was only read
	stored, err := store.FactsOf(ctx, quota.Bucket, "", d.opts.Now())
	if err != nil {
		return []Row{unread}
	}
	m := d.providers(nil)
	entries, err := upkeep.LearntIn(ctx, d.c, d.dir, url, d.opts.Now())
	if err != nil {
		return []Row{unread}
	}
	for _, e := range entries {
		m.Learnt.Update(e.Provider, e.Model, func(l *dialect.Learnt) { *l = *e.Learnt.Clone() })
	}
	list := quota.SetLimits(stored)
	var rows []Row
	for _, text := range m.SetLimits(list) {
		i := strings.LastIndex(text, "; ")
		rows = append(rows, warn(about, "%s", text[:i])(text[i+2:]))
	}
	if len(rows) == 0 && len(list) > 0 {
		return ok(about, "%d limits are set in the chat; they fit the models", len(list))
	}
	return rows
}

// providers returns the models as they are configured; refused may be nil.
func (d *doctor) providers(refused func(words string)) *providers.Set {
	return providers.New(providers.Options{Config: d.c, Now: d.opts.Now, Log: zerolog.Nop(), Refused: refused})
}
