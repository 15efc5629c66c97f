package guard

import (
	"fmt"
	"sort"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
)

// callerMark is the placeholder in a header or variable for the id of the person to whom a connection belongs.
const callerMark = "${caller}"

// UsesCaller reports whether a value contains ${caller}. Such a server needs one connection per session or caller.
func UsesCaller(values map[string]string) bool {
	for _, v := range values {
		if strings.Contains(v, callerMark) {
			return true
		}
	}
	return false
}

// Interpolate replaces ${caller} in the values of headers or of an environment by the caller's id ("telegram:42"). It
// returns a new map. It fails when there is no caller, when the id is not valid in a header, and when a name contains
// ${caller}. Nothing else is interpolated.
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
		return reason.Err(reason.CallerMissing, shown(name))
	}
	for _, r := range caller {
		if r <= ' ' || r >= 0x7f { // a line break would add a header
			return reason.Err(reason.CallerUnprintable, shown(name), shown(caller))
		}
	}
	return nil
}

// RefuseCaller returns an error if a command line contains ${caller}: an id from outside must never become part of a
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
