// Package skill reads skills in the open Agent Skills format (agentskills.io): a folder with a file SKILL.md, which
// begins with YAML front matter (name, description and others) and goes on with instructions for a model, and with
// other files: scripts, references, templates.
//
// A skill is foreign text that a model is to follow, so nothing of it is used before a person has accepted exactly what
// the folder holds. A folder that changes afterwards is a different skill: it has to be accepted again. What the front
// matter says about tools grants nothing: a skill's scripts are commands like any other, and pass the chain.
package skill

import (
	"fmt"
	"strings"
)

// Limits of a skill. A folder beyond one of them is refused as a whole.
const (
	maxDocument    = 128 << 10 // bytes of SKILL.md
	maxFolder      = 8 << 20   // bytes of all files
	MaxFiles       = 256       // files and directories
	maxDepth       = 8         // directories below each other
	maxSkills      = 200       // in all configured paths together
	maxMatter      = 16 << 10  // bytes of the front matter
	maxName        = 64        // characters
	maxDescription = 1024      // characters
	maxCompatible  = 500       // characters
	maxMetadata    = 64        // entries
	maxFindings    = 50        // of one skill; further ones are not listed
)

// Document is the name of the file that makes a folder a skill.
const Document = "SKILL.md"

// Skill is a folder as it was read. It is immutable.
type Skill struct {
	Name          string // a-z, 0-9 and hyphens; the name of the folder
	Description   string // what it is for, at most 1024 characters
	License       string
	Compatibility string
	AllowedTools  string            // shown to people; it grants nothing
	Metadata      map[string]string // of the front matter; may be nil
	Body          string            // the instructions
	Dir           string            // canonical path of the folder
	Files         []File            // with Document, by path
	Size          int64             // bytes of all files
	Hash          string            // SHA-256, in hex, of the paths, modes and contents of all files
	Findings      []Finding         // what a person who decides should look at
}

// File is a file of a skill.
type File struct {
	Path    string // relative to the folder, with slashes
	Size    int64
	Program bool // may be executed
}

// Kind is what a Finding is about.
type Kind string

// Kinds of findings.
const (
	Orders     Kind = "orders"     // text that tries to take over a model, by the rules of policy/scan
	Credential Kind = "credential" // something that looks like a credential
	Unseen     Kind = "unseen"     // characters that nobody sees
	Unknown    Kind = "unknown"    // a field of the front matter that the format does not know
	Binary     Kind = "binary"     // a file that is not text, and that nobody can read here
)

// Finding is something in a skill that a person who decides about it should look at. It does not prevent anything.
type Finding struct {
	Kind Kind
	File string
	Line int    // from 1; 0 = the whole file
	What string // the rule or field
}

// Problem is why a folder is no skill. Its text names the file, the line if there is one, and what to do.
type Problem struct {
	Path string // of the file or folder
	Line int    // from 1; 0 = none
	Text string
}

// Error implements error.
func (p *Problem) Error() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Text)
	}
	return p.Path + ": " + p.Text
}

// Brief is the beginning of a hash that people compare and type.
func (s *Skill) Brief() string { return s.Hash[:briefLength] }

// briefLength is the number of characters of Brief.
const briefLength = 12

// named returns why a text is no valid name; "" = it is one.
func named(name string) (why string) {
	odd := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	switch {
	case name == "":
		return "name is empty"
	case strings.ContainsFunc(name, odd):
		return fmt.Sprintf("name %.80q: use only a-z, 0-9 and hyphens", name)
	case len(name) > maxName:
		return fmt.Sprintf("name has %d characters; use at most %d", len(name), maxName)
	case name[0] == '-', name[len(name)-1] == '-', strings.Contains(name, "--"):
		return fmt.Sprintf("name %q: a hyphen stands between two letters or digits", name)
	}
	return ""
}
