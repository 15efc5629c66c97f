// Package crashtest kills the service in the hardest way: it sends SIGKILL to a real process at every commit and every
// outgoing call of a turn, and then checks that the next process keeps the promise: every accepted message is answered,
// everything that changes something runs once, and nothing is left behind.
//
// The bot is this test binary, started again; the Bot API and the model are servers of the test and outlive it. `go
// test` plays a selection of the points, which is another one every day, and ZEPH_CRASH=full all of them; on
// PostgreSQL, ZEPH_POSTGRES=full does.
package crashtest
