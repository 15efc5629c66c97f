package llm

// Windowed is a Provider that knows the windows of those that it asks.
type Windowed interface {
	// WindowFor returns the size of the window, in tokens, of the provider that is asked first for Request.Prefer, as
	// it is configured or as that provider has said; 0 = unknown. Safe for concurrent use.
	WindowFor(prefer string) int
}

// WindowFor returns the size of the window that a request with this Prefer reaches first; 0 = unknown.
func WindowFor(p Provider, prefer string) int {
	if w, ok := p.(Windowed); ok {
		return w.WindowFor(prefer)
	}
	return 0
}
