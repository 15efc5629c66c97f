package privacy

import (
	"bytes"
	"encoding/json"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// erasedText takes the place of what a person said in a conversation that others share.
const erasedText = "[erased]"

// Subject is a person whose data is exported or erased.
type Subject struct {
	Person
	Pseudonym string // takes the place of the caller id in what has to stay

	buckets map[string]bot.BucketRule // of facts; those of others belong to whom their key or their value names
}

// rulesByBucket returns the rules of buckets by name.
func rulesByBucket(list []bot.BucketRule) map[string]bot.BucketRule {
	rules := map[string]bot.BucketRule{}
	for _, r := range list {
		rules[r.Bucket] = r
	}
	return rules
}

// isNameMember are the members of JSON objects that say what a person is called, or what they did, if the same object
// names the person.
func isNameMember(member string) bool {
	switch member {
	case "name", "by_name", "username", "speaker", "title_by", "first_name", "last_name", "language", "covered":
		return true
	}
	return false
}

// isPersonMember are the members of JSON objects whose value can be a person's id without its channel.
func isPersonMember(member string) bool {
	switch member {
	case "person", "by", "owner", "user", "user_id", "from":
		return true
	}
	return false
}

// owner reports whether a member of a JSON object, at any depth, is the person.
func (s *Subject) owner(raw string, member string) bool {
	value, ok := decodeJSON(raw)
	if !ok {
		return false
	}
	return s.findPerson(value, func(name string) bool { return name == member })
}

// mentions reports whether any value in a JSON text is the person.
func (s *Subject) mentions(raw string) bool {
	value, ok := decodeJSON(raw)
	if !ok {
		return raw == s.ID || raw == s.Caller()
	}
	return s.findPerson(value, func(string) bool { return true })
}

func (s *Subject) findPerson(value any, in func(member string) bool) bool {
	switch v := value.(type) {
	case []any:
		for i := range v {
			if s.findPerson(v[i], in) {
				return true
			}
		}
	case map[string]any:
		for name, part := range v {
			if in(name) && s.is(name, part) || s.findPerson(part, in) {
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
		return is && number.String() == s.ID && isPersonMember(name)
	}
	return text == s.Caller() || text == s.ID && isPersonMember(name)
}

// scrub returns a JSON text with the person replaced by the pseudonym, and without what they are called. changed says
// whether it had the person in it. A text that is not JSON is returned as it is.
func (s *Subject) scrub(raw string) (clean string, changed bool) {
	value, ok := decodeJSON(raw)
	if !ok {
		return raw, false
	}
	if value, changed = s.replacePerson(value); !changed {
		return raw, false
	}
	return encodeJSON(value)
}

func (s *Subject) replacePerson(value any) (any, bool) {
	changed := false
	switch v := value.(type) {
	case string:
		if v == s.Caller() {
			return s.Pseudonym, true
		}
	case []any:
		for i := range v {
			part, did := s.replacePerson(v[i])
			v[i], changed = part, changed || did
		}
	case map[string]any:
		own := false
		for name, part := range v {
			if s.is(name, part) {
				v[name], own, changed = s.Pseudonym, true, true
				continue
			}
			part, did := s.replacePerson(part)
			v[name], changed = part, changed || did
		}
		for name := range v {
			if own && isNameMember(name) {
				delete(v, name)
			}
		}
	}
	return value, changed
}

func decodeJSON(raw string) (value any, ok bool) {
	d := json.NewDecoder(bytes.NewReader([]byte(raw)))
	d.UseNumber()
	return value, d.Decode(&value) == nil
}

// encodeJSON writes JSON as the stores do; false if that fails, which it cannot for what was decoded.
func encodeJSON(value any) (string, bool) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return "", false
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), true
}

// saidMembers are the members of a journal entry that a person's message consists of.
func saidMembers() []string {
	return []string{"speaker", "news", "recalled", "quote", "heard", "parts"}
}

// scrubEntry returns a journal entry of a conversation that others share without the person: their words are replaced,
// and their id everywhere. Its order, its number and its kind stay, so that the journal remains one. hashes are the
// contents that came with the words.
func (s *Subject) scrubEntry(raw string) (clean string, changed bool, hashes []string) {
	value, ok := decodeJSON(raw)
	object, is := value.(map[string]any)
	if !ok || !is {
		return raw, false, nil
	}
	own := object["kind"] == string(journal.UserEntry) && object["caller"] == s.Caller()
	if own {
		hashes = partHashes(object["parts"])
		for _, name := range saidMembers() {
			delete(object, name)
		}
		object["text"] = erasedText
	}
	erased := s.eraseTalk(object["talk"])
	// hashes of addresses that people have written, no matter who: a person who knows an address could tell that it is
	// there
	standing, _ := object["standing"].(map[string]any)
	_, knows := standing["said"]
	delete(standing, "said")
	value, changed = s.replacePerson(value)
	if !changed && !knows && !erased {
		return raw, false, nil
	}
	clean, changed = encodeJSON(value)
	return clean, changed, hashes
}

// eraseTalk replaces the person's words in what people of a group said to each other. It reports whether there were
// any.
func (s *Subject) eraseTalk(talk any) (erased bool) {
	list, _ := talk.([]any)
	for _, part := range list {
		if said, _ := part.(map[string]any); said != nil && said["caller"] == s.Caller() {
			said["text"], erased = erasedText, true
		}
	}
	return erased
}

// ownTalk returns the person's words in what people of a group said to each other.
func (s *Subject) ownTalk(talk any) (own []any) {
	list, _ := talk.([]any)
	for _, part := range list {
		if said, _ := part.(map[string]any); said != nil && said["caller"] == s.Caller() {
			own = append(own, part)
		}
	}
	return own
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
