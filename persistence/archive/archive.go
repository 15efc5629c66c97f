// Package archive is the file format of backups: a compressed tar file of named parts that ends with a manifest of
// everything in it. It also puts the parts of a backup in the place of what was there, as one step.
package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Format is the version of the format that is written. Reading refuses any other one.
const Format = 1

// Names of the first and the last entry.
const (
	headerName   = "backup.json"
	manifestName = "manifest.json"
)

// Part is what a backup consists of. Its entries have names that begin with it.
type Part string

// The parts.
const (
	State      Part = "state"      // the database and its high-water mark
	Audit      Part = "audit"      // the audit logs
	Tokens     Part = "mcp-tokens" // credentials of signed-in MCP servers
	Workspaces Part = "workspaces" // the files of conversations
)

// Parts lists all parts.
func Parts() []Part { return []Part{State, Audit, Tokens, Workspaces} }

// Header is the first entry: what a backup is of.
type Header struct {
	Format   int       `json:"format"`
	Version  string    `json:"version"` // of the program that wrote it
	Created  time.Time `json:"created"`
	Database string    `json:"database"` // SQLite, or PostgreSQL, whose contents are not in the archive
	Schema   int64     `json:"schema"`   // of the database; 0 = it is not in the archive
	Parts    []Part    `json:"parts"`
	Without  []string  `json:"without,omitempty"` // what is left out, in words
}

// Engines of a Header.
const (
	SQLite     = "sqlite"
	PostgreSQL = "postgresql"
)

// Has reports whether the archive has a part, which may be empty.
func (h *Header) Has(part Part) bool { return slices.Contains(h.Parts, part) }

// Kind is the kind of an entry.
type Kind string

// The kinds of entries. Links are symbolic.
const (
	kindRegular   Kind = "file"
	kindDirectory Kind = "dir"
	kindLink      Kind = "link"
)

// Entry is one file, directory or link.
type Entry struct {
	Name   string `json:"name"` // with slashes, beginning with its part
	Kind   Kind   `json:"kind"`
	Size   int64  `json:"size,omitempty"`   // bytes of a file
	SHA256 string `json:"sha256,omitempty"` // of the bytes of a file, in hex
	Target string `json:"target,omitempty"` // of a link
}

// Manifest is the last entry: everything in the archive, in order.
type Manifest struct {
	Header
	Entries []Entry `json:"entries"`
	// Changed lists files that were written while they were read, and files that could not be read.
	Changed []string `json:"changed,omitempty"`
}

// Sums returns the number and the bytes of all files of a part.
func (m *Manifest) Sums(part Part) (files int, size int64) {
	for i := range m.Entries {
		if e := &m.Entries[i]; e.Kind == kindRegular && partOf(e.Name) == part {
			files++
			size += e.Size
		}
	}
	return files, size
}

// ErrDamaged means that an archive is not what was written: changed, cut off, or no backup at all.
var ErrDamaged = errors.New("the backup is damaged or cut off")

func damagedError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

// maxName limits the name of an entry and the target of a link, in bytes.
const maxName = 4096

// checkName refuses names that are not below a known part.
func checkName(name string) error {
	switch part, rest, _ := strings.Cut(name, "/"); {
	case len(name) > maxName, !fs.ValidPath(name), strings.ContainsAny(name, "\\\x00"):
		return fmt.Errorf("the name %.80q leads out of the archive", name)
	case !slices.Contains(Parts(), Part(part)), rest == "":
		return fmt.Errorf("%.80q is in no part that is known", name)
	}
	return nil
}

func partOf(name string) Part {
	part, _, _ := strings.Cut(name, "/")
	return Part(part)
}
