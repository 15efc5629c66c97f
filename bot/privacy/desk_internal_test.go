package privacy

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/blob/blobtest"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/facts"
)

// nothing is a database in which nothing is.
type nothing struct{}

func (nothing) TableNames(context.Context) ([]string, error) { return nil, nil }

func (nothing) Mentions(context.Context, *Table, string, Record, int) ([]Record, error) {
	return nil, nil
}

// place is a Place that a test fills.
type place struct {
	write func(a *Archive) error
	erase func() (int, error)
}

func (place) Name() string { return "workspaces" }

func (p place) Erase(context.Context, *Order) (int, error) { return p.erase() }

func (p place) Export(_ context.Context, _ *Order, to *Archive) error { return p.write(to) }

// size counts what is written.
type size struct{ n int }

func (s *size) Write(p []byte) (int, error) {
	s.n += len(p)
	return len(p), nil
}

// exportDesk is a desk whose exports are what a place writes; written are the bytes that were in its temporary files.
func exportDesk(t *testing.T, limit, most int64, write func(a *Archive) error) (d *Handler, written *size) {
	t.Helper()
	written = &size{}
	temp := func() (*TempFile, error) {
		f, err := os.Create(filepath.Join(t.TempDir(), "export"))
		if err != nil {
			return nil, err
		}
		return &TempFile{ReadWriteSeeker: struct {
			io.Reader
			io.Writer
			io.Seeker
		}{f, io.MultiWriter(f, written), f}, Close: f.Close}, nil
	}
	x := &Exporter{
		Tables: nothing{}, Places: []Place{place{write: write}}, Clean: func(s string) string { return s }, Now: time.Now, Most: most,
		Readme: func(string, time.Time) string { return "read me" },
	}
	return &Handler{deps: HandlerDeps{Export: x, Blobs: &blobtest.Store{}, Temp: temp, Limit: limit, Log: zerolog.Nop()}}, written
}

// TestLargeExport: an export ends where it is too large, so that it does not fill the disk; files that take no space in
// the ZIP end as well, and so does an export whose process stops.
func TestLargeExport(t *testing.T) {
	t.Parallel()
	const limit = 64 << 10
	for name, tt := range map[string]struct {
		from *endless
		want error
	}{
		"random":  {&endless{random: true}, nil},
		"zeros":   {&endless{}, nil},
		"stopped": {&endless{}, context.Canceled},
	} {
		ctx, stop := context.WithCancel(t.Context())
		d, written := exportDesk(t, limit, 10*limit, func(a *Archive) error {
			if a.Texts {
				return nil
			}
			if tt.want != nil {
				stop()
			}
			return a.copyFile("endless", tt.from)
		})
		_, fits, err := d.tryExport(ctx, &exporting{Person: ann().Person}, false)
		if fits || !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: fits %v, %v; want %v", name, fits, err, tt.want)
		}
		if written.n > limit {
			t.Errorf("%s: %d bytes were on the disk, want %d at most", name, written.n, limit)
		}
		if tt.from.n > 11*limit {
			t.Errorf("%s: %d bytes were read", name, tt.from.n)
		}
		stop()
	}
}

// endless is a file of 64 MB: far more than fits.
type endless struct {
	random bool
	n      int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n += len(p); e.n > 64<<20 {
		return 0, io.EOF
	}
	clear(p)
	if e.random {
		return rand.Read(p)
	}
	return len(p), nil
}

// TestAFailedStepIsTriedAgain: what fails twice is no problem, what fails always is one, and what went counts once.
func TestAFailedStepIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fails    int
		problems []string
		gone     []Count
	}{
		"twice":  {2, nil, []Count{{"workspaces", 3}}},
		"always": {100, []string{"workspaces"}, []Count{{"workspaces", 3}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			p := place{erase: func() (int, error) {
				if tries++; tries <= tt.fails {
					return 1, errors.New("in use")
				}
				return 1, nil
			}}
			o := NewOffice(Deps{Store: bottest.New(), Now: time.Now, Log: zerolog.Nop()})
			j := NewJob(ann().Person, time.Now())
			if err := o.takeStep(t.Context(), j, o.placeStep(p)); err != nil {
				t.Fatal(err)
			}
			if tries != mostTries || !slices.Equal(j.Problems, tt.problems) || !slices.Equal(j.Gone, tt.gone) || j.Tries != 0 {
				t.Errorf("%s: %d tries: %+v", name, tries, j)
			}
		})
	}
}

// TestUnreadableFile: one file that cannot be read is missing in an export, which says so, and the others are there.
func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"a": {Data: []byte("A")}, "locked": {Data: []byte("B")}, "gone": {Data: []byte("C")}, "z": {Data: []byte("Z")}}
	var out bytes.Buffer
	a := newArchive(t.Context(), &out, func(s string) string { return s }, time.Now())
	err := a.writeTree("w", files, func(name string) (fs.File, error) {
		switch name {
		case "locked":
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
		case "gone":
			return nil, fs.ErrNotExist
		}
		return files.Open(name)
	})
	if err = errors.Join(err, a.noteUnread(), a.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
	}
	if want := []string{"w/a", "w/z", "unreadable.txt"}; !slices.Equal(names, want) {
		t.Errorf("there are %v, want %v", names, want)
	}
	if list, err := fs.ReadFile(r, "unreadable.txt"); err != nil || string(list) != "w/locked\n" {
		t.Errorf("not readable: %q, %v", list, err)
	}
}

// TestExportWithoutFiles: an export whose files fail is made without them.
func TestExportWithoutFiles(t *testing.T) {
	t.Parallel()
	d, _ := exportDesk(t, 1<<20, 0, func(a *Archive) error {
		if !a.Texts {
			return errors.New("a broken disk")
		}
		return a.copyFile("said.txt", strings.NewReader("what was said"))
	})
	content, err := d.makeExport(t.Context(), &exporting{Person: ann().Person, Session: "telegram/1/bot/4242424242"})
	if err != nil || content.File == nil || content.Text != d.deps.Words.ExportDone("", true) {
		t.Errorf("%+v, %v", content, err)
	}
}

// TestOnePersonIsErasedOnce: while one process erases a person, no other one begins with another request about them; it
// does erase somebody else. The lock does not name the person, who is about to be erased.
func TestOnePersonIsErasedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := bottest.New()
		desk := func(owner string) *Handler {
			lock := facts.Lock{Store: store, Keeper: facts.Keeper{Store: store, Log: zerolog.Nop()}, Owner: owner, Now: time.Now}
			return NewHandler(HandlerDeps{Office: NewOffice(Deps{Store: store, Now: time.Now}), Lock: lock, Owner: owner, Log: zerolog.Nop()})
		}
		asked := func(of Person) bot.Fact {
			fact, err := NewJob(of, time.Now()).Fact()
			if err == nil {
				_, err = store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{fact}})
			}
			if err != nil {
				t.Fatal(err)
			}
			return fact
		}
		first, second, other := asked(ann().Person), asked(ann().Person), asked(Person{telegram, "7"})
		var did []string
		note := func(_ context.Context, f bot.Fact) error {
			did = append(did, f.Key)
			return nil
		}
		err := desk("one").withLock(t.Context(), first, func(ctx context.Context, _ bot.Fact) error {
			locks, err := store.FactsOf(ctx, bot.LeaderBucket, "", time.Now())
			if err != nil || len(locks) != 1 || strings.Contains(locks[0].Key, ann().ID) {
				t.Errorf("locks: %v, %v", locks, err)
			}
			two := desk("two")
			return errors.Join(two.withLock(ctx, second, note), two.withLock(ctx, other, note))
		})
		if err != nil || !slices.Equal(did, []string{other.Key}) {
			t.Errorf("the other process did %v, %v; want %s", did, err, other.Key)
		}
	})
}
