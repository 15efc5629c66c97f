package vendortest

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"
)

//go:embed facts
var factFiles embed.FS

// facts are what is known of one server: a file of the directory facts.
type facts struct {
	Title  string   `toml:"title"`
	Type   string   `toml:"type"`   // of our provider: openai, anthropic, ollama
	Preset string   `toml:"preset"` // of our configuration; "" = none fits
	Base   string   `toml:"base"`   // path of the API's address
	Wires  []string `toml:"wires"`  // chat, responses, messages
	Models []string `toml:"models"` // the first one is asked by default
	// header that carries the key: Authorization, api-key, x-api-key; "" = any or none
	Key   string   `toml:"key"`
	Tools string   `toml:"toolless"` // what the names of models match that take no tools; "" = all take them
	Use   []string `toml:"use"`      // files of facts/shared whose rules hold, too

	Status   int    `toml:"status"`   // of a refusal that says nothing else; 0 = 400
	Envelope string `toml:"envelope"` // body of such a refusal
	Says     string `toml:"says"`     // type of such a refusal

	Refuse   []rule     `toml:"refuse"`
	Window   window     `toml:"window"`
	Overflow []overflow `toml:"overflow"`
	Failure  []failure  `toml:"failure"`
	Page     []page     `toml:"page"`
	Stream   stream     `toml:"stream"`
	Pictures pictures   `toml:"pictures"`

	toolless *regexp.Regexp
}

// source says where a fact is from: every fact has one.
type source struct {
	Fact   string `toml:"fact"`   // in words
	Source string `toml:"source"` // what says so, and of when that is
}

func (s source) problem() error {
	if s.Fact == "" || s.Source == "" || !dated.MatchString(s.Source) {
		return fmt.Errorf("fact %q (source %q): a fact needs words, a source and the source's year", s.Fact, s.Source)
	}
	return nil
}

var dated = regexp.MustCompile(`\b20\d\d\b`)

// answerForm is a status with a body. In the body, ${name} is replaced by what the refusal is about, escaped for a JSON
// string; ${name?} by a JSON string, or null if there is nothing.
type answerForm struct {
	Status int               `toml:"status"`
	Body   string            `toml:"body"`
	Type   string            `toml:"media_type"` // "" = application/json
	Header map[string]string `toml:"header"`
}

// rule is something that a server refuses.
type rule struct {
	source
	answerForm
	Wire  string    `toml:"wire"`  // only on this API; "" = on all
	Model string    `toml:"model"` // only for models that match
	At    string    `toml:"at"`    // what the condition is about, see parseSelector; "" = the whole request
	If    condition `toml:"if"`
	When  []clause  `toml:"when"` // … and all of this holds, too
	// Bad is the smallest request that breaks the rule, see TestFacts: fields that are added to a plain one or replace
	// its own; or, in short, "schema:" with the schema of a tool, "name:" with its name, "many:" with a number of
	// tools. ${id} is the id of a call that the server has handed out, @n@ stands for n letters.
	Bad string `toml:"bad"`

	// For the server's envelope.
	Message string `toml:"message"`
	Kind    string `toml:"type"`
	Code    string `toml:"code"`
	Param   string `toml:"param"`

	origin string            // the file that the row is in
	steps  map[string][]step // by API
	model  *regexp.Regexp
}

// clause is a further condition, on another part of the request.
type clause struct {
	At string    `toml:"at"`
	If condition `toml:"if"`
	No bool      `toml:"no"` // it must not hold

	steps []step
}

// window is how much a server takes.
type window struct {
	Tokens int  `toml:"tokens"` // by default; 0 = defaultWindow
	Output bool `toml:"output"` // what max_tokens reserves counts, too
}

// overflow is one of the forms in which a server says that a request is too long.
type overflow struct {
	source
	answerForm
	Name string `toml:"name"`
	Wire string `toml:"wire"`
	// Finish: there is no refusal; an empty answer ends with this reason.
	Finish string `toml:"finish"`
	// Quiet: there is no refusal; a stream without any text ends.
	Quiet bool `toml:"quiet"`
}

// failure is an answer that has nothing to do with what was asked: key, credit, limits, load.
type failure struct {
	source
	answerForm
	Kind string `toml:"kind"` // key, model, credit, rate, quota, overload, content, region, …
	// Stream are the lines that come in the middle of an answer that has begun with status 200; "" = the failure is the
	// whole answer.
	Stream string `toml:"stream"`
}

// page is a further address that a server answers GET requests at, such as its list of models.
type page struct {
	source
	Path string `toml:"path"` // absolute
	Each string `toml:"each"` // of each model; joined by commas as ${each}
	Body string `toml:"body"`
}

// stream says how a server with the chat API streams.
type stream struct {
	Sources []string `toml:"sources"`
	CRLF    bool     `toml:"crlf"`
	Before  []string `toml:"before"`  // lines before the first chunk
	Between []string `toml:"between"` // lines between chunks
	First   string   `toml:"first"`   // payload of a chunk before all others
	Last    string   `toml:"last"`    // … after the one with the finish reason
	NoDone  bool     `toml:"no_done"` // nothing says that the stream is over
	Role    string   `toml:"role"`    // "first" (or ""), "every"
	Content string   `toml:"content"` // beside calls: "null" (or ""), "empty", "none"
	// "pieces" (or ""), "whole", "finish": whole, in the chunk with the finish reason
	Calls     string `toml:"calls"`
	Index     string `toml:"index"`     // "each" (or ""), "none", "zero"
	NoType    bool   `toml:"no_type"`   // calls have no type
	Arguments string `toml:"arguments"` // "string" (or ""), "object"
	IDs       string `toml:"ids"`       // form of ids, see mint
	CallsEnd  string `toml:"calls_end"` // finish reason of calls; "" = tool_calls
	TextEnd   string `toml:"text_end"`  // … of text; "" = stop
	// Usage is how tokens are reported: "asked" (a chunk without choices, if include_usage is set), "last" (in such a
	// chunk, always), "finish" (in the chunk with the finish reason), "null" (like asked, null in all others),
	// "x_groq" (in that field), "none".
	Usage string `toml:"usage"`
	// Thoughts is where the model's reasoning is: a field such as reasoning_content or reasoning, "think" and
	// "reasoning tag" (tags in the content), "parts" (content is a list), "details" (reasoning and
	// reasoning_details); "" = it shows none.
	Thoughts string `toml:"thoughts"`
	// Thinks is what the names of the models match that show it; "" = all of them.
	Thinks string `toml:"thinks"`
	// Gives is a field that is handed out with the first call of an answer and has to come back: "extra_content" on the
	// call, or a field of the message.
	Gives string `toml:"gives"`

	thinks *regexp.Regexp
}

// Vendors returns the names of the servers of which facts are known, in alphabetical order.
func Vendors() []string {
	entries, err := fs.ReadDir(factFiles, "facts")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".toml"); ok && !e.IsDir() {
			names = append(names, name)
		}
	}
	return names
}

// tables keeps the facts that were read: they are shared by all servers and never changed.
var tables sync.Map // name → *facts

func readFacts(name string) (*facts, error) {
	if f, ok := tables.Load(name); ok {
		return f.(*facts), nil //nolint:forcetypeassert // only this function stores into it
	}
	f, err := parseFacts(name)
	if err != nil {
		return nil, fmt.Errorf("facts of %s: %w", name, err)
	}
	tables.Store(name, f)
	return f, nil
}

func decodeFile(name string, into any) error {
	data, err := factFiles.ReadFile(name)
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	dec := toml.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok {
			return fmt.Errorf("%s: %s", name, strict.String())
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func parseFacts(name string) (*facts, error) {
	f := &facts{}
	if err := decodeFile(path.Join("facts", name+".toml"), f); err != nil {
		return nil, err
	}
	own := f.Refuse
	f.Refuse = nil
	for _, shared := range f.Use {
		var more struct {
			Refuse []rule `toml:"refuse"`
		}
		if err := decodeFile(path.Join("facts", "shared", shared+".toml"), &more); err != nil {
			return nil, err
		}
		for i := range more.Refuse {
			more.Refuse[i].origin = shared
		}
		f.Refuse = append(f.Refuse, more.Refuse...)
	}
	// A server's own words for a fact come before the shared ones.
	f.Refuse = append(own, f.Refuse...)
	f.Status = cmp.Or(f.Status, 400)
	if f.talks() && len(f.Overflow) == 0 || len(f.Models) == 0 || len(f.Wires) == 0 || f.Envelope == "" {
		return nil, errors.New("wires, models, envelope and overflow are needed")
	}
	return f, f.prepare()
}

// prepare compiles selectors and conditions, and checks that each fact has a source.
func (f *facts) prepare() (err error) {
	for i := range f.Refuse {
		r := &f.Refuse[i]
		if err := r.prepare(); err != nil {
			return fmt.Errorf("%s: %w", r.Fact, err)
		}
	}
	for _, o := range f.Overflow {
		if err := o.problem(); err != nil {
			return err
		}
	}
	for _, x := range f.Failure {
		if err := x.problem(); err != nil {
			return err
		}
	}
	for _, p := range f.Page {
		if err := p.problem(); err != nil {
			return err
		}
	}
	if f.Tools != "" {
		if f.toolless, err = regexp.Compile(f.Tools); err != nil {
			return fmt.Errorf("toolless: %w", err)
		}
	}
	if f.Stream.thinks, err = regexp.Compile(f.Stream.Thinks); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	for _, s := range f.Stream.Sources {
		if !dated.MatchString(s) {
			return fmt.Errorf("stream: source %q has no year", s)
		}
	}
	return nil
}

// toolPlaces are the places of a tool's parts on each API, by the words that stand for them in selectors.
var toolPlaces = map[string]*strings.Replacer{
	"chat":      strings.NewReplacer("$schemas", "tools[*].function.parameters", "$names", "tools[*].function.name"),
	"responses": strings.NewReplacer("$schemas", "tools[*].parameters", "$names", "tools[*].name"),
	"messages":  strings.NewReplacer("$schemas", "tools[*].input_schema", "$names", "tools[*].name"),
	"speech":    strings.NewReplacer(),
	"images":    strings.NewReplacer(),
	"edits":     strings.NewReplacer(),
	"hears":     strings.NewReplacer(),
}

func (r *rule) prepare() (err error) {
	if err := r.problem(); err != nil {
		return err
	}
	if r.Message == "" && r.Body == "" {
		return errors.New("neither message nor body")
	}
	if r.Bad == "" {
		return errors.New("no request that breaks it")
	}
	r.steps = map[string][]step{}
	for wire, places := range toolPlaces {
		if r.steps[wire], err = parseSelector(places.Replace(r.At)); err != nil {
			return err
		}
	}
	if r.Model != "" {
		if r.model, err = regexp.Compile(r.Model); err != nil {
			return fmt.Errorf("model: %w", err)
		}
	}
	for i := range r.When {
		w := &r.When[i]
		if w.steps, err = parseSelector(w.At); err != nil {
			return err
		}
		if err := w.If.prepare(); err != nil {
			return err
		}
	}
	return r.If.prepare()
}

// failures returns the forms of a failure.
func (f *facts) failure(kind string) (failure, bool) {
	i := slices.IndexFunc(f.Failure, func(x failure) bool { return x.Kind == kind })
	if i < 0 {
		return failure{}, false
	}
	return f.Failure[i], true
}

var placeholder = regexp.MustCompile(`\$\{([a-z_]+)(\??)\}`)

// write fills in a template. values that are missing are empty.
func write(template string, values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(template, func(word string) string {
		m := placeholder.FindStringSubmatch(word)
		value := values[m[1]]
		if m[2] != "" && value == "" {
			return "null"
		}
		var quoted strings.Builder
		enc := json.NewEncoder(&quoted)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(value); err != nil {
			return ""
		}
		text := strings.TrimSpace(quoted.String())
		if m[2] != "" {
			return text
		}
		return text[1 : len(text)-1]
	})
}
