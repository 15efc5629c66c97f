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

// refused is an error of policy: the call is not allowed, and the tool did not fail.
func refused(suggestion, format string, args ...any) *tools.Error {
	return &tools.Error{
		Category: tools.PolicyBlocked, Message: fmt.Sprintf(format, args...), Suggestion: suggestion,
		Denied: true,
	}
}

// failed is an error that another call may mend.
func failed(suggestion, format string, args ...any) *tools.Error {
	return &tools.Error{Category: tools.PermanentFailure, Message: fmt.Sprintf(format, args...), Suggestion: suggestion}
}

// wrong is an error in the arguments.
func wrong(suggestion, format string, args ...any) *tools.Error {
	return &tools.Error{
		Category: tools.InvalidParameters, Message: fmt.Sprintf(format, args...),
		Suggestion: suggestion,
	}
}

// because turns an error of the system into one that names the path as the model knows it, not as the disk does.
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

// quote puts a name between double quotes; what would break the line or hide itself is escaped.
func quote(name string) string {
	if plainName(name) {
		return `"` + name + `"`
	}
	return strconv.Quote(name)
}

// show gives a name as it is, or quoted when it holds what a reader would not see or would misread.
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

// missing says that there is nothing at p, and what there is that sounds alike.
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

// maxSiblings bounds the names that are looked at for a suggestion.
const maxSiblings = 500

// siblings lists the names beside p that may be known.
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
