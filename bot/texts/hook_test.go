package texts_test

// hooks says everything about hooks in a language.
func hooks(l string, m map[string][]string) {
	m["HookCalled"] = []string{w.HookCalled(l, "x")}
	m["HookRevoked"] = []string{w.HookRevoked(l, "x")}
}
