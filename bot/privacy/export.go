package privacy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"time"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/privacy/table"
)

// Exporter writes what is stored about people. It changes nothing, and works beside a running service.
type Exporter struct {
	Tables TableReader
	Files  blob.Opener
	Places []Place
	// Buckets are the rules of all buckets of facts.
	Buckets []bot.BucketRule
	Clean   func(string) string // removes credentials
	Readme  func(language string, at time.Time) string
	Now     func() time.Time
	Most    int64 // bytes of an export before they are compressed; 0 = any
}

// exportedTables are the files of an export and the tables that their lines come from.
func exportedTables() [][2]string {
	return [][2]string{
		{"conversations.jsonl", journalTable},
		{"received.jsonl", inboxTable},
		{"sent.jsonl", outboxTable},
		{"approvals.jsonl", approvalTable},
		{"settings.jsonl", factTable},
		{"usage.jsonl", chargeTable},
		{"usage-earlier.jsonl", usageTable},
		{"outputs.jsonl", overflowTable},
		{"sessions.jsonl", laneTable},
	}
}

// ErrNothing means that nothing is stored about a person.
var ErrNothing = errors.New("nothing is stored about this person")

// Write writes the export of a person as a ZIP. If texts is set, it leaves files out. If nothing is stored about the
// person, the error is ErrNothing and the ZIP is empty but for its README; if it is more than Most, it is errLarge.
func (x *Exporter) Write(ctx context.Context, of Person, language string, texts bool, out io.Writer) error {
	now := x.Now()
	a := newArchive(ctx, out, x.Clean, now)
	a.Texts, a.Most = texts, x.Most
	sessions, err := ownConversations(ctx, x.Tables, of)
	if err != nil {
		return err
	}
	order := &Order{Subject: Subject{Person: of, buckets: rulesByBucket(x.Buckets)}, At: now, Sessions: sessions}
	readme, err := a.File("README.txt")
	if err == nil {
		_, err = io.WriteString(readme, x.Readme(language, now)+"\n")
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for _, part := range exportedTables() {
		if err := x.writeTable(ctx, a, order, part[0], ruleOf(part[1])); err != nil {
			return fmt.Errorf("export %s: %w", part[0], err)
		}
	}
	if err := x.writeContents(ctx, a, order); err != nil {
		return fmt.Errorf("export files: %w", err)
	}
	for _, p := range x.Places {
		if err := p.Export(ctx, order, a); err != nil {
			return fmt.Errorf("export %s: %w", p.Name(), err)
		}
	}
	if err := errors.Join(a.noteUnread(), a.Close()); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	if len(a.used) == 1 {
		return ErrNothing
	}
	return nil
}

// writeTable writes the rows of a table that are about the person alone.
func (x *Exporter) writeTable(ctx context.Context, a *Archive, of *Order, name string, r *rule) error {
	lines := a.Lines(name)
	return eachPage(ctx, x.Tables, &r.Table, of.ID, func(rows []Record) error {
		for _, row := range rows {
			if r.mine(&of.Subject, row) {
				if r.Table.Name == journalTable {
					row = of.spoken(row)
				}
				if err := lines.Add(exportedLine(&r.Table, row)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// exportedLine is a row as it is exported: times as people read them, JSON as such.
func exportedLine(t *Table, row Record) map[string]any {
	out := map[string]any{}
	for _, c := range t.Columns() {
		value, ok := row[c.Name]
		if !ok || value == "" {
			continue
		}
		switch {
		case c.Kind == table.Bytes && json.Valid([]byte(value)):
			out[c.Name] = json.RawMessage(value)
		case isTime(c.Name):
			if n := rowNumber(value); n > 0 {
				out[c.Name] = time.Unix(0, n).UTC().Format(time.RFC3339)
			}
		case c.Kind == table.Int:
			out[c.Name] = json.Number(strconv.FormatInt(rowNumber(value), 10))
		default:
			out[c.Name] = value
		}
	}
	return out
}

// isTime reports whether a column is a time.
func isTime(column string) bool {
	switch column {
	case "at", "created", "decided", "finished", "used":
		return true
	}
	return false
}

// writeContents writes the contents of the person's own conversations, each once.
func (x *Exporter) writeContents(ctx context.Context, a *Archive, of *Order) error {
	if a.Texts || x.Files == nil {
		return nil
	}
	done := map[string]bool{}
	r := ruleOf(refTable)
	return eachPage(ctx, x.Tables, &r.Table, of.ID, func(rows []Record) error {
		for _, row := range rows {
			if !ownSession(&of.Subject, row) {
				continue
			}
			before := Record{"id": strconv.FormatInt(rowNumber(row["blob"])-1, 10)}
			found, err := x.Tables.Mentions(ctx, blobHashes(), "", before, 1)
			if err != nil {
				return err
			}
			if len(found) == 0 || found[0]["id"] != row["blob"] || done[found[0]["hash"]] {
				continue
			}
			hash := found[0]["hash"]
			done[hash] = true
			if err := x.writeContent(ctx, a, row["session"], hash); err != nil {
				return err
			}
		}
		return nil
	})
}

func (x *Exporter) writeContent(ctx context.Context, a *Archive, session, hash string) error {
	in, err := x.Files.Open(ctx, session, hash)
	if errors.Is(err, blob.ErrNotFound) {
		return nil // it was swept meanwhile
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was read
	return a.copyFile(path.Join("files", hash), in)
}
