// Package anthropic is a client for Anthropic's Messages API, as a stream. What stays the same from call to call
// (tools, system prompt, earlier messages) is marked for the vendor's prompt cache. The client never retries by itself
// and never includes a key in an error.
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/history"
	"github.com/zephbot/zephbot/agent/llm/media"
	"github.com/zephbot/zephbot/agent/llm/negotiate"
	"github.com/zephbot/zephbot/agent/llm/textcall"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// Defaults of Options.
const (
	DefaultBaseURL   = "https://api.anthropic.com"
	defaultMaxTokens = 4096
)

// Key is an API key.
type Key = wire.Key

// Options configure a Provider. Name, Model and Key are required.
type Options struct {
	Name      string
	BaseURL   string // "" = DefaultBaseURL
	Key       Key
	Model     string
	MaxTokens int // default limit of an answer, which the API requires; 0 = defaultMaxTokens
	// Idle is how long the server may be silent, before the first piece of an answer and between any two. 0 = no limit.
	Idle   time.Duration
	Tariff cost.Tariff // of Model; the zero value = it costs nothing
	// Dialect is what the server accepts, before anything is learnt of it; the zero value = an unknown server,
	// which gets what all of them take.
	Dialect dialect.Dialect
	// Memory keeps what is learnt of the server; nil = as long as the Provider lives.
	Memory dialect.Memory
	// Learner is shared by the Providers of one server and model that have different keys; nil = one of this Provider.
	Learner *negotiate.Learner
	// Refused is called with what the server says when it refuses the form of a request; nil = nobody wants to know.
	Refused func(words string)
	// Native is the part of the system prompt for models with tool calls, as fenced.Options.Native.
	Native string
	// Accepts lists what the model takes besides text; nil = by its name (media.OfModel). Sounds are never taken,
	// because the API does not support them.
	Accepts    *llm.Accepts
	HTTPClient *http.Client     // nil = a new one; redirects are never followed
	Now        func() time.Time // for Retry-After dates; nil = time.Now
	Log        zerolog.Logger
}

// Provider is an llm.Provider. Safe for concurrent use.
type Provider struct {
	o      Options
	host   string
	client *http.Client
	rules  media.Rules
	forms  *negotiate.Negotiator
}

// New checks the options and returns a provider. It sends nothing.
func New(o Options) (*Provider, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	u, err := url.Parse(o.BaseURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("provider %s: base_url must look like https://host, without user name and query", o.Name)
	}
	// The path is added below. People write /v1 here as they do for other vendors.
	o.BaseURL = strings.TrimSuffix(strings.TrimRight(o.BaseURL, "/"), "/v1") + "/"
	o.Dialect = o.Dialect.OfModel(o.Model)
	if o.MaxTokens == 0 {
		o.MaxTokens = defaultMaxTokens
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Provider{o: o, host: u.Host, client: wire.NewClient(o.HTTPClient), rules: mediaRules(&o)}
	p.forms = negotiate.New(negotiate.Options{
		Provider:  o.Name,
		Model:     o.Model,
		Dialect:   o.Dialect,
		Memory:    o.Memory,
		Learner:   o.Learner,
		Rules:     &p.rules,
		Ask:       p.askForm,
		FixedWire: true,
		Native:    o.Native,
		Clean:     o.Key.Clean,
		Refused:   o.Refused,
		Now:       o.Now,
		Log:       o.Log,
	})
	return p, nil
}

// mediaRules returns the API's limits (Messages API, November 2026): pictures of at most 5 MB in base64,
// PDF in requests of at most 32 MB.
func mediaRules(o *Options) media.Rules {
	accepts := media.OfModel(o.Model)
	if o.Accepts != nil {
		accepts = *o.Accepts
	}
	accepts.Audio = false
	return media.Rules{
		Accepts: accepts, Types: []string{"image/jpeg", "image/png", "image/gif", "image/webp", "application/pdf"},
		Image: 5_000_000 / 4 * 3, Other: 15_000_000, Total: 15_000_000,
	}
}

// Accepts implements llm.Accepter.
func (p *Provider) Accepts() llm.Accepts {
	if !p.forms.Pictures() {
		return llm.Accepts{}
	}
	return p.rules.Accepts
}

func (o *Options) validate() error {
	switch {
	case o.Name == "":
		return errors.New("anthropic provider: name is empty")
	case o.Model == "":
		return fmt.Errorf("provider %s: model is empty", o.Name)
	case o.Key == "":
		return fmt.Errorf("provider %s: api_key is empty", o.Name)
	case strings.ContainsAny(string(o.Key), "\r\n\x00"):
		return fmt.Errorf("provider %s: api_key contains a line break", o.Name)
	case o.MaxTokens < 0 || o.Idle < 0:
		return fmt.Errorf("provider %s: max_tokens and idle time must not be negative", o.Name)
	default:
		return nil
	}
}

// Name implements llm.Provider.
func (p *Provider) Name() string { return p.o.Name }

// errSilence is the cancellation cause set by the watchdog.
var errSilence = errors.New("server is silent")

// Chat implements llm.Provider.
func (p *Provider) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	return p.forms.Chat(ctx, req, onDelta) //nolint:wrapcheck // by ask
}

// askForm sends one request.
func (p *Provider) askForm(
	ctx context.Context, req *llm.Request, contents *media.Contents, form *negotiate.Form, onDelta func(string),
) (*llm.Response, *negotiate.Refusal, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, fmt.Errorf("model %s: %w", p.o.Name, err)
	}
	callCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	listen, pause := func() {}, func() {}
	if p.o.Idle > 0 {
		timer := time.AfterFunc(p.o.Idle, func() { cancel(errSilence) })
		defer timer.Stop()
		listen, pause = func() { timer.Reset(p.o.Idle) }, func() { timer.Stop() }
	}
	x := &exchange{client: p.client, contents: contents}
	rules := history.Rules{History: form.Dialect.History}
	req = rules.Request(req)
	list, err := p.encodeTools(req, form)
	if err != nil {
		return nil, nil, fmt.Errorf("model %s: %w", p.o.Name, err)
	}
	names, tools := list.Names, list.Text
	req = list.Noted(req)
	speech := &textcall.Options{
		Tools:   req.Tools,
		Opened:  form.Dialect.Traits.OpensThought,
		Text:    onDelta,
		Thought: req.OnThought,
		Void:    req.OnReset,
		Decode:  names.Decode,
	}
	if len(speech.Tools) == 0 {
		speech.Tools = req.TextTools
	}
	a := &answer{host: p.host, asked: p.o.Model, names: names, words: textcall.New(speech)}
	body, err := p.makeRequest(req, names, tools, contents).encodeWith(tools)
	if err == nil {
		body, err = form.Edits.Object(body)
	}
	if err == nil {
		if repeated := form.Check(body); repeated != nil {
			return nil, nil, repeated //nolint:wrapcheck // for the negotiator
		}
		err = p.runExchange(callCtx, x, body, a, listen, pause)
	}
	if err == nil && !a.over && a.stop == "" && !(x.ended && a.size > 0) {
		err = p.unansweredError(x, a.size > 0 || len(a.blocks) > 0)
	}
	if err != nil {
		err = p.classifyFailure(ctx, callCtx, x, err, a.words.Shown())
		if x.refusal {
			said := a.words.Finish(true)
			return &llm.Response{
				Text:     said.Text,
				Thoughts: said.Thoughts,
				Stop:     llm.StopRefusal,
				Filtered: said.Text != "",
				Provider: p.o.Name,
				Model:    p.o.Model,
			}, nil, nil
		}
		if x.complaint == nil || a.words.Shown() {
			return nil, nil, err
		}
		return nil, &negotiate.Refusal{Complaint: x.complaint, Body: body, Names: names}, err
	}
	res := a.makeResponse()
	p.forms.Began(speech.Opened, a.said.Unopened, a.said.Text != "" && a.said.Thoughts == "")
	if err := wire.FilledWindow(req, res, cmp.Or(req.MaxTokens, p.o.MaxTokens)); err != nil {
		return nil, nil, p.classifyFailure(ctx, callCtx, x, err, false)
	}
	res.Provider = p.o.Name
	if res.Model == "" {
		res.Model = p.o.Model
	}
	res.USD = p.costOf(a.usage)
	p.o.Log.Debug().Str("provider", p.o.Name).Str("model", res.Model).
		Str("stop", string(res.Stop)).
		Int("input_tokens", res.Usage.Input).
		Int("cached_tokens", res.Usage.CachedInput).Int("output_tokens", res.Usage.Output).Msg("model answered")
	return res, nil, nil
}

// runExchange sends a request and reads the answer up to its end or the first failure.
func (p *Provider) runExchange(ctx context.Context, x *exchange, body []byte, a *answer, listen, pause func()) error {
	listen()
	answered, err := x.sendBody(ctx, p.o.BaseURL+"v1/messages", p.o.Key, body)
	if err != nil {
		return err
	}
	defer func() { _ = answered.Close() }() // the unread rest is not needed
	events := newStream(answered)
	x.events = events
	for !a.over {
		listen()
		e, err := events.nextEvent()
		pause() // the time that onDelta takes does not count as silence
		switch {
		case errors.Is(err, io.EOF):
			x.ended = events.ended
			if events.skipped > 0 {
				p.o.Log.Debug().Str("provider", p.o.Name).Int("events", events.skipped).
					Msg("events that are not JSON were skipped")
			}
			return nil
		case err != nil:
			return err
		}
		if err := a.takeEvent(e); err != nil {
			return err
		}
	}
	return nil
}

// costOf returns what a call costs. The vendor counts what is read from its cache, written
// into it and read afresh apart.
func (p *Provider) costOf(u usage) float64 {
	all := llm.Usage{Input: int(u.fresh + u.written + u.read), CachedInput: int(u.read), Output: int(u.output)}
	return p.o.Tariff.Cost(p.o.Now(), all, int(u.written))
}
