package file

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"syscall"
	"unicode"

	"github.com/zephbot/zephbot/policy/nearest"
	"github.com/zephbot/zephbot/tools"
)

// refused returns a policy error: the call is not allowed, and the tool has not failed.
func refused(suggestion, format string, args ...any) *tools.Error {
	return &tools.Error{
		Category: tools.PolicyBlocked, Message: fmt.Sprintf(format, args...), Suggestion: suggestion,
		Denied: true,
	}
}

// failed returns an error that a different call can avoid.
func failed(suggestion, format string, args ...any) *tools.Error {
	return &tools.Error{Category: tools.PermanentFailure, Message: fmt.Sprintf(format, args...), Suggestion: suggestion}
}

// partly returns the error of a call that has done a part of its work.
func partly(cause error, format string, args ...any) *tools.Error {
	e := failed("Look at what is there before you go on.", format, args...)
	e.Message += ": " + tools.AsError(cause).Message
	e.Begun, e.Err = true, cause
	if c := tools.AsError(cause).Category; c == tools.Cancelled || c == tools.Timeout {
		e.Category = c
	}
	return e
}

// wrong returns an error about the arguments.
func wrong(suggestion, format string, args ...any) *tools.Error {
	return &tools.Error{
		Category: tools.InvalidParameters, Message: fmt.Sprintf(format, args...),
		Suggestion: suggestion,
	}
}

// because converts an error of the system to one with the path as the model knows it, rather than as it is on the disk.
func because(err error, verb, path string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*tools.Error](err); ok {
		return err
	}
	e := tools.AsError(err)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &tools.Error{
			Category:   tools.PolicyBlocked,
			Message:    fmt.Sprintf("cannot %s %s: permission denied", verb, quote(path)),
			Suggestion: "The system does not let this service do it. Try another path.", Err: err,
		}
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR):
		return &tools.Error{
			Category: tools.PermanentFailure,
			Message: fmt.Sprintf("cannot %s %s: the path changed or passes through something that is not a directory",
				verb, quote(path)), Err: err,
		}
	case errors.Is(err, syscall.ENOTEMPTY):
		return &tools.Error{
			Category: tools.PermanentFailure,
			Message:  fmt.Sprintf("cannot %s %s: the directory is not empty", verb, quote(path)), Err: err,
		}
	}
	return &tools.Error{
		Category: e.Category, Message: fmt.Sprintf("cannot %s %s: %s", verb, quote(path), e.Message),
		Err: err,
	}
}

// quote returns a name in double quotes. Characters that break the line or are invisible are escaped.
func quote(name string) string {
	if plainName(name) {
		return `"` + name + `"`
	}
	return strconv.Quote(name)
}

// show returns a name unchanged, or quoted if it contains characters that a reader would not see or would misread.
func show(name string) string {
	if plainName(name) {
		return name
	}
	return strconv.Quote(name)
}

func plainName(name string) bool {
	for _, r := range name {
		if r == unicode.ReplacementChar || r == '"' || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// missing returns the error for a path that does not exist, with similar names that do.
func (s *scope) missing(p place) error {
	suggestion := "Use list_directory or find_path to see what is there."
	if names := s.siblings(p); len(names) > 0 {
		if near, ok := nearest.Nearest(p.base(), names); ok {
			suggestion = fmt.Sprintf("Did you mean %s?", quote(near))
		}
	}
	e := failed(suggestion, "%s does not exist", quote(p.given))
	e.Err = fs.ErrNotExist
	return e
}

// maxSiblings limits the names that are compared for a suggestion.
const maxSiblings = 500

// siblings returns the names next to p that the caller may know.
func (s *scope) siblings(p place) []string {
	d, err := s.parent(p)
	if err != nil {
		return nil
	}
	defer d.close()
	entries, err := d.f.ReadDir(maxSiblings)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if !s.hidden(d.join(e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names
}
