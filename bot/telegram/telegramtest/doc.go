// Package telegramtest is a strict Telegram Bot API server in one process, spoken to over real HTTP.
//
// It accepts what Telegram accepts and refuses the rest in Telegram's own words, so that a bot which works here does
// not meet its first 400 in production. Tests, scenario files, crash tests and benchmarks use it, and the simulator's
// web page is a view on it; it does not import testing.
//
// One side is HTTP (Server.Handler or Server.Start): the bot's methods, long polling, webhooks, file downloads. The
// other side is Go: people say things, press buttons, block the bot; snapshots show what a person would see; Fault,
// Budgets and Options.OnCall break things on purpose. WaitChange lets a test wait for something to happen without
// sleeping.
//
// Everything is guarded by one mutex and safe for concurrent use. Lifetimes (drafts, typing, callback queries,
// undelivered updates, budgets) follow Options.Now; the held poll, the delays of faults and the pauses between webhook
// deliveries are real time, because a real client waits on the other end.
package telegramtest
