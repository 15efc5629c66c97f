// Package table is a database seen as tables: what erases and exports people needs of a store.
package table

import "context"

// Kind is how a column is stored.
type Kind int

// The kinds of columns. All of them are read and written as text.
const (
	Text  Kind = iota
	Int        // a number
	Bool       // 0 or 1 in SQLite, a boolean in PostgreSQL
	Bytes      // text that is stored as bytes
)

// Column is a column of a table.
type Column struct {
	Name string
	Kind Kind
}

// Table is what has to be known of a table to find rows about a person in it.
type Table struct {
	Name string
	Key  []Column // which identify a row; rows are listed in their order
	More []Column // the others that are read
}

// Columns returns all columns that are read, those of the key first.
func (t *Table) Columns() []Column { return append(append([]Column{}, t.Key...), t.More...) }

// Kind returns the kind of a column; Text for one that is not declared.
func (t *Table) Kind(name string) Kind {
	for _, c := range t.Columns() {
		if c.Name == name {
			return c.Kind
		}
	}
	return Text
}

// Record is a row, by column. A value that is NULL is absent.
type Record map[string]string

// Alteration changes or deletes one row. It has no effect if the row is no longer as it was read. An empty Set of a
// lane only takes it from its holder, or remembers it.
type Alteration struct {
	Table *Table
	Row   Record            // as it was read
	Set   map[string]string // new values by column; nil = the row is deleted
	Null  []string          // columns that become NULL
	// Same names columns, besides those of the key, that have to be as they were read.
	Same []string
}

// Store is a database, read and changed row by row. Both SQL stores implement it. Safe for concurrent use.
type Store interface {
	Reader
	// Alter makes alterations in one transaction, and returns how many took effect. A content of a file is deleted with
	// the last row of blob_ref about it; a row of usage whose scope is renamed is added to the one that is there; a
	// lane that is altered is taken from its holder; the journal of one that is deleted goes with it.
	Alter(ctx context.Context, list []Alteration) (int, error)
	// Scrub overwrites what was deleted, as far as the database can.
	Scrub(ctx context.Context) error
}

// Reader is the reading half of Store.
type Reader interface {
	// TableNames lists the tables of the database.
	TableNames(ctx context.Context) ([]string, error)
	// Mentions lists at most limit rows, by key, that come after one (nil = from the first) and in which at least one
	// column that is read contains a text. "" is contained in every row.
	Mentions(ctx context.Context, table *Table, text string, after Record, limit int) ([]Record, error)
}
