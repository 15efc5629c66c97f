// Package negotiate finds out what a model server takes beyond what its dialect says. A refusal that names a part of a
// request (a tool, a field, a rule for messages) is not the end of a turn: Read says what to change, by the table of
// wordings in patterns.json, and the request is repeated with that change. What helped is kept in a dialect.Memory, so
// that the next request goes out in that form. What did not help is not kept: the text of a refusal may quote what a
// person wrote.
//
// Bounds: a request that was refused is never sent again as it was. One Chat sends at most Steps requests beyond the
// first one, and those of learning. Learning has a budget of Budget requests for a provider, a model and a catalog of
// tools, and of mostLearning a day for all catalogs. One caller learns at a time; the others wait for what it learns.
package negotiate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/complaint"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/fenced"
	"github.com/zephbot/zephbot/agent/llm/media"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// Limits of requests.
const (
	Steps        = 3              // beyond the first one in one Chat, those of learning not counted
	Budget       = 12             // of learning, for a provider, a model and a catalog
	mostLearning = 4 * Budget     // of learning until it is new, for all catalogs
	refill       = 24 * time.Hour // after which the budget is new
)

// Form is the form in which a request goes out. Forms are shared and must not be changed, except for Boxes.
type Form struct {
	Dialect dialect.Dialect // with what was learnt
	Edits   Edits
	// Boxes cache the tools of requests in this form.
	Boxes [2]wire.ToolCache

	learnt     *dialect.Learnt
	noTools    bool
	noPictures bool
	refused    *bodies // nil = nothing was refused yet
}

// newForm returns the form for what was learnt.
func newForm(d dialect.Dialect, l *dialect.Learnt) *Form {
	d = d.With(l)
	return &Form{
		Dialect: d, Edits: NewEdits(d.Params), learnt: l,
		noTools: slices.Contains(d.Params.Omit, Tools), noPictures: slices.Contains(d.Params.Omit, Pictures),
	}
}

// bodies are hashes of requests that were refused in one Chat.
type bodies map[[sha256.Size]byte]bool

// ErrRepeated means that a request was not sent, because it would be the same as one that was refused.
var ErrRepeated = errors.New("the same request was refused a moment ago")

// Check returns ErrRepeated if a request, in pieces, was refused in this Chat. It costs nothing as long as nothing was
// refused.
func (f *Form) Check(body ...[]byte) error {
	if f.refused == nil {
		return nil
	}
	sum := hashBody(body...)
	if (*f.refused)[sum] {
		return ErrRepeated
	}
	return nil
}

func hashBody(parts ...[]byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, part := range parts {
		h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}

// Refusal is what a server said about a request before it answered anything.
type Refusal struct {
	Complaint *complaint.Complaint
	Body      []byte      // the request
	Names     *wire.Names // of its tools
}

// Ask sends one request in a form. A Refusal comes with an error; it is nil if the server answered something, or if
// something else failed.
type Ask func(
	ctx context.Context, req *llm.Request, contents *media.Contents, form *Form, onDelta func(string),
) (*llm.Response, *Refusal, error)

// Options configure a Negotiator. Provider, Model and Ask are needed.
type Options struct {
	Provider, Model string
	Dialect         dialect.Dialect // of the server
	Memory          dialect.Memory  // nil = one of this Negotiator
	Learner         *Learner        // nil = one of this Negotiator
	Rules           *media.Rules    // nil = nothing but text
	Ask             Ask
	FixedWire       bool   // the wire is configured, and never changed
	Native          string // as fenced.Options.Native
	// Refused is called with what the server says when it refuses a form, without secrets; nil = nobody wants to know.
	Refused func(words string)
	Clean   func(string) string // removes secrets from what a server says; nil = nothing is removed
	Now     func() time.Time    // nil = time.Now
	Log     zerolog.Logger
}

// Negotiator sends the requests of a provider for a model. Safe for concurrent use; it starts no goroutines.
type Negotiator struct {
	o    Options
	form atomic.Pointer[Form]
	// plain counts the answers in a row that were expected to begin with a thought, and had none.
	plain atomic.Int32
	*Learner
}

// Learner lets one caller at a time learn of a server, and counts what learning costs. Negotiators of one server and
// model, each with a key of its own, share one. Safe for concurrent use; it starts no goroutines.
type Learner struct {
	// learning is held by the caller that learns.
	learning chan struct{}

	mu    sync.Mutex
	since time.Time // of spent
	spent map[string]int
}

// NewLearner returns a Learner that has spent nothing.
func NewLearner() *Learner {
	return &Learner{learning: make(chan struct{}, 1), spent: map[string]int{}}
}

// New returns a Negotiator.
func New(o Options) *Negotiator {
	if o.Memory == nil {
		o.Memory = &dialect.Local{Now: o.Now}
	}
	if o.Rules == nil {
		o.Rules = &media.Rules{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Clean == nil {
		o.Clean = func(text string) string { return text }
	}
	n := &Negotiator{o: o, Learner: o.Learner}
	if n.Learner == nil {
		n.Learner = NewLearner()
	}
	n.form.Store(newForm(o.Dialect, nil))
	return n
}

// Form returns the form of the next request. It allocates nothing unless something new was learnt.
func (n *Negotiator) Form() *Form {
	form := n.form.Load()
	l := n.o.Memory.Recall(n.o.Provider, n.o.Model)
	if l == form.learnt || l.SameForm(form.learnt) {
		return form
	}
	form = newForm(n.o.Dialect, l)
	n.form.Store(form)
	return form
}

// plainAnswers is after how many answers without a thought none is expected any more: until then, they are shown whole
// and do not grow.
const plainAnswers = 3

// Began learns what the answers of a model begin with. expected says that the form expected a thought whose opening tag
// is in the prompt, thought that there was one, text that the answer had text and no thought of any kind.
func (n *Negotiator) Began(expected, thought, text bool) {
	begins := ""
	switch {
	case thought:
		n.plain.Store(0)
		if !expected {
			begins = dialect.BeginsThought
		}
	case expected && text:
		if n.plain.Add(1) >= plainAnswers {
			n.plain.Store(0)
			begins = dialect.BeginsText
		}
	}
	if begins != "" {
		n.o.Memory.Update(n.o.Provider, n.o.Model, func(l *dialect.Learnt) { l.Begins = begins })
	}
}

// Learnt returns what is known of the server; nil = nothing.
func (n *Negotiator) Learnt() *dialect.Learnt { return n.o.Memory.Recall(n.o.Provider, n.o.Model) }

// Pictures reports whether the server takes pictures, as far as was learnt.
func (n *Negotiator) Pictures() bool { return !n.Form().noPictures }

// Chat sends a request, and again in another form if the server refuses the form. Errors are those of Ask, the first
// one if no form was taken.
func (n *Negotiator) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	contents, err := media.Read(ctx, req, n.o.Rules)
	if err != nil {
		return nil, err //nolint:wrapcheck // of the context, with what was done
	}
	form := n.Form()
	res, refusal, err := n.sendForm(ctx, req, contents, form, onDelta)
	if err == nil || refusal == nil || !isNegotiable(refusal.Complaint) {
		return res, err
	}
	t := &talk{
		n:        n,
		req:      req,
		contents: contents,
		onDelta:  onDelta,
		form:     form,
		refused:  bodies{},
		tried:    map[string]bool{},
		first:    err,
	}
	if res, err = t.findForm(ctx, refusal); err != nil {
		return t.retellHistory(ctx, refusal, err)
	}
	return res, nil
}

// isNegotiable reports whether a complaint may be about the form of a request. One about its content, its length,
// the key or the account is not.
func isNegotiable(c *complaint.Complaint) bool {
	switch c.Kind() {
	case llm.Invalid, llm.UnknownModel:
		return !c.Refused()
	case llm.Unavailable:
		return c.Status >= 500 && c.RetryAfter == 0
	case llm.NoCredit:
		return c.Affordable() > 0
	default:
		return false
	}
}

// sendForm sends a request in a form.
func (n *Negotiator) sendForm(
	ctx context.Context, req *llm.Request, contents *media.Contents, form *Form, onDelta func(string),
) (*llm.Response, *Refusal, error) {
	if form.noPictures {
		contents.Refuse()
	}
	req = form.offerTools(req)
	if form.noTools && usesTools(req) {
		inner := &directly{n: n, contents: contents, form: form}
		res, err := fenced.New(inner, fenced.Options{Native: n.o.Native}).Chat(ctx, req, onDelta)
		return res, inner.refusal, err
	}
	return n.o.Ask(ctx, req, contents, form, onDelta)
}

// usesTools reports whether a request offers tools or has calls in its history.
func usesTools(req *llm.Request) bool {
	return len(req.Tools) > 0 || slices.ContainsFunc(req.Messages, func(m llm.Message) bool {
		return len(m.Uses) > 0 || m.Result != nil
	})
}

// directly is a provider that sends a request as it is. It serves one request.
type directly struct {
	n        *Negotiator
	contents *media.Contents
	form     *Form
	refusal  *Refusal
}

// Name implements llm.Provider.
func (d *directly) Name() string { return d.n.o.Provider }

// Chat implements llm.Provider.
func (d *directly) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	res, refusal, err := d.n.o.Ask(ctx, req, d.contents, d.form, onDelta)
	d.refusal = refusal
	return res, err
}

// offerTools returns a request without the tools that the server refuses.
func (f *Form) offerTools(req *llm.Request) *llm.Request {
	if f.learnt == nil || len(f.learnt.Aside) == 0 {
		return req
	}
	aside := func(t llm.Tool) bool {
		return slices.ContainsFunc(f.learnt.Aside, func(a dialect.Aside) bool {
			return a.Tool == t.Name && a.Schema == hashTool(t)
		})
	}
	if !slices.ContainsFunc(req.Tools, aside) {
		return req
	}
	fewer := *req
	fewer.Tools = slices.DeleteFunc(slices.Clone(req.Tools), aside)
	return &fewer
}

// hashTool is the hash by which a tool that was set aside is known: another definition is tried again.
func hashTool(t llm.Tool) string {
	sum := hashBody([]byte(t.Name), []byte{0}, t.Schema)
	return hex.EncodeToString(sum[:8])
}

// hashCatalog is the hash of the tools of a request, in any order.
func hashCatalog(tools []llm.Tool) string {
	var list []string
	for _, t := range tools {
		list = append(list, hashTool(t))
	}
	slices.Sort(list)
	sum := hashBody([]byte(strings.Join(list, " ")))
	return hex.EncodeToString(sum[:8])
}

// affordRequest takes one request of learning from the budget of a catalog, unless no more than keep would be left.
func (n *Negotiator) affordRequest(catalog string, keep int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.o.Now()
	if now.Sub(n.since) > refill {
		n.since = now
		clear(n.spent)
	}
	all := 0
	for _, used := range n.spent {
		all += used
	}
	allowed := false
	n.o.Memory.Update(n.o.Provider, n.o.Model, func(l *dialect.Learnt) {
		if l.Catalog != catalog || now.Sub(l.SpentAt) > refill {
			l.Catalog, l.Spent, l.SpentAt = catalog, n.spent[catalog], now
		}
		if allowed = l.Spent < Budget-keep && all < mostLearning-keep; allowed {
			l.Spent++
		}
	})
	if allowed {
		n.spent[catalog]++
	}
	return allowed
}

// refundRequest gives back what afford took for a request that was not sent.
func (n *Negotiator) refundRequest(catalog string, change *Change) {
	if change.onlyOnce() {
		return
	}
	n.mu.Lock()
	n.spent[catalog]--
	n.mu.Unlock()
	n.o.Memory.Update(n.o.Provider, n.o.Model, func(l *dialect.Learnt) {
		if l.Catalog == catalog && l.Spent > 0 {
			l.Spent--
		}
	})
}

// talk is one Chat whose request was refused. Not safe for concurrent use.
type talk struct {
	n        *Negotiator
	req      *llm.Request
	contents *media.Contents
	onDelta  func(string)

	form    *Form  // of the last request
	first   error  // of the first refusal
	refused bodies // all of them
	tried   map[string]bool
	steps   int
	catalog string
	lessons []lesson        // since form was taken from the memory, to be kept if the server takes the request
	good    map[string]bool // tools that the server has taken
	bad     []lesson        // tools that it has refused
	limit   int             // of the answer, in tokens; 0 = that of the request
	nudge   string          // added to the conversation

	usage llm.Usage // of requests that only tried something
	usd   float64
}

// lesson is a change of what is known.
type lesson struct {
	what  string // for the log
	apply func(*dialect.Learnt)
}

// findForm finds a form that the server takes.
func (t *talk) findForm(ctx context.Context, refusal *Refusal) (*llm.Response, error) {
	for t.steps < Steps {
		select {
		case t.n.learning <- struct{}{}:
		case <-ctx.Done():
			return nil, t.first
		}
		form := t.n.Form()
		if form == t.form {
			release := sync.OnceFunc(func() { <-t.n.learning })
			defer release()
			return t.learnForm(ctx, refusal, release)
		}
		// Somebody has learnt something while this request was under way.
		<-t.n.learning
		t.noteRefusal(refusal)
		t.steps++
		t.form = form
		res, again, err := t.sendOnce(ctx, form)
		switch {
		case errors.Is(err, ErrRepeated): // what was learnt does not concern this request
		case err == nil || again == nil || !isNegotiable(again.Complaint):
			return res, err
		default:
			refusal = again
		}
	}
	return nil, t.first
}

// noteRefusal remembers that a request was refused.
func (t *talk) noteRefusal(refusal *Refusal) {
	t.refused[hashBody(refusal.Body)] = true
	if t.n.o.Refused != nil {
		t.n.o.Refused(t.n.o.Clean(refusal.Complaint.Text()))
	}
}

// sendOnce sends the request in a form, unless it would be one that was refused.
func (t *talk) sendOnce(ctx context.Context, form *Form) (*llm.Response, *Refusal, error) {
	req := t.req
	if t.limit > 0 || t.nudge != "" {
		changed := *req
		if t.limit > 0 {
			changed.MaxTokens = t.limit
		}
		if t.nudge != "" {
			changed.Messages = append(slices.Clone(req.Messages), llm.Message{Role: llm.User, Text: t.nudge})
		}
		req = &changed
	}
	return t.n.sendForm(ctx, req, t.contents, form.guardedForm(&t.refused), t.onDelta)
}

// guardedForm returns the form for requests that must differ from those that were refused.
func (f *Form) guardedForm(refused *bodies) *Form {
	return &Form{
		Dialect:    f.Dialect,
		Edits:      f.Edits,
		learnt:     f.learnt,
		noTools:    f.noTools,
		noPictures: f.noPictures,
		refused:    refused,
	}
}

// level is a refusal and what may help against it.
type level struct {
	refusal *Refusal
	sent    *Sent
	left    []Change
	lessons int // how many there were when it came
}

// learnForm changes the request until the server takes it, nothing is left to change, or the budget is used up. The
// caller holds n.learning and passes what releases it: as soon as the server takes the request, others may go on.
func (t *talk) learnForm(ctx context.Context, refusal *Refusal, release func()) (*llm.Response, error) {
	t.catalog = hashCatalog(t.req.Tools)
	onDelta := t.onDelta
	if onDelta != nil {
		t.onDelta = func(text string) {
			t.keepLearnt()
			release()
			onDelta(text)
		}
	}
	t.noteRefusal(refusal)
	levels := []level{t.readLevel(refusal)}
	for len(levels) > 0 {
		now := &levels[len(levels)-1]
		if len(now.left) == 0 {
			levels = levels[:len(levels)-1]
			continue
		}
		change := now.left[0]
		now.left = now.left[1:]
		t.lessons = t.lessons[:min(len(t.lessons), now.lessons)]
		if !t.prepareChange(ctx, now, &change) {
			continue
		}
		if !t.spendRequest(&change) {
			break
		}
		res, again, err := t.sendOnce(ctx, t.newForm())
		switch {
		case err == nil:
			t.keepLearnt()
			return t.addCharges(res), nil
		case errors.Is(err, ErrRepeated):
			t.n.refundRequest(t.catalog, &change)
			continue
		case again != nil && change.Wire != "" && again.Complaint.Kind() == llm.WrongAddress:
			// the server has no such wire
			t.noteRefusal(again)
			continue
		case again == nil || !isNegotiable(again.Complaint):
			if llm.KindOf(err) == llm.Invalid && again == nil {
				return nil, t.first
			}
			return nil, err
		}
		t.noteRefusal(again)
		if next := t.readLevel(again); len(next.left) > 0 && (change.isLasting() || !sameWords(again, now.refusal)) {
			levels = append(levels, next)
		}
	}
	return t.withoutTools(ctx, refusal)
}

// isLasting reports whether a change stays even if the server's words stay the same: another tool may be refused for
// the same reason, and at the same place.
func (c *Change) isLasting() bool { return len(c.Aside) > 0 || c.Safe || c.Halve || c.MaxTools > 0 }

// sameWords reports whether a server has said the same again.
func sameWords(a, b *Refusal) bool {
	return a.Complaint.Message == b.Complaint.Message && slices.Equal(a.Complaint.Places, b.Complaint.Places)
}

// readLevel reads a refusal.
func (t *talk) readLevel(refusal *Refusal) level {
	c := refusal.Complaint
	said := &Said{
		Status:  c.Status,
		Message: c.Message,
		Type:    c.Type,
		Code:    c.Code,
		Places:  c.Places,
		Unknown: c.Kind() == llm.UnknownModel,
	}
	l := level{refusal: refusal, sent: Describe(refusal.Body), lessons: len(t.lessons)}
	d := t.newForm().Dialect
	list, err := Read(said, l.sent, &d)
	if err != nil {
		t.n.o.Log.Error().Err(err).Msg("the table of refusals cannot be read")
	}
	for _, change := range list {
		if change.Wire == "" || !t.n.o.FixedWire {
			l.left = append(l.left, change)
		}
	}
	return l
}

// newForm returns the form with all lessons so far.
func (t *talk) newForm() *Form {
	l := t.form.learnt.Clone()
	for _, one := range t.lessons {
		one.apply(l)
	}
	return newForm(t.n.o.Dialect, l)
}

// spendRequest takes a request from the budget, or a step if nothing is learnt by it.
func (t *talk) spendRequest(change *Change) bool {
	if change.onlyOnce() {
		t.steps++
		return t.steps <= Steps
	}
	return t.n.affordRequest(t.catalog, 0)
}

// onlyOnce reports whether a change is for one request only.
func (c *Change) onlyOnce() bool { return c.DropPictures || c.Nudge || c.MaxTokens > 0 }

// prepareChange makes a change; false = it was tried already, or cannot help.
func (t *talk) prepareChange(ctx context.Context, l *level, change *Change) bool {
	key := change.changeKey()
	if len(change.Aside) > 0 {
		key = "aside " + strings.Join(t.toolNames(l, change.Aside), " ")
	}
	if t.tried[key] {
		return false
	}
	t.tried[key] = true
	switch {
	case change.DropPictures:
		t.contents.Refuse()
	case change.MaxTokens > 0:
		t.limit = change.MaxTokens
	case change.Nudge:
		t.nudge = nudgeText(l.refusal.Complaint)
	case change.NoTools:
		refused, ok := t.probeTools(ctx, []llm.Tool{trivialTool})
		if !ok {
			return false
		}
		if !refused { // the server takes tools, but not these ones
			l.left = append([]Change{{Class: "schema", Safe: true}, {Class: "schema", Halve: true}}, l.left...)
			return false
		}
		t.addLearnt("no tools", func(k *dialect.Learnt) { addOnce(&k.Omit, Tools) })
	case change.Halve:
		return t.halveTools(ctx, l)
	case len(change.Aside) > 0:
		t.setAside(t.toolNames(l, change.Aside), l.refusal)
	case change.Least:
		fields := optionalFields(l.sent)
		t.addLearnt("fewest fields", func(k *dialect.Learnt) {
			for _, field := range fields {
				addOnce(&k.Omit, field)
			}
			k.Safe = true
		})
	default:
		c := *change
		t.addLearnt(c.changeWords(), c.applyTo)
		// all fields that were named at once
		for len(l.left) > 0 && c.Placed && l.left[0].Placed && l.left[0].Omit != "" {
			also := l.left[0]
			l.left = l.left[1:]
			t.tried[also.changeKey()] = true
			t.addLearnt(also.changeWords(), also.applyTo)
		}
	}
	return true
}

// changeWords says in a few words what a change is, for the log.
func (c *Change) changeWords() string {
	switch {
	case c.Omit != "":
		return "without " + c.Omit
	case c.Rename != "":
		return c.Rename + " as " + c.To
	case c.Set != "":
		return c.Set + " = " + c.Value
	case c.History != "":
		return "history: " + c.History
	case c.Wire != "":
		return "wire: " + c.Wire
	case c.MaxTools > 0:
		return "fewer tools"
	default:
		return c.Class
	}
}

// applyTo adds the change to what is known.
func (c *Change) applyTo(l *dialect.Learnt) {
	switch {
	case c.Omit != "":
		addOnce(&l.Omit, c.Omit)
	case c.Rename != "":
		if l.Rename == nil {
			l.Rename = map[string]string{}
		}
		l.Rename[c.Rename] = c.To
	case c.Set != "":
		if l.Set == nil {
			l.Set = map[string]string{}
		}
		l.Set[c.Set] = c.Value
		l.Omit = slices.DeleteFunc(l.Omit, func(name string) bool { return name == c.Set })
	case c.History != "":
		addOnce(&l.History, c.History)
		if c.Beside != "" {
			addOnce(&l.History, c.Beside)
		}
	case c.Wire != "":
		l.Wire = c.Wire
	case c.MaxTools > 0:
		l.MaxTools = c.MaxTools
	case c.Closed:
		l.Closed = true
	case c.Safe:
		l.Safe = true
	}
}

func addOnce(list *[]string, name string) {
	if !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}

func (t *talk) addLearnt(what string, apply func(*dialect.Learnt)) {
	t.lessons = append(t.lessons, lesson{what, apply})
}

// toolNames returns the names of tools of a refused request, as we call them.
func (t *talk) toolNames(l *level, indexes []int) []string {
	var list []string
	for _, i := range indexes {
		if i < len(l.sent.Tools) {
			list = append(list, l.refusal.Names.Decode(l.sent.Tools[i]))
		}
	}
	return list
}

// setAside leaves tools out.
func (t *talk) setAside(names []string, refusal *Refusal) {
	reason := t.n.o.Clean(refusal.Complaint.Text())
	var list []dialect.Aside
	for _, tool := range t.req.Tools {
		if slices.Contains(names, tool.Name) {
			list = append(list, dialect.Aside{Tool: tool.Name, Schema: hashTool(tool), Reason: reason})
		}
	}
	without := lesson{"without " + strings.Join(names, ", "), func(l *dialect.Learnt) {
		for _, a := range list {
			l.Aside = slices.DeleteFunc(l.Aside, func(b dialect.Aside) bool { return a.Tool == b.Tool })
			l.Aside = append(l.Aside, a)
		}
	}}
	t.lessons, t.bad = append(t.lessons, without), append(t.bad, without)
}

// keepLearnt stores what was learnt, because the server takes the request.
func (t *talk) keepLearnt() {
	if len(t.lessons) == 0 {
		return
	}
	lessons := t.lessons
	t.lessons = nil
	t.n.o.Memory.Update(t.n.o.Provider, t.n.o.Model, func(l *dialect.Learnt) {
		for _, one := range lessons {
			one.apply(l)
		}
	})
	for _, one := range lessons {
		t.n.o.Log.Warn().Str("provider", t.n.o.Provider).Str("model", t.n.o.Model).Str("learnt", one.what).
			Msg("the model's server refuses a part of the requests; they go out in another form")
	}
}

// addCharges adds what was spent on trying.
func (t *talk) addCharges(res *llm.Response) *llm.Response {
	if res != nil {
		res.Usage, res.USD = res.Usage.Add(t.usage), res.USD+t.usd
	}
	return res
}

// trivialTool is a tool that every server takes which takes tools.
var trivialTool = llm.Tool{
	Name: "noop", Description: "Does nothing.", Schema: []byte(`{"type":"object","properties":{}}`),
}

// probeTools sends the smallest request with some tools. ok = false: nobody knows whether the server takes them.
func (t *talk) probeTools(ctx context.Context, tools []llm.Tool) (refused, ok bool) {
	if !t.n.affordRequest(t.catalog, 1) {
		return false, false
	}
	req := &llm.Request{
		Messages:  []llm.Message{{Role: llm.User, Text: "Answer with the word OK."}},
		Tools:     tools,
		MaxTokens: probeTokens,
		User:      t.req.User,
		Party:     t.req.Party,
	}
	res, refusal, err := t.n.sendForm(ctx, req, nil, t.newForm(), nil)
	if err == nil && res != nil {
		t.usage, t.usd = t.usage.Add(res.Usage), t.usd+res.USD
		if t.good == nil {
			t.good = map[string]bool{}
		}
		for _, tool := range tools {
			t.good[tool.Name] = true
		}
		return false, true
	}
	if refusal != nil && t.n.o.Refused != nil {
		t.n.o.Refused(t.n.o.Clean(refusal.Complaint.Text()))
	}
	return true, refusal != nil && isNegotiable(refusal.Complaint)
}

// probeTokens limits the answer of a probe.
const probeTokens = 16

// halveTools looks for a tool that the server refuses, by halves, and sets it aside; false = the tools are not to
// blame, or it is not known which.
func (t *talk) halveTools(ctx context.Context, l *level) bool {
	suspects := t.newForm().offerTools(t.req).Tools
	if len(suspects) == 0 {
		return false
	}
	delete(t.tried, (&Change{Class: "schema", Halve: true}).changeKey()) // there may be another one
	known := false
	for len(suspects) > 1 {
		left, right := suspects[:len(suspects)/2], suspects[len(suspects)/2:]
		refused, ok := t.probeTools(ctx, left)
		if ok && !refused && !known {
			if refused, ok = t.probeTools(ctx, right); ok && !refused {
				return t.handleTogether(ctx, suspects)
			}
			left = right
		}
		switch {
		case !ok && !known:
			return false
		case !ok: // one of them is; who knows which
			t.setAside(toolNames(suspects), l.refusal)
			return true
		case refused:
			suspects, known = left, true
		default:
			suspects = right
		}
	}
	if !known {
		if refused, ok := t.probeTools(ctx, suspects); !ok || !refused {
			return false
		}
	}
	t.setAside(toolNames(suspects), l.refusal)
	return true
}

// handleTogether handles tools of which each half is taken: if the server refuses all of them, they are too many or too
// large.
func (t *talk) handleTogether(ctx context.Context, tools []llm.Tool) bool {
	refused, ok := t.probeTools(ctx, tools)
	if !ok || !refused {
		return false
	}
	most := len(tools) / 2
	t.addLearnt("fewer tools", func(l *dialect.Learnt) { l.MaxTools = most })
	return true
}

func toolNames(tools []llm.Tool) []string {
	list := make([]string, 0, len(tools))
	for _, tool := range tools {
		list = append(list, tool.Name)
	}
	return list
}

// withoutTools is the last resort against a refusal of tools of which too many are to blame: this request goes out with
// those that the server has taken, or with fenced blocks instead. The tools that it was seen to refuse are set aside.
func (t *talk) withoutTools(ctx context.Context, refusal *Refusal) (*llm.Response, error) {
	t.lessons = t.bad
	blamed := len(t.bad) > 0 || t.tried[(&Change{Safe: true}).changeKey()]
	if !blamed || t.steps >= Steps || !usesTools(t.req) {
		return nil, t.first
	}
	t.steps++
	var doubtful []string
	for _, tool := range t.req.Tools {
		if !t.good[tool.Name] {
			doubtful = append(doubtful, tool.Name)
		}
	}
	form := t.newForm()
	if len(t.good) > 0 && len(doubtful) < len(t.req.Tools) {
		t.setAside(doubtful, refusal)
		form = t.newForm()
	} else {
		l := form.learnt.Clone()
		addOnce(&l.Omit, Tools)
		form = newForm(t.n.o.Dialect, l)
	}
	res, _, err := t.sendOnce(ctx, form)
	if err != nil {
		return nil, t.first
	}
	t.keepLearnt()
	return t.addCharges(res), nil
}

// nudgeText asks a model again whose call the server could not read.
func nudgeText(c *complaint.Complaint) string {
	text := "[Your last tool call was malformed and was not run. Call the tool again, with a valid JSON object as " +
		"arguments, or answer without it.]"
	if c.Failed != "" {
		text += "\nYou wrote:\n" + strings.ToValidUTF8(c.Failed[:min(len(c.Failed), maxFailed)], "")
	}
	return text
}

// maxFailed bounds how much of a malformed call is shown to the model, in bytes.
const maxFailed = 2 << 10
