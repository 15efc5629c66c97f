// Package recap reminds people of a conversation: when they ask (/recap), and when they come back to it after a long
// time. It also answers side questions (/btw) while a turn runs. Both are messages of the service: they never become part
// of the conversation. The model is paid for by the person who is reminded, or asks.
package recap

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/job"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

const (
	// bucket holds the recaps that were asked for and not given yet, by the id of the message: after a crash, another
	// process gives them.
	bucket = "recap_job"

	// Limit is the time that the model has (seed 001).
	Limit = 5 * time.Second
	// Pause is how long a conversation has to rest before a recap is given unasked.
	Pause = 24 * time.Hour

	room    = 512 << 10 // bytes of a conversation that are read
	fewest  = 2         // answers that a conversation needs for an unasked recap
	entries = 4         // entries of a turn that are counted at most, besides messages
)

// Journals are the conversations that people are reminded of.
type Journals interface {
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
	job.Deps
	Journals Journals
	Open     func(msg *bot.Message, id string) turn.Budget // who pays (bot/quota)
	Write    func(ctx context.Context, talk Talk) (string, error)
	// Answer answers a side question about a conversation: the arguments of the command in asked.
	Answer func(ctx context.Context, talk Talk, asked *bot.Message) (string, error)
	// Admit says whether somebody may have a turn, as which a side question counts (bot/quota).
	Admit    func(ctx context.Context, msg *bot.Message, id string) (turn.Admission, error)
	Composer bot.Composer
	Words    texts.Words
}

// Options configure a Handler.
type Options struct {
	OnResume bool
	Messages int           // most messages that a recap is made of; 0 = there are no recaps
	Pause    time.Duration // 0 = Pause
}

// Handler gives recaps. Safe for concurrent use. It works while Run of its jobs runs.
type Handler struct {
	deps Deps
	opts Options
	jobs *job.Runner

	mu     sync.Mutex
	opened opening // what Opened has reminded of
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
	d := &Handler{deps: deps, opts: opts}
	d.jobs = job.NewRunner(deps.Deps, bucket, d.give)
	return d
}

// Feature returns /recap and /btw.
func (d *Handler) Feature() feature.Feature {
	return feature.Feature{
		Name:     "recap",
		Commands: []feature.Command{{Name: "recap", Run: d.Command}, {Name: asideName, Run: d.askAside}},
		Run:      d.jobs.Run,
		Follow:   d.jobs.Follow,
	}
}

// Command answers /recap: at once that there is none, else in the background, so that no other command waits for the
// model.
func (d *Handler) Command(_ context.Context, call *turn.Call) (turn.Effect, error) {
	if d.opts.Messages <= 0 {
		return call.ReplyText(d.deps.Words.RecapOff(call.Message.Language)), nil
	}
	return d.noteJob(call)
}

// noteJob has something written in the background, also if this process dies meanwhile.
func (d *Handler) noteJob(call *turn.Call) (turn.Effect, error) {
	return d.jobs.Effect(job.Job{Key: call.Message.ID, Session: call.Session, Message: *call.Message})
}

// give answers a /recap or a /btw. What a dead process had begun is written again.
func (d *Handler) give(ctx context.Context, j *job.Job) []bot.Row {
	msg, language := &j.Message, j.Message.Language
	key, write, failed := "recap/"+msg.ID, d.recapOfJob, d.deps.Words.RecapFailed
	if msg.Command == asideName {
		key, write, failed = asideKey(msg), d.answerAside, d.deps.Words.AsideFailed
	}
	text, err := write(d.payingContext(ctx, msg, key), j)
	denied, refused := errors.AsType[*cost.Denied](err)
	var contents []bot.Content
	switch {
	case ctx.Err() != nil:
		return nil
	case refused:
		contents = []bot.Content{{Text: denied.Text}}
	case errors.Is(err, errNothing):
		contents = []bot.Content{{Text: d.deps.Words.RecapNothing(language)}}
	case err != nil:
		d.deps.Log.Warn().Err(err).Str("session", string(j.Session)).Str("job", key).Msg("not answered")
		contents = []bot.Content{{Text: failed(language)}}
	default:
		contents = d.deps.Composer.Compose(text, msg.Place, language)
	}
	return d.rowsFor(msg, bot.Reply, key, contents)
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
func (d *Handler) recapOfJob(ctx context.Context, j *job.Job) (string, error) {
	tail, err := d.deps.Journals.Tail(ctx, j.Session, room)
	if err != nil {
		return "", fmt.Errorf("read a conversation: %w", err)
	}
	talk := selectTalk(tail.Entries, d.opts.Messages)
	if talk.Earlier == "" && len(talk.Entries) == 0 {
		return "", errNothing
	}
	talk.Caller, talk.Session = j.Message.Caller, j.Session
	return d.writeRecap(ctx, talk, j.Message.Language)
}

// writeRecap asks the model, which has Limit for it.
func (d *Handler) writeRecap(ctx context.Context, talk Talk, language string) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	text, err := d.deps.Write(bounded, talk)
	return d.deps.Words.Recap(language, text), err
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
	case <-d.jobs.Running():
	case <-ctx.Done():
		return
	}
	tail, err := d.deps.Journals.Tail(ctx, session, room)
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
	d.jobs.Go(key, func(ctx context.Context) {
		text, err := d.writeRecap(d.payingContext(ctx, &own, key), talk, own.Language)
		if err != nil {
			d.deps.Log.Warn().Err(err).Str("session", string(session)).Msg("no recap")
			return
		}
		contents := d.deps.Composer.Compose(text, own.Place, own.Language)
		d.jobs.Send(ctx, own.Place, &bot.Change{Send: d.rowsFor(&own, bot.Notice, key, contents)})
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

// rowsFor returns what is said. Its rows have keys, so that it is said once, however often it is begun.
func (d *Handler) rowsFor(msg *bot.Message, purpose bot.Purpose, key string, contents []bot.Content) []bot.Row {
	var rows []bot.Row
	for i, content := range contents {
		content.Language = msg.Language
		row := bot.Row{Place: msg.Place, Purpose: purpose, Content: content, Key: fmt.Sprintf("%s/%d", key, i)}
		if purpose == bot.Reply && (msg.Place.Group || msg.Command == asideName) {
			row.ReplyTo = msg.Message
		}
		rows = append(rows, row)
	}
	return rows
}
