package upkeep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence"
)

// serviceLooks is the pause between two looks whether a service has done what it was asked for.
const serviceLooks = 200 * time.Millisecond

// User is a person, and where what is stored about them is.
type User struct {
	Person privacy.Person
	opts   app.Options
	dir    string
	url    string
}

// FindUser reads the id of a person: telegram:42, a number, or terminal:local. A wrong one is an config.ErrInvalid.
func FindUser(opts app.Options, id string) (*User, error) {
	of, err := privacy.ParsePerson(id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	u := &User{
		Person: of,
		opts:   opts,
		dir:    opts.Config.Path(opts.Config.DataDir),
		url:    opts.Config.Database.URL.Reveal(),
	}
	if of.Channel == terminal.Name {
		u.opts.Home = opts.Layout().Terminal()
		u.dir, u.url = u.opts.Home, ""
	}
	if err := persistence.CheckURL(u.url); err != nil {
		return nil, fmt.Errorf("%w: database.url: %w", config.ErrInvalid, err)
	}
	return u, nil
}

// openReader opens the database for reading, beside a service; nil = there is none.
func (u *User) openReader(ctx context.Context) (persistence.Reader, error) {
	r, err := persistence.OpenReader(ctx, u.dir, u.url)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return r, err
}

// Export writes what is stored about the person as a ZIP, also while a service runs. The error is privacy.ErrNothing if
// nothing is.
func (u *User) Export(ctx context.Context, language string, out io.Writer) (err error) {
	store, err := u.openReader(ctx)
	if err != nil {
		return err
	}
	if store == nil {
		return privacy.ErrNothing
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	x, err := app.NewExporter(u.opts, store)
	if err != nil {
		return err
	}
	return x.Write(ctx, u.Person, language, false, out)
}

// Look says what Erase would do.
func (u *User) Look(ctx context.Context) (r *privacy.Receipt, err error) {
	store, err := u.openReader(ctx)
	if err != nil {
		return nil, err
	}
	if store == nil {
		return &privacy.Receipt{Gone: []privacy.Count{}, Stays: []privacy.Stay{}, Beyond: []privacy.Why{}}, nil
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return privacy.Look(ctx, store, u.Person, u.url != "", app.Buckets(), u.opts.Now())
}

// Erase erases the person and returns the receipt. If a service works on the data, it is asked to, and tell is told so;
// what was asked for remains asked for if ctx ends.
func (u *User) Erase(ctx context.Context, tell func(text string)) (*privacy.Receipt, error) {
	job := privacy.NewJob(u.Person, u.opts.Now())
	r, err := app.Erase(ctx, u.opts, job)
	if errors.Is(err, app.ErrServing) {
		return u.askService(ctx, job, tell)
	}
	return r, err
}

// askService has a running service erase the person, unless it was asked to before, and waits for its receipt.
func (u *User) askService(
	ctx context.Context, job *privacy.Job, tell func(text string),
) (r *privacy.Receipt, err error) {
	store, err := u.openReader(ctx)
	if err == nil && store == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("look for requests to erase: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	begun, err := privacy.Begun(ctx, store, u.Person, u.opts.Now())
	if err != nil {
		return nil, err
	}
	if begun != nil {
		job = begun
		tell("a service is running, and is already asked to erase " +
			u.Person.Caller() + "; waiting for its receipt (job " + job.ID + ")")
	} else {
		fact, err := job.Fact()
		if err == nil {
			err = persistence.PutFact(ctx, u.dir, u.url, fact)
		}
		if err != nil {
			return nil, err
		}
		tell("a service is running: it has been asked to erase " +
			u.Person.Caller() + "; waiting for its receipt (job " + job.ID + ")")
	}
	ticker := time.NewTicker(serviceLooks)
	defer ticker.Stop()
	for {
		if r, err = privacy.ReceiptOf(ctx, store, job.ID, u.opts.Now()); err != nil || r != nil {
			return r, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf(
				"no receipt yet: the service goes on, and the same command asks it again: %w", ctx.Err(),
			)
		case <-ticker.C:
		}
	}
}
