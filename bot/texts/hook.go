package texts

import "fmt"

// hookBook is what is said of hooks.
type hookBook struct {
	Called, Revoked string // name
}

// HookRevoked tells an admin that a hook was called whose owner may not use the bot there any more.
func (w Words) HookRevoked(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.Revoked, nameOfTask(name))
}

// HookCalled is the line above the answer of a turn that the call of a hook began.
func (w Words) HookCalled(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.Called, nameOfTask(name))
}
