package privacy

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/transcript"
	"github.com/zephbot/zephbot/bot/turn"
)

// Prefix begins the data of the buttons of /forget: "f1:VERB:PERSON:QUESTION", where QUESTION is random. Only the
// person may press, and only on their newest question, which is stored (askedBucket). The button of a page has none.
const Prefix = "f1"

const (
	pressErase = "y"
	pressKeep  = "n"

	// askFor is how long the buttons of /forget work.
	askFor = 10 * time.Minute
	// often is how long a person waits between two exports.
	often = time.Hour
	// exportFor is how long an export is tried.
	exportFor = 24 * time.Hour
	// every is the pause between two looks for jobs, which are four small queries. What is asked for in this process is
	// looked for at once.
	every = 3 * time.Second
	// monthly is the pause between two looks for charges that lose their names.
	monthly = time.Hour
	// deliverFor is how long a receipt or an export is kept for a person who cannot be reached.
	deliverFor = time.Hour
)

// HandlerDeps are the dependencies of a Handler. All are required.
type HandlerDeps struct {
	Office *Office
	Export *Exporter
	Pages  *transcript.Reader
	// Rights say who may approve in a place: these people may see what tools did for others.
	Rights func(ctx context.Context, place bot.Place, tool string) (approval.Rights, error)
	Blobs  blob.Store
	Temp   func() (*TempFile, error) // a file that is gone once it is closed
	Limit  int64                     // bytes of a file that the channel takes
	Lock   facts.Lock
	Words  texts.Words
	Send   func(place bot.Place) // rows of a place are stored
	Owner  string
	// Audited pseudonymises a person in the audit log of this process, which no other one can.
	Audited func(ctx context.Context, of *Order) (int, error)
	Log     zerolog.Logger
}

// TempFile is a file that holds an export while it is written.
type TempFile struct {
	io.ReadWriteSeeker
	Close func() error // deletes it
}

// Handler answers /export and /forget, and does what was asked for there and on the command
// line. Safe for concurrent use.
type Handler struct {
	deps  HandlerDeps
	store Store
	now   func() time.Time

	asked   chan struct{}   // something was asked for here
	seen    map[string]bool // receipts since whose jobs this process remembers nothing from before; for Run
	audited map[string]bool // jobs for which this process has pseudonymised its log; for Run
}

// NewHandler returns a Handler.
func NewHandler(deps HandlerDeps) *Handler {
	return &Handler{
		deps: deps, store: deps.Office.deps.Store, now: deps.Office.deps.Now,
		asked: make(chan struct{}, 1), audited: map[string]bool{}, seen: map[string]bool{},
	}
}

// Feature returns /export and /forget, and what they and the command line ask for. At a terminal, whose person has the
// command line, the commands are off: commands is false.
func (d *Handler) Feature(commands bool) feature.Feature {
	f := feature.Feature{
		Name:     "privacy",
		Commands: []feature.Command{{Name: "export"}, {Name: "forget"}},
		Buttons:  []feature.Button{{Prefix: Prefix, Presser: d}},
		Run:      d.Run,
	}
	if commands {
		f.Commands[0].Run, f.Commands[1].Run = d.Export, d.Forget
	}
	return f
}

// inOwnChat reports whether a message was written where the person is alone with the bot.
func inOwnChat(msg *bot.Message) (Person, bool) {
	of, ok := personOf(msg)
	return of, ok && !msg.Place.Group && msg.Place.Ordinary() && of.private(msg.Place.Channel, msg.Place.Chat)
}

// Forget answers /forget: it asks.
func (d *Handler) Forget(_ context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, d.deps.Words
	of, ok := inOwnChat(msg)
	if !ok {
		return call.ReplyAside(bot.Content{Text: w.ForgetPrivate(msg.Language)}), nil
	}
	var raw [8]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return turn.Effect{}, fmt.Errorf("make the id of a question: %w", err)
	}
	question := hex.EncodeToString(raw[:])
	erase, keep := w.ForgetButtons(msg.Language)
	e := call.ReplyAside(bot.Content{
		Text: w.ForgetAsk(msg.Language, call.Admin), Language: msg.Language,
		Buttons: [][]bot.Button{
			{{Label: erase, Data: strings.Join([]string{Prefix, pressErase, of.ID, question}, ":"), Style: "danger"}},
			{{Label: keep, Data: strings.Join([]string{Prefix, pressKeep, of.ID, question}, ":")}},
		},
	})
	e.Change.Facts = []bot.Fact{{Bucket: askedBucket, Key: of.Caller(), Value: question, Expires: d.now().Add(askFor)}}
	return e, nil
}

// Press implements turn.Presser: who asked to be erased decides it, once, in their private chat. Data that belongs to
// no question of theirs changes nothing, and leaves the message as it is if it names somebody else.
func (d *Handler) Press(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, d.deps.Words
	of, ok := inOwnChat(msg)
	verb, rest, _ := strings.Cut(strings.TrimPrefix(msg.Data, Prefix+":"), ":")
	person, question, _ := strings.Cut(rest, ":")
	if !ok || person != of.ID {
		toast := bot.Row{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query, Alert: true}
		if toast.Content.Text = w.ForgetPrivate(msg.Language); ok {
			toast.Content.Text = w.ForgetOld(msg.Language)
		}
		return turn.Effect{Change: bot.Change{Send: []bot.Row{toast}}}, nil
	}
	if verb == pressPage {
		return d.pressedPage(ctx, call)
	}
	asked, err := d.store.Fact(ctx, askedBucket, of.Caller(), d.now())
	if err != nil {
		return turn.Effect{}, fmt.Errorf("read whether somebody asked to be erased: %w", err)
	}
	if asked == "" || asked != question || verb != pressErase && verb != pressKeep {
		return d.redrawQuestion(msg, w.ForgetOld(msg.Language)), nil
	}
	decided := bot.Fact{Bucket: askedBucket, Key: of.Caller()} // empty: it is removed
	if verb == pressKeep {
		e := d.redrawQuestion(msg, w.ForgetKept(msg.Language))
		e.Change.Facts = []bot.Fact{decided}
		return e, nil
	}
	if under, err := d.deps.Office.Begun(ctx, of); err != nil || under != nil {
		return d.redrawQuestion(msg, w.ForgetBegun(msg.Language)), err
	}
	j := NewJob(of, d.now())
	j.Message, j.Session = &bot.Message{ID: msg.ID, Place: msg.Place, Language: msg.Language}, call.Session
	fact, err := j.Fact()
	if err != nil {
		return turn.Effect{}, err
	}
	e := d.redrawQuestion(msg, w.ForgetBegun(msg.Language))
	e.Change.Facts, e.Then = []bot.Fact{fact, decided}, d.lookNow
	return e, nil
}

// redrawQuestion answers a press, and puts a text in the place of the question.
func (d *Handler) redrawQuestion(msg *bot.Message, text string) turn.Effect {
	e := turn.Effect{Change: bot.Change{Send: []bot.Row{{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query}}}}
	if msg.Message != "" {
		e.Change.Send = append(e.Change.Send, bot.Row{
			Place:   msg.Place,
			Purpose: bot.Record,
			Edit:    msg.Message,
			Content: bot.Content{Text: text, Language: msg.Language},
		})
	}
	return e
}

// Run does what is asked for until ctx ends. Of several processes, one does a job.
func (d *Handler) Run(ctx context.Context) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var spent time.Time
	for {
		err := errors.Join(d.eraseAll(ctx), d.exportAll(ctx))
		if now := d.now(); err == nil && now.Sub(spent) >= monthly {
			spent = now
			err = d.deps.Office.Spent(ctx)
		}
		if err != nil && ctx.Err() == nil {
			d.deps.Log.Error().Err(err).Msg("requests to export or to erase; tried again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-d.asked:
		}
	}
}

// lookNow has Run look for jobs at once.
func (d *Handler) lookNow(context.Context, *bot.Applied) (turn.Effect, error) {
	select {
	case d.asked <- struct{}{}:
	default: // it is about to look
	}
	return turn.Effect{}, nil
}

func (d *Handler) eraseAll(ctx context.Context) error {
	if err := d.deps.Office.publishReceipts(ctx); err != nil { // of a process that was killed
		return err
	}
	if err := d.forgetConversations(ctx); err != nil {
		return err
	}
	list, err := d.store.FactsOf(ctx, JobBucket, "", d.now())
	if err != nil {
		return fmt.Errorf("read who is to be erased: %w", err)
	}
	for _, f := range list {
		if err := d.withLock(ctx, f, d.eraseOne); err != nil {
			return err
		}
	}
	return nil
}

// forgetConversations drops what this process remembers of conversations after each
// erasure, also one by another process.
func (d *Handler) forgetConversations(ctx context.Context) error {
	list, err := d.store.FactsOf(ctx, receiptBucket, "", d.now())
	if err != nil {
		return fmt.Errorf("read receipts: %w", err)
	}
	fresh := false
	for _, f := range list {
		fresh = fresh || !d.seen[f.Key]
		d.seen[f.Key] = true
	}
	if fresh {
		d.deps.Office.deps.Forget()
	}
	return nil
}

// ownLog pseudonymises the person of a job that another process does in the audit log of this one, once the
// turns of the person have ended.
func (d *Handler) ownLog(ctx context.Context, f bot.Fact) error {
	j := &Job{}
	if d.audited[f.Key] || f.Bucket != JobBucket ||
		json.Unmarshal([]byte(f.Value), j) != nil || j.Step == "" || j.Step == "sessions" {
		return nil
	}
	if _, err := d.deps.Audited(ctx, d.deps.Office.orderOf(j)); err != nil {
		return fmt.Errorf("pseudonymise the audit log: %w", err)
	}
	done := bot.Fact{
		Bucket:  AuditedBucket,
		Key:     j.ID + "/" + d.deps.Owner,
		Value:   "1",
		Expires: d.now().Add(receiptFor),
	}
	if _, err := d.store.Apply(ctx, &bot.Change{Facts: []bot.Fact{done}}); err != nil {
		return fmt.Errorf("store that the audit log is pseudonymised: %w", err)
	}
	d.audited[f.Key] = true
	return nil
}

// heldFor is how long it is waited for another process that is at the same job; the next look waits again.
const heldFor = 300 * time.Millisecond

// lockOf names the lock of a fact: one for all erasures of a person, no matter who asked for them. It must not name the
// person, or the erasure would delete it.
func lockOf(f bot.Fact) string {
	var j Job
	if f.Bucket != JobBucket || json.Unmarshal([]byte(f.Value), &j) != nil {
		return rowKey + f.Key
	}
	sum := sha256.Sum256([]byte(j.Person.Caller()))
	return rowKey + "erase/" + hex.EncodeToString(sum[:])
}

// withLock does something about a fact while no other process does, as the fact is then.
func (d *Handler) withLock(ctx context.Context, f bot.Fact, do func(ctx context.Context, f bot.Fact) error) error {
	brief, cancel := context.WithTimeout(ctx, heldFor)
	defer cancel()
	release, err := d.deps.Lock.Hold(brief, lockOf(f))
	if err != nil {
		if brief.Err() != nil && ctx.Err() == nil {
			return d.ownLog(ctx, f)
		}
		return err
	}
	defer release()
	if f.Value, err = d.store.Fact(ctx, f.Bucket, f.Key, d.now()); err != nil || f.Value == "" {
		return err
	}
	return do(ctx, f)
}

func (d *Handler) eraseOne(ctx context.Context, f bot.Fact) error {
	j := &Job{}
	if err := json.Unmarshal([]byte(f.Value), j); err != nil {
		d.deps.Log.Error().Err(err).Str("job", f.Key).Msg("a request to erase cannot be read")
		return nil
	}
	if j.Row != 0 {
		return d.removeDelivered(ctx, j.Row, f, "", j.Session)
	}
	d.deps.Log.Info().Str("job", j.ID).Str("after", j.Step).Msg("erasing a person")
	r, err := d.deps.Office.Erase(ctx, j)
	if err != nil {
		return err
	}
	d.deps.Log.Info().Str("job", j.ID).Int("kinds", len(r.Gone)).
		Int("problems", len(r.Problems)).Msg("a person was erased")
	if j.Message == nil {
		return nil
	}
	text := d.deps.Words.ForgetReceipt(j.Message.Language, r.Words())
	row := bot.Row{
		Session: j.Session, Place: j.Message.Place, Purpose: bot.Reply, Key: rowKey + j.ID,
		Content: bot.Content{Text: text, Language: j.Message.Language},
	}
	return d.tellOnce(ctx, row, func(id int64) (bot.Fact, error) {
		j.Row = id
		return j.Fact()
	})
}

// tellOnce sends a row once, and then stores a fact that knows it.
func (d *Handler) tellOnce(ctx context.Context, row bot.Row, note func(id int64) (bot.Fact, error)) error {
	applied, err := d.store.Apply(ctx, &bot.Change{Send: []bot.Row{row}})
	if err != nil {
		return fmt.Errorf("store a message: %w", err)
	}
	d.deps.Send(row.Place)
	fact, err := note(applied.Rows[0])
	if err == nil {
		_, err = d.store.Apply(ctx, &bot.Change{Facts: []bot.Fact{fact}})
	}
	if err != nil {
		return fmt.Errorf("store what was sent: %w", err)
	}
	return nil
}

// removeDelivered removes a job, its row and its content once the row was sent, or cannot be.
func (d *Handler) removeDelivered(
	ctx context.Context, row int64, f bot.Fact, hash string, session bot.SessionKey,
) error {
	r, err := d.store.Row(ctx, row)
	over := errors.Is(err, bot.ErrNotFound)
	if err != nil && !over {
		return fmt.Errorf("look whether a message was sent: %w", err)
	}
	if !over && r.State != bot.Sent && r.State != bot.Dead &&
		(r.Created.IsZero() || d.now().Sub(r.Created) < deliverFor) {
		return nil
	}
	tables := d.deps.Office.deps.Tables
	e := &eraser{}
	if hash != "" {
		e.files = []file{{string(session), hash}}
	}
	if err := e.eraseContents(ctx, tables); err != nil {
		return fmt.Errorf("remove an export: %w", err)
	}
	gone := []Alteration{
		{Table: &ruleOf(outboxTable).Table, Row: Record{"id": strconv.FormatInt(row, 10)}},
		{Table: &ruleOf(factTable).Table, Row: Record{"bucket": f.Bucket, "key": f.Key}},
	}
	if _, err := tables.Alter(ctx, gone); err != nil {
		return fmt.Errorf("remove what was delivered: %w", err)
	}
	return tables.Scrub(ctx)
}

var _ turn.Presser = (*Handler)(nil)
