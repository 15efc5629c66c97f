package file

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"syscall"
	"unicode"

	"github.com/zephbot/zephbot/policy/nearest"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// refusedError returns a policy error: the call is not allowed, and the tool has not failed.
func refusedError(suggestion string, code reason.Code, args ...string) *tools.Error {
	return tools.Refused(reason.New(code, args...), suggestion)
}

// failedError returns an error that a different call can avoid.
func failedError(suggestion, format string, args ...any) *tools.Error {
	return &tools.Error{Category: tools.PermanentFailure, Message: fmt.Sprintf(format, args...), Suggestion: suggestion}
}

// partlyError returns the error of a call that has done a part of its work.
func partlyError(cause error, format string, args ...any) *tools.Error {
	e := failedError("Look at what is there before you go on.", format, args...)
	e.Message += ": " + tools.AsError(cause).Message
	e.Begun, e.Err = true, cause
	if c := tools.AsError(cause).Category; c == tools.Cancelled || c == tools.Timeout {
		e.Category = c
	}
	return e
}

// argumentError returns an error about the arguments.
func argumentError(suggestion, format string, args ...any) *tools.Error {
	return &tools.Error{
		Category: tools.InvalidParameters, Message: fmt.Sprintf(format, args...),
		Suggestion: suggestion,
	}
}

// systemError converts an error of the system to one with the path as the model knows it,
// rather than as it is on the disk.
func systemError(err error, verb, path string) error {
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
			Message:    fmt.Sprintf("cannot %s %s: permission denied", verb, quoteName(path)),
			Suggestion: "The system does not let this service do it. Try another path.", Err: err,
		}
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR):
		return &tools.Error{
			Category: tools.PermanentFailure,
			Message: fmt.Sprintf("cannot %s %s: the path changed or passes through something that is not a directory",
				verb, quoteName(path)), Err: err,
		}
	case errors.Is(err, syscall.ENOTEMPTY):
		return &tools.Error{
			Category: tools.PermanentFailure,
			Message:  fmt.Sprintf("cannot %s %s: the directory is not empty", verb, quoteName(path)), Err: err,
		}
	}
	return &tools.Error{
		Category: e.Category, Message: fmt.Sprintf("cannot %s %s: %s", verb, quoteName(path), e.Message),
		Err: err,
	}
}

// quoteName returns a name in double quotes. Characters that break the line or are invisible are escaped.
func quoteName(name string) string {
	if plainName(name) {
		return `"` + name + `"`
	}
	return strconv.Quote(name)
}

// showName returns a name unchanged, or quoted if it contains characters that a reader would not see or would misread.
func showName(name string) string {
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

// missingError returns the error for a path that does not exist, with similar names that do.
func (s *scope) missingError(p place) error {
	suggestion := "Use list_directory or find_path to see what is there."
	if names := s.siblingNames(p); len(names) > 0 {
		if near, ok := nearest.Nearest(p.base(), names); ok {
			suggestion = fmt.Sprintf("Did you mean %s?", quoteName(near))
		}
	}
	e := failedError(suggestion, "%s does not exist", quoteName(p.given))
	e.Err = fs.ErrNotExist
	return e
}

// maxSiblings limits the names that are compared for a suggestion.
const maxSiblings = 500

// siblingNames returns the names next to p that the caller may know.
func (s *scope) siblingNames(p place) []string {
	d, err := s.openParent(p)
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
		if !s.isHidden(d.joinName(e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names
}
