package guard

import (
	"encoding/hex"
	"slices"
	"sort"
	"strings"

	"github.com/zeebo/blake3"
)

// unnamed is the name given to a tool without one.
const unnamed = "_unnamed"

// Names converts the names of one server's tools for "server:tool": every character outside A-Z a-z 0-9 _ . - / becomes
// _, and names are cut to 128 bytes. When two names would become equal, the one that was valid to begin with keeps the
// result, or else the first alphabetically; the others end in a hash of the original. The result therefore does not
// depend on the order in which the server lists its tools. The given names must be distinct.
func Names(names []string) []string {
	order := make([]int, len(names))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool {
		x, y := names[order[a]], names[order[b]]
		if rightX, rightY := cleanName(x) == x, cleanName(y) == y; rightX != rightY {
			return rightX
		}
		return x < y
	})
	out := make([]string, len(names))
	taken := make(map[string]bool, len(names))
	for _, i := range order {
		name := cleanName(names[i])
		for length := 8; taken[name] && length <= 64; length += 8 {
			end := "_" + digest(names[i])[:length]
			name = cut(cleanName(names[i]), maxName-len(end)) + end
		}
		taken[name] = true
		out[i] = name
	}
	return out
}

func cleanName(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '-', r == '/':
			return r
		}
		return '_'
	}, name)
	if clean == "" {
		return unnamed
	}
	return cut(clean, maxName)
}

// Digest identifies a text of a server: BLAKE3, 64 hex digits.
func Digest(text string) string { return digest("text", text) }

func digest(parts ...string) string {
	h := blake3.New()
	for _, p := range parts {
		writePart(h, p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// minReferred is the shortest name that is searched for in descriptions. Shorter names are common words.
const minReferred = 4

// references finds descriptions that mention another tool of the same server, because one tool may try to influence
// calls of another. The severity is High when the tool was flagged.
func references(list []Tool, findings []Finding) []Finding {
	flagged := Flagged(findings)
	var found []Finding
	for _, t := range list {
		text := strings.ToLower(t.Description)
		severity := Info
		if slices.Contains(flagged, t.Name) {
			severity = High
		}
		for _, other := range list {
			if other.Name == t.Name || len(other.Name) < minReferred || other.Name == unnamed {
				continue
			}
			if mentions(text, strings.ToLower(other.Name)) || mentions(text, strings.ToLower(other.Original)) {
				found = append(found, Finding{
					Tool: t.Name, Field: "description", Rule: RuleReference,
					Severity: severity, Other: other.Name, Kept: true,
				})
			}
		}
	}
	return found
}

// mentions reports whether text contains name as a word of its own. Both are in lower case.
func mentions(text, name string) bool {
	if len(name) < minReferred {
		return false
	}
	for from := 0; ; {
		i := strings.Index(text[from:], name)
		if i < 0 {
			return false
		}
		start := from + i
		end := start + len(name)
		if (start == 0 || !partOfName(text[start-1])) && (end == len(text) || !partOfName(text[end])) {
			return true
		}
		from = start + 1
	}
}

func partOfName(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 0x80
}
