package keeping

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Schema says which schema a database has, and which one this program makes of it.
type Schema struct {
	Place string // which database, without who connects
	Found int64  // 0 = none yet
	Known int64  // by this program
	Steps []Step // from Found to Known, in order
}

// Step is one migration.
type Step struct {
	Version int64  `json:"version"`
	Name    string `json:"name"`
}

// StepOf reads the step of a file of migrations, such as 00002_blob.sql.
func StepOf(file string) (Step, error) {
	number, name, _ := strings.Cut(strings.TrimSuffix(path.Base(file), ".sql"), "_")
	version, err := strconv.ParseInt(number, 10, 64)
	if err != nil || version < 1 || name == "" {
		return Step{}, fmt.Errorf("%s is not named like 00002_blob.sql", file)
	}
	return Step{Version: version, Name: name}, nil
}

// SchemaOf compares a database with the migrations of this program, which are in order. A database of a newer version
// is an *Unavailable.
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

// Newer refuses a database whose schema this program does not know.
func Newer(place string, found, known int64) *Unavailable {
	return &Unavailable{Path: place, Op: "open", Reason: fmt.Sprintf(
		"it was written by a newer version of the program (schema %d, this one knows %d); start the newer version, or restore a backup made before it", found, known)}
}

// Older refuses to read a database whose schema lacks what this program reads.
func Older(place string, found, known int64) *Unavailable {
	return &Unavailable{Path: place, Op: "read", Reason: fmt.Sprintf(
		"it was written by an older version of the program (schema %d, this one needs %d); start the service once, or run zephbot migrate", found, known)}
}
