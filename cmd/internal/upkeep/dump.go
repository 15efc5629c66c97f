package upkeep

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/cmd/internal/tracing"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/tools/audit"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// TurnDump is what a bug report needs about one turn. It contains the words of people, models and tools only on
// request, and never a credential; otherwise only their length.
type TurnDump struct {
	Version  string            `json:"version"`
	Go       string            `json:"go"`
	System   string            `json:"system"`
	Sandbox  string            `json:"sandbox"`  // what the kernel of this machine can do, no matter who ran the turn
	Settings []string          `json:"settings"` // keys that differ from their defaults, as config print shows them
	Schema   int64             `json:"schema"`   // version of the database
	Mode     string            `json:"mode"`     // whose database knows the turn
	Turn     string            `json:"turn"`
	Trace    string            `json:"trace"` // id of the turn's trace, if tracing was on
	Session  string            `json:"session"`
	State    string            `json:"state"` // current state of the session
	Attempts int               `json:"attempts,omitempty"`
	Problem  string            `json:"problem,omitempty"` // of the arrival that began the turn
	Entries  []EntryDump       `json:"entries"`
	Rows     []RowDump         `json:"outbox"`
	Audit    []json.RawMessage `json:"audit"`
	Cut      bool              `json:"cut,omitempty"` // there are more entries or lines than a dump holds
}

// EntryDump is a journal entry of a turn.
type EntryDump struct {
	N        int64        `json:"n"`
	Child    string       `json:"child,omitempty"` // call that began the sub-agent that the entry belongs to
	Kind     journal.Kind `json:"kind"`
	At       time.Time    `json:"at"`
	Call     string       `json:"call,omitempty"`
	Tool     string       `json:"tool,omitempty"`
	Uses     []UseDump    `json:"uses,omitempty"`
	Failed   bool         `json:"failed,omitempty"`
	Category string       `json:"category,omitempty"`
	Rule     string       `json:"rule,omitempty"`
	By       string       `json:"by,omitempty"`
	Millis   int64        `json:"ms,omitempty"`
	Source   string       `json:"source,omitempty"`
	Flagged  bool         `json:"flagged,omitempty"`
	Reason   string       `json:"reason,omitempty"`
	Model    string       `json:"model,omitempty"`
	Usage    llm.Usage    `json:"usage,omitzero"`
	USD      float64      `json:"usd,omitempty"`
	Bytes    int          `json:"bytes"` // of the text
	Text     string       `json:"text,omitempty"`
}

// UseDump is a tool use of an entry.
type UseDump struct {
	Call  string `json:"call"`
	Name  string `json:"name"`
	Bytes int    `json:"bytes"` // of the arguments
	Args  string `json:"args,omitempty"`
}

// RowDump is a row of the outbox.
type RowDump struct {
	ID       int64        `json:"id"`
	Purpose  bot.Purpose  `json:"purpose"`
	State    bot.RowState `json:"state"`
	Attempts int          `json:"attempts,omitempty"`
	Created  time.Time    `json:"created"`
	Problem  string       `json:"problem,omitempty"`
	Bytes    int          `json:"bytes"`
	Text     string       `json:"text,omitempty"`
}

const (
	dumpRows    = 10_000 // how many of a session's newest outbox rows are searched
	dumpEntries = 2_000  // how many entries of a turn a dump holds
	dumpAudit   = 5_000  // how many lines of the audit log
)

// Dump collects what is known about a turn from the databases and audit logs of every mode, also while a service runs.
// Errors say what to do.
func Dump(ctx context.Context, opts app.Options, turn string, texts bool) (*TurnDump, error) {
	channel, botID, id, ok := turnParts(turn)
	if !ok {
		return nil, fmt.Errorf("%w: %q is no turn: it looks like telegram-7000000001-100000; lines of the service's "+
			"log and of the audit name it", config.ErrInvalid, turn)
	}
	redactor, err := redact.NewWith(redact.Options{Secrets: opts.Config.Credentials()})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	d := dumper{texts: texts, clean: redactor.String, out: &TurnDump{
		Version: opts.Version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Turn: turn,
		Entries: []EntryDump{}, Rows: []RowDump{}, Audit: []json.RawMessage{}, Sandbox: sandboxLevel(ctx),
	}}
	trace, _ := tracing.IDs(turn)
	d.out.Trace = trace.String()
	if err := d.settings(opts.Config); err != nil {
		return nil, err
	}
	for _, log := range opts.Layout().Logs() {
		if len(log.Dirs) == 0 || log.Mode == layout.Tools {
			continue
		}
		found, err := d.findTurn(ctx, log, channel, botID, id)
		if err != nil {
			return nil, fmt.Errorf("turn %s: %w", turn, err)
		}
		if found {
			return d.out, d.audit(log)
		}
	}
	return nil, fmt.Errorf(
		"no database knows the turn %s: it is too old, or --config or --data-dir name another service's", turn,
	)
}

// turnParts splits the name of a turn into channel, bot and the id of the message that began it.
func turnParts(turn string) (channel, botID, id string, ok bool) {
	channel, rest, _ := strings.Cut(turn, "-")
	botID, id, ok = strings.Cut(rest, "-")
	return channel, botID, id, ok && channel != "" && id != ""
}

// dumper fills a TurnDump.
type dumper struct {
	out   *TurnDump
	texts bool
	clean func(string) string
}

// findTurn searches for the turn where a mode keeps its state.
func (d *dumper) findTurn(ctx context.Context, log layout.Log, channel, botID, id string) (found bool, err error) {
	for i, dir := range log.Dirs {
		url := ""
		if i == 0 { // the database that the mode uses instead of the one there
			url = log.URL
		}
		store, err := persistence.OpenReader(ctx, dir, url)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		arrival, err := store.ArrivalOf(ctx, channel, botID, id)
		if err == nil {
			found, err = true, d.addTurn(ctx, store, &arrival)
		}
		if found && err == nil {
			var schema persistence.Schema
			schema, err = persistence.ReadSchema(ctx, dir, url)
			d.out.Schema = schema.Found
		}
		if err = errors.Join(ignoreError(err, bot.ErrNotFound), store.Close()); err != nil || found {
			d.out.Mode = log.Mode
			return found, err
		}
	}
	return false, nil
}

// ignoreError drops one kind of error.
func ignoreError(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

func (d *dumper) addTurn(ctx context.Context, store bot.Reader, a *bot.Arrival) error {
	d.out.Session, d.out.Attempts, d.out.Problem = string(a.Session), a.Attempts, d.clean(a.Problem)
	lane, err := store.Lane(ctx, a.Session)
	if err != nil {
		return err
	}
	d.out.State = string(lane.State)
	entries, err := store.Journal(ctx, a.Session, 0)
	if err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		if e.Turn == d.out.Turn && len(d.out.Entries) == dumpEntries {
			d.out.Cut = true
			break
		}
		if e.Turn == d.out.Turn {
			d.out.Entries = append(d.out.Entries, d.entry(e))
		}
	}
	rows, err := store.Rows(ctx, a.Session, dumpRows)
	if err != nil {
		return err
	}
	for i := range rows {
		if r := &rows[i]; r.Turn == d.out.Turn {
			d.out.Rows = append(d.out.Rows, RowDump{
				ID:       r.ID,
				Purpose:  r.Purpose,
				State:    r.State,
				Attempts: r.Attempts,
				Created:  r.Created,
				Problem:  d.clean(r.Problem),
				Bytes:    len(r.Content.Text),
				Text:     d.text(r.Content.Text),
			})
		}
	}
	return nil
}

func (d *dumper) entry(e *journal.Entry) EntryDump {
	out := EntryDump{
		N:        e.N,
		Child:    e.Child,
		Kind:     e.Kind,
		At:       e.At,
		Call:     e.Call,
		Tool:     e.Tool,
		Failed:   e.Failed,
		Category: e.Category,
		Rule:     d.clean(e.Rule),
		By:       e.By,
		Millis:   e.Millis,
		Source:   d.clean(string(e.Source)),
		Flagged:  e.Flagged,
		Reason:   e.Reason,
		Model:    e.Model,
		Usage:    e.Usage,
		USD:      e.USD,
		Bytes:    len(e.Text),
		Text:     d.text(e.Text),
	}
	for _, u := range e.Uses {
		out.Uses = append(out.Uses, UseDump{
			Call:  u.Call,
			Name:  u.Name,
			Bytes: len(u.Args),
			Args:  d.text(string(u.Args)),
		})
	}
	return out
}

func (d *dumper) text(s string) string {
	if !d.texts {
		return ""
	}
	return d.clean(s)
}

// sandboxLevel says what the kernel of this machine can confine.
func sandboxLevel(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return sandbox.Probe(ctx, sandbox.Self).String()
}

// prompts matches settings that are instructions for the model.
var prompts = regexp.MustCompile(`^(\w*prompt\w*) = `)

// settings keeps the settings that differ from their defaults, without prompts unless texts were requested.
func (d *dumper) settings(cfg *config.Config) error {
	var out strings.Builder
	if err := config.Print(&out, cfg, true); err != nil {
		return err
	}
	for line := range strings.Lines(d.clean(out.String())) {
		line = strings.TrimSpace(line)
		if name := prompts.FindStringSubmatch(line); name != nil && !d.texts {
			line = fmt.Sprintf("%s = … (%d bytes)", name[1], len(line)-len(name[0]))
		}
		if line != "" {
			d.out.Settings = append(d.out.Settings, line)
		}
	}
	return nil
}

// audit reads the lines about the turn from a log and its rotated files. A log that does not exist has none.
func (d *dumper) audit(log layout.Log) error {
	if !log.Exists() {
		return nil
	}
	files, err := audit.Files(log.Path)
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := d.auditFile(name); err != nil {
			return fmt.Errorf("audit log %s: %w", name, err)
		}
	}
	return nil
}

func (d *dumper) auditFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	mark, err := json.Marshal(d.out.Turn)
	if err != nil {
		return err
	}
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		if bytes.Contains(line, append([]byte(`"turn":`), mark...)) {
			d.auditLine(line)
		}
		if err != nil { // the end: the rest is a line that is being written
			return nil
		}
	}
}

// auditLine keeps a line, without what the call was about unless texts were requested. Broken lines are left to audit
// verify.
func (d *dumper) auditLine(line []byte) {
	var fields map[string]any
	if json.Unmarshal(line, &fields) != nil {
		return
	}
	if !d.texts {
		delete(fields, "args")
		delete(fields, "url")
		if result, ok := fields["result"].(map[string]any); ok {
			delete(result, "reason") // it may quote a server, a command or a page
		}
	}
	if len(d.out.Audit) == dumpAudit {
		d.out.Cut = true
		return
	}
	if kept, err := json.Marshal(fields); err == nil {
		d.out.Audit = append(d.out.Audit, json.RawMessage(d.clean(string(kept))))
	}
}
