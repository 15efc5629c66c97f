// Package postgres stores the service's data in PostgreSQL, version 14 or later.
//
// A Change usually takes one round trip to the server: the store remembers the lanes that it read and wrote, decides in
// memory, and sends all statements of the Change together, in one transaction with other Changes that wait meanwhile.
// Each statement checks its assumptions. If one does not hold, nothing of its Change is changed, and it is
// decided again with the rows locked, in a transaction of its own. The transitions themselves are in
// bot/state, as for every store.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/policy/reason"
)

const (
	// poolSize is the most connections of the store, unless the URL says otherwise (pool_max_conns).
	poolSize = 16
	// connecting limits one attempt to connect, unless the URL says otherwise (connect_timeout).
	connecting = 5 * time.Second
	// answering limits a round trip: a server that is silent for this long is considered gone.
	answering = 15 * time.Second
	// patience is how long a Change or a read is retried while the server is down: long enough for a restart or a
	// failover.
	patience = 15 * time.Second
	// minVersion is the oldest supported server, as server_version_num.
	minVersion = 140000
)

// Options of Open.
type Options struct {
	URL   string           // postgres://…, with the parameters of libpq and pool_max_conns
	Now   func() time.Time // nil = time.Now; clock of FactsIf and of retention
	Log   zerolog.Logger
	Hooks keeping.Hooks // observe the Changes; can run on several goroutines at once

	// Owner identifies this process among those that use the database, and in leases; it must differ for each start. A
	// process that lost its connection is buried by one that does not share the database, one that is silent for a life
	// by any other. "" = this process is not registered and depends on no other.
	Owner string
	// Shared lets this process use the database together with others that share it. Without it, another process is an
	// error.
	Shared bool
	// Life is how long a process counts as alive after its last beat; all processes of a database must use the same. 0
	// = 3 s.
	Life time.Duration
	// BlobBytes limits all stored files together, in bytes; 0 = no limit.
	BlobBytes int64
	// Patience is how long a Change or a read is retried while the server is down; 0 = 15 s.
	Patience time.Duration
}

// Store is a bot.Store in PostgreSQL. Safe for concurrent use. The caller must close it.
type Store struct {
	reader
	options Options
	memory  *memory
	hold    *hold   // nil if Owner is ""
	groups  *groups // of Changes that are decided on what is remembered

	working sync.WaitGroup // running Changes
	mu      sync.Mutex     // guards closed, and adding to working
	closed  bool

	failing atomic.Pointer[keeping.Unavailable] // why the last Change failed; nil = it did not
	near    near
}

var _ bot.Store = (*Store)(nil)

// Open connects, brings the schema up to date and, with an Owner, registers this process with the database. ctx limits
// the opening only. Errors of the database are *keeping.Unavailable; none shows the password in the URL.
func Open(ctx context.Context, options Options) (*Store, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Patience <= 0 {
		options.Patience = patience
	}
	if options.Life <= 0 {
		options.Life = life
	}
	pool, err := connect(ctx, options.URL, false)
	if err != nil {
		return nil, err
	}
	s := &Store{options: options, memory: newMemory()}
	s.reader = reader{
		pool: pool, where: place(pool.Config()), watch: options.Hooks.Statement,
		patience: options.Patience, clock: &offset{now: options.Now}, process: options.Owner,
	}
	s.start()
	s.see = s.memory.learn
	if err := s.prepare(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	s.groups, s.asks = startGroups(ctx, s), startAsks(ctx, &s.reader)
	return s, nil
}

func (s *Store) prepare(ctx context.Context) error {
	if err := s.supported(ctx); err != nil {
		return err
	}
	version, err := migrate(ctx, s.pool, s.where)
	if err != nil {
		return err
	}
	if err := s.clock.look(ctx, &s.reader); err != nil {
		return err
	}
	if s.options.Owner != "" {
		if s.hold, err = enlist(ctx, &s.reader, &s.options); err != nil {
			return err
		}
	}
	s.options.Log.Debug().Str("server", s.where).Int64("schema", version).Msg("store is open")
	return nil
}

// supported rejects a server that is too old, or whose encoding is not UTF-8.
func (r *reader) supported(ctx context.Context) error {
	var version int
	var encoding string
	if err := r.pool.QueryRow(ctx, serverQuery).Scan(&version, &encoding); err != nil {
		return unavailable(r.where, "open", err)
	}
	switch {
	case version < minVersion:
		return &keeping.Unavailable{
			Path: r.where, Op: "open",
			Reason: reason.Plain(fmt.Sprintf("the server is PostgreSQL %d, and 14 or later is needed", version/10000)),
		}
	case encoding != "UTF8":
		return &keeping.Unavailable{
			Path: r.where, Op: "open",
			Reason: reason.Plain("the encoding of the database is " + encoding + "; create one with the encoding UTF8"),
		}
	}
	return nil
}

const serverQuery = `SELECT current_setting('server_version_num')::int, current_setting('server_encoding')`

// Check returns what is wrong with the form of a PostgreSQL URL. The error shows no password.
func Check(url string) error {
	_, err := parse(url)
	return err
}

func parse(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		// err may show the password.
		return nil, errors.New("it is not a PostgreSQL URL, such as postgres://user:password@host:5432/name")
	}
	return config, nil
}

// connect opens a pool and waits for its first connection. If several hosts are named, a writer finds the one that is
// writable.
func connect(ctx context.Context, url string, readOnly bool) (*pgxpool.Pool, error) {
	config, err := parse(url)
	if err != nil {
		return nil, fmt.Errorf("database.url: %w", err)
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = poolSize
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connecting
	}
	if config.ConnConfig.ValidateConnect == nil && !readOnly {
		config.ConnConfig.ValidateConnect = writable
	}
	for name, value := range map[string]string{
		"application_name": "zephbot",
		// A suspended process must not keep others waiting for the rows that it has locked.
		"idle_in_transaction_session_timeout": "4s",
		// A server notices within half a minute that a machine is gone, and releases what its connections had locked.
		"tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
		"timezone": "UTC",
	} {
		if config.ConnConfig.RuntimeParams[name] == "" {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	config.AfterConnect = prepared
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, unavailable(place(config), "open", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, unavailable(place(config), "open", err)
	}
	return pool, nil
}

// writable rejects a read-only server.
func writable(ctx context.Context, conn *pgconn.PgConn) error {
	result := conn.ExecParams(ctx, readOnlyQuery, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return result.Err
	}
	if len(result.Rows) == 1 && string(result.Rows[0][0]) == "on" {
		return &pgconn.PgError{Severity: "FATAL", Code: readOnlyServer, Message: "the server is read-only"}
	}
	return nil
}

// connectionQuery overrides settings that lose commits in a crash of the server, and does not touch settings for
// waiting for replicas.
//
// It also restricts plans to the indexes that every query here has. A connection makes a plan once. If the table is
// small then, or the server has not counted its rows yet, the plan would read the whole table each time until the next
// ANALYZE, which under load comes minutes too late. With these plans no query is worth compiling, but a walk without an
// index would look expensive enough for it.
const connectionQuery = `SELECT set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false),
	CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END`

func prepared(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, connectionQuery, pgx.QueryExecModeSimpleProtocol)
	return err
}

// place names the server and database for messages, without the user.
func place(config *pgxpool.Config) string {
	c := config.ConnConfig
	if strings.HasPrefix(c.Host, "/") {
		return c.Host + " " + c.Database
	}
	return fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database)
}

// Close waits for running Changes and closes the connections. A second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	s.working.Wait()
	if again {
		return nil
	}
	s.groups.stop()
	s.asks.stop()
	s.hold.release()
	s.pool.Close()
	return nil
}

// begin registers a running Change; done ends it.
func (s *Store) begin() (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, keeping.ErrClosed
	}
	s.working.Add(1)
	return s.working.Done, nil
}

// Healthy returns why nothing can be stored; nil = the last Change succeeded, or the server is writable again. Errors
// are *keeping.Unavailable.
func (s *Store) Healthy(ctx context.Context) error {
	if s.failing.Load() == nil {
		return nil
	}
	conn, err := s.pool.Acquire(ctx)
	if err == nil {
		err = writable(ctx, conn.Conn().PgConn())
		conn.Release()
	}
	return s.note(unavailable(s.where, "read", err))
}

const readOnlyQuery = `SHOW transaction_read_only`

// note records the result of Healthy.
func (s *Store) note(err error) error {
	var failed *keeping.Unavailable
	if errors.As(err, &failed) || err == nil {
		s.failing.Store(failed)
	}
	return err
}
