package tools

// Preview is what a call would change in a text file, as it is at present, for people who decide about the call or read
// what it did.
type Preview struct {
	Path   string // as the tool shows it
	Before string // "" if the file does not exist
	After  string
}
