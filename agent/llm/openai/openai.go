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
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	goopenai "github.com/sashabaranov/go-openai"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/media"
	"github.com/zephbot/zephbot/agent/llm/negotiate"
	"github.com/zephbot/zephbot/agent/llm/textcall"
	"github.com/zephbot/zephbot/agent/llm/wire"
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
type Key = wire.Key

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
	// SpeechModel is for Speak, in the voice SpeechVoice ("" = DefaultVoice), and what a million characters cost.
	SpeechModel       string
	SpeechVoice       string
	SpeechUSDPerMChar float64
	// ImageModel is for Draw, with the quality ImageQuality ("" = the server's own) of models that have several.
	ImageModel   string
	ImageQuality string
	ImagePrice   PicturePrice
	MaxTokens    int // default limit of an answer; 0 = the server's default
	// Idle is how long the server may be silent, before the first piece of an answer and between any two. 0 = limited
	// only by the caller's context.
	Idle   time.Duration
	Tariff cost.Tariff // of Model; the zero value = it costs nothing
	// Wire is the API for conversations: WireAuto (or ""), WireChat or WireResponses.
	Wire string
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

	onlyMP3   atomic.Bool // the server has refused to speak in Opus
	chat      *completions
	responses *responses
	forms     *negotiate.Negotiator
}

// protocol is one of a vendor's APIs for conversations. emit gets the text as it arrives. Errors can be of any kind:
// Provider classifies them.
type protocol interface {
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
	o.SpeechVoice = cmp.Or(o.SpeechVoice, DefaultVoice)
	host, version, err := hostOf(o.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", o.Name, err)
	}
	o.BaseURL, _, _ = strings.Cut(o.BaseURL, "?")
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	o.Dialect = o.Dialect.OfModel(o.Model)
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Provider{o: o, client: addressedClient(wire.NewClient(o.HTTPClient), &o.Dialect, o.Key, version)}
	p.chat, p.responses = &completions{provider: p, origin: host}, &responses{provider: p, origin: host}
	if o.Wire == WireChat || o.Wire == WireResponses {
		p.o.Dialect.Wire = o.Wire
	}
	p.rules = mediaRules(&p.o)
	p.forms = negotiate.New(negotiate.Options{
		Provider:  o.Name,
		Model:     o.Model,
		Dialect:   p.o.Dialect,
		Memory:    o.Memory,
		Learner:   o.Learner,
		Rules:     &p.rules,
		Ask:       p.askForm,
		FixedWire: o.Wire == WireChat || o.Wire == WireResponses,
		Native:    o.Native,
		Clean:     o.Key.Clean,
		Refused:   o.Refused,
		Now:       o.Now,
		Log:       o.Log,
	})
	return p, nil
}

// mediaRules returns the limits of the APIs (OpenAI's guides to images and files, November
// 2026; a request may have 50 MB).
func mediaRules(o *Options) media.Rules {
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

// wireOf returns the API for requests in a form.
func (p *Provider) wireOf(form *negotiate.Form) protocol {
	if form.Dialect.Wire == WireResponses {
		return p.responses
	}
	return p.chat
}

func (o *Options) validate() error {
	switch {
	case o.Name == "":
		return errors.New("openai provider: name is empty")
	case o.Model == "" && o.EmbeddingModel == "" && o.TranscriptionModel == "" && o.SpeechModel == "" &&
		o.ImageModel == "":
		return fmt.Errorf(
			"provider %s: none of model, embedding_model, transcription_model, speech_model and image_model is set", o.Name,
		)
	case o.MaxTokens < 0 || o.Idle < 0 || o.TranscriptionUSDPerMinute < 0 || o.SpeechUSDPerMChar < 0:
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

// Name implements llm.Provider.
func (p *Provider) Name() string { return p.o.Name }

// newSDK returns a client of the SDK whose only request is sent through x.
func (p *Provider) newSDK(x *exchange) *goopenai.Client {
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

// askForm sends one request.
func (p *Provider) askForm(
	ctx context.Context, req *llm.Request, contents *media.Contents, form *negotiate.Form, onDelta func(string),
) (*llm.Response, *negotiate.Refusal, error) {
	x := p.newExchange()
	words := textcall.New(p.speechOptions(x, req, form, onDelta))
	var res *llm.Response
	x.contents, x.form, x.think = contents, form, words.Think
	x.hear = func(res *llm.Response) error { return p.addWords(res, x, words.Finish(res.Stop == llm.StopLength)) }
	err := p.runWatched(ctx, x, func(ctx context.Context) error {
		var err error
		res, err = p.wireOf(form).chat(ctx, x, req, contents, words.Write)
		return err
	})
	if err != nil {
		if x.repeated {
			return nil, nil, negotiate.ErrRepeated
		}
		if x.refusal {
			said := words.Finish(true)
			return &llm.Response{
				Text:     said.Text,
				Thoughts: said.Thoughts,
				Stop:     llm.StopRefusal,
				Filtered: said.Text != "",
				Provider: p.o.Name,
				Model:    p.o.Model,
			}, nil, nil
		}
		if x.complaint != nil && x.complaint.Failed != "" {
			return p.rescuedAnswer(x, req), nil, nil
		}
		if e, ok := errors.AsType[*llm.Error](err); ok {
			e.Streamed = words.Shown()
		}
		if x.complaint == nil || words.Shown() {
			return nil, nil, err
		}
		return nil, &negotiate.Refusal{Complaint: x.complaint, Body: bytes.Join(x.pieces, nil), Names: x.names}, err
	}
	if x.frames != nil && x.frames.skipped > 0 {
		p.o.Log.Debug().Str("provider", p.o.Name).Int("events", x.frames.skipped).
			Msg("events that are not JSON were skipped")
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

// speechOptions returns how the words of an answer are read.
func (p *Provider) speechOptions(
	x *exchange, req *llm.Request, form *negotiate.Form, onDelta func(string),
) *textcall.Options {
	o := &textcall.Options{
		Tools:   req.Tools,
		Opened:  form.Dialect.Traits.OpensThought,
		Text:    onDelta,
		Thought: req.OnThought,
		Void:    req.OnReset,
		Decode: func(name string) string {
			if x.names == nil {
				return name
			}
			return x.names.Decode(name)
		},
	}
	if len(o.Tools) == 0 {
		o.Tools = req.TextTools
	}
	return o
}

// addWords adds the words of an answer to it. Calls in the text count if the server has found none.
func (p *Provider) addWords(res *llm.Response, x *exchange, said *textcall.Result) error {
	res.Text, res.Thoughts = said.Text, said.Thoughts
	p.forms.Began(x.form.Dialect.Traits.OpensThought, said.Unopened, said.Text != "" && said.Thoughts == "")
	if res.Stop == llm.StopRefusal {
		res.Filtered = res.Filtered && res.Text != ""
		return nil
	}
	announced := res.Stop == llm.StopTools
	if len(res.Uses) == 0 {
		res.Uses, res.Unmade = p.textUses(said.Calls, x.names), said.Unmade
	}
	switch {
	case res.Stop == llm.StopLength:
	case len(res.Uses) > 0:
		res.Stop = llm.StopTools
	case announced && res.Text == "":
		return &llm.Error{
			Kind: llm.Truncated, Provider: p.o.Name, Err: errors.New("answer announces tool calls but has none"),
		}
	default:
		res.Stop = llm.StopEnd
	}
	return nil
}

// textUses gives calls that were written as text the form of others.
func (p *Provider) textUses(calls []textcall.Call, names *wire.Names) []llm.ToolUse {
	var out []llm.ToolUse
	taken := map[string]bool{}
	for _, c := range calls {
		p.o.Log.Debug().Str("provider", p.o.Name).Str("tool", c.Name).Msg("a call was read in the text")
		args := c.Args
		if names != nil {
			args = names.DecodeArgs(c.Name, args)
		}
		out = append(out, llm.ToolUse{ID: p.freshID("", c.Name, taken), Name: c.Name, Args: args})
	}
	return out
}

// rescuedAnswer is the answer that a server refused because it could not read its calls (Groq's tool_use_failed). Calls
// that cannot be read here either leave an answer in which they are not made.
func (p *Provider) rescuedAnswer(x *exchange, req *llm.Request) *llm.Response {
	o := p.speechOptions(x, req, x.form, nil)
	o.Thought, o.Void, o.Opened = nil, nil, false
	words := textcall.New(o)
	words.Write(x.complaint.Failed)
	said := words.Finish(false)
	res := &llm.Response{
		Thoughts: said.Thoughts,
		Uses:     p.textUses(said.Calls, x.names),
		Stop:     llm.StopTools,
		Provider: p.o.Name,
		Model:    p.o.Model,
	}
	if len(res.Uses) == 0 {
		res.Text, res.Unmade, res.Stop = said.Text, true, llm.StopEnd
	}
	return res
}

// errSilence is the cancellation cause set by the watchdog.
var errSilence = errors.New("server is silent")

// runWatched runs f with a context that is cancelled if the server is silent for too long, and classifies the error.
func (p *Provider) runWatched(ctx context.Context, x *exchange, f func(context.Context) error) error {
	return p.runFor(ctx, p.o.Idle, x, f)
}

// runUnwatched is runWatched for an answer that comes after a long silence.
func (p *Provider) runUnwatched(ctx context.Context, x *exchange, f func(context.Context) error) error {
	return p.runFor(ctx, 0, x, f)
}

func (p *Provider) runFor(
	ctx context.Context, idle time.Duration, x *exchange, f func(context.Context) error,
) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("model %s: %w", p.o.Name, err)
	}
	callCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if idle > 0 {
		timer := time.AfterFunc(idle, func() { cancel(errSilence) })
		defer timer.Stop()
		x.listen = func() { timer.Reset(idle) }
		x.pause = func() { timer.Stop() }
	}
	err := f(callCtx)
	if err == nil {
		return nil
	}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return wire.Ended(p.o.Name, ctxErr, x.departure.Left())
	}
	if errors.Is(context.Cause(callCtx), errSilence) {
		err = &llm.Error{
			Kind: llm.Timeout, Status: x.status,
			Err: fmt.Errorf("no data for %s, which is llm.idle_timeout", p.o.Idle),
		}
	}
	return wire.NameServer(wire.MarkUnderWay(p.classifyError(x, err), x.departure.Left()), p.o.BaseURL, err)
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
		vectors, err := p.embedBatch(ctx, batch)
		if err != nil {
			return nil, err
		}
		out = append(out, vectors...)
		if len(out[0]) != len(vectors[0]) {
			return nil, p.garbledError("embeddings of different lengths: %d and %d", len(out[0]), len(vectors[0]))
		}
	}
	return out, nil
}

// embedBatch sends one batch and returns the vectors in the order of the texts.
func (p *Provider) embedBatch(ctx context.Context, texts []string) ([][]float32, error) {
	x := p.newExchange()
	var res goopenai.EmbeddingResponse
	err := p.runWatched(ctx, x, func(ctx context.Context) error {
		var err error
		x.limit = maxVectors
		res, err = p.newSDK(x).CreateEmbeddings(ctx, goopenai.EmbeddingRequest{
			Input: texts, Model: goopenai.EmbeddingModel(p.o.EmbeddingModel),
			EncodingFormat: goopenai.EmbeddingEncodingFormatFloat,
		})
		if x.head != nil && len(res.Data) == 0 && !bytes.Contains(x.head.Bytes(), []byte(`"data"`)) {
			if other := p.strayError(x, x.head.Bytes(), true); other != nil {
				return other
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(res.Data) != len(texts) {
		return nil, p.garbledError("%d embeddings for %d texts", len(res.Data), len(texts))
	}
	out := make([][]float32, len(texts))
	for _, d := range res.Data {
		switch {
		case d.Index < 0 || d.Index >= len(texts) || out[d.Index] != nil:
			return nil, p.garbledError("embedding with index %d, out of range or repeated", d.Index)
		case len(d.Embedding) == 0 || len(d.Embedding) != len(res.Data[0].Embedding):
			first := len(res.Data[0].Embedding)
			return nil, p.garbledError(
				"embedding %d has %d numbers, the first one %d", d.Index, len(d.Embedding), first,
			)
		}
		out[d.Index] = d.Embedding
	}
	return out, nil
}

// garbledError is the error of an answer that makes no sense.
func (p *Provider) garbledError(format string, args ...any) error {
	return &llm.Error{Kind: llm.Unavailable, Provider: p.o.Name, Err: fmt.Errorf("server answered "+format, args...)}
}
