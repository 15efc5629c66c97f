// Package grant is what a standing approval is made of: what it covers, and the choices that a person has. Package
// policy compares it with calls.
package grant

import (
	"path"
	"slices"
	"strings"
)

// Kind says how much a standing approval covers.
type Kind string

// The kinds of grants. A grant of any other kind covers nothing.
const (
	// Exact covers one command, path, URL or set of arguments.
	Exact Kind = "exact"
	// Prefix covers the commands of bash that begin with some words.
	Prefix Kind = "prefix"
	// Path covers the files below a directory.
	Path Kind = "path"
	// Tool covers every call of an MCP tool.
	Tool Kind = "tool"
)

// Here is the name of the directory in which a command runs.
const Here = "."

// File is a file whose content decides what a command does, as it was when somebody looked.
type File struct {
	// Name is the word of the command, or the name that a program looks for by itself. "." is the directory where the
	// command runs.
	Name string `json:"name"`
	// Path is the file itself: absolute, links resolved.
	Path string `json:"path,omitempty"`
	// Hash identifies the content; "" = there is no such file.
	Hash string `json:"hash,omitempty"`
	// Unread: the content is not known, only that the file looks the same (size, time). No grant binds such a file.
	Unread bool `json:"unread,omitempty"`
}

// Grant is a standing approval: it turns ask into allow for what it covers. It stands after every denial. In bash it
// covers plain commands only: never an expansion, an assignment, indirection or a redirection that writes.
type Grant struct {
	// Tool is the canonical name.
	Tool string `json:"tool"`
	Kind Kind   `json:"kind"`
	// Words are the words of one command of bash, or how they begin. Each is written as bash reads it, with quotes
	// where it needs them.
	Words []string `json:"words,omitempty"`
	// Feed are the commands whose output it reads, Stdin the files.
	Feed  [][]string `json:"feed,omitempty"`
	Stdin []string   `json:"stdin,omitempty"`
	// Dir is the directory where the command runs, or below which the files are.
	Dir string `json:"dir,omitempty"`
	// Ext is the end of the names of the files, such as ".go"; "" = any.
	Ext string `json:"ext,omitempty"`
	// Files are those that decide what the command does.
	Files []File `json:"files,omitempty"`
	// Input is the path, the URL or the arguments of a call that is no command.
	Input string `json:"input,omitempty"`
	// Server and Definition bind a tool of an MCP server: its address and the hash of what it said about the tool.
	Server     string `json:"server,omitempty"`
	Definition string `json:"definition,omitempty"`
	// Session and Caller limit the grant to one conversation and one person; "" = any.
	Session string `json:"session,omitempty"`
	Caller  string `json:"caller,omitempty"`
}

// Text returns the rule as people read it: words, a path with *, arguments.
func (g Grant) Text() string {
	switch g.Kind {
	case Exact, Prefix:
		if len(g.Words) == 0 {
			return g.Input
		}
		var parts []string
		for _, words := range append(slices.Clip(g.Feed), g.Words) {
			parts = append(parts, strings.Join(words, " "))
		}
		if g.Kind == Prefix {
			parts[len(parts)-1] += " *"
		}
		return strings.Join(append([]string{strings.Join(parts, " | ")}, g.Stdin...), " < ")
	case Path:
		return path.Join(g.Dir, "*"+g.Ext)
	case Tool:
		return "*"
	}
	return ""
}

// Relative returns the files with paths from the working directory, as long as they are in it: an approval of one
// conversation need not know where that is.
func Relative(list []File) []File {
	root := ""
	for _, f := range list {
		if f.Name == Here {
			root = f.Path
		}
	}
	out := slices.Clone(list)
	for i := range out {
		if rest, ok := strings.CutPrefix(out[i].Path, root); root != "" && ok && (rest == "" || rest[0] == '/') {
			out[i].Path = "." + rest
		}
	}
	return out
}

// ChangedFiles names the files that are not what they were.
func ChangedFiles(before, now []File) []string {
	var out []string
	for _, f := range before {
		if !slices.Contains(now, f) {
			out = append(out, f.Name)
		}
	}
	for _, f := range now {
		if !slices.Contains(before, f) && !slices.Contains(out, f.Name) {
			out = append(out, f.Name)
		}
	}
	return out
}

// OfferKind says which choice of a standing approval an Offer is.
type OfferKind string

// The choices.
const (
	// OfferExact: exactly this call.
	OfferExact OfferKind = "exact"
	// OfferPrefix: all commands that begin like this one.
	OfferPrefix OfferKind = "prefix"
	// OfferDirectory: all files of the directory.
	OfferDirectory OfferKind = "directory"
	// OfferExtension: all files of the directory with the same end of their names.
	OfferExtension OfferKind = "extension"
)

// Offer is one choice of a standing approval: the grants that it would store.
type Offer struct {
	Kind   OfferKind `json:"kind"`
	Grants []Grant   `json:"grants"`
}
