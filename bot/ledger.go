package bot

import "fmt"

// Ledger is what a Change sets aside of scopes that have limits. What has been spent is the charges of the store; what
// is set aside is spent by nobody else until its holder spends it (Change.Charges), gives it back, or dies: then all of
// it is charged, because nobody knows what was spent of it.
type Ledger struct {
	// Holder is whose amounts these are: one run of one turn in one process. Its amounts are absolute, so a Change can
	// be repeated. Once it holds nothing it is forgotten.
	Holder string
	Turn   string // for people
	Owner  string // the process that spends it; "" = nothing is set aside, limits are only checked
	// Checked refuses the Change with *NoRoom if something that it adds, by N or by its Charges, passes a limit.
	Checked bool
	Asides  []Aside // of every scope, unit and day of which the holder has had anything
}

// Aside is what a holder has set aside of a unit of a scope from now on.
type Aside struct {
	Scope, Unit, Day string // as in Charge; Day is the day of the reservation
	N                int64
	// Ahead is set aside besides if it passes no limit at any of the Asides, otherwise at none: for calls that will
	// follow. Applied.Ahead reports it.
	Ahead int64
	// The limits of the day and of the month of Day; 0 = none.
	OfDay, OfMonth int64
}

// Month is the month of a day, as in Charge.
func Month(day string) string { return day[:min(len(day), len("2006-01"))] }

// NoRoom is the refusal of a Change that would pass a limit. It has changed nothing.
type NoRoom struct {
	Scope, Unit, Window string // 2006-01-02 or 2006-01
	Taken               int64  // what is charged, without the Change
	Held                int64  // what others have set aside
	N                   int64  // what the Change asks for
	Limit               int64
}

// Error implements error.
func (e *NoRoom) Error() string {
	return fmt.Sprintf(
		"%s has no room for %d %s in %s: %d of %d are used, %d set aside",
		e.Scope, e.N, e.Unit, e.Window, e.Taken, e.Limit, e.Held,
	)
}

// Full reports whether there would be no room either if nobody else had set anything aside.
func (e *NoRoom) Full() bool { return e.Taken+e.N > e.Limit }

// Lost is the prefix of the keys of charges for what dead processes had set aside.
const Lost = "lost/"
