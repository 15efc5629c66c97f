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
	Details *Details // for admins; nil = the reader is none
}

// Connected says how many MCP servers there are.
type Connected struct{ Connected, All int }

// Details are what /status shows to admins beside.
type Details struct {
	Counts  bot.Counts
	Sandbox string // as the log says it
	// Embedded is true when the counters are kept in the process. Where anything is on the disk concerns the operator alone.
	Embedded bool
	Filters  Filtered
	Version  string
	Up       time.Duration
}

// Filtered sums up what the output filters did, in characters and in outputs of each confidence.
type Filtered struct {
	In, Out                 int
	Full, Partial, Fallback int
}

// Status answers /status: what happens here, in words, and for admins how the service does.
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

// here says what the conversation does.
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
	stores := b.status.server
	if d.Embedded {
		stores = b.status.embedded
	}
	lines := []string{
		b.helpAdmin,
		fmt.Sprintf(b.status.all, d.Counts.Running, d.Counts.Parked, d.Counts.Queued, d.Counts.Undelivered, d.Counts.Lost),
		strings.ToUpper(d.Sandbox[:min(1, len(d.Sandbox))]) + d.Sandbox[min(1, len(d.Sandbox)):],
		fmt.Sprintf(b.status.stores, stores),
	}
	if f := d.Filters; f.In > 0 {
		lines = append(lines, fmt.Sprintf(b.status.filters, 100*float64(f.In-f.Out)/float64(f.In), f.In, f.Full, f.Partial, f.Fallback))
	}
	return append(lines, fmt.Sprintf(b.status.version, d.Version, w.Duration(language, d.Up)))
}

// statusBook is what /status says in one language.
type statusBook struct {
	running, parked, away         string // duration
	waiting                       count
	with, bare                    string // model, number of tools
	servers                       string // connected, all
	all, stores, filters, version string
	embedded, server              string
}

func englishStatus() statusBook {
	return statusBook{
		running: "I have been working here for %s.", parked: "A question has been waiting for your decision for %s.", away: "The model has been away for %s; I try again.",
		waiting: count{"%d message waits.", "%d messages wait."}, with: "I use the model %s and %s; /tools lists them.", bare: "I use the model %s, and no tools.",
		servers: "MCP servers: %d of %d connected", all: "Everywhere: %d working, %d waiting for a decision, %d messages in the queue, %d not delivered yet, %d perhaps lost",
		stores: "Stores: %s", filters: "Filters: %.1f%% of %d characters taken out, F %d P %d B %d", version: "zephbot %s, up %s",
		embedded: "SQLite, counters in the process", server: "SQLite, Redis server",
	}
}

func germanStatus() statusBook {
	return statusBook{
		running: "Hier arbeite ich seit %s.", parked: "Hier wartet eine Frage seit %s auf deine Entscheidung.", away: "Das Modell ist seit %s nicht da; ich versuche es weiter.",
		waiting: count{"%d Nachricht wartet.", "%d Nachrichten warten."}, with: "Ich benutze das Modell %s und %s; /tools zeigt sie.", bare: "Ich benutze das Modell %s und keine Werkzeuge.",
		servers: "MCP-Server: %d von %d verbunden", all: "Überall: %d in Arbeit, %d warten auf eine Entscheidung, %d Nachrichten in der Schlange, %d noch nicht zugestellt, %d vielleicht verloren",
		stores: "Speicher: %s", filters: "Filter: %.1f%% von %d Zeichen herausgenommen, F %d P %d B %d", version: "zephbot %s, läuft seit %s",
		embedded: "SQLite, Zähler im Programm", server: "SQLite, Redis-Server",
	}
}
