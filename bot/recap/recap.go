// Package recap reminds people of a conversation: when they ask (/recap), and when they come back to it after a long
// time. It also answers side questions (/btw) while a turn runs. Both are messages of the service: they never become part
// of the conversation. The model is paid for by the person who is reminded, or asks.
package recap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

const (
	// bucket holds the recaps that were asked for and not given yet, by the id of the message: after a crash, another
	// process gives them.
	bucket = "recap_job"
	jobFor = time.Hour // after that, nobody waits for it any more

	// Limit is the time that the model has (seed 001).
	Limit = 5 * time.Second
	// Pause is how long a conversation has to rest before a recap is given unasked.
	Pause = 24 * time.Hour

	room    = 512 << 10 // bytes of a conversation that are read
	finish  = 10 * time.Second
	atOnce  = 8 // recaps being written
	fewest  = 2 // answers that a conversation needs for an unasked recap
	entries = 4 // entries of a turn that are counted at most, besides messages
)

// Store is what the Handler needs of a store.
type Store interface {
	facts.Store
	Tail(ctx context.Context, session bot.SessionKey, room int) (journal.Tail, error)
}

// Talk is what a recap is written from.
type Talk struct {
	Earlier string          // the summary of what was before it; "" = there is none
	Entries []journal.Entry // the newest messages, and what was done for them
	Caller  string          // who is reminded
	Session bot.SessionKey
}

// Deps are the dependencies of a Handler. All are required.
type Deps struct {
	Store  Store
	Keeper facts.Keeper
	Open   func(msg *bot.Message, id string) turn.Budget // who pays (bot/quota)
	Write  func(ctx context.Context, talk Talk) (string, error)
	// Answer answers a side question about a conversation: the arguments of the command in asked.
	Answer func(ctx context.Context, talk Talk, asked *bot.Message) (string, error)
	// Admit says whether somebody may have a turn, as which a side question counts (bot/quota).
	Admit    func(ctx context.Context, msg *bot.Message, id string) (turn.Admission, error)
	Composer bot.Composer
	Words    texts.Words
	Wake     func(place bot.Place)
	Current  func(session bot.SessionKey) bot.SessionKey // the name of a session whose chat may have moved
	Owner    string                                      // this process
	Lives    func(owner string) bool
	Now      func() time.Time
	Log      zerolog.Logger
}

// Options configure a Handler.
type Options struct {
	OnResume bool
	Messages int           // most messages that a recap is made of; 0 = there are no recaps
	Pause    time.Duration // 0 = Pause
}

// Handler gives recaps. Safe for concurrent use. It works while Run runs.
type Handler struct {
	deps Deps
	opts Options

	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // bounds the goroutines of the Handler; nil = Run does not run
	working sync.WaitGroup
	begun   map[string]bool // what is being written, by key
	slots   chan struct{}
	running chan struct{} // closed once Run runs
	runs    sync.Once
	opened  opening // what Opened has reminded of
}

// opening is a conversation as somebody has opened it.
type opening struct {
	session bot.SessionKey
	last    int64 // number of its last entry
}

// New returns a Handler.
func New(deps Deps, opts Options) *Handler {
	if opts.Pause == 0 {
		opts.Pause = Pause
	}
	return &Handler{
		deps:    deps,
		opts:    opts,
		begun:   map[string]bool{},
		slots:   make(chan struct{}, atOnce),
		running: make(chan struct{}),
	}
}

// Feature returns /recap and /btw.
func (d *Handler) Feature() feature.Feature {
	return feature.Feature{
		Name:     "recap",
		Commands: []feature.Command{{Name: "recap", Run: d.Command}, {Name: asideName, Run: d.askAside}},
		Run:      d.Run,
		Follow:   d.Follow,
	}
}

// job is a recap or a side question that somebody has asked for.
type job struct {
	Session bot.SessionKey `json:"session"`
	Message bot.Message    `json:"message"`
	Owner   string         `json:"owner"` // the process that was asked
}

// Command answers /recap: at once that there is none, else in the background, so that no other command waits for the
// model.
func (d *Handler) Command(_ context.Context, call *turn.Call) (turn.Effect, error) {
	if d.opts.Messages <= 0 {
		row := d.rowFor(call.Message, bot.Reply, bot.Content{Text: d.deps.Words.RecapOff(call.Message.Language)})
		return turn.Effect{Change: bot.Change{Send: []bot.Row{row}}}, nil
	}
	return d.noteJob(call)
}

// noteJob has something written in the background, also if this process dies meanwhile.
func (d *Handler) noteJob(call *turn.Call) (turn.Effect, error) {
	j := job{Session: call.Session, Message: *call.Message, Owner: d.deps.Owner}
	value, err := json.Marshal(j)
	if err != nil {
		return turn.Effect{}, fmt.Errorf("note a recap: %w", err)
	}
	note := bot.Fact{Bucket: bucket, Key: call.Message.ID, Value: string(value), Expires: d.deps.Now().Add(jobFor)}
	return turn.Effect{
		Change: bot.Change{Facts: []bot.Fact{note}},
		Then: func(context.Context, *bot.Applied) (turn.Effect, error) {
			d.startWork(j.Message.ID, func(ctx context.Context) { d.give(ctx, &j) })
			return turn.Effect{}, nil
		},
	}, nil
}

// Run gives what is asked for until ctx ends, beginning with what a dead process has left, and what this
// one was asked for before Run ran.
func (d *Handler) Run(ctx context.Context) error {
	d.mu.Lock()
	d.ctx = ctx
	d.mu.Unlock()
	d.runs.Do(func() { close(d.running) })
	if err := d.takeUp(ctx, func(owner string) bool {
		return owner == d.deps.Owner || !d.deps.Lives(owner)
	}); err != nil && ctx.Err() == nil {
		d.deps.Log.Error().Err(err).Msg("recaps that wait since before the start not given")
	}
	<-ctx.Done()
	d.mu.Lock()
	d.ctx = nil
	d.mu.Unlock()
	d.working.Wait()
	return nil
}

// Follow takes up the recaps of processes that are dead.
func (d *Handler) Follow(ctx context.Context) error {
	return d.takeUp(ctx, func(owner string) bool { return owner != d.deps.Owner && !d.deps.Lives(owner) })
}

// takeUp gives the recaps that were noted by some processes.
func (d *Handler) takeUp(ctx context.Context, of func(owner string) bool) error {
	list, err := d.deps.Store.FactsOf(ctx, bucket, "", d.deps.Now())
	if err != nil {
		return fmt.Errorf("read which recaps are waited for: %w", err)
	}
	for _, f := range list {
		var j job
		if err := json.Unmarshal([]byte(f.Value), &j); err != nil {
			d.deps.Log.Error().Err(err).Str("recap", f.Key).Msg("recap not readable")
			continue
		}
		if !of(j.Owner) {
			continue
		}
		d.startWork(j.Message.ID, func(ctx context.Context) { d.give(ctx, &j) })
	}
	return nil
}

// startWork runs work in the background, once at a time for a key. What is not run because the service
// ends is found by the next start.
func (d *Handler) startWork(key string, work func(ctx context.Context)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx == nil || d.begun[key] {
		return
	}
	ctx := d.ctx
	d.begun[key] = true
	d.working.Go(func() {
		defer func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			delete(d.begun, key)
		}()
		select {
		case d.slots <- struct{}{}:
			defer func() { <-d.slots }()
			work(ctx)
		case <-ctx.Done():
		}
	})
}

// give gives what a job is about.
func (d *Handler) give(ctx context.Context, j *job) {
	j.Session = d.deps.Current(j.Session)
	if chat := j.Session.Chat(); chat != "" && chat != j.Message.Place.Chat {
		j.Message.Place.Chat, j.Message.Message = chat, ""
	}
	if j.Message.Command == asideName {
		d.giveAside(ctx, j)
		return
	}
	d.giveRecap(ctx, j)
}

// giveRecap answers a /recap. Its rows have keys, so that it is answered once, however often it is begun.
func (d *Handler) giveRecap(ctx context.Context, j *job) {
	text, err := d.recapOfJob(d.payingContext(ctx, &j.Message, "recap/"+j.Message.ID), j)
	if ctx.Err() != nil {
		return
	}
	language := j.Message.Language
	var contents []bot.Content
	denied, refused := errors.AsType[*cost.Denied](err)
	switch {
	case refused:
		contents = []bot.Content{{Text: denied.Text}}
	case errors.Is(err, errNothing):
		contents = []bot.Content{{Text: d.deps.Words.RecapNothing(language)}}
	case err != nil:
		d.deps.Log.Warn().Err(err).Str("session", string(j.Session)).Msg("no recap")
		contents = []bot.Content{{Text: d.deps.Words.RecapFailed(language)}}
	default:
		contents = d.deps.Composer.Compose(d.deps.Words.Recap(language, text), j.Message.Place, language)
	}
	change := &bot.Change{Facts: []bot.Fact{{Bucket: bucket, Key: j.Message.ID}}}
	d.sendRecap(ctx, change, &j.Message, bot.Reply, "recap/"+j.Message.ID, contents)
}

// payingContext returns a context in which the sender of a message pays. No turn stores what is spent, so the purse is
// closed at once: it stores that itself.
func (d *Handler) payingContext(ctx context.Context, msg *bot.Message, id string) context.Context {
	purse := d.deps.Open(msg, id)
	purse.Close()
	return cost.WithPayer(ctx, purse)
}

var errNothing = errors.New("nothing was said yet")

// recapOfJob writes the recap of a job.
func (d *Handler) recapOfJob(ctx context.Context, j *job) (string, error) {
	tail, err := d.deps.Store.Tail(ctx, j.Session, room)
	if err != nil {
		return "", fmt.Errorf("read a conversation: %w", err)
	}
	talk := selectTalk(tail.Entries, d.opts.Messages)
	if talk.Earlier == "" && len(talk.Entries) == 0 {
		return "", errNothing
	}
	talk.Caller, talk.Session = j.Message.Caller, j.Session
	return d.writeRecap(ctx, talk)
}

// writeRecap asks the model, which has Limit for it.
func (d *Handler) writeRecap(ctx context.Context, talk Talk) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	return d.deps.Write(bounded, talk)
}

// selectTalk selects what a recap is written from: so many of the newest messages of a conversation, with the summary of
// what is before them.
func selectTalk(list []journal.Entry, most int) Talk {
	var talk Talk
	summary, first := journal.Summary(list)
	if summary != nil {
		talk.Earlier = summary.Text
	}
	list = list[first:]
	from, messages := len(list), 0
	for i := len(list) - 1; i >= 0 && messages < most && len(list)-i <= most*entries; i-- {
		switch list[i].Kind {
		case journal.UserEntry, journal.AnswerEntry, journal.EndEntry:
			messages, from = messages+1, i
		case journal.AssistantEntry, journal.StartedEntry,
			journal.ResultEntry, journal.SummaryEntry, journal.ResetEntry:
		}
	}
	talk.Entries = list[from:]
	return talk
}

// Resumed is told that a message begins a turn, with the conversation before it. If the person comes back to it after a
// long time, they are reminded of it, beside the turn. It does not block, and a recap that
// does not succeed is not given.
func (d *Handler) Resumed(msg *bot.Message, session bot.SessionKey, before []journal.Entry) {
	if !d.worthReminding(msg, before) || d.deps.Now().Sub(before[len(before)-1].At) < d.opts.Pause {
		return
	}
	last := before[len(before)-1].N
	d.mu.Lock()
	told := d.opened == opening{session, last}
	d.mu.Unlock()
	if !told {
		d.giveReminder(fmt.Sprintf("recap/%s/%d", session, last), msg, session, before)
	}
}

// Opened is told that a person has opened a conversation, where they do so before they write, as at a terminal. They
// are reminded of it, however short the pause was, and not again with their first message. msg says who and where they
// are. It waits until Run runs and not for the model, and a recap that does not succeed is not given.
func (d *Handler) Opened(ctx context.Context, msg *bot.Message, session bot.SessionKey) {
	select {
	case <-d.running:
	case <-ctx.Done():
		return
	}
	tail, err := d.deps.Store.Tail(ctx, session, room)
	if err != nil {
		d.deps.Log.Warn().Err(err).Str("session", string(session)).Msg("no recap")
		return
	}
	before := tail.Entries
	if !d.worthReminding(msg, before) {
		return
	}
	d.mu.Lock()
	d.opened = opening{session, tail.Last()}
	d.mu.Unlock()
	d.giveReminder("recap/"+msg.ID, msg, session, before)
}

// giveReminder gives a recap unasked, once for a key.
func (d *Handler) giveReminder(key string, msg *bot.Message, session bot.SessionKey, before []journal.Entry) {
	own, talk := *msg, selectTalk(before, d.opts.Messages)
	talk.Caller, talk.Session = msg.Caller, session
	d.startWork(key, func(ctx context.Context) {
		text, err := d.writeRecap(d.payingContext(ctx, &own, key), talk)
		if err != nil {
			d.deps.Log.Warn().Err(err).Str("session", string(session)).Msg("no recap")
			return
		}
		contents := d.deps.Composer.Compose(d.deps.Words.Recap(own.Language, text), own.Place, own.Language)
		d.sendRecap(ctx, &bot.Change{}, &own, bot.Notice, key, contents)
	})
}

// worthReminding reports whether a conversation is worth a reminder. In a group nobody is reminded unasked: others
// would have to read it. A conversation with a summary has none (seed 001).
func (d *Handler) worthReminding(msg *bot.Message, before []journal.Entry) bool {
	if !d.opts.OnResume || d.opts.Messages <= 0 || len(before) == 0 || msg.Place.Group || !msg.Place.Ordinary() {
		return false
	}
	if before[len(before)-1].At.IsZero() {
		return false
	}
	summary, first := journal.Summary(before)
	if summary != nil && summary.Text != "" {
		return false
	}
	answers := 0
	for i := first; i < len(before); i++ {
		if before[i].Kind == journal.AnswerEntry {
			answers++
		}
	}
	return answers >= fewest
}

// sendRecap stores what is said.
func (d *Handler) sendRecap(
	ctx context.Context, change *bot.Change, msg *bot.Message, purpose bot.Purpose, key string, contents []bot.Content,
) {
	for i, c := range contents {
		row := d.rowFor(msg, purpose, c)
		row.Key = fmt.Sprintf("%s/%d", key, i)
		change.Send = append(change.Send, row)
	}
	kept, cancel := context.WithTimeout(context.WithoutCancel(ctx), finish)
	defer cancel()
	if err := d.deps.Keeper.Keep(kept, change); err != nil {
		d.deps.Log.Error().Err(err).Msg("recap not stored")
		return
	}
	d.deps.Wake(msg.Place)
}

func (d *Handler) rowFor(msg *bot.Message, purpose bot.Purpose, content bot.Content) bot.Row {
	content.Language = msg.Language
	row := bot.Row{Place: msg.Place, Purpose: purpose, Content: content}
	if purpose == bot.Reply && (msg.Place.Group || msg.Command == asideName) {
		row.ReplyTo = msg.Message
	}
	return row
}
