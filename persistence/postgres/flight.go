package postgres

import (
	"sync"
	"time"
)

const (
	// fewOnTheirWay do not keep others waiting: where there is little to do, everything goes at once. What waits for more
	// than these goes together, and costs the server less.
	fewOnTheirWay = 3
	// longOnTheirWay is when it is no longer waited for what is on its way: it may wait for a lock.
	longOnTheirWay = 20 * time.Millisecond
)

// flight says when a trip to the server may start beside those that are under way. Its owner's lock guards it.
type flight struct {
	trips, members int       // under way
	since          time.Time // when the latest started
}

// mayStart reports whether one more trip may start now. If not, it may when one lands, or after longOnTheirWay.
func (f *flight) mayStart() bool {
	return f.trips == 0 || f.members <= fewOnTheirWay || time.Since(f.since) >= longOnTheirWay
}

// started records a trip, and has who waits look again if it takes long.
func (f *flight) started(members int, wake *sync.Cond) {
	f.trips++
	f.members += members
	f.since = time.Now()
	if f.members > fewOnTheirWay {
		time.AfterFunc(longOnTheirWay, wake.Broadcast)
	}
}

// landed records the end of a trip.
func (f *flight) landed(members int) {
	f.trips--
	f.members -= members
}
