package reason_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zephbot/zephbot/policy/reason"
)

func TestError(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	err := fmt.Errorf("add: %w", &reason.Error{Reason: reason.New(reason.ServerBusy, "x"), Err: cause})
	if why := reason.OfError(err); !why.Equal(reason.New(reason.ServerBusy, "x")) || !errors.Is(err, cause) {
		t.Error(why)
	}
	if why := reason.OfError(cause); !why.Equal(reason.Plain("cause")) {
		t.Error(why)
	}
	if got := reason.Err(reason.ServerBusy, "x").Error(); got != "server x is being changed at this moment; try again" {
		t.Error(got)
	}
}
