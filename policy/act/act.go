// Package act defines what a tool states about itself: what its calls do, and consequently how rules, cache and texts
// treat them. A tool makes its statement once, in its own package, and no other package knows tools by name. Only
// built-in tools are believed; what an MCP server states about its tools are hints.
package act

import "strings"

// Act is what a call of a tool does. The zero value says nothing and is treated as the most that a tool can do.
type Act uint8

// Acts.
const (
	Unknown   Act = iota
	Runs          // runs a shell command: its input is the text of the command
	ReadsFile     // reads one file
	Searches      // lists or searches files
	// reads files through another program (a code index, a compiler), which the autonomy level readonly does not allow
	Inspects
	ShowsFile      // reads one file and shows it to the people of the chat
	WritesFile     // writes or changes a file
	MakesDirectory // creates a directory
	RemovesPath    // removes a file or a directory
	MovesPath      // moves its first input to its second
	CopiesPath     // copies its first input to its second
	// fetches a page from the network: the page brings something in, and its address may carry something out
	ReadsWeb
	Recalls // reads the session's own data: long outputs, memory, tasks, the list of tools
	Keeps   // changes the session's own data: memory, tasks
	// gives work to a sub-agent, whose calls are decided one by one; the call itself does nothing else
	Delegates
	// keeps a text that later conversations are shown: what a page or a tool says is not kept without a person
	Remembers
	// asks the person whose turn it is, and does nothing else: what they answer is its result
	Asks
	Plans // shows the people of the chat the steps that are planned, and does nothing else
	// has the provider of a model make something of the words of the call, which costs money, and adds it to the files
	Makes
)

// OnlyReads reports whether the autonomy level readonly allows the act: it reads files or web pages (seed 003), asks
// the person, or shows what is planned.
func (a Act) OnlyReads() bool {
	return a == ReadsFile || a == Searches || a == ReadsWeb || a == ShowsFile || a == Asks || a == Plans
}

// Quiet reports whether a call changes nothing and sends nothing to others than the people of the chat.
func (a Act) Quiet() bool {
	return a == Recalls || a == Delegates || a == Asks || a == Plans || a.ReadsFiles()
}

// ReadsFiles reports whether a call reads files and does nothing else.
func (a Act) ReadsFiles() bool {
	return a == ReadsFile || a == Searches || a == Inspects || a == ShowsFile
}

// Free reports whether a call needs no approval if no rule mentions its tool.
func (a Act) Free() bool {
	return a.Quiet() || a == ReadsWeb || a == Keeps || a == Remembers || a == Makes
}

// Brings reports whether a call may bring text into the conversation that nobody in it has written: everything but
// work on the session's own data, and changes of files, whose results are our own words.
func (a Act) Brings() bool {
	switch a {
	case Recalls, Asks, Plans, Keeps, Remembers, WritesFile, MakesDirectory, RemovesPath, MovesPath, CopiesPath,
		Makes:
		return false
	}
	return true
}

// Verb is an English word for what a call does, for use in sentences. "" = use the tool's name.
type Verb string

// Verbs.
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
	Send   Verb = "send"
)

// Verbs returns all verbs.
func Verbs() []Verb {
	return []Verb{Run, Read, Write, Edit, Search, Find, List, Create, Delete, Move, Copy, Fetch, Send}
}

// Group is a group of cached results that are dropped together.
type Group string

// Groups. With the zero value, results are not cached.
const (
	NotCached Group = ""
	Files     Group = "file" // dropped by every call that may change something
	Web       Group = "web"
)

// Statement is what a tool states besides its definition. It must not be changed after it was given to a registry.
type Statement struct {
	Aliases []string // other names that rules and callers may use, in lower case
	Act     Act
	Verb    Verb
	Cache   Group
	Gain    float64 // expected gain of a call, from 0 to 1, for the utility gate; 0 = unknown
}

// Tool is a statement with the name of its tool.
type Tool struct {
	Name string
	Statement
}

// Of returns the statement of a tool in a list; nil if the tool is not in it.
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

// NewNames returns the Names of a list of tools.
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

// Act returns the act of the tool with a canonical name.
func (n Names) Act(name string) Act { return n.acts[name] }

// Canonical returns the canonical name of a tool: without surrounding white space, and with aliases resolved. The names
// of built-in tools match in any case. The qualified name of an MCP tool, server:tool, is not changed.
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
