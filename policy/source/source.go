// Package source says where a text of a conversation comes from. Its source goes with a text from the tool or message
// that brought it (tools.Result, journal.Entry) to the fence around it in what a model reads, the flag of the
// conversation, the audit line and the card.
package source

import (
	"slices"
	"strings"
)

// Source names where a text comes from that nobody in the conversation has written: "https://…", "mcp:github",
// "file:a.txt". The zero value is none of these: the words of a person, of the operator, of the model or of this
// program. Journals keep sources as they are written here, so a name that was once used keeps its meaning.
type Source string

// Sources without a name of their own.
const (
	None       Source = ""
	Command    Source = "command"                     // what a command prints, on either stream
	Background Source = "a command in the background" // the same, told later
	Files      Source = "files"                       // passages of several files
	Names      Source = "names of files"              // listings
	Search     Source = "web search"
	Memory     Source = "memory" // what people have had the agent remember, and so accepted already
	Forwarded  Source = "a forwarded message"
	Quoted     Source = "a quoted message"
	Talk       Source = "what was said in the group"
	Attached   Source = "an attached file"
	Speech     Source = "a recording"
	Summary    Source = "the summary of the conversation"
	Several    Source = "several sources"
)

// Strict reports whether it takes stronger signs to flag a text of this source (Kind.Strict).
func (s Source) Strict() bool { return s.Kind().Strict }

// File is the source of a file's text.
func File(path string) Source { return Source("file:" + path) }

// Document is the source of the text of a document that came with a message.
func Document(name string) Source { return Source("document:" + name) }

// Recording is the source of the transcript of a recording that is not the person's own.
func Recording(name string) Source { return Source("recording:" + name) }

// Item is the source of a contact, poll, venue or the like; label is what people call it.
func Item(label string) Source { return Source("item:" + label) }

// Hook is the source of what the calls of a hook bring.
func Hook(name string) Source { return Source("hook:" + name) }

// HookName returns the name of the hook whose calls bring something; "" = the source is no hook.
func (s Source) HookName() string {
	name, ok := strings.CutPrefix(string(s), "hook:")
	if !ok {
		return ""
	}
	return name
}

// MCP is the source of what an MCP server says.
func MCP(server string) Source { return Source("mcp:" + server) }

// Agent is the source of what a sub-agent says.
func Agent(name string) Source { return Source("sub-agent:" + name) }

// Kind is what a source is, and how its texts are treated.
type Kind struct {
	Name string
	// Brief: the fence has no explanation of its own, because such texts are frequent and small. The system prompt
	// explains all fences.
	Brief bool
	// Exact: marks of ours that the text imitates are left as they are, because the model has to write parts of the
	// text back word for word (edit). What ends the fence is its id, which the text cannot know.
	Exact bool
	// Strict: a flag needs stronger signs (scan.From). Source code, manuals and logs contain much that would be odd
	// in a page.
	Strict bool
}

// kinds are the kinds by the names with which sources begin or which they are.
var kinds = []struct {
	whole  []Source
	begins []string
	Kind
}{
	{
		whole:  []Source{Command},
		begins: []string{"command:"},
		Kind:   Kind{Name: "command output", Brief: true, Exact: true, Strict: true},
	},
	{whole: []Source{Background}, Kind: Kind{Name: "command output", Strict: true}},
	{
		whole:  []Source{"file", Files},
		begins: []string{"file:"},
		Kind:   Kind{Name: "file", Brief: true, Exact: true, Strict: true},
	},
	{whole: []Source{Names}, Kind: Kind{Name: "names", Brief: true, Exact: true, Strict: true}},
	{whole: []Source{Search}, begins: []string{"http://", "https://"}, Kind: Kind{Name: "web page"}},
	{begins: []string{"mcp:"}, Kind: Kind{Name: "MCP server"}},
	{whole: []Source{Memory}, Kind: Kind{Name: "memory"}},
	{whole: []Source{"quotation", Quoted}, begins: []string{"quotation:"}, Kind: Kind{Name: "quotation"}},
	{whole: []Source{Talk}, Kind: Kind{Name: "conversation of others"}},
	{whole: []Source{Forwarded}, Kind: Kind{Name: "forwarded message"}},
	{whole: []Source{Attached}, begins: []string{"document:"}, Kind: Kind{Name: "document"}},
	{whole: []Source{Speech}, begins: []string{"recording:"}, Kind: Kind{Name: "recording"}},
	{begins: []string{"hook:"}, Kind: Kind{Name: "call of a hook"}},
	{begins: []string{"item:"}, Kind: Kind{Name: "item"}},
	{begins: []string{"sub-agent:"}, Kind: Kind{Name: "sub-agent"}},
}

// Kind returns what the source is.
func (s Source) Kind() Kind {
	lower := strings.ToLower(string(s))
	for i := range kinds {
		k := &kinds[i]
		if slices.Contains(k.whole, Source(lower)) || slices.ContainsFunc(k.begins, func(b string) bool {
			return strings.HasPrefix(lower, b)
		}) {
			return k.Kind
		}
	}
	return Kind{Name: "outside"}
}
