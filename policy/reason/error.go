package reason

import "errors"

// Error is an error that people read in their language. It wraps Err, which may be nil.
type Error struct {
	Reason Reason
	Err    error
}

// Error returns the English sentence.
func (e *Error) Error() string { return e.Reason.String() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Err returns an *Error with a reason of this code.
func Err(code Code, args ...string) error { return &Error{Reason: New(code, args...)} }

// OfError returns what an error says to people: the reason of an *Error that it is or wraps, else its text.
func OfError(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return Plain(err.Error())
}
