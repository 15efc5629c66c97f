package providers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/wire"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy/nearest"
)

// Kind says why a model does not answer.
type Kind string

// The reasons.
const (
	WrongKey     Kind = "key"       // missing, wrong, or without permission
	NoCredit     Kind = "credit"    // the account is empty
	UnknownModel Kind = "model"     // the vendor has no such model
	NotReached   Kind = "reach"     // no answer, or not one of such an API
	Busy         Kind = "busy"      // it works, but not at this moment
	Refused      Kind = "refused"   // anything else
	Invalid      Kind = "configure" // the configuration of the provider is wrong
)

// Trouble says why a model does not answer, in a sentence without secrets.
type Trouble struct {
	Kind    Kind
	Text    string
	Near    string   // the model that was probably meant; "" = none
	Models  []string // that the vendor has, if the model is unknown and its server has a list
	Passing bool     // it may work a moment later
}

// Error implements error.
func (t *Trouble) Error() string { return t.Text }

// Cure says what to do about it.
func (t *Trouble) Cure(c *config.Config, i int, p *config.Provider) string {
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
		return "correct " + key("api_key") + ", or " + KeyVariables(p)
	case NoCredit:
		return "add credit at the vendor, or use another provider"
	case UnknownModel:
		return "correct " + key("model")
	case NotReached:
		return "see that the server runs and this machine reaches it; its address is " + key("base_url")
	case Busy:
		return "wait, or add a second provider to llm.fallback"
	default:
		return "look at " + fmt.Sprintf("llm.providers[%d]", i)
	}
}

// Try asks a provider for one word, and returns why it does not answer; nil = it does. It costs next to nothing.
func (m *Set) Try(ctx context.Context, p config.Provider) *Trouble {
	provider, err := m.NewProvider(p)
	if err != nil {
		return &Trouble{Kind: Invalid, Text: err.Error()}
	}
	_, err = spend.Try(ctx, provider)
	if err == nil {
		return nil
	}
	t := TroubleOf(&p, err)
	if t.Kind == UnknownModel {
		if names, err := m.List(ctx, p); err == nil {
			t.Models = names
			if t.Near, _ = nearest.Nearest(p.Model, names); t.Near != "" {
				t.Text += "; did you mean " + t.Near + "?"
			}
		}
	}
	return t
}

// TroubleOf says what the failure of a call means.
func TroubleOf(p *config.Provider, err error) *Trouble {
	text, status, at := err.Error(), 0, Address(*p)
	if e, ok := errors.AsType[*llm.Error](err); ok {
		text, status = fmt.Sprint(e.Err), e.Status
	}
	trouble := func(kind Kind, format string, args ...any) *Trouble {
		return &Trouble{Kind: kind, Passing: kind == Busy, Text: at + " " + fmt.Sprintf(format, args...)}
	}
	switch kind := llm.KindOf(err); kind {
	case llm.NoCredit:
		return trouble(NoCredit, "accepts the key, but the account has no credit (%s)", text)
	case llm.UnknownModel:
		return trouble(UnknownModel, "has no model %s", p.Model)
	case llm.Region:
		return trouble(Refused, "does not serve the country of this machine (%s)", text)
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
		return trouble(Busy, "is asked too often (%s)", text)
	case llm.Timeout, llm.Overtime:
		return trouble(NotReached, "does not answer in time")
	case llm.Unavailable, llm.Truncated:
		if status == 0 && kind == llm.Unavailable {
			return trouble(NotReached, "cannot be reached (%s)", text)
		}
		return trouble(Busy, "does not work at the moment (%s)", text)
	default:
		return trouble(Refused, "refuses the request (%s)", text)
	}
}

// List returns the names of the models that a provider offers, as far as its server has a list.
func (m *Set) List(ctx context.Context, p config.Provider) ([]string, error) {
	if p.Model == "" {
		p.Model = "unknown" // it is not asked
	}
	switch p.Type {
	case "offline":
		return nil, nil
	case "anthropic":
		members, err := m.anthropicKeys(p)
		if err != nil {
			return nil, err
		}
		names, err := members[0].Models(ctx)
		return names, keyRefused(&p, err)
	default:
		members, err := m.openAIKeys(p)
		if err != nil {
			return nil, err
		}
		names, err := members[0].Models(ctx)
		return names, keyRefused(&p, err)
	}
}

// keyRefused makes the error of a list whose server wants another key one of its kind.
func keyRefused(p *config.Provider, err error) error {
	if !errors.Is(err, wire.ErrKey) {
		return err
	}
	return &llm.Error{Kind: llm.Unauthorized, Provider: p.Name, Status: http.StatusUnauthorized, Err: wire.ErrKey}
}

// KeyVariables names the variables from which the key of a provider can come: our own, and that of the vendor if it is
// named by a preset.
func KeyVariables(p *config.Provider) string {
	own := "ZEPH_LLM_PROVIDERS_" + environmentName(p.Name) + "_API_KEY"
	if d, named := dialect.Named(p.Preset); named && d.Key != "" {
		return own + " or " + d.Key
	}
	return own
}

// environmentName returns a name in the form of environment variables.
func environmentName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(name))
}
