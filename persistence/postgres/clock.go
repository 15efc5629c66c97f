package postgres

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	clockQuery = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint`
	// tolerated is the difference between the clocks that is ignored: shorter than any lease, longer than a round trip.
	tolerated = time.Second
	// lookEvery is the maximum age of a comparison of the clocks.
	lookEvery = 15 * time.Second
)

// offset compares the clock of this process with that of the database. Leases are stored by the clock of the database,
// so that processes with different clocks agree on when one ends. Safe for concurrent use.
type offset struct {
	now    func() time.Time
	apart  atomic.Int64 // nanoseconds by which the database is ahead
	looked atomic.Int64 // when they were last compared, by the monotonic clock of this process; 0 = never
	wall   atomic.Int64 // when that was by now, in nanoseconds
}

// stored converts a time of this process to the clock of the database.
func (o *offset) stored(at time.Time) time.Time { return shift(at, time.Duration(o.apart.Load())) }

// Clock converts a time of this process to the clock of the database, as far as they were compared.
func (s *Store) Clock(at time.Time) time.Time { return s.clock.stored(at) }

// local converts a stored time to the clock of this process.
func (o *offset) local(at time.Time) time.Time { return shift(at, -time.Duration(o.apart.Load())) }

// shift moves a time. The zero time is unchanged.
func shift(at time.Time, by time.Duration) time.Time {
	if at.IsZero() || by == 0 {
		return at
	}
	return at.Add(by)
}

// begun is when the program started, as a base for its monotonic clock.
var begun = time.Now()

// due reports whether the clocks have to be compared again.
func (o *offset) due() bool {
	looked := o.looked.Load()
	return looked == 0 || time.Since(begun)-time.Duration(looked) > lookEvery
}

// compare takes the database's time, read between two times of this process. A trip that took too long is ignored.
func (o *offset) compare(from, to time.Time, database int64) {
	if trip := to.Sub(from); trip < 0 || trip > tolerated {
		return
	}
	apart := time.Duration(database - from.Add(to.Sub(from)/2).UnixNano())
	if apart.Abs() <= tolerated {
		apart = 0
	}
	o.apart.Store(int64(apart))
	o.wall.Store(to.UnixNano())
	o.looked.Store(int64(time.Since(begun)) + 1)
}

// isSet reports whether the clock of this process was set since the last comparison, or the machine was suspended: it
// has gone on by more or less than time has passed.
func (o *offset) isSet() bool {
	passed := int64(time.Since(begun)) - o.looked.Load()
	return time.Duration(o.now().UnixNano()-o.wall.Load()-passed).Abs() > tolerated
}

// renew compares the clocks before a lease is read or written, if that of this process was set meanwhile: else it took
// the leases of others for over, or its own for longer than they are.
func (o *offset) renew(ctx context.Context, r *reader) error {
	if !o.isSet() {
		return nil
	}
	return o.look(ctx, r)
}

// look compares the clocks with a query.
func (o *offset) look(ctx context.Context, r *reader) error {
	from := o.now()
	var database int64
	_, err := reading.One(ctx, r, func(scan reading.Scan) error { return scan(&database) }, clockQuery)
	if err != nil {
		return r.problem("compare the clocks", err)
	}
	o.compare(from, o.now(), database)
	return nil
}
