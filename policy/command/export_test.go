package command

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// ParseWithoutFinder parses text for a walker that panics at the first command.
func ParseWithoutFinder(text string) (problem string) { return (*finder)(nil).parseText(text, place{}) }

// ReadPlain reads text by the plain grammar alone and says why it is not plain, or "".
func ReadPlain(text string) string {
	why, _ := readPlain(text, nil).differsFrom(nil)
	return why.String()
}

// TableOf returns the first program of the table of options for a program; "" if it has none.
func TableOf(name string) string { return knownTables().owner(tableOf(strings.ToLower(name))) }

// Tabled returns the first program of each table in which some use is ordinary.
func Tabled() []string {
	list := knownTables()
	owners := map[string]bool{}
	for _, tables := range []map[string]optionTable{list.programs, list.versioned} {
		for _, table := range tables {
			if !table["@"].always { // whatever their words say, they depart
				owners[list.owner(table)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(owners))
}

// owner returns the first program of a table by its name.
func (t optionTables) owner(table optionTable) string {
	found := ""
	for _, tables := range []map[string]optionTable{t.programs, t.versioned} {
		for name, each := range tables {
			if each["@"] == table["@"] && (found == "" || name < found) {
				found = name
			}
		}
	}
	return found
}

// ReadTables reads the tables of options in a directory.
func ReadTables(dir fs.FS) error {
	_, err := readTables(dir)
	return err
}

// Tables are the embedded tables.
var Tables fs.FS = tables

// SedShows reports whether a sed script certainly only prints and substitutes.
func SedShows(script string) bool { return sedShows(script) }
