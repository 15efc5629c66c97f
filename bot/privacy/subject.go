package privacy

import (
	"bytes"
	"encoding/json"

	"github.com/zephbot/zephbot/agent/journal"
)

// erasedText takes the place of what a person said in a conversation that others share.
const erasedText = "[erased]"

// Subject is a person whose data is exported or erased.
type Subject struct {
	Person
	Pseudonym string // takes the place of the caller id in what has to stay
}

// names are the members of JSON objects that say what a person is called, if the same object names the person.
func names(member string) bool {
	switch member {
	case "name", "by_name", "username", "speaker", "title_by", "first_name", "last_name", "language":
		return true
	}
	return false
}

// people are the members of JSON objects whose value can be a person's id without its channel.
func people(member string) bool {
	switch member {
	case "person", "by", "owner", "user", "user_id", "from":
		return true
	}
	return false
}

// owner reports whether a member of a JSON object, at any depth, is the person.
func (s *Subject) owner(raw string, member string) bool {
	value, ok := decode(raw)
	if !ok {
		return false
	}
	return s.find(value, func(name string) bool { return name == member })
}

// mentions reports whether any value in a JSON text is the person.
func (s *Subject) mentions(raw string) bool {
	value, ok := decode(raw)
	if !ok {
		return raw == s.ID || raw == s.Caller()
	}
	return s.find(value, func(string) bool { return true })
}

func (s *Subject) find(value any, in func(member string) bool) bool {
	switch v := value.(type) {
	case []any:
		for i := range v {
			if s.find(v[i], in) {
				return true
			}
		}
	case map[string]any:
		for name, part := range v {
			if in(name) && s.is(name, part) || s.find(part, in) {
				return true
			}
		}
	}
	return false
}

// is reports whether a member of an object is the person.
func (s *Subject) is(name string, value any) bool {
	text, ok := value.(string)
	if !ok {
		number, is := value.(json.Number)
		return is && number.String() == s.ID && people(name)
	}
	return text == s.Caller() || text == s.ID && people(name)
}

// scrub returns a JSON text with the person replaced by the pseudonym, and without what they are called. changed says
// whether it had the person in it. A text that is not JSON is returned as it is.
func (s *Subject) scrub(raw string) (clean string, changed bool) {
	value, ok := decode(raw)
	if !ok {
		return raw, false
	}
	if value, changed = s.replace(value); !changed {
		return raw, false
	}
	return encode(value)
}

func (s *Subject) replace(value any) (any, bool) {
	changed := false
	switch v := value.(type) {
	case string:
		if v == s.Caller() {
			return s.Pseudonym, true
		}
	case []any:
		for i := range v {
			part, did := s.replace(v[i])
			v[i], changed = part, changed || did
		}
	case map[string]any:
		own := false
		for name, part := range v {
			if s.is(name, part) {
				v[name], own, changed = s.Pseudonym, true, true
				continue
			}
			part, did := s.replace(part)
			v[name], changed = part, changed || did
		}
		for name := range v {
			if own && names(name) {
				delete(v, name)
			}
		}
	}
	return value, changed
}

func decode(raw string) (value any, ok bool) {
	d := json.NewDecoder(bytes.NewReader([]byte(raw)))
	d.UseNumber()
	return value, d.Decode(&value) == nil
}

// encode writes JSON as the stores do; false if that fails, which it cannot for what was decoded.
func encode(value any) (string, bool) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return "", false
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), true
}

// said are the members of a journal entry that a person's message consists of.
func said() []string {
	return []string{"speaker", "news", "recalled", "quote", "heard", "parts"}
}

// entry returns a journal entry of a conversation that others share without the person: their words are replaced, and
// their id everywhere. Its order, its number and its kind stay, so that the journal remains one. hashes are the contents
// that came with the words.
func (s *Subject) entry(raw string) (clean string, changed bool, hashes []string) {
	value, ok := decode(raw)
	object, is := value.(map[string]any)
	if !ok || !is {
		return raw, false, nil
	}
	own := object["kind"] == string(journal.UserEntry) && object["caller"] == s.Caller()
	if own {
		hashes = partHashes(object["parts"])
		for _, name := range said() {
			delete(object, name)
		}
		object["text"] = erasedText
	}
	// hashes of addresses that people have written, whoever it was: who knows an address could tell that it is there
	standing, _ := object["standing"].(map[string]any)
	_, knows := standing["said"]
	delete(standing, "said")
	value, changed = s.replace(value)
	if !changed && !knows {
		return raw, false, nil
	}
	clean, changed = encode(value)
	return clean, changed, hashes
}

func partHashes(parts any) (hashes []string) {
	list, _ := parts.([]any)
	for _, part := range list {
		object, _ := part.(map[string]any)
		if hash, ok := object["hash"].(string); ok && hash != "" {
			hashes = append(hashes, hash)
		}
	}
	return hashes
}
