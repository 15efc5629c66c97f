// Package bench measures the service against an echo bot on the same fake Bot API, in the same run:
//
//	go test ./cmd/internal/bench -run '^$' -bench .
//
// The echo bot polls, asks the model once and sends; it stores nothing. What the service takes longer is the price of
// not losing anything.
//
// How the service bears many active chats, in which deployment, is measured with processes of their own
// (docs/capacity.md):
//
//	bash .ci/run load
//
// Whether it holds out is looked for by soaking it: months of its own time in minutes.
//
//	bash .ci/run soak
package bench
