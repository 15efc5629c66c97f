package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/reading"
)

// reader runs queries. Each query sees everything that was committed before it began. Because a query changes nothing,
// it is retried while the server is down.
type reader struct {
	reading.Reader
	pool     *pgxpool.Pool
	where    string // the server and database, for messages
	watch    func(query string)
	patience time.Duration
	clock    *offset
	see      func(known) // called for every lane that is read; may be nil
	process  string      // whose outbox rows are read; "" = those of all processes
	asks     *asks       // sends short reads together; nil = each is sent alone
}

// start makes the reader usable where it is: it must not be copied afterwards.
func (r *reader) start() {
	r.Reader = reading.Reader{Run: r, Queries: inspecting, Wrap: r.problem, Lane: r.local}
}

// Reader reads a database that another process may be writing. The caller must close it.
type Reader struct{ reader }

// OpenReader connects for reading. It changes nothing. ctx limits the opening. A database whose schema differs from
// that of this program is a *keeping.Unavailable.
func OpenReader(ctx context.Context, url string) (*Reader, error) {
	pool, err := connect(ctx, url, true)
	if err != nil {
		return nil, err
	}
	r := &Reader{reader{pool: pool, where: place(pool.Config()), patience: patience, clock: &offset{now: time.Now}}}
	r.start()
	if err := errors.Join(r.current(ctx), r.clock.look(ctx, &r.reader)); err != nil {
		pool.Close()
		return nil, err
	}
	return r, nil
}

// Close ends the connections.
func (r *Reader) Close() error {
	r.pool.Close()
	return nil
}

// putFact sets a fact, without an end.
const putFact = `INSERT INTO fact (bucket, key, value, expires) VALUES ($1, $2, $3, 0) ON CONFLICT (bucket, key) DO UPDATE
	SET value = excluded.value, expires = 0`

// PutFact stores a fact beside the processes that use the database at url. Errors are those of OpenReader.
func PutFact(ctx context.Context, url string, fact bot.Fact) error {
	r, err := OpenReader(ctx, url)
	if err != nil {
		return err
	}
	where := r.where
	if err := r.Close(); err != nil {
		return err
	}
	pool, err := connect(ctx, url, false)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.Exec(ctx, putFact, fact.Bucket, fact.Key, []byte(fact.Value))
	return unavailable(where, "write", err)
}

// told reports a statement to the hook.
func (r *reader) told(query string) {
	if r.watch != nil {
		r.watch(query)
	}
}

// EachRow implements reading.Runner. It retries from the beginning if the connection is lost before the first row.
func (r *reader) EachRow(ctx context.Context, see func(reading.Scan) error, query string, args ...any) error {
	r.told(query)
	wait := newPause(r.patience)
	for {
		began := false
		err := r.once(ctx, func(scan reading.Scan) error {
			began = true
			return see(scan)
		}, query, args)
		if err == nil || began || !passing(err) || !wait.next(ctx) {
			return err
		}
	}
}

// passing reports whether an error may be temporary.
func passing(err error) bool {
	switch fateOf(err) {
	case again, away, unknown:
		return true
	}
	return false
}

func (r *reader) once(ctx context.Context, see func(reading.Scan) error, query string, args []any) error {
	if r.asks != nil && askedTogether[query] {
		if sent, err := r.asks.read(ctx, see, query, cleaned(args)); sent {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, answering)
	defer cancel()
	rows, err := r.pool.Query(ctx, query, cleaned(args)...)
	if err != nil {
		return err
	}
	return eachRow(rows, see)
}

// eachRow calls see for the rows of an answer and closes it.
func eachRow(rows pgx.Rows, see func(reading.Scan) error) error {
	defer rows.Close()
	scan := rows.Scan
	for rows.Next() {
		if err := see(scan); err != nil {
			if errors.Is(err, reading.ErrStop) {
				return nil
			}
			return err
		}
	}
	rows.Close()
	return rows.Err()
}

// cleanText replaces what PostgreSQL does not accept in a text, NUL and invalid UTF-8, by U+FFFD.
func cleanText(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if strings.Contains(text, "\x00") {
		text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	}
	return text
}

// cleaned replaces texts among arguments that PostgreSQL does not accept.
func cleaned(args []any) []any {
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			args[i] = cleanText(v)
		case []string:
			texts := make([]string, len(v))
			for j := range v {
				texts[j] = cleanText(v[j])
			}
			args[i] = texts
		case bot.SessionKey:
			args[i] = cleanText(string(v))
		case []bot.SessionKey:
			texts := make([]string, len(v))
			for j := range v {
				texts[j] = cleanText(string(v[j]))
			}
			args[i] = texts
		}
	}
	return args
}

// problem wraps the error of a read.
func (r *reader) problem(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, unavailable(r.where, "read", err))
}

// pause waits between attempts, longer each time, until patience is over.
type pause struct {
	until  time.Time
	length time.Duration
}

const (
	firstPause = 20 * time.Millisecond
	longPause  = time.Second
)

func newPause(patience time.Duration) *pause {
	return &pause{until: time.Now().Add(patience), length: firstPause}
}

// next waits. It returns false if patience or ctx is over.
func (p *pause) next(ctx context.Context) bool {
	if time.Now().Add(p.length).After(p.until) {
		return false
	}
	timer := time.NewTimer(p.length)
	defer timer.Stop()
	p.length = min(2*p.length, longPause)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
