package postgres

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	clockQuery = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint`
	// tolerated is how far the clocks may be apart before it counts: shorter than any lease, longer than a trip.
	tolerated = time.Second
	// lookEvery is how old a comparison of the clocks may be.
	lookEvery = 15 * time.Second
)

// offset compares the clock of this process with that of the database. Leases are stored by the clock of the database:
// processes whose clocks differ agree on when one is over. Safe for concurrent use.
type offset struct {
	now    func() time.Time
	apart  atomic.Int64 // nanoseconds by which the database is ahead
	looked atomic.Int64 // when they were compared, by the monotonic clock of this process; 0 = never
}

// stored is a time of this process by the clock of the database.
func (o *offset) stored(at time.Time) time.Time { return shift(at, time.Duration(o.apart.Load())) }

// local is a stored time by the clock of this process.
func (o *offset) local(at time.Time) time.Time { return shift(at, -time.Duration(o.apart.Load())) }

// shift moves a time; none stays none.
func shift(at time.Time, by time.Duration) time.Time {
	if at.IsZero() || by == 0 {
		return at
	}
	return at.Add(by)
}

// begun is when the program began, for its monotonic clock.
var begun = time.Now()

// due says whether it is time to compare the clocks again.
func (o *offset) due() bool {
	looked := o.looked.Load()
	return looked == 0 || time.Since(begun)-time.Duration(looked) > lookEvery
}

// compare takes what the database's clock said between two moments of this process. A trip that took too long says
// nothing.
func (o *offset) compare(from, to time.Time, database int64) {
	if trip := to.Sub(from); trip < 0 || trip > tolerated {
		return
	}
	apart := time.Duration(database - from.Add(to.Sub(from)/2).UnixNano())
	if apart.Abs() <= tolerated {
		apart = 0
	}
	o.apart.Store(int64(apart))
	o.looked.Store(int64(time.Since(begun)) + 1)
}

// look compares the clocks by a query of its own.
func (o *offset) look(ctx context.Context, r *reader) error {
	from := o.now()
	var database int64
	_, err := one(ctx, r, func(row row) error { return row.Scan(&database) }, clockQuery)
	if err != nil {
		return r.problem("compare the clocks", err)
	}
	o.compare(from, o.now(), database)
	return nil
}
