package texts

import (
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/policy/reason"
)

// Status is what /status shows.
type Status struct {
	Model   string
	Persona string // "" = none
	Lane    bot.Lane
	Since   time.Duration // how long the lane has been in its state
	Waiting int           // messages that wait in this conversation
	Tools   []string
	Fenced  bool // the model takes no tools: it writes its calls as text
	Servers Connected
	Details *Details // for admins; nil = the reader is not one
}

// Connected says how many MCP servers there are.
type Connected struct{ Connected, All int }

// Details are what /status shows to admins in addition.
type Details struct {
	Counts  bot.Counts
	Sandbox reason.Reason // as in the log
	// Previews says whether questions about commands show what they would do; "" = no command can be run.
	Previews Previews
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

// Previews says whether commands are tried without effect before people are asked about them.
type Previews string

// What can be said of previews.
const (
	PreviewsShown  Previews = "shown"
	PreviewsCannot Previews = "cannot" // not here
	PreviewsOff    Previews = "off"    // by the configuration
)

// Redis is the state of the server of the counters, and so of the features that use it.
type Redis struct {
	State string        // ok, slow, away, read-only, refused
	For   time.Duration // how long it has been so
}

// Filtered sums up what the output filters did, in characters.
type Filtered struct{ In, Out int }

// Status replies to /status: what happens in the conversation, in words, and for admins the state of the service.
func (w Words) Status(language string, s Status) string {
	b := w.in(language)
	lines := []string{w.here(language, s)}
	if s.Waiting > 0 {
		lines = append(lines, b.Status.Waiting.say(s.Waiting))
	}
	if n := len(s.Tools); n == 0 {
		lines = append(lines, fmt.Sprintf(b.Status.Bare, visible.Name(s.Model)))
	} else {
		lines = append(lines, fmt.Sprintf(b.Status.With, visible.Name(s.Model), b.Servers.Tools.say(n)))
	}
	if s.Persona != "" {
		lines = append(lines, fmt.Sprintf(b.Personas.Status, named(s.Persona)))
	}
	if s.Fenced && len(s.Tools) > 0 {
		lines = append(lines, b.Status.Fenced)
	}
	if s.Servers.All > 0 {
		lines = append(lines, fmt.Sprintf(b.Status.Servers, s.Servers.Connected, s.Servers.All))
	}
	if s.Details != nil {
		lines = append(append(lines, ""), w.details(b, language, s.Details)...)
	}
	return strings.Join(lines, "\n")
}

// here describes what the conversation is doing.
func (w Words) here(language string, s Status) string {
	b, since := w.in(language), w.Duration(language, s.Since)
	switch {
	case s.Lane.Turn == "":
		return b.Commands.NothingRuns
	case s.Lane.State == bot.Parked:
		return fmt.Sprintf(b.Status.Parked, since)
	case s.Lane.State == bot.Waiting:
		return fmt.Sprintf(b.Status.Away, since)
	default:
		return fmt.Sprintf(b.Status.Running, since)
	}
}

func (w Words) details(b *book, language string, d *Details) []string {
	stores := b.Status.Kept.Server
	if d.Embedded {
		stores = b.Status.Kept.Embedded
	}
	lines := []string{
		b.Commands.HelpAdmin,
	}
	if open := b.Status.Open.list(d.Counts); len(open) > 0 {
		lines = append(lines, fmt.Sprintf(b.Status.All, strings.Join(open, ", ")))
	}
	lines = append(lines, w.Reason(language, d.Sandbox.Map(visible.Name)))
	switch d.Previews {
	case PreviewsShown:
		lines = append(lines, b.Status.PreviewsShown)
	case PreviewsCannot:
		lines = append(lines, b.Status.PreviewsCannot)
	case PreviewsOff:
		lines = append(lines, b.Status.PreviewsOff)
	}
	lines = append(lines, fmt.Sprintf(b.Status.Stores, fmt.Sprintf(stores, d.Engine)))
	if d.Redis != nil {
		lines = append(lines, w.redis(b, language, d.Redis))
	}
	if n := len(d.Processes); n > 1 {
		lines = append(lines, fmt.Sprintf(
			b.Status.Kept.Processes, n, visible.Name(d.Processes[0]), visible.Name(strings.Join(d.Processes[1:], ", ")),
		))
	}
	if f := d.Filters; f.In > 0 && 1000*(f.In-f.Out) >= f.In { // less is nothing
		lines = append(lines, fmt.Sprintf(
			b.Status.Filters, w.decimal(language, 100*float64(f.In-f.Out)/float64(f.In), 1),
			w.number(language, int64(f.In)),
		))
	}
	return append(lines, fmt.Sprintf(b.Status.Version, visible.Name(d.Version), w.Duration(language, d.Up)))
}

// redis says what works without the server and what does not.
func (w Words) redis(b *book, language string, r *Redis) string {
	if r.State == "ok" {
		return b.Status.RedisFine
	}
	cause := b.Status.RedisAway
	switch r.State {
	case "slow":
		cause = b.Status.RedisSlow
	case "read-only":
		cause = b.Status.RedisReadOnly
	case "refused":
		cause = b.Status.RedisRefused
	}
	return fmt.Sprintf(cause, w.Duration(language, r.For)) + " " + b.Status.RedisWithout
}

// storesBook is what it says about where data is kept, and by how many processes.
type storesBook struct {
	Embedded, Server string
	Processes        string // number, this one, the others
}

// openBook names what is open in all conversations together.
type openBook struct{ Running, Parked, Queued, Undelivered, Lost count }

// list says what there is, and not what there is none of.
func (b *openBook) list(c bot.Counts) []string {
	var list []string
	for _, one := range []struct {
		n    int
		says count
	}{{c.Running, b.Running}, {c.Parked, b.Parked}, {c.Queued, b.Queued}, {c.Undelivered, b.Undelivered}, {c.Lost, b.Lost}} {
		if one.n > 0 {
			list = append(list, one.says.say(one.n))
		}
	}
	return list
}

// statusBook is what /status says in one language.
type statusBook struct {
	Running, Parked, Away    string // duration
	Waiting                  count
	With, Bare               string // model, number of tools
	Fenced                   string
	Servers                  string // connected, all
	All                      string // what is open
	Open                     openBook
	Stores, Filters, Version string
	Kept                     storesBook

	PreviewsShown, PreviewsCannot, PreviewsOff string

	RedisFine                                         string
	RedisSlow, RedisAway, RedisReadOnly, RedisRefused string // duration
	RedisWithout                                      string
}
