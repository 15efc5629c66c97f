package privacy

import (
	"context"

	"github.com/zephbot/zephbot/bot/privacy/table"
)

type (
	// Tables is a database that people are erased from.
	Tables = table.Store
	// TableReader is a database that is only read.
	TableReader = table.Reader
	// Table is what is known of a table.
	Table = table.Table
	// Column is a column of a table.
	Column = table.Column
	// tableKind is how a column is stored.
	tableKind = table.Kind
	// Record is a row.
	Record = table.Record
	// Alteration changes or deletes a row.
	Alteration = table.Alteration
)

// mostListed is how many rows are in memory at a time. Each can have megabytes.
const (
	mostListed = 50
	mostLarge  = 4 // of rows with outputs of tools
)

// eachPage calls see for all rows of a table that mention a text, some at a time.
func eachPage(ctx context.Context, from TableReader, table *Table, text string, see func([]Record) error) error {
	var last Record
	most := mostListed
	if table.Name == overflowTable {
		most = mostLarge
	}
	for {
		list, err := from.Mentions(ctx, table, text, last, most)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			if err := see(list); err != nil {
				return err
			}
		}
		if len(list) < most {
			return nil
		}
		last = list[len(list)-1]
	}
}
