package sandbox_test

import (
	"os"
	"testing"

	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// TestMain makes the test binary its own helper, as the program's main does.
func TestMain(m *testing.M) {
	if sandbox.Main(os.Args) {
		return
	}
	m.Run()
}
