// Package vendortest imitates model servers for tests: one strict server for each vendor that is known, over real HTTP.
//
// A server is a table of facts (facts/NAME.toml): what it refuses, with which status and which body, how it
// streams, how it says that a conversation is too long or an account is empty, and what it lists. Each fact has
// its source and the year of that source. What is not known of a server yet is a row to add there, not code:
// one engine interprets all of them. A server that is kinder than the real one hides failures, so facts are
// added as strict as they were reported.
//
// What a server says is up to its model, an llm.Provider such as llmtest.Model: the request is checked, decoded, given
// to the model, and the model's answer is streamed in the vendor's form.
package vendortest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
)

// Thought is what every server that shows its model's reasoning gives as such. It must never reach a person.
const Thought = "Zwischengedanke: what do they want of me?"

// defaultWindow is the window of a server that says nothing else, in tokens.
const defaultWindow = 128_000

// bytesPerToken is how servers count here: real tokenizers differ, and a test needs one number.
const bytesPerToken = 4

// maxBody bounds a request, in bytes.
const maxBody = 64 << 20

// Options configure a Server. Vendor is required.
type Options struct {
	Vendor string       // one of Vendors
	Model  llm.Provider // answers; nil = says "All right." to everything
	Name   string       // of the model, with which requests have to ask; "" = the first one that is known
	Window int          // in tokens; 0 = the vendor's
	// Unlisted: its lists of models and its status say 0 where the window would be.
	Unlisted bool
	// Overflow is the form in which the server says that a request is too long, by its name; "" = its first one.
	Overflow string
}

// Server imitates one vendor. Safe for concurrent use.
type Server struct {
	facts    *facts
	model    llm.Provider
	name     string
	window   int
	listed   int // window that its lists name
	overflow overflow
	http     *http.Server
	url      string
	given    given

	mu        sync.Mutex
	exchanges []Exchange
	planned   []string // kinds of failures to answer next
	raw       []Raw
	ids       int
	held      chan struct{} // closed when requests are answered again; nil = they are
}

// Exchange is a request with what came of it.
type Exchange struct {
	Path    string
	Body    []byte
	Status  int
	Refused string // the fact because of which it was refused; "" = it was not
	Answer  string // the body of a refusal
	Model   bool   // the request was given to the model
	// Held are the facts that were looked for in something that the request has, and hold there.
	Held []string
}

// Raw is an answer as it is, given to a request whatever it is.
type Raw struct {
	Status int
	Header map[string]string
	Body   string
}

// New returns a server that listens on the loopback interface until Close.
func New(o Options) (*Server, error) {
	f, err := readFacts(o.Vendor)
	if err != nil {
		return nil, err
	}
	s := &Server{
		facts: f, model: o.Model, name: cmp.Or(o.Name, f.Models[0]),
		window: cmp.Or(o.Window, f.Window.Tokens, defaultWindow),
	}
	if len(f.Overflow) > 0 {
		s.overflow = f.Overflow[0]
	}
	s.given.window = s.window
	if !o.Unlisted {
		s.listed = s.window
	}
	if o.Overflow != "" {
		i := slices.IndexFunc(f.Overflow, func(x overflow) bool { return x.Name == o.Overflow })
		if i < 0 {
			return nil, fmt.Errorf("%s says %q in no form", o.Vendor, o.Overflow)
		}
		s.overflow = f.Overflow[i]
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s.url = "http://" + l.Addr().String()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.http.Serve(l) }() // ends with Close
	return s, nil
}

// Close ends the server and its open connections.
func (s *Server) Close() { _ = s.http.Close() }

// URL is the address to configure.
func (s *Server) URL() string { return s.url + s.facts.Base }

// Name is the name of the model to configure.
func (s *Server) Name() string { return s.name }

// Key is the only key that the server takes.
func (s *Server) Key() string { return "sk-vendortest-opens-nothing" }

// Title names the vendor for people.
func (s *Server) Title() string { return s.facts.Title }

// Type is the type of provider to configure: openai, anthropic or ollama.
func (s *Server) Type() string { return s.facts.Type }

// Preset is the preset to configure; "" = there is none for this vendor.
func (s *Server) Preset() string { return s.facts.Preset }

// Keyless reports whether the server needs no key.
func (s *Server) Keyless() bool { return s.facts.Key == "" }

// Toolless reports whether the model that is asked by default takes no tools, which its server lists nowhere.
func (s *Server) Toolless() bool {
	return s.facts.toolless != nil && s.facts.toolless.MatchString(s.name)
}

// Wires are the APIs for conversations that the server has: chat, responses, messages.
func (s *Server) Wires() []string { return slices.Clone(s.facts.Wires) }

// Exchanges returns what was sent so far to the APIs, in order of arrival.
func (s *Server) Exchanges() []Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.exchanges)
}

// Fail lets the next requests fail, each in the vendor's words for a kind of failure: key, model, credit, rate, …
func (s *Server) Fail(kinds ...string) error {
	for _, kind := range kinds {
		if _, ok := s.facts.failure(kind); !ok {
			return fmt.Errorf("nothing is known of how %s says %q", s.facts.Title, kind)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planned = append(s.planned, kinds...)
	return nil
}

// Hold lets requests wait for their answers until release is called. They are in Exchanges without a status.
func (s *Server) Hold() (release func()) {
	held := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held = nil
		close(held)
	}
}

// Say gives the next requests answers as they are, one each.
func (s *Server) Say(answers ...Raw) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw = append(s.raw, answers...)
}

// Failures returns the kinds of failures whose words are known.
func (s *Server) Failures() []string {
	var kinds []string
	for _, x := range s.facts.Failure {
		if !slices.Contains(kinds, x.Kind) {
			kinds = append(kinds, x.Kind)
		}
	}
	return kinds
}

// Models returns the names of the models that a vendor's server has, the one that is asked by default first. What a
// server refuses depends on the model that is asked: each name stands for a kind of models of which facts are known.
func Models(vendor string) ([]string, error) {
	f, err := readFacts(vendor)
	if err != nil {
		return nil, err
	}
	return slices.Clone(f.Models), nil
}

// Overflows returns the names of the forms in which a vendor says that a request is too long.
func Overflows(vendor string) ([]string, error) {
	f, err := readFacts(vendor)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(f.Overflow))
	for i, o := range f.Overflow {
		names[i] = o.Name
	}
	return names, nil
}

// wireOf returns the API that a path below the address belongs to.
func (s *Server) wireOf(path string) string {
	for wire, suffix := range map[string]string{
		"chat":      "/chat/completions",
		"responses": "/responses",
		"messages":  "/v1/messages",
	} {
		base := s.facts.Base
		if wire == "messages" {
			base = strings.TrimSuffix(base, "/v1")
		}
		if path == base+suffix && slices.Contains(s.facts.Wires, wire) {
			return wire
		}
	}
	for wire, suffix := range mediaWires {
		if path == s.facts.Base+suffix && slices.Contains(s.facts.Wires, wire) {
			return wire
		}
	}
	return ""
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.list(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	wire := s.wireOf(r.URL.Path)
	if err != nil || r.Method != http.MethodPost || wire == "" {
		s.answer(w, answerForm{
			Status: http.StatusNotFound,
			Body:   `{"error":{"message":"there is nothing at ${path}"}}`,
		}, map[string]string{"path": r.URL.Path})
		return
	}
	x := &exchange{server: s, w: w, wire: wire, seen: Exchange{Path: r.URL.Path, Body: body}}
	s.mu.Lock()
	x.number = len(s.exchanges)
	s.exchanges = append(s.exchanges, x.seen)
	held := s.held
	s.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	}
	x.serve(r)
}

// note keeps what came of the request. It is called before the answer is written, so that a client that has read the
// answer finds it in Exchanges.
func (x *exchange) note(status int, refused string) {
	x.seen.Status, x.seen.Refused = status, refused
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	x.server.exchanges[x.number] = x.seen
}

// list answers what is asked about the server and its models.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	if !s.admits(r) {
		x, _ := s.facts.failure("key")
		s.answer(w, x.answerForm, nil)
		return
	}
	for _, p := range s.facts.Page {
		if p.Path != r.URL.Path {
			continue
		}
		var each []string
		values := map[string]string{"window": strconv.Itoa(s.listed)}
		for _, name := range s.facts.Models {
			values["model"] = name
			each = append(each, write(p.Each, values))
		}
		values["model"] = s.name
		body := strings.ReplaceAll(write(p.Body, values), "@each@", strings.Join(each, ","))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
		return
	}
	s.answer(w, answerForm{Status: http.StatusNotFound, Body: `{"error":{"message":"Not Found"}}`}, nil)
}

// admits checks the key.
func (s *Server) admits(r *http.Request) bool {
	if s.facts.Key == "" {
		return true
	}
	return strings.TrimPrefix(r.Header.Get(s.facts.Key), "Bearer ") == s.Key()
}

// answer writes a status with a body.
func (s *Server) answer(w http.ResponseWriter, form answerForm, values map[string]string) {
	w.Header().Set("Content-Type", cmp.Or(form.Type, "application/json"))
	for name, value := range form.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(cmp.Or(form.Status, s.facts.Status))
	_, _ = io.WriteString(w, write(form.Body, values)) // a client may be gone
}

// mint returns a new id of a call in the vendor's form, in which # is a digit and letter of its own: "call_########".
// ${n} is the number of the call in its answer, ${count} that among all calls of the server, ${name} the tool.
func (s *Server) mint(name string, n int) string {
	s.mu.Lock()
	s.ids++
	number := s.ids
	s.mu.Unlock()
	form := write(cmp.Or(s.facts.Stream.IDs, "call_########################"), map[string]string{
		"name":  name,
		"n":     strconv.Itoa(n),
		"count": strconv.Itoa(number - 1),
	})
	width := strings.Count(form, "#")
	text := strconv.FormatInt(int64(number), 36)
	text = strings.Repeat("a", max(0, width-len(text))) + text
	for _, r := range text[len(text)-width:] {
		form = strings.Replace(form, "#", string(r), 1)
	}
	return form
}

// given keeps what a server has handed out and wants back, by the id of the call that it came with.
type given struct {
	window int // in tokens, of the server

	mu sync.Mutex
	by map[string]map[string]string // id → field → JSON
}

func (g *given) keep(id, field, value string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by == nil {
		g.by = map[string]map[string]string{}
	}
	if g.by[id] == nil {
		g.by[id] = map[string]string{}
	}
	g.by[id][field] = value
}

// lacks reports whether an assistant message of this server comes without the field that was handed out with its calls,
// or with another value. The field is the message's or that of the call.
func (g *given) lacks(v any, field string) bool {
	message, _ := v.(map[string]any)
	calls, _ := message["tool_calls"].([]any)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range calls {
		call, _ := one.(map[string]any)
		id, _ := call["id"].(string)
		want, ok := g.by[id][field]
		if !ok {
			continue
		}
		got, has := call[field]
		if !has {
			got, has = message[field]
		}
		data, err := json.Marshal(got)
		if err != nil || !has || string(data) != want {
			return true
		}
	}
	return false
}

// exchange answers one request.
type exchange struct {
	server *Server
	w      http.ResponseWriter
	wire   string
	body   map[string]any
	seen   Exchange
	number int // its place in Exchanges
	used   int // tokens of the request
}

func (x *exchange) serve(r *http.Request) {
	s := x.server
	x.used = len(x.seen.Body) / bytesPerToken
	if raw, kind := s.next(); kind != "" {
		form, _ := s.facts.failure(kind)
		if form.Stream != "" {
			x.breakOff("planned: "+kind, form.Stream)
			return
		}
		x.refuse("planned: "+kind, form.answerForm, x.values(place{key: s.name}))
		return
	} else if raw != nil {
		x.refuse("planned", answerForm{Status: raw.Status, Header: raw.Header, Body: raw.Body}, nil)
		return
	}
	if !s.admits(r) {
		form, _ := s.facts.failure("key")
		x.refuse("wrong key", form.answerForm, nil)
		return
	}
	var err error
	if kind := r.Header.Get("Content-Type"); isForm(x.wire) {
		x.body, err = readForm(kind, x.seen.Body)
	} else if err = json.Unmarshal(x.seen.Body, &x.body); !strings.HasPrefix(kind, "application/json") {
		err = errors.Join(err, errors.New("Content-Type is "+kind))
	}
	if err != nil {
		x.refuse("no JSON", answerForm{Status: http.StatusBadRequest, Body: s.facts.Envelope}, map[string]string{
			"message": "the body is not JSON: " + fmt.Sprint(err),
		})
		return
	}
	if name, _ := x.body["model"].(string); name != s.name && !slices.Contains(s.facts.Models, name) {
		form, _ := s.facts.failure("model")
		x.refuse("unknown model", form.answerForm, x.values(place{key: name}))
		return
	}
	for i := range s.facts.Refuse {
		rule := &s.facts.Refuse[i]
		p, there, ok := x.breaks(rule)
		if there && !ok {
			x.seen.Held = append(x.seen.Held, rule.Fact)
		}
		if ok {
			values := x.values(p)
			x.refuse(rule.Fact, s.formOf(rule, values), values)
			return
		}
	}
	switch {
	case mediaWires[x.wire] != "":
		x.produce()
	case x.overflows():
		x.tooLong()
	default:
		x.converse(r.Context())
	}
}

// next returns the failure or answer that is planned for this request.
func (s *Server) next() (*Raw, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.planned) > 0 {
		kind := s.planned[0]
		s.planned = s.planned[1:]
		return nil, kind
	}
	if len(s.raw) > 0 {
		raw := s.raw[0]
		s.raw = s.raw[1:]
		return &raw, ""
	}
	return nil, ""
}

// breaks returns the first place of the request that breaks a rule, and whether the request has what the rule is about.
func (x *exchange) breaks(r *rule) (found place, there, ok bool) {
	name, _ := x.body["model"].(string)
	if r.Wire != "" && r.Wire != x.wire || r.model != nil && !r.model.MatchString(name) {
		return place{}, false, false
	}
	places := find(x.body, r.steps[x.wire])
	there = len(places) > 0
	for i := range r.When {
		w := &r.When[i]
		if x.anyHolds(w.steps, &w.If) == w.No {
			return place{}, there, false
		}
	}
	for _, p := range places {
		if found, ok := r.If.holds(p, &x.server.given); ok {
			return found, there, true
		}
	}
	return place{}, there, false
}

func (x *exchange) anyHolds(steps []step, c *condition) bool {
	return slices.ContainsFunc(find(x.body, steps), func(p place) bool {
		_, ok := c.holds(p, &x.server.given)
		return ok
	})
}

// formOf is the answer of a rule: its own, or the vendor's envelope with the rule's words.
func (s *Server) formOf(r *rule, values map[string]string) answerForm {
	form := r.answerForm
	if form.Body == "" {
		form.Body = s.facts.Envelope
		values["param"], values["message"] = plainWrite(r.Param, values), plainWrite(r.Message, values)
		values["type"], values["code"] = cmp.Or(r.Kind, s.facts.Says), r.Code
	}
	return form
}

// plainWrite fills in a template without escapes, because the result is a value itself.
func plainWrite(template string, values map[string]string) string {
	return placeholder.ReplaceAllStringFunc(template, func(word string) string {
		return values[placeholder.FindStringSubmatch(word)[1]]
	})
}

// values are what templates can say about a place and the request.
func (x *exchange) values(p place) map[string]string {
	model, _ := x.body["model"].(string)
	values := map[string]string{
		"path":          p.path,
		"key":           p.key,
		"inside":        p.inside,
		"model":         model,
		"request_id":    "req_0123456789",
		"tool_index":    strconv.Itoa(p.tool),
		"message_index": strconv.Itoa(p.index),
		"call_index":    strconv.Itoa(p.call),
		"tool":          x.toolName(p.tool),
		"camel":         camel(p.key),
		"context":       contextPath(p.inside),
		"limit":         strconv.Itoa(x.server.window),
		"used":          strconv.Itoa(x.used),
		"over":          strconv.Itoa(x.used - x.server.window),
		"output":        strconv.Itoa(x.reserved()),
		"sum":           strconv.Itoa(x.used + x.reserved()),
		"kind":          kindOf(p.value),
	}
	// Google translates a request and names the places of its own API; the tool has the same number there.
	values["native"] = strings.TrimSuffix(
		fmt.Sprintf("tools[0].function_declarations[%d].parameters.%s", p.tool, p.inside), ".",
	)
	switch x.wire {
	case "chat":
		values["schema"] = fmt.Sprintf("tools[%d].function.parameters", p.tool)
	case "responses":
		values["schema"] = fmt.Sprintf("tools[%d].parameters", p.tool)
	}
	switch v := p.value.(type) {
	case string:
		values["value"], values["length"] = v, strconv.Itoa(len(v))
	case []any:
		values["length"] = strconv.Itoa(len(v))
	case float64:
		values["value"] = strconv.FormatFloat(v, 'g', -1, 64)
	}
	return values
}

// camel writes a name as servers with generated code do: presence_penalty as presencePenalty.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

// contextPath writes the place within a schema as OpenAI does: ('properties', 'a').
func contextPath(inside string) string {
	if inside == "" {
		return "()"
	}
	words := strings.Split(inside, ".")
	for i := range words {
		words[i] = "'" + words[i] + "'"
	}
	return "(" + strings.Join(words, ", ") + ")"
}

// toolName is the name of a tool of the request on its wire.
func (x *exchange) toolName(n int) string {
	tools, _ := x.body["tools"].([]any)
	if n < 0 || n >= len(tools) {
		return ""
	}
	tool, _ := tools[n].(map[string]any)
	if function, ok := tool["function"].(map[string]any); ok {
		tool = function
	}
	name, _ := tool["name"].(string)
	return name
}

// refuse answers with a refusal or a failure.
func (x *exchange) refuse(fact string, form answerForm, values map[string]string) {
	x.seen.Answer = write(form.Body, values)
	x.note(cmp.Or(form.Status, x.server.facts.Status), fact)
	x.server.answer(x.w, form, values)
}

// reserved returns how many tokens of an answer the request reserves.
func (x *exchange) reserved() int {
	for _, name := range []string{"max_completion_tokens", "max_tokens", "max_output_tokens"} {
		if n, ok := x.body[name].(float64); ok {
			return int(n)
		}
	}
	return 0
}

func (x *exchange) overflows() bool {
	size := x.used
	if x.server.facts.Window.Output {
		size += x.reserved()
	}
	return size > x.server.window
}

// tooLong answers a request that does not fit.
func (x *exchange) tooLong() {
	o := x.server.overflow
	fact := "too long: " + o.Name
	if o.Finish == "" && !o.Quiet {
		x.refuse(fact, o.answerForm, x.values(place{}))
		return
	}
	x.note(http.StatusOK, fact)
	x.speak(&said{finish: o.Finish, quiet: true})
}

// converse gives the request to the model and streams what it says.
func (x *exchange) converse(ctx context.Context) {
	req, err := decode(x.wire, x.body)
	if err != nil {
		x.refuse("not understood", answerForm{
			Status: http.StatusBadRequest,
			Body:   x.server.facts.Envelope,
		}, map[string]string{"message": err.Error(), "type": x.server.facts.Says})
		return
	}
	x.seen.Model = true
	x.note(http.StatusOK, "")
	fenced := decodeFenced(req)
	out := x.voice()
	res, err := x.ask(ctx, req, out.delta)
	if err == nil && fenced {
		out.delta(writeFenced(res))
		res.Uses = nil
	}
	switch {
	case ctx.Err() != nil:
	case err != nil && out.begun():
		x.cut()
	case err != nil:
		x.fails(err)
	default:
		x.wireNames(res)
		out.end(res)
	}
}

// breakOff begins an answer and ends it with the lines of a failure.
func (x *exchange) breakOff(fact, text string) {
	x.note(http.StatusOK, fact)
	x.voice().delta("An answer that")
	out := lines{w: x.w, crlf: x.server.facts.Stream.CRLF, opened: true}
	for line := range strings.SplitSeq(text, "\n") {
		out.line(line)
	}
}

// cut ends the connection in the middle of an answer.
func (x *exchange) cut() {
	hijacker, ok := x.w.(http.Hijacker)
	if !ok {
		return
	}
	if conn, _, err := hijacker.Hijack(); err == nil {
		_ = conn.Close()
	}
}

// ask asks the model; without one, the answer is "All right.".
func (x *exchange) ask(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	if x.server.model == nil {
		onDelta("All right.")
		return &llm.Response{Text: "All right.", Stop: llm.StopEnd}, nil
	}
	return x.server.model.Chat(ctx, req, onDelta) //nolint:wrapcheck // classified by fails
}

// wireNames gives calls the names that the tools have in this request: a script knows tools by our names.
func (x *exchange) wireNames(res *llm.Response) {
	offered := map[string]bool{}
	tools, _ := x.body["tools"].([]any)
	for n := range tools {
		offered[x.toolName(n)] = true
	}
	for i, u := range res.Uses {
		if wire := strings.ReplaceAll(u.Name, ":", "__"); !offered[u.Name] && offered[wire] {
			res.Uses[i].Name = wire
		}
	}
}

// fails answers with the vendor's words for what the model's script wants to happen.
func (x *exchange) fails(err error) {
	kinds := map[llm.Kind]string{
		llm.RateLimited:  "rate",
		llm.Unavailable:  "overload",
		llm.Unauthorized: "key",
		llm.Timeout:      "overload",
		llm.Truncated:    "overload",
	}
	e, ok := errors.AsType[*llm.Error](err)
	switch {
	case ok && e.Kind == llm.TooLong:
		x.tooLong()
	case ok && kinds[e.Kind] != "":
		form, _ := x.server.facts.failure(kinds[e.Kind])
		if e.RetryAfter > 0 {
			form.Header = maps.Clone(form.Header)
			if form.Header == nil {
				form.Header = map[string]string{}
			}
			form.Header["Retry-After"] = strconv.Itoa(int(e.RetryAfter.Seconds()))
		}
		x.refuse("script: "+string(e.Kind), form.answerForm, x.values(place{}))
	default:
		x.refuse("script", answerForm{Status: http.StatusBadRequest, Body: x.server.facts.Envelope}, map[string]string{
			"message": err.Error(),
			"type":    x.server.facts.Says,
		})
	}
}

// voice streams an answer in the form of one API.
type voice interface {
	delta(text string) // may be called before end, as the text grows
	end(res *llm.Response)
	begun() bool
}

func (x *exchange) voice() voice {
	lines := &lines{w: x.w, crlf: x.server.facts.Stream.CRLF}
	switch x.wire {
	case "responses":
		return &responsesVoice{x: x, lines: lines}
	case "messages":
		return &messagesVoice{x: x, lines: lines}
	default:
		return &chatVoice{x: x, lines: lines, shape: &x.server.facts.Stream}
	}
}

// said is an answer without a model.
type said struct {
	finish string
	quiet  bool
}

// speak streams an answer that has no text.
func (x *exchange) speak(s *said) {
	switch v := x.voice().(type) {
	case *chatVoice:
		v.empty(s.finish)
	case *messagesVoice:
		v.empty(s.finish)
	case *responsesVoice:
		v.empty(s.finish)
	}
}

// lines writes a stream of events.
type lines struct {
	w      http.ResponseWriter
	crlf   bool
	opened bool
}

func (l *lines) line(text string) {
	if !l.opened {
		l.opened = true
		l.w.Header().Set("Content-Type", "text/event-stream")
		l.w.WriteHeader(http.StatusOK)
	}
	end := "\n"
	if l.crlf {
		end = "\r\n"
	}
	_, _ = io.WriteString(l.w, text+end) // a client that stops an answer goes away in the middle
}

// data writes an event whose payload is a value, or a string as it is.
func (l *lines) data(v any) {
	text, ok := v.(string)
	if !ok {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return
		}
		text = strings.TrimSpace(b.String())
	}
	l.line("data: " + text)
	l.line("")
	if f, ok := l.w.(http.Flusher); ok {
		f.Flush()
	}
}

// event writes a named event.
func (l *lines) event(name string, v any) {
	l.line("event: " + name)
	l.data(v)
}
