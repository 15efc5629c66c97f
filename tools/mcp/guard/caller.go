package guard

import (
	"fmt"
	"sort"
	"strings"
)

// callerMark is what a header or a variable may hold for the id of the person a connection belongs to.
const callerMark = "${caller}"

// UsesCaller says whether one of the values holds ${caller}: such a server needs a connection per session or caller.
func UsesCaller(values map[string]string) bool {
	for _, v := range values {
		if strings.Contains(v, callerMark) {
			return true
		}
	}
	return false
}

// Interpolate puts the caller's id ("telegram:42") in the place of ${caller} in the values of headers or of an
// environment; the given map is left alone. It is an error where there is no caller, where its id could not stand in a
// header, and where a name holds the mark. Nothing else is interpolated.
func Interpolate(values map[string]string, caller string) (map[string]string, error) {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	out := make(map[string]string, len(values))
	for _, name := range names {
		value := values[name]
		if strings.Contains(name, callerMark) {
			return nil, fmt.Errorf("%s stands in a name: it may stand in the values of headers and env only",
				callerMark)
		}
		if strings.Contains(value, callerMark) {
			if err := checkCaller(name, caller); err != nil {
				return nil, err
			}
			value = strings.ReplaceAll(value, callerMark, caller)
		}
		out[name] = value
	}
	return out, nil
}

func checkCaller(name, caller string) error {
	if caller == "" {
		return fmt.Errorf("%s needs the id of a caller and there is none: set scope to \"session\" or \"caller\"",
			shown(name))
	}
	for _, r := range caller {
		if r <= ' ' || r >= 0x7f { // a line break would add a header
			return fmt.Errorf("%s: the caller's id %s may hold printable ASCII characters only", shown(name),
				shown(caller))
		}
	}
	return nil
}

// RefuseCaller is the error of a command line that holds ${caller}: what a person writes must never become part of a
// command.
func RefuseCaller(command string, args []string) error {
	if strings.Contains(command, callerMark) {
		return fmt.Errorf("command: %s may not stand in a command; use env", callerMark)
	}
	for i, a := range args {
		if strings.Contains(a, callerMark) {
			return fmt.Errorf("args[%d]: %s may not stand in a command's arguments; use env", i, callerMark)
		}
	}
	return nil
}
