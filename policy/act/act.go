// Package act is what a tool says of itself: what its calls do, and what follows from that for rules, cache and words.
// A tool says it once, in its own package; nobody else knows a tool by its name. Only our own tools are believed: what
// an MCP server says of its tools are hints.
package act

import "strings"

// Act is what a call of a tool does. The zero value says nothing, and is treated as the most that a tool can do.
type Act uint8

// The acts.
const (
	Unknown   Act = iota
	Runs          // runs a command of a shell: its input is the text of the command
	ReadsFile     // reads one file
	Searches      // lists or searches files
	// reads files by way of another program (an index of code, a compiler), which the autonomy level readonly does not
	// allow
	Inspects
	WritesFile     // writes or changes a file
	MakesDirectory // makes a directory
	RemovesPath    // removes a file or a directory
	MovesPath      // moves its first input to its second
	CopiesPath     // copies its first input to its second
	// asks the network for a page: that brings in something new, and the address may carry something out
	ReadsWeb
	Recalls // reads what the conversation keeps itself: long outputs, memory, tasks, the list of tools
	Keeps   // changes what the conversation keeps itself: memory, tasks
)

// OnlyReads reports what the autonomy level readonly allows: to read files and web pages (seed 003).
func (a Act) OnlyReads() bool { return a == ReadsFile || a == Searches || a == ReadsWeb }

// Quiet reports that a call changes nothing and sends nothing out.
func (a Act) Quiet() bool { return a == Recalls || a.ReadsFiles() }

// ReadsFiles reports that a call reads files and does nothing else.
func (a Act) ReadsFiles() bool { return a == ReadsFile || a == Searches || a == Inspects }

// Free reports that a call needs no approval where no rule speaks of its tool.
func (a Act) Free() bool { return a.Quiet() || a == ReadsWeb || a == Keeps }

// Verb is what a call does in one English word, for sentences. "" = the tool is called by its name.
type Verb string

// The verbs.
const (
	Run    Verb = "run"
	Read   Verb = "read"
	Write  Verb = "write"
	Edit   Verb = "edit"
	Search Verb = "search"
	Find   Verb = "find"
	List   Verb = "list"
	Create Verb = "create"
	Delete Verb = "delete"
	Move   Verb = "move"
	Copy   Verb = "copy"
	Fetch  Verb = "fetch"
)

// Verbs lists all of them.
func Verbs() []Verb {
	return []Verb{Run, Read, Write, Edit, Search, Find, List, Create, Delete, Move, Copy, Fetch}
}

// Group is a group of cached results that are dropped together.
type Group string

// The groups. The zero value: results are not cached.
const (
	NotCached Group = ""
	Files     Group = "file" // dropped by every call that may change something
	Web       Group = "web"
)

// Statement is what a tool says of itself besides its definition. It is not changed after it is given to a registry.
type Statement struct {
	Aliases []string // other names that rules and callers may use, in lower case
	Act     Act
	Verb    Verb
	Cache   Group
	Gain    float64 // what a call is expected to bring, from 0 to 1, for the utility gate; 0 = nothing is known
}

// Tool is a statement with the name of its tool.
type Tool struct {
	Name string
	Statement
}

// Of finds the statement of a tool in a list; nil when it is not there.
func Of(list []Tool, name string) *Statement {
	for i := range list {
		if list[i].Name == name {
			return &list[i].Statement
		}
	}
	return nil
}

// Names finds tools by their names and aliases. The zero value knows none. It is immutable.
type Names struct {
	acts    map[string]Act
	aliases map[string]string
}

// NewNames makes Names of statements.
func NewNames(list []Tool) Names {
	n := Names{acts: make(map[string]Act, len(list)), aliases: map[string]string{}}
	for i := range list {
		n.acts[list[i].Name] = list[i].Act
		for _, alias := range list[i].Aliases {
			n.aliases[alias] = list[i].Name
		}
	}
	return n
}

// Act returns what the tool with a canonical name says that it does.
func (n Names) Act(name string) Act { return n.acts[name] }

// Canonical returns the name that a tool is known by: white space is trimmed, and aliases are resolved. Letters of a
// tool of our own match in either case; the qualified name of an MCP tool, server:tool, stays as it is.
func (n Names) Canonical(name string) string {
	if _, known := n.acts[name]; known {
		return name
	}
	name = strings.TrimSpace(name)
	if strings.Contains(name, ":") {
		return name
	}
	name = strings.ToLower(name)
	if own, ok := n.aliases[name]; ok {
		return own
	}
	return name
}
