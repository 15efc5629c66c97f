// Package crashtest kills the service as nothing else does: a real process, SIGKILL, at every commit and every outgoing
// call of a turn, and then looks whether the next process keeps the promise: every accepted message is answered, what
// changes something runs once, nothing is left lying about.
//
// The bot is this test binary started again; the Bot API and the model are servers of the test and outlive it. `go
// test` plays a spread of the points; ZEPH_CRASH=full plays all of them.
package crashtest
