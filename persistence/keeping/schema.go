package keeping

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
)

// Schema is the schema version of a database and the one that this program needs.
type Schema struct {
	Place string // the database, without user name and password
	Found int64  // 0 = none yet
	Known int64  // known to this program
	Steps []Step // from Found to Known, in order
}

// Step is one migration.
type Step struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
}

// StepOf returns the step of a migration file such as 00002_blob.sql.
func StepOf(file string) (Step, error) {
	number, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
	version, err := strconv.ParseInt(number, 10, 64)
	if err != nil || version < 1 || name == "" {
		return Step{}, fmt.Errorf("%s is not named like 00002_blob.sql", file)
	}
	return Step{Version: version, Name: name}, nil
}

// SchemaOf compares a database with the migrations of this program, which must be in order. It returns *Unavailable if
// the database was written by a newer version.
func SchemaOf(place string, found int64, steps []Step) (Schema, error) {
	s := Schema{Place: place, Found: found}
	for _, step := range steps {
		if s.Known = step.Version; step.Version > found {
			s.Steps = append(s.Steps, step)
		}
	}
	if found > s.Known {
		return Schema{}, Newer(place, found, s.Known)
	}
	return s, nil
}

// Newer is the error for a database whose schema this program does not know.
func Newer(place string, found, known int64) *Unavailable {
	return &Unavailable{Path: place, Op: "open", Reason: reason.Plain(fmt.Sprintf(
		"it was written by a newer version of the program (schema %d, this one knows %d); "+
			"start the newer version, or restore a backup made before it", found, known))}
}

// Older is the error for reading a database whose schema is too old for this program.
func Older(place string, found, known int64) *Unavailable {
	return &Unavailable{Path: place, Op: "read", Reason: reason.Plain(fmt.Sprintf(
		"it was written by an older version of the program (schema %d, this one needs %d); "+
			"start the service once, or run zephbot migrate", found, known))}
}
