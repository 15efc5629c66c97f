package tools

// Changes says what a call may change. Paths are canonical: absolute and without links.
type Changes struct {
	Files  []Area
	Beyond []Beyond // what it may change besides Files
}

// Area is a part of the files.
type Area struct {
	Root  string   // an allowed directory
	Paths []string // in Root, or Root itself: these may change, with everything below them
	// Alone: nothing but Paths themselves changes. What is in a directory of Paths changes only if it is in Paths, too.
	Alone bool     `json:",omitempty"`
	Spare []string // below Paths, what is not looked at, such as temporary files
}

// Beyond is something that a call may change and that nobody can put back.
type Beyond string

// What is beyond reach.
const (
	Network    Beyond = "network"    // other machines
	Elsewhere  Beyond = "elsewhere"  // files in places that are not looked at
	Background Beyond = "background" // files at any time, because a command runs in the background
)
