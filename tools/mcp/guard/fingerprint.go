package guard

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strconv"
)

// writePart writes a part preceded by its length, so that different lists of parts never have the same hash.
func writePart(w io.StringWriter, part string) {
	_, _ = w.WriteString(strconv.Itoa(len(part)) + ":" + part) // hashes do not fail
}

// Fingerprint identifies a tool as a server offers it: BLAKE3 (64 hex digits) over server id, name, title, description,
// both schemas and annotations. The order of keys and the white space in a schema do not matter.
func Fingerprint(server string, t Tool) string {
	name := t.Original
	if name == "" {
		name = t.Name
	}
	annotations, _ := json.Marshal(t.Annotations) // strings and booleans can always be encoded
	return digest("tool", server, name, t.Title, t.Description, canonical(t.Input), canonical(t.Output),
		string(annotations))
}

// canonical returns a document with sorted keys and without white space. Text that is not JSON is returned unchanged.
func canonical(raw json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil || d.More() {
		return string(raw)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(b)
}

// Fingerprints returns the fingerprints of sanitised tools by name. This is what is stored, and what Drift compares.
func Fingerprints(list []Tool) map[string]string {
	prints := make(map[string]string, len(list))
	for _, t := range list {
		prints[t.Name] = t.Fingerprint
	}
	return prints
}

// Drifted lists the names of tools that were added, changed or removed since they were stored, each list sorted.
type Drifted struct {
	Added, Changed, Gone []string
}

// Any reports whether there is any difference.
func (d Drifted) Any() bool { return len(d.Added)+len(d.Changed)+len(d.Gone) > 0 }

// Drift compares the fingerprints of a server's tools. Changed tools of servers that are not trusted are withdrawn
// until a person accepts them.
func Drift(old, now map[string]string) Drifted {
	var d Drifted
	for name, print := range now {
		switch was, ok := old[name]; {
		case !ok:
			d.Added = append(d.Added, name)
		case was != print:
			d.Changed = append(d.Changed, name)
		}
	}
	for name := range old {
		if _, ok := now[name]; !ok {
			d.Gone = append(d.Gone, name)
		}
	}
	slices.Sort(d.Added)
	slices.Sort(d.Changed)
	slices.Sort(d.Gone)
	return d
}
