package scan

import (
	"errors"
	"fmt"
	"strings"
)

// eachRow calls do with the number and text of each line of a table that is neither empty nor a comment. The error
// joins those of do, with file and line.
func eachRow(file, text string, do func(number int, row string) error) error {
	var errs []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := do(number, line); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", file, number, err))
		}
	}
	return errors.Join(errs...)
}

var errNoColon = errors.New("a colon and a blank are missing")
