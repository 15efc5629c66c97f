package privacy

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
)

const (
	// JobBucket holds the jobs of erasing, by their ids, from the request until the receipt was delivered. A job names
	// the person, and nothing else does for longer.
	JobBucket = "erase_job"
	// receiptBucket holds receipts of what was erased, by the ids of the jobs, for the caller on the command line.
	receiptBucket = "erase_receipt"
	// SpentBucket holds, by caller id, until when the charges of a month stay with a person who was erased.
	SpentBucket = "erase_spent"

	receiptFor = 24 * time.Hour
	// rowKey begins the keys of the outbox rows of receipts and exports.
	rowKey = "privacy/"
)

// How long a job waits for others before it goes on without them.
const (
	stopping = 30 * time.Second // turns of the person that are running
	resting  = 10 * time.Second // turns of others in a conversation that is changed, and rows that are being sent
	lookEach = 100 * time.Millisecond
)

// A step that fails is tried so often, with a pause: a disk that was full, or a process that was writing.
const (
	mostTries = 3
	tryAfter  = time.Second
)

// Store is what a Handler needs of a store.
type Store interface {
	facts.Store
	Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error)
	Row(ctx context.Context, id int64) (bot.Row, error)
	InChat(ctx context.Context, chat string, limit int) ([]bot.Lane, error)
}

// Deps are the dependencies of an Office. Required are Tables, Store, Now and Log.
type Deps struct {
	Tables Tables
	Store  Store
	Places []Place
	// Buckets are the rules of all buckets of facts.
	Buckets []bot.BucketRule
	// Settle writes what is due to the audit log; may be nil.
	Settle func(ctx context.Context)
	// Wake has the engine look at a conversation; nil = no engine runs.
	Wake func(session bot.SessionKey)
	// Forget drops what this process remembers of conversations; nil = nothing.
	Forget func()
	// Limited reports whether a limit applies to what a person uses; nil = none does.
	Limited func(caller string) bool
	Zone    *time.Location // in which months begin; nil = UTC
	// Postgres: the database is PostgreSQL, which keeps deleted rows in its files for a while.
	Postgres bool
	// After is called after each step of a job is stored; tests end the process there.
	After func(step string)
	Now   func() time.Time
	Log   zerolog.Logger
}

// Office erases and exports. It keeps no state: everything is in the store. Safe for concurrent use, but one job must
// not be done twice at the same time.
type Office struct{ deps Deps }

// NewOffice returns an Office.
func NewOffice(deps Deps) *Office {
	if deps.Zone == nil {
		deps.Zone = time.UTC
	}
	if deps.Forget == nil {
		deps.Forget = func() {}
	}
	if deps.Wake == nil {
		deps.Wake = func(bot.SessionKey) {}
	}
	return &Office{deps: deps}
}

// Job is the erasure of a person, as it is stored.
type Job struct {
	ID        string         `json:"id"`
	Person    Person         `json:"person"`
	Pseudonym string         `json:"pseudonym"`
	Begun     time.Time      `json:"begun"`
	Message   *bot.Message   `json:"message,omitempty"` // that the receipt answers; nil = the command line asked
	Session   bot.SessionKey `json:"session,omitempty"` // of the message
	Step      string         `json:"step,omitempty"`    // that was done last
	Tries     int            `json:"tries,omitempty"`   // of the next step that failed
	Sessions  []Conversation `json:"sessions,omitempty"`
	KeepsDay  string         `json:"keeps_day,omitempty"`
	Gone      []Count        `json:"gone,omitempty"`
	Problems  []string       `json:"problems,omitempty"`
	Row       int64          `json:"row,omitempty"` // of the receipt
}

// NewJob returns a job that has not begun.
func NewJob(of Person, now time.Time) *Job {
	return &Job{ID: rand.Text(), Person: of, Pseudonym: "erased-" + strings.ToLower(rand.Text()[:16]), Begun: now.UTC()}
}

// Fact returns the job as it is stored.
func (j *Job) Fact() (bot.Fact, error) {
	value, err := json.Marshal(j)
	if err != nil {
		return bot.Fact{}, fmt.Errorf("store a request to erase: %w", err)
	}
	return bot.Fact{Bucket: JobBucket, Key: j.ID, Value: string(value)}, nil
}

// step is a part of a job.
type step struct {
	name string
	do   func(ctx context.Context, j *Job) (int, error)
}

// jobSteps are those of a job, in their order.
func (o *Office) jobSteps() []step {
	list := []step{
		{"sessions", o.collectConversations},
		{"turns", o.stopTurns},
		{"due", func(ctx context.Context, _ *Job) (int, error) {
			if o.deps.Settle != nil {
				o.deps.Settle(ctx)
			}
			return 0, nil
		}},
	}
	at := slices.IndexFunc(o.deps.Places, func(p Place) bool { return p.Name() == "memory" })
	if at >= 0 { // its vectors and its revision are found by its facts
		list = append(list, o.placeStep(o.deps.Places[at]))
	}
	for _, r := range tableRules() {
		list = append(list, step{
			r.Table.Name,
			func(ctx context.Context, j *Job) (int, error) { return o.eraseTable(ctx, j, &r) },
		})
	}
	for i, p := range o.deps.Places {
		if i != at {
			list = append(list, o.placeStep(p))
		}
	}
	return append(list, step{
		"pages",
		func(ctx context.Context, _ *Job) (int, error) { return 0, o.deps.Tables.Scrub(ctx) },
	})
}

func (o *Office) placeStep(p Place) step {
	return step{p.Name(), func(ctx context.Context, j *Job) (int, error) { return p.Erase(ctx, o.orderOf(j)) }}
}

func (o *Office) orderOf(j *Job) *Order {
	return &Order{
		Subject: j.subject(), ID: j.ID, At: j.Begun, Sessions: j.Sessions, Alone: o.deps.Settle == nil,
	}
}

func (j *Job) subject() Subject { return Subject{Person: j.Person, Pseudonym: j.Pseudonym} }

// Steps lists the names of the steps of a job, in their order.
func (o *Office) Steps() (names []string) {
	for _, s := range o.jobSteps() {
		names = append(names, s.name)
	}
	return names
}

// Erase does what is left of a job, and stores its receipt. A place that cannot be erased, after several tries, does
// not keep the others from it: it is a problem of the receipt, unless ctx has ended.
func (o *Office) Erase(ctx context.Context, j *Job) (*Receipt, error) {
	steps := o.jobSteps()
	done := slices.IndexFunc(steps, func(s step) bool { return s.name == j.Step })
	for _, s := range steps[done+1:] {
		if err := o.takeStep(ctx, j, s); err != nil {
			return nil, err
		}
		if o.deps.After != nil {
			o.deps.After(s.name)
		}
	}
	return o.finishJob(ctx, j)
}

// takeStep does a step, and stores that it was done.
func (o *Office) takeStep(ctx context.Context, j *Job, s step) error {
	for {
		n, err := s.do(ctx, j)
		j.countGone(s.name, n)
		if err == nil {
			break
		}
		if ctx.Err() != nil || s.name == "sessions" {
			return fmt.Errorf("erase %s: %w", s.name, err)
		}
		j.Tries++
		o.deps.Log.Error().Err(err).Str("place", s.name).Str("job", j.ID).
			Int("try", j.Tries).Msg("not everything of a person was erased")
		if j.Tries >= mostTries {
			j.Problems = append(j.Problems, s.name)
			break
		}
		if err := o.saveJob(ctx, j); err != nil {
			return err
		}
		timer := time.NewTimer(tryAfter)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("erase %s: %w", s.name, ctx.Err())
		case <-timer.C:
		}
	}
	j.Step, j.Tries = s.name, 0
	return o.saveJob(ctx, j)
}

// countGone adds to what is gone by the step that is being done.
func (j *Job) countGone(what string, n int) {
	last := len(j.Gone) - 1
	switch {
	case n <= 0:
	case last >= 0 && j.Gone[last].What == what:
		j.Gone[last].N += n
	default:
		j.Gone = append(j.Gone, Count{what, n})
	}
}

// finishJob stores the receipt. Only the receipt remains of a job that nobody waits for in a chat.
func (o *Office) finishJob(ctx context.Context, j *Job) (*Receipt, error) {
	o.deps.Forget()
	r, err := o.makeReceipt(ctx, j)
	if err != nil {
		return nil, err
	}
	value, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("store a receipt: %w", err)
	}
	list := []bot.Fact{{
		Bucket:  receiptBucket,
		Key:     j.ID + unpublished,
		Value:   string(value),
		Expires: o.deps.Now().Add(receiptFor),
	}}
	if j.KeepsDay != "" {
		spent, err := json.Marshal(spending{Pseudonym: j.Pseudonym, Until: o.nextMonth(j.Begun)})
		if err != nil {
			return nil, fmt.Errorf("store a receipt: %w", err)
		}
		list = append(list, bot.Fact{Bucket: SpentBucket, Key: j.Person.Caller(), Value: string(spent)})
	}
	if j.Message == nil {
		list = append(list, bot.Fact{Bucket: JobBucket, Key: j.ID})
	}
	if _, err := o.deps.Store.Apply(ctx, &bot.Change{Facts: list}); err != nil {
		return nil, fmt.Errorf("store a receipt: %w", err)
	}
	return r, o.publishReceipts(ctx)
}

// unpublished ends the key of a receipt whose job, which named the person, is deleted and not overwritten yet.
const unpublished = "/unpublished"

// publishReceipts overwrites the jobs that are done, and then lets their receipts be found.
func (o *Office) publishReceipts(ctx context.Context) error {
	list, err := o.deps.Store.FactsOf(ctx, receiptBucket, "", o.deps.Now())
	if err != nil {
		return fmt.Errorf("read receipts: %w", err)
	}
	var change bot.Change
	for _, f := range list {
		if id, ok := strings.CutSuffix(f.Key, unpublished); ok {
			done := f
			done.Key = id
			change.Facts = append(change.Facts, done, bot.Fact{Bucket: f.Bucket, Key: f.Key})
		}
	}
	if len(change.Facts) == 0 {
		return nil
	}
	if err := o.deps.Tables.Scrub(ctx); err != nil {
		o.deps.Log.Error().Err(err).
			Msg("a request to erase is still in free pages of the database; the next erasure overwrites it")
	}
	if _, err := o.deps.Store.Apply(ctx, &change); err != nil {
		return fmt.Errorf("publish receipts: %w", err)
	}
	return nil
}

func (o *Office) saveJob(ctx context.Context, j *Job) error {
	fact, err := j.Fact()
	if err == nil {
		_, err = o.deps.Store.Apply(ctx, &bot.Change{Facts: []bot.Fact{fact}})
	}
	if err != nil {
		return fmt.Errorf("store how far a request to erase has come: %w", err)
	}
	return nil
}

// spending is until when charges stay with a person.
type spending struct {
	Pseudonym string `json:"pseudonym"`
	Until     string `json:"until"` // the first day that does not belong to it
}

// nextMonth is the first day of the month after a time.
func (o *Office) nextMonth(t time.Time) string {
	t = t.In(o.deps.Zone)
	return time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, o.deps.Zone).Format(time.DateOnly)
}

// Spent gives charges of months that are over to the pseudonyms of people who were erased in them.
func (o *Office) Spent(ctx context.Context) error {
	list, err := o.deps.Store.FactsOf(ctx, SpentBucket, "", o.deps.Now())
	if err != nil {
		return fmt.Errorf("read whose charges stay: %w", err)
	}
	today := o.deps.Now().In(o.deps.Zone).Format(time.DateOnly)
	for _, f := range list {
		var s spending
		of, err := ParsePerson(f.Key)
		if err = cmp.Or(err, json.Unmarshal([]byte(f.Value), &s)); err != nil {
			o.deps.Log.Error().Err(err).Msg("charges of somebody who was erased not read")
			continue
		}
		if today < s.Until {
			continue
		}
		e := &eraser{Subject: Subject{Person: of, Pseudonym: s.Pseudonym}}
		for _, r := range tableRules() {
			if r.Table.Name != chargeTable && r.Table.Name != usageTable {
				continue
			}
			r.erase = func(e *eraser, row Record) []Alteration {
				if row["day"] >= s.Until {
					return nil
				}
				return e.eraseCharge(row)
			}
			if _, err := e.eraseRows(ctx, o.deps.Tables, &r, func(context.Context, string) {}); err != nil {
				return fmt.Errorf("charges of somebody who was erased: %w", err)
			}
		}
		if _, err := o.deps.Store.Apply(ctx, &bot.Change{
			Facts: []bot.Fact{{Bucket: SpentBucket, Key: f.Key}},
		}); err != nil {
			return fmt.Errorf("charges of somebody who was erased: %w", err)
		}
	}
	return nil
}

// Begun returns the job of a person that was begun and not finished; nil = there is none.
func (o *Office) Begun(ctx context.Context, of Person) (*Job, error) {
	return Begun(ctx, o.deps.Store, of, o.deps.Now())
}

// Begun reads from a store what Office.Begun returns.
func Begun(ctx context.Context, from bot.Facts, of Person, now time.Time) (*Job, error) {
	list, err := from.FactsOf(ctx, JobBucket, "", now)
	if err != nil {
		return nil, fmt.Errorf("read who is to be erased: %w", err)
	}
	for _, f := range list {
		j := &Job{}
		if json.Unmarshal([]byte(f.Value), j) == nil && j.Person == of && j.Row == 0 {
			return j, nil
		}
	}
	return nil, nil
}
