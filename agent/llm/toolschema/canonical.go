package toolschema

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// typeSet is a set of JSON types. JSON Schema's number is integer|fraction, so that sets can be intersected.
type typeSet uint8

const (
	null typeSet = 1 << iota
	boolean
	integer
	fraction
	text
	array
	object

	number   = integer | fraction
	anything = null | boolean | number | text | array | object
)

// typeNames are the names that people give types. Only the first seven are those of JSON Schema; the others occur in
// schemas written by hand, and mean something.
var typeNames = map[string]typeSet{
	"null":    null,
	"boolean": boolean,
	"integer": integer,
	"number":  number,
	"string":  text,
	"array":   array,
	"object":  object,
	"any":     anything,
	"bool":    boolean,
	"int":     integer,
	"long":    integer,
	"float":   number,
	"double":  number,
	"decimal": number,
	"str":     text,
	"text":    text,
	"list":    array,
	"tuple":   array,
	"dict":    object,
	"map":     object,
	"none":    null,
}

// node is a schema in canonical form: without references, without allOf, with what all drafts of JSON Schema say
// differently said in one way. Nodes are shared and never changed after they were read.
type node struct {
	description string
	types       typeSet // 0 = no value is valid
	enum        []*value
	limited     bool // enum counts, even if it is empty
	limits      [len(limitNames)]string
	unique      bool
	format      string
	patterns    []string

	properties []property
	additional *node // of properties that are not listed; nil = anything
	items      *node // nil = nobody said
	prefix     []*node
	choices    []choice

	fallback *value   // default
	words    []string // constraints that no dialect can express
	remarks  []string // what constrains nothing, such as examples
	cut      bool     // its parts are left out, because it contains itself, or for its size
}

// property of an object. A required property is always listed, if need be with a node that takes anything.
type property struct {
	name     string
	node     *node
	required bool
}

// choice says that a value matches one of several nodes, or exactly one.
type choice struct {
	one      bool
	branches []*node
}

// limitNames are the keywords whose value is a number, in the order in which they are written.
var limitNames = [...]string{
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
}

const (
	minimum = iota
	maximum
	exclusiveMinimum
	exclusiveMaximum
	multipleOf
	minLength
	maxLength
	minItems
	maxItems
	minProperties
	maxProperties
)

// limitTypes are the types that a limit applies to.
var limitTypes = [len(limitNames)]typeSet{
	number, number, number, number, number, text, text, array, array, object, object,
}

// isLower reports whether a limit is a smallest value: of two, the larger one is stricter.
func isLower(limit int) bool {
	switch limit {
	case minimum, exclusiveMinimum, minLength, minItems, minProperties:
		return true
	}
	return false
}

func freeNode() *node { return &node{types: anything} }

// allowsNothing reports whether no value is valid.
func (n *node) allowsNothing() bool { return n.types == 0 || n.limited && len(n.enum) == 0 }

// isFree reports whether every value is valid.
func (n *node) isFree() bool {
	return n.types == anything && !n.limited && !n.unique &&
		n.limits == [len(limitNames)]string{} && n.format == "" && len(n.patterns) == 0 &&
		len(n.properties) == 0 && n.additional == nil &&
		(n.items == nil || n.items.isFree()) && len(n.prefix) == 0 && len(n.choices) == 0 &&
		len(n.words) == 0 && !n.cut
}

// onlyTyped reports whether a node says nothing but which types are valid.
func (n *node) onlyTyped() bool {
	bare := *n
	bare.types, bare.items = anything, nil
	return n.items == nil && bare.isFree()
}

// reader brings one schema into canonical form.
type reader struct {
	root    *value
	anchors map[string]*value
	open    map[*value]bool // what is being read: a reference to it is a recursion
	nodes   int             // that may still be made
	bytes   int             // of texts that may still be kept
	old     bool            // a draft before 2019-09: what is beside a reference does not count
	full    bool            // the budget is spent
}

func newReader(root *value) *reader {
	r := &reader{root: root, anchors: map[string]*value{}, open: map[*value]bool{}, nodes: maxNodes, bytes: MaxBytes}
	for _, draft := range []string{"draft-03", "draft-04", "draft-06", "draft-07"} {
		r.old = r.old || strings.Contains(root.stringAt("$schema"), draft)
	}
	r.nameParts(root)
	return r
}

// nameParts records the parts that have a name of their own.
func (r *reader) nameParts(v *value) {
	for _, sub := range v.list {
		r.nameParts(sub)
	}
	for _, name := range v.names {
		r.nameParts(v.fields[name])
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor", "$id", "id"} {
		if text := strings.TrimPrefix(v.stringAt(key), "#"); text != "" {
			if _, taken := r.anchors[text]; !taken {
				r.anchors[text] = v
			}
		}
	}
}

// findRef follows a reference within the document; nil if it leads nowhere, or to another document.
func (r *reader) findRef(ref string) *value {
	base, fragment, _ := strings.Cut(ref, "#")
	v := r.root
	if base != "" {
		if v = r.anchors[base]; v == nil {
			return nil
		}
	}
	switch {
	case fragment == "":
		return v
	case fragment[0] != '/':
		return r.anchors[fragment]
	}
	for step := range strings.SplitSeq(fragment[1:], "/") {
		step = unescapeStep(step)
		switch {
		case v == nil:
			return nil
		case v.kind == isList:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v.list) {
				return nil
			}
			v = v.list[i]
		default:
			v = v.fieldAt(step)
		}
	}
	return v
}

// unescapeStep returns the name that a step of a JSON pointer stands for, in a URL or not.
func unescapeStep(step string) string {
	var b strings.Builder
	for i := 0; i < len(step); i++ {
		if step[i] == '%' && i+2 < len(step) {
			if c, err := strconv.ParseUint(step[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(step[i])
	}
	return strings.ReplaceAll(strings.ReplaceAll(b.String(), "~1", "/"), "~0", "~")
}

// spendBudget takes a node and its texts from the budget, and reports whether there was enough.
func (r *reader) spendBudget(texts ...string) bool {
	r.nodes--
	for _, t := range texts {
		r.bytes -= len(t)
	}
	if r.nodes < 0 || r.bytes < 0 {
		r.full = true
	}
	return !r.full
}

// readSchema brings a schema into canonical form. Whatever it is, the result is a node.
func (r *reader) readSchema(v *value, level int) *node {
	switch {
	case v == nil:
		return freeNode()
	case v.kind == isBool && v.text == "false":
		return &node{}
	case v.kind != isObject:
		return freeNode()
	case r.open[v]:
		return r.cutNode(v, "nested in the same way as the value that contains it")
	case level > maxDepth || r.full ||
		!r.spendBudget(v.stringAt("description"), v.stringAt("title"), v.stringAt("pattern")):
		return r.cutNode(v, "its parts are not listed here")
	}
	r.open[v] = true
	defer delete(r.open, v)
	ref := cmp.Or(v.stringAt("$ref"), v.stringAt("$dynamicRef"), v.stringAt("$recursiveRef"))
	if ref == "" {
		return r.readOwn(v, level)
	}
	target := r.findRef(ref)
	if target == nil {
		n := r.readOwn(v, level)
		n.words = append(n.words, "described by "+ref)
		return n
	}
	if target == v {
		return r.readOwn(v, level)
	}
	n := r.readSchema(target, level+1)
	switch {
	case r.old:
		if d := v.stringAt("description"); d != "" {
			described := *n
			described.description = d
			n = &described
		}
	case len(v.names) > 1:
		n = r.intersectNodes(r.readOwn(v, level), n)
	}
	return n
}

// cutNode returns a node in place of one whose parts are left out: only its type is known.
func (r *reader) cutNode(v *value, why string) *node {
	for range 8 { // a reference to a reference
		ref := v.stringAt("$ref")
		next := r.findRef(ref)
		if ref == "" || next == nil || next.kind != isObject {
			break
		}
		v = next
	}
	n := &node{types: typesAt(v), cut: true, words: []string{why}}
	if n.types == anything {
		n.types = impliedType(v)
	}
	return n
}

// typesAt returns the types that a schema names.
func typesAt(v *value) typeSet {
	t := v.fieldAt("type")
	if t == nil {
		return anything
	}
	var set typeSet
	for _, sub := range append([]*value{t}, t.list...) {
		if sub.kind == isString {
			set |= typeNames[strings.ToLower(sub.text)]
		}
	}
	if set == 0 { // a name that nobody knows
		return anything
	}
	if v.isTrue("nullable") {
		set |= null
	}
	return set
}

// impliedType returns the type that the keywords of a schema without one are for; anything if that is not clear.
func impliedType(v *value) typeSet {
	var set typeSet
	for keywords, t := range map[string]typeSet{
		"properties required additionalProperties patternProperties propertyNames minProperties maxProperties dependentRequired": object,
		"items prefixItems minItems maxItems uniqueItems contains":                                                               array,
		"minLength maxLength pattern format contentEncoding contentMediaType":                                                    text,
		"minimum maximum exclusiveMinimum exclusiveMaximum multipleOf":                                                           number,
	} {
		for keyword := range strings.FieldsSeq(keywords) {
			if v.fieldAt(keyword) != nil {
				set |= t
			}
		}
	}
	if set == number || bits.OnesCount8(uint8(set)) == 1 {
		return set
	}
	return anything
}

// readOwn reads what a schema says apart from a reference.
func (r *reader) readOwn(v *value, level int) *node {
	n := &node{description: describedAs(v), types: typesAt(v)}
	if n.types == anything && v.fieldAt("type") == nil {
		n.types = impliedType(v)
	}
	r.readEnum(v, n)
	readLimits(v, n)
	n.unique = v.isTrue("uniqueItems")
	n.format = v.stringAt("format")
	if p := v.stringAt("pattern"); p != "" {
		n.patterns = []string{p}
	}
	r.readProperties(v, n, level)
	r.readItems(v, n, level)
	n.fallback = v.fieldAt("default")
	if n.fallback != nil && !r.spendBudget(n.fallback.encodeJSON()) {
		n.fallback = nil
	}
	r.readWords(v, n, level)
	if v.isTrue("nullable") && n.limited {
		n.enum = append(n.enum, &value{kind: isNull})
	}
	for _, sub := range listItems(v.fieldAt("allOf")) {
		n = r.intersectNodes(n, r.readSchema(sub, level+1))
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list := listItems(v.fieldAt(keyword)); len(list) > 0 {
			n = r.addChoice(n, list, keyword == "oneOf", level)
		}
	}
	if v.isKind("unevaluatedProperties", isBool) &&
		!v.isTrue("unevaluatedProperties") && n.additional == nil && len(n.choices) == 0 {
		n.additional = &node{}
	}
	return n.makeConsistent()
}

// listItems returns the parts of a list; nil for anything else.
func listItems(v *value) []*value {
	if v == nil || v.kind != isList {
		return nil
	}
	return v.list
}

// describedAs returns what a schema says of itself: its description, or its title, unless that only repeats a name, as
// generators of schemas do.
func describedAs(v *value) string {
	d, title := strings.TrimSpace(v.stringAt("description")), strings.TrimSpace(v.stringAt("title"))
	if d == "" && strings.ContainsRune(title, ' ') && title != strings.ToUpper(title[:1])+title[1:] {
		return title
	}
	if d == "" && strings.Count(title, " ") > 3 {
		return title
	}
	return d
}

// readEnum reads enum and const.
func (r *reader) readEnum(v *value, n *node) {
	list, limited := listItems(v.fieldAt("enum")), v.isKind("enum", isList)
	if c := v.fieldAt("const"); c != nil {
		if list, limited = []*value{
			c,
		}, true; v.isKind("enum", isList) && !slices.ContainsFunc(v.fieldAt("enum").list, func(e *value) bool {
			return e.equalityText() == c.equalityText()
		}) {
			list = nil
		}
	}
	if !limited {
		return
	}
	seen := map[string]bool{}
	for _, e := range list {
		same := e.equalityText()
		if seen[same] {
			continue
		}
		if !r.spendBudget(same) {
			n.words, n.enum = append(n.words, "one of a long list of values"), nil
			return
		}
		seen[same] = true
		n.enum = append(n.enum, e)
	}
	n.limited = true
}

// readLimits reads the keywords with numbers. Draft 4 says that a minimum is exclusive with a second keyword.
func readLimits(v *value, n *node) {
	for i, name := range limitNames {
		f := v.fieldAt(name)
		if f == nil || f.kind != isNumber {
			continue
		}
		r, ok := parseRational(f.text)
		if !ok || i >= minLength && (r.Sign() < 0 || !r.IsInt()) || i == multipleOf && r.Sign() <= 0 {
			continue
		}
		n.limits[i] = f.text
		if i >= minLength {
			n.limits[i] = r.Num().String()
		}
	}
	for inclusive, exclusive := range map[int]int{minimum: exclusiveMinimum, maximum: exclusiveMaximum} {
		if v.isTrue(limitNames[exclusive]) {
			n.limits[exclusive], n.limits[inclusive] = n.limits[inclusive], ""
		}
	}
}

// readProperties reads what a schema says of an object.
func (r *reader) readProperties(v *value, n *node, level int) {
	required := map[string]bool{}
	var order []string
	for _, e := range listItems(v.fieldAt("required")) {
		if e.kind == isString && !required[e.text] {
			required[e.text] = true
			order = append(order, e.text)
		}
	}
	if list := v.fieldAt("properties"); list != nil && list.kind == isObject {
		for _, name := range list.names {
			sub := list.fields[name]
			if !r.spendBudget(name) {
				n.words = append(n.words, "more properties than are listed here")
				break
			}
			// Draft 3 says at the property that it is required.
			n.properties = append(n.properties, property{
				name,
				r.readSchema(sub, level+1),
				required[name] || sub.isTrue("required"),
			})
			delete(required, name)
		}
	}
	r.readOthers(v, n, level)
	for _, name := range order {
		if required[name] && r.spendBudget(name) {
			other := n.additional
			if other == nil {
				other = freeNode()
			}
			n.properties = append(n.properties, property{name, other, true})
		}
	}
}

// readOthers reads what a schema says of properties that it does not list.
func (r *reader) readOthers(v *value, n *node, level int) {
	if a := v.fieldAt("additionalProperties"); a != nil && (a.kind == isObject || a.kind == isBool) {
		if n.additional = r.readSchema(a, level+1); n.additional.isFree() {
			n.additional = nil
		}
	}
	patterns := v.fieldAt("patternProperties")
	if patterns == nil || len(patterns.names) == 0 {
		return
	}
	for _, p := range patterns.names {
		n.words = append(
			n.words, "properties whose name matches "+p+": "+phraseOf(r.readSchema(patterns.fields[p], level+1)),
		)
	}
	switch {
	case n.additional == nil:
	case n.additional.allowsNothing():
		n.words = append(n.words, "no other properties")
	default:
		n.words = append(n.words, "other properties: "+phraseOf(n.additional))
	}
	n.additional = nil
}

// readItems reads what a schema says of a list. Before draft 2020-12, a list of items is what prefixItems is now.
func (r *reader) readItems(v *value, n *node, level int) {
	first, rest := v.fieldAt("prefixItems"), v.fieldAt("items")
	if v.isKind("items", isList) {
		first, rest = v.fieldAt("items"), v.fieldAt("additionalItems")
	}
	for _, sub := range listItems(first) {
		n.prefix = append(n.prefix, r.readSchema(sub, level+1))
	}
	if rest != nil && (rest.kind == isObject || rest.kind == isBool) {
		n.items = r.readSchema(rest, level+1)
	}
}

// readWords reads the constraints that no dialect can express, because servers refuse them, or because a model could do
// nothing with them. They are put in words.
func (r *reader) readWords(v *value, n *node, level int) {
	say := func(words ...string) {
		if text := strings.Join(words, ""); r.spendBudget(text) {
			n.words = append(n.words, text)
		}
	}
	if not := v.fieldAt("not"); not != nil {
		r.readNot(not, n, say)
	}
	if cond := v.fieldAt("if"); cond != nil {
		for _, part := range []struct{ keyword, words string }{
			{"then", "if it matches "},
			{"else", "unless it matches "},
		} {
			if then := v.fieldAt(part.keyword); then != nil {
				say(part.words, sourceText(cond), ", it has to match ", sourceText(then))
			}
		}
	}
	for _, keyword := range []string{"dependentRequired", "dependentSchemas", "dependencies"} {
		for _, name := range fieldNames(v.fieldAt(keyword)) {
			needed := v.fieldAt(keyword).fields[name]
			if needed.kind == isList {
				say(name, " only together with ", strings.Join(listTexts(needed.list), ", "))
			} else {
				say("with ", name, ", it has to match ", sourceText(needed))
			}
		}
	}
	if names := v.fieldAt("propertyNames"); names != nil && names.kind == isObject {
		say("names of properties: ", phraseOf(r.readSchema(names, level+1)))
	}
	if some := v.fieldAt("contains"); some != nil {
		least := "1"
		if v.isKind("minContains", isNumber) {
			least = v.fieldAt("minContains").text
		}
		say("at least ", least, " of its items: ", phraseOf(r.readSchema(some, level+1)))
		if v.isKind("maxContains", isNumber) {
			say("at most ", v.fieldAt("maxContains").text, " such items")
		}
	}
	if v.isKind("unevaluatedItems", isBool) && !v.isTrue("unevaluatedItems") {
		say("no other items")
	}
	if e := v.stringAt("contentEncoding"); e != "" {
		say("encoded as ", e)
	}
	if m := v.stringAt("contentMediaType"); m != "" {
		say("of the type ", m)
	}
	if v.isTrue("deprecated") {
		n.remarks = append(n.remarks, "deprecated")
	}
	examples := listItems(v.fieldAt("examples"))
	if e := v.fieldAt("example"); e != nil {
		examples = append([]*value{e}, examples...)
	}
	if len(examples) > 0 {
		n.remarks = append(n.remarks, "for example "+listValues(examples, 3))
	}
}

// readNot reads not: a type is taken away, anything else is said.
func (r *reader) readNot(not *value, n *node, say func(...string)) {
	switch {
	case not.kind == isBool && not.text == "true":
		n.types = 0
	case not.kind != isObject || len(not.names) == 0:
	case len(not.names) == 1 && not.fieldAt("type") != nil && typesAt(not)&number == 0:
		n.types &^= typesAt(not)
	case len(not.names) == 1 && not.isKind("enum", isList):
		say("none of ", listValues(not.fieldAt("enum").list, maxListed))
	case len(not.names) == 1 && not.fieldAt("const") != nil:
		say("not ", not.fieldAt("const").encodeJSON())
	case len(not.names) == 1 && not.isKind("required", isList):
		say("not together: ", strings.Join(listTexts(not.fieldAt("required").list), ", "))
	default:
		say("must not match ", sourceText(not))
	}
}

// fieldNames returns the names of an object's fields.
func fieldNames(v *value) []string {
	if v == nil || v.kind != isObject {
		return nil
	}
	return v.names
}

// listTexts returns the strings of a list.
func listTexts(list []*value) []string {
	var out []string
	for _, e := range list {
		if e.kind == isString {
			out = append(out, e.text)
		}
	}
	return out
}

// addChoice adds anyOf or oneOf to a node.
func (r *reader) addChoice(n *node, list []*value, one bool, level int) *node {
	var branches []*node
	for _, sub := range list {
		b := r.readSchema(sub, level+1)
		switch {
		case b.allowsNothing():
		case b.isFree() && !one:
			return n
		default:
			branches = append(branches, b)
		}
	}
	if joined := joinBranches(branches, one); joined != nil {
		return r.intersectNodes(n, joined)
	}
	out := *n
	out.choices = append(slices.Clone(n.choices), choice{one, branches})
	return &out
}

// joinBranches returns one node that says the same as a choice of several; nil if there is none.
func joinBranches(branches []*node, one bool) *node {
	if len(branches) == 0 {
		return &node{}
	}
	if len(branches) == 1 {
		return branches[0]
	}
	if n := joinEnums(branches, one); n != nil {
		return n
	}
	var seen typeSet
	var listed, others int // branches that list values, and those that do not
	for _, b := range branches {
		if b.types&seen != 0 || len(b.choices) > 0 {
			return joinTypes(branches, one)
		}
		seen |= b.types
		switch {
		case b.types == null:
		case b.limited:
			listed++
		default:
			others++
		}
	}
	if listed > 1 || listed > 0 && others > 0 { // a list of values is about all types
		return joinTypes(branches, one)
	}
	// No two of them are about the same type, and keywords are about one type each.
	out := &node{}
	for _, b := range branches {
		merged := *out
		out = &merged
		if b.limited && b.types != null {
			out.enum, out.limited = b.enum, true
		}
		out.types |= b.types
		for i, l := range b.limits {
			if b.types&limitTypes[i] != 0 {
				out.limits[i] = cmp.Or(out.limits[i], l)
			}
		}
		if b.types&array != 0 {
			out.items, out.prefix, out.unique = b.items, b.prefix, b.unique
		}
		if b.types&object != 0 {
			out.properties, out.additional = b.properties, b.additional
		}
		if b.types&text != 0 {
			out.format, out.patterns = b.format, b.patterns
		}
		if b.description != "" {
			out.remarks = append(slices.Clone(out.remarks), phraseTypes(b.types)+": "+b.description)
		}
		out.words, out.remarks = slices.Concat(out.words, b.words), slices.Concat(out.remarks, b.remarks)
		out.cut = out.cut || b.cut
	}
	if out.limited && out.types&null != 0 && !slices.ContainsFunc(out.enum, func(e *value) bool {
		return e.kind == isNull
	}) {
		out.enum = append(slices.Clone(out.enum), &value{kind: isNull})
	}
	return out
}

// joinEnums joins branches that are lists of values, as generators write enumerations with descriptions.
func joinEnums(branches []*node, one bool) *node {
	out := &node{limited: true}
	seen := map[string]bool{}
	for _, b := range branches {
		bare := *b
		bare.types, bare.enum, bare.limited = anything, nil, false
		if !b.limited || !bare.isFree() {
			return nil
		}
		for _, e := range b.enum {
			same := e.equalityText()
			if seen[same] {
				if one { // valid in two branches: not valid
					return nil
				}
				continue
			}
			seen[same] = true
			out.types |= e.typeOf()
			out.enum = append(out.enum, e)
		}
		if b.description != "" && len(b.enum) == 1 {
			out.remarks = append(out.remarks, b.enum[0].encodeJSON()+": "+b.description)
		}
	}
	return out
}

// joinTypes joins branches that say nothing but types.
func joinTypes(branches []*node, one bool) *node {
	out := &node{}
	for _, b := range branches {
		if !b.onlyTyped() || one && out.types&b.types != 0 {
			return nil
		}
		out.types |= b.types
		if b.description != "" {
			out.remarks = append(out.remarks, phraseTypes(b.types)+": "+b.description)
		}
	}
	return out
}

// makeConsistent makes what a node says of types and values consistent.
func (n *node) makeConsistent() *node {
	if n.limited {
		var set typeSet
		n.enum = slices.DeleteFunc(slices.Clone(n.enum), func(e *value) bool {
			if t := e.typeOf(); n.types&t == 0 {
				return true
			}
			set |= e.typeOf()
			return false
		})
		n.types &= set
	}
	kept := n.properties[:0:0]
	for _, p := range n.properties {
		switch {
		case !p.node.allowsNothing():
			kept = append(kept, p)
		case p.required:
			n.words = append(slices.Clip(n.words), "it requires "+p.name+", but takes no value of it")
		case n.additional == nil || !n.additional.allowsNothing():
			n.words = append(slices.Clip(n.words), "without "+p.name)
		}
	}
	n.properties = kept
	return n
}

// intersectNodes returns a node for values that match two nodes. Texts of the first one come first.
func (r *reader) intersectNodes(a, b *node) *node {
	switch {
	case b.isFree() && b.description == "" && len(b.remarks) == 0 && b.fallback == nil:
		return a
	case a.isFree() && a.description == "" && len(a.remarks) == 0 && a.fallback == nil:
		return b
	case !r.spendBudget():
		out := *a
		out.words = append(slices.Clone(a.words), "more conditions than are listed here")
		return &out
	}
	out := &node{
		description: cmp.Or(a.description, b.description), types: a.types & b.types, unique: a.unique || b.unique,
		format: cmp.Or(a.format, b.format), cut: a.cut || b.cut, fallback: a.fallback,
		words: slices.Concat(a.words, b.words), remarks: slices.Concat(a.remarks, b.remarks),
		choices: slices.Concat(a.choices, b.choices),
	}
	if out.fallback == nil {
		out.fallback = b.fallback
	}
	if a.format != "" && b.format != "" && a.format != b.format {
		out.words = append(out.words, "also of the format "+b.format)
	}
	out.patterns = slices.Clone(a.patterns)
	for _, p := range b.patterns {
		if !slices.Contains(out.patterns, p) {
			out.patterns = append(out.patterns, p)
		}
	}
	for i := range limitNames {
		var extra string
		if out.limits[i], extra = stricterLimit(i, a.limits[i], b.limits[i]); extra != "" {
			out.words = append(out.words, "also a multiple of "+extra)
		}
	}
	out.enum, out.limited = bothEnums(a, b)
	r.bothLists(out, a, b)
	r.bothObjects(out, a, b)
	return out.makeConsistent()
}

// stricterLimit returns the limit that counts if both hold, and one that holds besides.
func stricterLimit(limit int, a, b string) (string, string) {
	x, okA := parseRational(a)
	y, okB := parseRational(b)
	switch {
	case a == "" || b == "":
		return a + b, ""
	case !okA || !okB: // unreachable: such limits are not read
		return a, ""
	case limit == multipleOf:
		if x.Cmp(y) == 0 {
			return a, ""
		}
		return a, b
	case (x.Cmp(y) > 0) == isLower(limit):
		return a, ""
	}
	return b, ""
}

func bothEnums(a, b *node) ([]*value, bool) {
	switch {
	case !a.limited:
		return b.enum, b.limited
	case !b.limited:
		return a.enum, true
	}
	in := map[string]bool{}
	for _, e := range b.enum {
		in[e.equalityText()] = true
	}
	return slices.DeleteFunc(slices.Clone(a.enum), func(e *value) bool { return !in[e.equalityText()] }), true
}

func (r *reader) bothLists(out, a, b *node) {
	item := func(n *node, i int) *node {
		switch {
		case i < len(n.prefix):
			return n.prefix[i]
		case n.items != nil:
			return n.items
		}
		return freeNode()
	}
	for i := range max(len(a.prefix), len(b.prefix)) {
		out.prefix = append(out.prefix, r.intersectNodes(item(a, i), item(b, i)))
	}
	out.items = a.items
	switch {
	case a.items == nil:
		out.items = b.items
	case b.items != nil:
		out.items = r.intersectNodes(a.items, b.items)
	}
}

func (r *reader) bothObjects(out, a, b *node) {
	find := func(n *node, name string) (property, bool) {
		i := slices.IndexFunc(n.properties, func(p property) bool { return p.name == name })
		if i >= 0 {
			return n.properties[i], true
		}
		if n.additional == nil {
			return property{node: freeNode()}, false
		}
		return property{node: n.additional}, false
	}
	for _, p := range a.properties {
		q, _ := find(b, p.name)
		out.properties = append(out.properties, property{
			p.name,
			r.intersectNodes(p.node, q.node),
			p.required || q.required,
		})
	}
	for _, p := range b.properties {
		if q, ok := find(a, p.name); !ok {
			out.properties = append(out.properties, property{p.name, r.intersectNodes(p.node, q.node), p.required})
		}
	}
	out.additional = a.additional
	switch {
	case a.additional == nil:
		out.additional = b.additional
	case b.additional != nil:
		out.additional = r.intersectNodes(a.additional, b.additional)
	}
}

// uniteNodes returns a node for all values that match one of two: the smallest set that one node can say. What
// is lost is said by the caller.
func uniteNodes(a, b *node) *node {
	switch {
	case a.allowsNothing():
		return b
	case b.allowsNothing():
		return a
	}
	out := &node{
		types:       a.types | b.types,
		description: cmp.Or(a.description, b.description),
		cut:         a.cut || b.cut,
		remarks:     a.remarks,
	}
	if a.description != b.description {
		out.description = ""
	}
	if a.limited && b.limited {
		out.limited, out.enum = true, slices.Clone(a.enum)
		for _, e := range b.enum {
			if !slices.ContainsFunc(out.enum, func(o *value) bool { return o.equalityText() == e.equalityText() }) {
				out.enum = append(out.enum, e)
			}
		}
	}
	// only returns what one of the two says of a type that the other does not allow.
	only := func(t typeSet) *node {
		switch {
		case b.types&t == 0:
			return a
		case a.types&t == 0:
			return b
		}
		return nil
	}
	for i := range limitNames {
		if n := only(limitTypes[i]); n != nil {
			out.limits[i] = n.limits[i]
		} else if s, extra := stricterLimit(i, a.limits[i], b.limits[i]); a.limits[i] != "" &&
			b.limits[i] != "" && extra == "" {
			if out.limits[i] = a.limits[i]; s == a.limits[i] {
				out.limits[i] = b.limits[i]
			}
		}
	}
	switch n := only(text); {
	case n != nil:
		out.format, out.patterns = n.format, n.patterns
	case a.format == b.format && slices.Equal(a.patterns, b.patterns):
		out.format, out.patterns = a.format, a.patterns
	}
	switch n := only(array); {
	case n != nil:
		out.items, out.prefix, out.unique = n.items, n.prefix, n.unique
	case a.items != nil && b.items != nil:
		out.unique = a.unique && b.unique
		out.items = a.items
		for _, sub := range slices.Concat([]*node{b.items}, a.prefix, b.prefix) {
			out.items = uniteNodes(out.items, sub)
		}
	}
	switch n := only(object); {
	case n != nil:
		out.properties, out.additional = n.properties, n.additional
	case a.isVague() || b.isVague():
	default:
		eitherObject(out, a, b)
	}
	if only(object) != nil || only(array) != nil {
		out.words = slices.Concat(a.words, b.words)
	}
	return out
}

// isVague reports whether a node takes objects among other things, and says nothing of them.
func (n *node) isVague() bool {
	return n.types&^object != 0 && len(n.properties) == 0 && n.additional == nil
}

// eitherObject lists the properties of both; required is what both require. A property that only one of them knows is
// that property, although the other would take anything under its name: that is what the author of a tool means.
func eitherObject(out, a, b *node) {
	for _, p := range a.properties {
		i := slices.IndexFunc(b.properties, func(q property) bool { return q.name == p.name })
		if i < 0 {
			p = p.besideObject(b)
		} else {
			q := b.properties[i]
			p = property{p.name, eitherOf(p.node, q.node), p.required && q.required}
		}
		out.properties = append(out.properties, p)
	}
	for _, q := range b.properties {
		if !slices.ContainsFunc(a.properties, func(p property) bool { return p.name == q.name }) {
			out.properties = append(out.properties, q.besideObject(a))
		}
	}
	if a.additional != nil && b.additional != nil {
		out.additional = uniteNodes(a.additional, b.additional)
	}
}

// besideObject returns a property where an object may come instead that does not list it.
func (p property) besideObject(n *node) property {
	p.required = false
	if n.additional != nil && !n.additional.allowsNothing() {
		p.node = eitherOf(p.node, n.additional)
	}
	return p
}

// eitherOf keeps both forms of a property apart, so that a dialect with anyOf can say them.
func eitherOf(a, b *node) *node {
	if a == b {
		return a
	}
	if n := joinBranches([]*node{a, b}, false); n != nil {
		n.description = cmp.Or(a.description, b.description)
		return n
	}
	if len(a.choices) == 0 && len(b.choices) == 0 {
		return &node{
			types:       anything,
			description: cmp.Or(a.description, b.description),
			choices:     []choice{{branches: []*node{a, b}}},
		}
	}
	return uniteNodes(a, b)
}
