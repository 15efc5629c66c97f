package texts

import (
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Status is what /status shows.
type Status struct {
	Model   string
	Lane    bot.Lane
	Since   time.Duration // how long the lane has been in its state
	Waiting int           // messages that wait in this conversation
	Tools   []string
	Servers Connected
	Details *Details // for admins; nil = the reader is not one
}

// Connected says how many MCP servers there are.
type Connected struct{ Connected, All int }

// Details are what /status shows to admins in addition.
type Details struct {
	Counts  bot.Counts
	Sandbox string // as in the log
	// Embedded is true if the counters are kept in the process. Paths on the disk concern only the operator.
	Embedded bool
	// Engine is the name of the database.
	Engine  string
	Redis   *Redis // nil = there is no server
	Filters Filtered
	// Processes use the same database; they are given by their short names, this one first. If there is only one,
	// nothing is said.
	Processes []string
	Version   string
	Up        time.Duration
}

// Redis is the state of the server of the counters, and so of the features that use it.
type Redis struct {
	State string        // ok, slow, away, read-only, refused
	For   time.Duration // how long it has been so
	Open  bool          // quotas.on_redis_down = "allow"
}

// Filtered sums up what the output filters did, in characters and in outputs of each confidence.
type Filtered struct {
	In, Out                 int
	Full, Partial, Fallback int
}

// Status replies to /status: what happens in the conversation, in words, and for admins the state of the service.
func (w Words) Status(language string, s Status) string {
	b := w.in(language)
	lines := []string{w.here(language, s)}
	if s.Waiting > 0 {
		lines = append(lines, b.status.waiting.say(s.Waiting))
	}
	if n := len(s.Tools); n == 0 {
		lines = append(lines, fmt.Sprintf(b.status.bare, s.Model))
	} else {
		lines = append(lines, fmt.Sprintf(b.status.with, s.Model, b.serverTools.say(n)))
	}
	if s.Servers.All > 0 {
		lines = append(lines, fmt.Sprintf(b.status.servers, s.Servers.Connected, s.Servers.All))
	}
	if s.Details == nil {
		return lined(lines)
	}
	return lined(lines) + "\n\n" + lined(w.details(b, language, s.Details))
}

// here describes what the conversation is doing.
func (w Words) here(language string, s Status) string {
	b, since := w.in(language), w.Duration(language, s.Since)
	switch {
	case s.Lane.Turn == "":
		return b.nothingRuns
	case s.Lane.State == bot.Parked:
		return fmt.Sprintf(b.status.parked, since)
	case s.Lane.State == bot.Waiting:
		return fmt.Sprintf(b.status.away, since)
	default:
		return fmt.Sprintf(b.status.running, since)
	}
}

func (w Words) details(b *book, language string, d *Details) []string {
	stores := b.status.kept.server
	if d.Embedded {
		stores = b.status.kept.embedded
	}
	lines := []string{
		b.helpAdmin,
		fmt.Sprintf(b.status.all, d.Counts.Running, d.Counts.Parked, d.Counts.Queued, d.Counts.Undelivered, d.Counts.Lost),
		strings.ToUpper(d.Sandbox[:min(1, len(d.Sandbox))]) + d.Sandbox[min(1, len(d.Sandbox)):],
		fmt.Sprintf(b.status.stores, fmt.Sprintf(stores, d.Engine)),
	}
	if d.Redis != nil {
		lines = append(lines, w.redis(b, language, d.Redis))
	}
	if n := len(d.Processes); n > 1 {
		lines = append(lines, fmt.Sprintf(b.status.kept.processes, n, d.Processes[0], strings.Join(d.Processes[1:], ", ")))
	}
	if f := d.Filters; f.In > 0 {
		lines = append(lines, fmt.Sprintf(b.status.filters, 100*float64(f.In-f.Out)/float64(f.In), f.In, f.Full, f.Partial, f.Fallback))
	}
	return append(lines, fmt.Sprintf(b.status.version, d.Version, w.Duration(language, d.Up)))
}

// redis says what works without the server and what does not.
func (w Words) redis(b *book, language string, r *Redis) string {
	if r.State == "ok" {
		return b.status.redisFine
	}
	quotas := b.status.redisClosed
	if r.Open {
		quotas = b.status.redisOpen
	}
	cause := b.status.redisAway
	switch r.State {
	case "slow":
		cause = b.status.redisSlow
	case "read-only":
		cause = b.status.redisReadOnly
	case "refused":
		cause = b.status.redisRefused
	}
	return fmt.Sprintf(cause, w.Duration(language, r.For)) + " " + quotas
}

// storesBook is what it says about where data is kept, and by how many processes.
type storesBook struct {
	embedded, server string
	processes        string // number, this one, the others
}

// statusBook is what /status says in one language.
type statusBook struct {
	running, parked, away         string // duration
	waiting                       count
	with, bare                    string // model, number of tools
	servers                       string // connected, all
	all, stores, filters, version string
	kept                          storesBook

	redisFine                                         string
	redisSlow, redisAway, redisReadOnly, redisRefused string // duration
	redisClosed, redisOpen                            string
}

func englishStatus() statusBook {
	return statusBook{
		running: "I have been working here for %s.", parked: "A question has been waiting for your decision for %s.", away: "The model has been away for %s; I try again.",
		waiting: count{"%d message waits.", "%d messages wait."}, with: "I use the model %s and %s; /tools lists them.", bare: "I use the model %s, and no tools.",
		servers: "MCP servers: %d of %d connected", all: "Everywhere: %d working, %d waiting for a decision, %d messages in the queue, %d not delivered yet, %d perhaps lost",
		stores: "Stores: %s", filters: "Filters: %.1f%% of %d characters removed, F %d P %d B %d", version: "zephbot %s, up %s",
		kept: storesBook{
			embedded: "%s, counters in the process", server: "%s, Redis server",
			processes: "Processes: %d work together. This one is %s, the others %s. The state of MCP servers is as this one sees it.",
		},
		redisFine: "Redis is available: quotas are counted, and tool results are cached.",
		redisSlow: "Redis has been too slow for %s.", redisAway: "Redis has been away for %s.", redisReadOnly: "Redis has accepted no writes for %s.",
		redisRefused: "Redis has refused our password or permissions for %s.",
		redisClosed:  "Quotas are closed: I start nothing new (quotas.on_redis_down). Tool results are not cached.",
		redisOpen:    "Quotas are open: turns are not limited, and are charged later (quotas.on_redis_down). Tool results are not cached.",
	}
}

func germanStatus() statusBook {
	return statusBook{
		running: "Hier arbeite ich seit %s.", parked: "Hier wartet eine Frage seit %s auf deine Entscheidung.", away: "Das Modell ist seit %s nicht da; ich versuche es weiter.",
		waiting: count{"%d Nachricht wartet.", "%d Nachrichten warten."}, with: "Ich benutze das Modell %s und %s; /tools zeigt sie.", bare: "Ich benutze das Modell %s und keine Werkzeuge.",
		servers: "MCP-Server: %d von %d verbunden", all: "Überall: %d in Arbeit, %d warten auf eine Entscheidung, %d Nachrichten in der Schlange, %d noch nicht zugestellt, %d vielleicht verloren",
		stores: "Speicher: %s", filters: "Filter: %.1f%% von %d Zeichen herausgenommen, F %d P %d B %d", version: "zephbot %s, läuft seit %s",
		kept: storesBook{
			embedded: "%s, Zähler im Programm", server: "%s, Redis-Server",
			processes: "Prozesse: %d arbeiten zusammen. Dieser ist %s, die anderen sind %s. Über MCP-Server steht hier, was dieser sieht.",
		},
		redisFine: "Redis antwortet: Kontingente werden gezählt, Ergebnisse von Werkzeugen zwischengespeichert.",
		redisSlow: "Redis ist seit %s zu langsam.", redisAway: "Redis ist seit %s nicht da.", redisReadOnly: "Redis nimmt seit %s nichts an.",
		redisRefused: "Redis lehnt seit %s unser Passwort oder unsere Rechte ab.",
		redisClosed:  "Kontingente sind gesperrt: ich fange nichts Neues an (quotas.on_redis_down). Ergebnisse von Werkzeugen werden nicht zwischengespeichert.",
		redisOpen:    "Kontingente sind offen: Anfragen sind nicht begrenzt und werden später angerechnet (quotas.on_redis_down). Ergebnisse von Werkzeugen werden nicht zwischengespeichert.",
	}
}
