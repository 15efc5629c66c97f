// Package bench measures the service, against an echo bot on the same fake Bot API, in the same run:
//
//	go test ./cmd/internal/bench -run '^$' -bench .
//
// The echo bot polls, asks the model once and sends; it stores nothing. The additional time of the service is the price
// of losing nothing.
//
// How many active chats the service can handle, in which deployment, is measured in separate processes
// (docs/capacity.md):
//
//	bash .ci/run load
//
// What becomes of it under twice the load that it can take:
//
//	bash .ci/run overload
//
// A soak test checks its endurance: months of its own time in minutes.
//
//	bash .ci/run soak
package bench
