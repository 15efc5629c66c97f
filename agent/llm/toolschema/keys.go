package toolschema

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// maxKey is the longest name of a property that every server accepts, in bytes.
const maxKey = 64

// maxSteps bounds the work of translating the arguments of one call: names looked up, and schemas looked at for each.
// What comes after that keeps its names.
const maxSteps = 1_000_000

// Keys translates the names of a tool's properties that a server does not accept, such as filter[x] or $top. A name has
// the same other name everywhere in a tool, which no other property of the tool has, and it is translated only where
// the schema lists it: what is in an object of any properties is data. Below a schema that is cut, because it contains
// itself, no property is listed.
//
// nil has nothing to translate. Safe for concurrent use.
type Keys struct {
	root *node
	wire map[string]string // by the tool's own name
	own  map[string]string // by the name on the wire
	has  map[*node]bool    // whether a node, or a part of it, lists a name that is translated
}

// keysFor returns how the names of a schema are translated for a dialect; nil = all stay as they are.
func (s *Schema) keysFor(d *dialect.Schema) *Keys {
	if slices.Contains(d.Keywords, anyKey) {
		return nil
	}
	k := &Keys{root: s.root, wire: map[string]string{}, own: map[string]string{}, has: map[*node]bool{}}
	all := map[string]bool{}
	k.collectNames(s.root, all)
	if !k.has[s.root] {
		return nil
	}
	names, plain := make([]string, 0, len(all)), map[string]int{}
	for name := range all {
		if !key.MatchString(name) {
			names = append(names, name)
			plain[readableName(name)]++
		}
	}
	slices.Sort(names)
	for _, name := range names {
		wire := readableName(name)
		if len(wire) > maxKey || plain[wire] > 1 {
			wire = hashedName(name, 0)
		}
		for try := 1; all[wire]; try++ {
			wire = hashedName(name, try)
		}
		all[wire] = true
		k.wire[name], k.own[wire] = wire, name
	}
	return k
}

// collectNames adds the names of all properties of a node and its parts, and notes whether there are any to translate.
// The parts are shared, so each is visited once; none contains itself.
func (k *Keys) collectNames(n *node, all map[string]bool) bool {
	if n == nil {
		return false
	}
	if has, known := k.has[n]; known {
		return has
	}
	has := false
	for _, p := range n.properties {
		all[p.name] = true
		has = k.collectNames(p.node, all) || has || !key.MatchString(p.name)
	}
	for _, sub := range slices.Concat([]*node{n.additional, n.items}, n.prefix) {
		has = k.collectNames(sub, all) || has
	}
	for _, c := range n.choices {
		for _, b := range c.branches {
			has = k.collectNames(b, all) || has
		}
	}
	k.has[n] = has
	return has
}

// readableName replaces what servers do not accept by _.
func readableName(name string) string {
	if name == "" {
		return "_"
	}
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

// hashedName is the readable name, cut, with eight hexadecimal digits of the hash of the whole name.
func hashedName(name string, try int) string {
	salt := name
	if try > 0 {
		salt += "\x00" + strconv.Itoa(try)
	}
	sum := sha256.Sum256([]byte(salt))
	wire := readableName(name)
	return wire[:min(len(wire), maxKey-9)] + "_" + hex.EncodeToString(sum[:4])
}

// wireName returns the name of a property on the wire.
func (k *Keys) wireName(own string) string {
	if k != nil {
		if wire, ok := k.wire[own]; ok {
			return wire
		}
	}
	return own
}

// Encode returns arguments with the names that the server knows. What is no JSON object is returned as it is.
func (k *Keys) Encode(args json.RawMessage) json.RawMessage { return k.translateArgs(args, true) }

// Decode returns arguments that a model wrote with the tool's own names, also where they are broken JSON or an object
// in a string: others mend that, or the model is told what is wrong with the names of the tool. There, the place of a
// name is not looked at. Anything else that is no JSON object is returned as it is.
func (k *Keys) Decode(args json.RawMessage) json.RawMessage {
	if k == nil || len(args) == 0 {
		return args
	}
	if json.Valid(args) {
		var text string
		if args[0] != '"' || json.Unmarshal(args, &text) != nil {
			return k.translateArgs(args, false)
		}
		inner := k.Decode(json.RawMessage(strings.TrimLeft(text, `"`))) // no string in a string: it ends after one step
		if string(inner) == text {
			return args
		}
		if written, err := json.Marshal(string(inner)); err == nil && inner[0] == '{' {
			return written
		}
		return args
	}
	return k.decodeBroken(args)
}

// decodeBroken replaces the names on the wire before a colon in text that is not valid JSON.
func (k *Keys) decodeBroken(text json.RawMessage) json.RawMessage {
	var out []byte
	done := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '"' {
			continue
		}
		begin := i + 1
		for i = begin; i < len(text) && text[i] != '"'; i++ {
			if text[i] == '\\' {
				i++
			}
		}
		if i >= len(text) {
			break
		}
		own, known := k.own[string(text[begin:i])]
		if rest := bytes.TrimLeft(text[i+1:], " \t\r\n"); !known || len(rest) == 0 || rest[0] != ':' {
			continue
		}
		name, err := json.Marshal(own)
		if err != nil { // a string can always be encoded
			continue
		}
		out = append(append(out, text[done:begin-1]...), name...)
		done = i + 1
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

func (k *Keys) translateArgs(args json.RawMessage, encode bool) json.RawMessage {
	if k == nil {
		return args
	}
	v, err := parseValue(args)
	if err != nil || v.kind != isObject {
		return args
	}
	t := &translation{Keys: k, encode: encode, left: maxSteps}
	if t.translateValue(v, t.openNodes(nil, k.root)); !t.changed {
		return args
	}
	return json.RawMessage(v.encodeJSON())
}

// translation is one of Encode and Decode.
type translation struct {
	*Keys
	encode, changed bool
	left            int
}

// openNodes adds the nodes that a value may have to match to a list: a node and its choices. Those below which no
// name is translated are left out.
func (t *translation) openNodes(list []*node, n *node) []*node {
	if t.left--; n == nil || !t.has[n] || t.left < 0 || slices.Contains(list, n) {
		return list
	}
	list = append(list, n)
	t.left -= len(list)
	for _, c := range n.choices {
		for _, b := range c.branches {
			list = t.openNodes(list, b)
		}
	}
	return list
}

// translateValue translates the names in a value, which is described by some nodes.
func (t *translation) translateValue(v *value, at []*node) {
	if len(at) == 0 || t.left < 0 {
		return
	}
	switch v.kind {
	case isObject:
		t.translateObject(v, at)
	case isList:
		for i, sub := range v.list {
			var next []*node
			for _, n := range at {
				if i < len(n.prefix) {
					next = t.openNodes(next, n.prefix[i])
				} else {
					next = t.openNodes(next, n.items)
				}
			}
			t.translateValue(sub, next)
		}
	}
}

func (t *translation) translateObject(v *value, at []*node) {
	for i, name := range v.names {
		own, to := name, name
		if t.encode {
			to = t.wireName(name)
		} else if known, ok := t.own[name]; ok {
			own, to = known, known
		}
		var next []*node
		listed := false
		for _, n := range at {
			t.left -= 1 + len(n.properties)
			j := slices.IndexFunc(n.properties, func(p property) bool { return p.name == own })
			if j < 0 {
				next = t.openNodes(next, n.additional)
				continue
			}
			listed = true
			next = t.openNodes(next, n.properties[j].node)
		}
		sub := v.fields[name]
		t.translateValue(sub, next)
		if _, taken := v.fields[to]; to == name || !listed || taken {
			continue
		}
		t.changed = true
		delete(v.fields, name)
		v.names[i], v.fields[to] = to, sub
	}
}
