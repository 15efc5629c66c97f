package tools

// Effect is what a call would do, as it was found out by running it without effect before a person was asked:
// on a layer above its files, without network. Approving the question applies exactly that layer. Paths are
// relative to the working directory; those of directories end with a slash. Lists are in the order of paths
// and not longer than MostEffects.
type Effect struct {
	// Unknown says why it is not known what the call would do; the other fields are empty then,
	// except for Tried. "" = it is known.
	Unknown Unknown `json:"unknown,omitempty"`
	// Tried is what the call attempted that only an approved call may: a host or a path; "" = not known, or nothing.
	Tried string `json:"tried,omitempty"`

	Created []FileEffect `json:"created,omitempty"`
	Changed []FileEffect `json:"changed,omitempty"` // contents; perhaps the mode too
	Deleted []string     `json:"deleted,omitempty"`
	Modes   []ModeEffect `json:"modes,omitempty"` // nothing but the mode changes
	Omitted Omitted      `json:"omitzero"`
	// Moved and Copied are what tools say that they would do; a preview shows these as files that come and go.
	Moved  []MoveEffect `json:"moved,omitempty"`
	Copied []MoveEffect `json:"copied,omitempty"`
	// Diff is a unified diff of the text files in Created and Changed; it may be cut. Credentials are hidden.
	Diff string `json:"diff,omitempty"`

	Output string `json:"output,omitempty"` // the last lines of its output; credentials are hidden
	Exit   int    `json:"exit,omitempty"`   // its exit code

	// Layer identifies what is applied: a SHA-256 in lower-case hex.
	Layer string `json:"layer,omitempty"`
	// Compared is how many files and directories are compared again before the layer is applied. Partial: there are
	// more of them, which are not compared.
	Compared int  `json:"compared,omitempty"`
	Partial  bool `json:"partial,omitempty"`
}

// MostEffects is the maximum number of paths in each list of an Effect.
const MostEffects = 100

// FileEffect is a file whose content is new. For a file that is not text, both numbers are 0.
type FileEffect struct {
	Path    string `json:"path"`
	Added   int    `json:"added,omitempty"`   // lines
	Removed int    `json:"removed,omitempty"` // lines
	Bytes   int64  `json:"bytes,omitempty"`   // size afterwards
}

// MoveEffect is a file or directory that gets another place, or a copy there.
type MoveEffect struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// ModeEffect is a change of permission bits.
type ModeEffect struct {
	Path   string `json:"path"`
	Before uint32 `json:"before"`
	After  uint32 `json:"after"`
}

// Omitted counts what the lists of an Effect leave out.
type Omitted struct {
	Created     int `json:"created,omitempty"` // files
	Changed     int `json:"changed,omitempty"`
	Deleted     int `json:"deleted,omitempty"` // files
	CreatedDirs int `json:"created_dirs,omitempty"`
	DeletedDirs int `json:"deleted_dirs,omitempty"`
	Modes       int `json:"modes,omitempty"`
}

// Nothing reports whether it is known that the call would change no file.
func (e *Effect) Nothing() bool {
	return e.Unknown == "" && len(e.Created)+len(e.Changed)+len(e.Deleted)+len(e.Modes)+len(e.Moved)+len(e.Copied) == 0
}

// Unknown is a reason why an Effect is not known.
type Unknown string

// Reasons why an effect is not known.
const (
	UnknownNetwork   Unknown = "network"   // it tried to reach the network
	UnknownElsewhere Unknown = "elsewhere" // it tried to write outside its working directory
	UnknownSlow      Unknown = "slow"      // it takes longer than a preview may
	UnknownLarge     Unknown = "large"     // it writes more than a preview may
	// a layer cannot hold it exactly: links with several names, devices, mounts …
	UnknownSpecial Unknown = "special"
	UnknownRename  Unknown = "rename" // it renamed a directory, which a layer refuses
	UnknownOwners  Unknown = "owners" // files belong to accounts that a layer cannot represent
	UnknownHidden  Unknown = "hidden" // it might show files that the call may not read
	UnknownBusy    Unknown = "busy"   // something else works in the same files
	UnknownFailed  Unknown = "failed" // it could not be run for another reason

	// The call was not tried at all.
	UnknownBehind Unknown = "behind" // it follows a call of the same step about which nobody has decided
	UnknownRule   Unknown = "rule"   // an ask rule or a confirm pattern of the operator is about it
	// calls cannot be run without effect here: the machine has no overlays, or the sandbox is off
	UnknownMachine    Unknown = "machine"
	UnknownBackground Unknown = "background" // it would go on in the background
	UnknownOutside    Unknown = "outside"    // another program runs it: an editor
)
