package audit

import (
	"bytes"
	"encoding/json"
)

// hashField is the beginning of the last field of a line.
const hashField = `,"hash":"`

// unsealLine splits a line into the hashed bytes and the hash.
func unsealLine(line []byte) (body []byte, hash string, ok bool) {
	const tail = len(hashField) + 64 + len(`"}`)
	if len(line) < tail+1 || !bytes.HasPrefix(line[len(line)-tail:], []byte(hashField)) ||
		!bytes.HasSuffix(line, []byte(`"}`)) {
		return nil, "", false
	}
	hash = string(line[len(line)-66 : len(line)-2])
	for _, c := range hash {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return nil, "", false
		}
	}
	return append(bytes.Clone(line[:len(line)-tail]), '}'), hash, true
}

// parseLine decodes a line, with or without its newline. It does not check the hash.
func parseLine(line []byte) (r record, ok bool) {
	body, hash, ok := unsealLine(bytes.TrimSuffix(line, []byte("\n")))
	if !ok || json.Unmarshal(body, &r) != nil {
		return record{}, false
	}
	r.hash = r.chainHash(hash)
	return r, true
}
