// Package grant defines standing approvals: what they cover, and the choices that a person has. Package policy compares
// them with calls.
package grant

import (
	"path"
	"slices"
	"strings"
)

// Kind says how much a standing approval covers.
type Kind string

// Kinds of grants. A grant of any other kind covers nothing.
const (
	// Exact covers one command, path, URL or set of arguments.
	Exact Kind = "exact"
	// Prefix covers the bash commands that begin with certain words.
	Prefix Kind = "prefix"
	// Path covers the files below a directory.
	Path Kind = "path"
	// Tool covers every call of an MCP tool.
	Tool Kind = "tool"
	// Host covers, for one person in one session, every web address of a host (Input), or what tools of an MCP server
	// may be told. It allows nothing that the rules do not allow.
	Host Kind = "host"
)

// Here is the name for the directory in which a command runs.
const Here = "."

// File is the state of a file whose content determines what a command does.
type File struct {
	// Name is a word of the command, or a name that a program looks for by itself. "." is the directory in which the
	// command runs.
	Name string `json:"name"`
	// Path is the absolute path of the file, with links resolved.
	Path string `json:"path,omitempty"`
	// Hash identifies the content; "" = the file does not exist.
	Hash string `json:"hash,omitempty"`
	// Unread means that the content is not known, only size and time. No grant is bound to such a file.
	Unread bool `json:"unread,omitempty"`
}

// RulePrefix begins the name of the rule that decided where a grant did.
const RulePrefix = "grant: "

// Grant is a standing approval: it turns an ask into an allow for what it covers. Every denial takes precedence. In
// bash, it covers only plain commands: no expansions, assignments, indirections or redirections that write.
type Grant struct {
	// Tool is the canonical name of the tool.
	Tool string `json:"tool"`
	Kind Kind   `json:"kind"`
	// Words are the words of one bash command, or its first words. Each is in the form that bash reads, with quotes
	// where necessary.
	Words []string `json:"words,omitempty"`
	// Feed are the commands whose output it reads, and Stdin the files.
	Feed  [][]string `json:"feed,omitempty"`
	Stdin []string   `json:"stdin,omitempty"`
	// Dir is the directory in which the command runs, or which contains the files.
	Dir string `json:"dir,omitempty"`
	// Ext is the extension of the files, such as ".go"; "" = any.
	Ext string `json:"ext,omitempty"`
	// Files are the files that determine what the command does.
	Files []File `json:"files,omitempty"`
	// Input is the path, URL or arguments of a call that is not a command.
	Input string `json:"input,omitempty"`
	// Server and Definition identify the tool of an MCP server: the address of the server, and the hash of the tool's
	// definition.
	Server     string `json:"server,omitempty"`
	Definition string `json:"definition,omitempty"`
	// Session and Caller limit the grant to one session and one person; "" = any.
	Session string `json:"session,omitempty"`
	Caller  string `json:"caller,omitempty"`
}

// Text returns the grant as people read it: words, a path with *, or arguments.
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
	case Host:
		if g.Input == "" {
			return "*"
		}
		return g.Input
	}
	return ""
}

// Relative returns the files with paths relative to the working directory if they are inside it. An approval for one
// session then does not depend on the location of the directory.
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

// ChangedFiles returns the names of the files that differ.
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

// OfferKind is the kind of an Offer.
type OfferKind string

// Kinds of offers.
const (
	// OfferExact offers exactly this call.
	OfferExact OfferKind = "exact"
	// OfferPrefix offers all commands with the same beginning.
	OfferPrefix OfferKind = "prefix"
	// OfferDirectory offers all files in the directory.
	OfferDirectory OfferKind = "directory"
	// OfferExtension offers all files in the directory with the same extension.
	OfferExtension OfferKind = "extension"
)

// Offer is one choice of a standing approval: the grants that it would store.
type Offer struct {
	Kind   OfferKind `json:"kind"`
	Grants []Grant   `json:"grants"`
}
