// Package openai is a client for servers with an OpenAI-compatible API: conversations as a stream, over chat
// completions or the Responses API, and embeddings. It tolerates the differences between such servers (the tests list
// them) and never includes a key in an error. It never retries a failure. It asks a second time only if a server
// rejects the form of a request and another form is known (package negotiate), or a history with reasoning that the
// server can no longer read.
//
// Vendors cache the beginning of a prompt. So a request depends on nothing but its content, tools are sent in the given
// order, and a longer conversation begins with the same bytes: instructions, tools, earlier messages.
package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	goopenai "github.com/sashabaranov/go-openai"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/adapter"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/media"
	"github.com/zephbot/zephbot/agent/llm/negotiate"
	"github.com/zephbot/zephbot/agent/llm/price"
)

// DefaultBaseURL is the address of the vendor itself.
const DefaultBaseURL = "https://api.openai.com/v1"

// The values of Options.Wire.
const (
	WireAuto      = "auto"      // responses for models that accept tools only there, else chat
	WireChat      = "chat"      // POST /chat/completions, which every compatible server has
	WireResponses = "responses" // POST /responses
)

// Key is an API key.
type Key = adapter.Key

// Options configure a Provider. Name is required, and Model or EmbeddingModel.
type Options struct {
	Name           string // configured name, e.g. "main"
	BaseURL        string // "" = DefaultBaseURL
	Key            Key    // "" = no Authorization header (local servers)
	Model          string // for Chat
	EmbeddingModel string // for Embed
	// TranscriptionModel is for Transcribe, and what a minute of a recording costs.
	TranscriptionModel        string
	TranscriptionUSDPerMinute float64
	MaxTokens                 int // default limit of an answer; 0 = the server's default
	// Idle is how long the server may be silent, before the first piece of an answer and between any two. 0 = limited
	// only by the caller's context.
	Idle   time.Duration
	Tariff price.Tariff // of Model; the zero value = it costs nothing
	// Wire is the API for conversations: WireAuto (or ""), WireChat or WireResponses.
	Wire string
	// Dialect is what the server accepts, before anything is learnt of it; the zero value = an unknown server, which gets
	// what all of them take.
	Dialect dialect.Dialect
	// Memory keeps what is learnt of the server; nil = as long as the Provider lives.
	Memory dialect.Memory
	// Native is the part of the system prompt for models with tool calls, as fenced.Options.Native.
	Native string
	// Accepts is what the model takes besides text; nil = by its name (media.OfModel). Chat completions support
	// pictures, Responses PDF too; neither supports sounds.
	Accepts    *llm.Accepts
	HTTPClient *http.Client     // nil = a new one; redirects are never followed
	Now        func() time.Time // for Retry-After dates; nil = time.Now
	Log        zerolog.Logger
}

// Provider is an llm.Provider and llm.Embedder. Safe for concurrent use.
type Provider struct {
	o      Options
	client *http.Client
	rules  media.Rules

	chat      *completions
	responses *responses
	forms     *negotiate.Negotiator
}

// wire is one of a vendor's APIs for conversations. emit gets the text as it arrives. Errors can be of any kind:
// Provider classifies them.
type wire interface {
	chat(
		ctx context.Context, x *exchange, req *llm.Request, contents *media.Contents, emit func(string),
	) (*llm.Response, error)
}

// New checks the options and returns a provider. It sends nothing.
func New(o Options) (*Provider, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.BaseURL == "" {
		o.BaseURL = DefaultBaseURL
	}
	host, err := hostOf(o.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", o.Name, err)
	}
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	o.Dialect = o.Dialect.OfModel(o.Model)
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Provider{o: o, client: adapter.Client(o.HTTPClient)}
	p.chat, p.responses = &completions{provider: p, origin: host}, &responses{provider: p, origin: host}
	switch {
	case o.Wire == WireChat || o.Wire == WireResponses:
		p.o.Dialect.Wire = o.Wire
	case responsesOnly.MatchString(o.Model):
		p.o.Dialect.Wire = WireResponses
	}
	p.rules = rules(&p.o)
	p.forms = negotiate.New(negotiate.Options{
		Provider: o.Name, Model: o.Model, Dialect: p.o.Dialect, Memory: o.Memory, Rules: &p.rules, Ask: p.ask,
		FixedWire: o.Wire == WireChat || o.Wire == WireResponses, Native: o.Native, Clean: o.Key.Clean, Now: o.Now, Log: o.Log,
	})
	return p, nil
}

// rules returns the limits of the APIs (OpenAI's guides to images and files, November 2026; a request may have 50 MB).
func rules(o *Options) media.Rules {
	accepts := media.OfModel(o.Model)
	if o.Accepts != nil {
		accepts = *o.Accepts
	}
	accepts.Audio = false
	if o.Dialect.Wire != WireResponses { // only Responses supports files
		accepts.File = false
	}
	return media.Rules{
		Accepts: accepts, Types: []string{"image/png", "image/jpeg", "image/webp", "image/gif", "application/pdf"},
		Image: 10_000_000, Other: 15_000_000, Total: 15_000_000,
	}
}

// Accepts implements llm.Accepter.
func (p *Provider) Accepts() llm.Accepts {
	if !p.forms.Pictures() {
		return llm.Accepts{}
	}
	return p.rules.Accepts
}

// Learnt returns what is known of the server beyond its dialect; nil = nothing.
func (p *Provider) Learnt() *dialect.Learnt { return p.forms.Learnt() }

// responsesOnly matches models that reject tools on chat completions while they reason, with or without a vendor prefix
// ("openai/").
var responsesOnly = regexp.MustCompile(`^(?:.*/)?gpt-6`)

// wireOf returns the API for requests in a form.
func (p *Provider) wireOf(form *negotiate.Form) wire {
	if form.Dialect.Wire == WireResponses {
		return p.responses
	}
	return p.chat
}

func (o *Options) validate() error {
	switch {
	case o.Name == "":
		return errors.New("openai provider: name is empty")
	case o.Model == "" && o.EmbeddingModel == "" && o.TranscriptionModel == "":
		return fmt.Errorf("provider %s: none of model, embedding_model and transcription_model is set", o.Name)
	case o.MaxTokens < 0 || o.Idle < 0 || o.TranscriptionUSDPerMinute < 0:
		return fmt.Errorf("provider %s: max_tokens, idle time and prices must not be negative", o.Name)
	case !slices.Contains([]string{"", WireAuto, WireChat, WireResponses}, o.Wire):
		return fmt.Errorf("provider %s: wire is %q; it must be %s, %s or %s",
			o.Name, o.Wire, WireAuto, WireChat, WireResponses)
	case strings.ContainsAny(string(o.Key), "\r\n\x00"):
		return fmt.Errorf("provider %s: api_key contains a line break", o.Name)
	default:
		return nil
	}
}

// hostOf checks a base URL. The error does not repeat the URL, because people put keys into queries.
func hostOf(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return "", errors.New("base_url must look like https://host/v1, without user name and query")
	}
	return u.Host, nil
}

// Name implements llm.Provider.
func (p *Provider) Name() string { return p.o.Name }

// sdk returns a client of the SDK whose only request is sent through x.
func (p *Provider) sdk(x *exchange) *goopenai.Client {
	config := goopenai.DefaultConfig(string(p.o.Key))
	config.BaseURL = p.o.BaseURL
	config.HTTPClient = x
	return goopenai.NewClientWithConfig(config)
}

// Chat implements llm.Provider. If a server rejects a request because of its content, that is an answer with
// StopRefusal, not an error.
func (p *Provider) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	if p.o.Model == "" {
		return nil, &llm.Error{
			Kind: llm.Invalid, Provider: p.o.Name, Err: errors.New("no model is configured for conversations"),
		}
	}
	return p.forms.Chat(ctx, req, onDelta) //nolint:wrapcheck // by ask
}

// ask sends one request.
func (p *Provider) ask(
	ctx context.Context, req *llm.Request, contents *media.Contents, form *negotiate.Form, onDelta func(string),
) (*llm.Response, *negotiate.Refusal, error) {
	streamed := false
	var said strings.Builder
	emit := func(text string) {
		said.WriteString(text)
		if text != "" && onDelta != nil {
			streamed = true
			onDelta(text)
		}
	}
	var res *llm.Response
	x := p.exchange()
	x.contents, x.form = contents, form
	err := p.watched(ctx, x, func(ctx context.Context) error {
		var err error
		res, err = p.wireOf(form).chat(ctx, x, req, contents, emit)
		return err
	})
	if err != nil {
		if x.repeated {
			return nil, nil, negotiate.ErrRepeated
		}
		if x.refusal {
			return &llm.Response{Text: said.String(), Stop: llm.StopRefusal, Provider: p.o.Name, Model: p.o.Model}, nil, nil
		}
		if e, ok := errors.AsType[*llm.Error](err); ok {
			e.Streamed = streamed
		}
		if x.complaint == nil || said.Len() > 0 {
			return nil, nil, err
		}
		return nil, &negotiate.Refusal{Complaint: x.complaint, Body: bytes.Join(x.pieces, nil), Names: x.names}, err
	}
	res.Provider = p.o.Name
	if res.Model == "" {
		res.Model = p.o.Model
	}
	res.USD = p.o.Tariff.Cost(p.o.Now(), res.Usage, 0)
	p.o.Log.Debug().Str("provider", p.o.Name).Str("model", res.Model).Str("stop", string(res.Stop)).
		Int("input_tokens", res.Usage.Input).Int("cached_tokens", res.Usage.CachedInput).
		Int("output_tokens", res.Usage.Output).Msg("model answered")
	return res, nil, nil
}

// errSilence is the cancellation cause set by the watchdog.
var errSilence = errors.New("server is silent")

// watched runs f with a context that is cancelled if the server is silent for too long, and classifies the error.
func (p *Provider) watched(ctx context.Context, x *exchange, f func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("model %s: %w", p.o.Name, err)
	}
	callCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if p.o.Idle > 0 {
		timer := time.AfterFunc(p.o.Idle, func() { cancel(errSilence) })
		defer timer.Stop()
		x.listen = func() { timer.Reset(p.o.Idle) }
		x.pause = func() { timer.Stop() }
	}
	err := f(callCtx)
	if err == nil {
		return nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return fmt.Errorf("model %s: %w", p.o.Name, ctxErr)
	}
	if errors.Is(context.Cause(callCtx), errSilence) {
		return &llm.Error{
			Kind: llm.Timeout, Provider: p.o.Name, Status: x.status,
			Err: fmt.Errorf("no data for %s, which is llm.idle_timeout", p.o.Idle),
		}
	}
	return p.classify(x, err)
}

const (
	embedBatch = 128      // texts in one request
	maxVectors = 32 << 20 // size of the answer, in bytes
)

// Embed implements llm.Embedder. An empty text is embedded as one space, because servers reject empty ones.
func (p *Provider) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if p.o.EmbeddingModel == "" {
		return nil, &llm.Error{
			Kind: llm.Invalid, Provider: p.o.Name, Err: errors.New("no embedding_model is configured"),
		}
	}
	out := make([][]float32, 0, len(texts))
	for start := 0; start < len(texts); start += embedBatch {
		batch := make([]string, 0, embedBatch)
		for _, text := range texts[start:min(start+embedBatch, len(texts))] {
			if text == "" {
				text = " "
			}
			batch = append(batch, text)
		}
		vectors, err := p.embed(ctx, batch)
		if err != nil {
			return nil, err
		}
		out = append(out, vectors...)
		if len(out[0]) != len(vectors[0]) {
			return nil, p.garbled("embeddings of different lengths: %d and %d", len(out[0]), len(vectors[0]))
		}
	}
	return out, nil
}

// embed sends one batch and returns the vectors in the order of the texts.
func (p *Provider) embed(ctx context.Context, texts []string) ([][]float32, error) {
	x := p.exchange()
	var res goopenai.EmbeddingResponse
	err := p.watched(ctx, x, func(ctx context.Context) error {
		var err error
		x.limit = maxVectors
		res, err = p.sdk(x).CreateEmbeddings(ctx, goopenai.EmbeddingRequest{
			Input: texts, Model: goopenai.EmbeddingModel(p.o.EmbeddingModel),
			EncodingFormat: goopenai.EmbeddingEncodingFormatFloat,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(res.Data) != len(texts) {
		return nil, p.garbled("%d embeddings for %d texts", len(res.Data), len(texts))
	}
	out := make([][]float32, len(texts))
	for _, d := range res.Data {
		switch {
		case d.Index < 0 || d.Index >= len(texts) || out[d.Index] != nil:
			return nil, p.garbled("embedding with index %d, out of range or repeated", d.Index)
		case len(d.Embedding) == 0 || len(d.Embedding) != len(res.Data[0].Embedding):
			first := len(res.Data[0].Embedding)
			return nil, p.garbled("embedding %d has %d numbers, the first one %d", d.Index, len(d.Embedding), first)
		}
		out[d.Index] = d.Embedding
	}
	return out, nil
}

// garbled is the error of an answer that makes no sense.
func (p *Provider) garbled(format string, args ...any) error {
	return &llm.Error{Kind: llm.Unavailable, Provider: p.o.Name, Err: fmt.Errorf("server answered "+format, args...)}
}
