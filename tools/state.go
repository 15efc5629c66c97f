package tools

// FileState is what is at a path that a call works on. States are opaque: two that are equal are of the same content.
type FileState struct {
	Path   string `json:"path"`             // canonical
	Before string `json:"before,omitempty"` // "" = nothing is there
	// After is what the call has left there, if it says so (Trail.Left).
	After string `json:"after,omitempty"`
}
