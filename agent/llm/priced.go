package llm

// Unpriced is a Provider that knows which of the models that it asks have a price that nobody knows.
type Unpriced interface {
	// UnpricedFor returns the name of the model that is asked first for Request.Prefer, if nobody knows its price; "" =
	// it is known. Safe for concurrent use.
	UnpricedFor(prefer string) string
}

// UnpricedFor returns the name of the model that a request with this Prefer reaches first, if nobody knows its price.
func UnpricedFor(p Provider, prefer string) string {
	if u, ok := p.(Unpriced); ok {
		return u.UnpricedFor(prefer)
	}
	return ""
}
