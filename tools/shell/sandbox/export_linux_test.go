package sandbox

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// masks counts the names that Masked has returned.
var masks atomic.Int64

// Mask takes abilities away from this machine.
type Mask struct {
	Name  string
	Root  bool // keep namespaces, if there are any
	PIDs  bool // keep the namespace of processes
	ABI   int  // newest version of Landlock; 0 = none
	Guard bool // keep that the filter can ask the helper
}

// Masks are the levels at which commands run somewhere: from this machine as it is down to a container without
// namespaces on an old kernel.
func Masks() []Mask {
	return []Mask{
		{"whole", true, true, maxABI, true},
		{"no process namespace", true, false, maxABI, true},
		{"old Landlock in a root", true, true, 1, true},
		{"silent filter", true, true, maxABI, false},
		{"no namespaces", false, false, maxABI, true},
		{"no namespaces, Landlock 5", false, false, 5, true},
		{"no namespaces, Landlock 3", false, false, 3, true},
		{"no namespaces, silent filter", false, false, maxABI, false},
	}
}

// Masked returns another name for a helper, under which the machine has only what the mask leaves.
func Masked(t testing.TB, helper string, m Mask) string {
	t.Helper()
	can := learnAbilities(t.Context(), helper)
	can.root = can.root && m.Root
	can.pid = can.pid && can.root && m.PIDs
	can.user = can.user && can.root
	can.abi = min(can.abi, m.ABI)
	can.guard = can.guard && m.Guard
	name := filepath.Dir(helper) + strings.Repeat("/.", int(masks.Add(1))) + "/" + filepath.Base(helper) // the same file
	machine.Lock()
	defer machine.Unlock()
	machine.known[name] = can
	return name
}
