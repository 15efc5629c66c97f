package negotiate

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/policy/lazyregexp"
)

// The names in Params.Omit that are no fields of a request's JSON, or more than that.
const (
	Tools    = "tools"  // calls are written as fenced blocks (package fenced)
	Stream   = "stream" // the answer comes as a whole
	Pictures = "image"  // pictures and files are put into words
)

// Said is what a server says when it refuses a request.
type Said struct {
	Status  int // 0 = none
	Message string
	Type    string
	Code    string
	Places  []string // parts of the request that it names, as it names them
	// Unknown: the words may mean that the model or the address is unknown, so that only plain words count.
	Unknown bool
}

// Change is what could be changed in a request so that the server takes it. Besides Class and Placed, one
// field is set, or a field and its value.
type Change struct {
	Class    string // of the refusal, for logs
	Omit     string // a name for Params.Omit
	Placed   bool   // Omit was named in a field of its own
	Rename   string // a field that is sent as To
	To       string
	Set      string // a field that has Value, as JSON
	Value    string
	Aside    []int  // indexes in Sent.Tools of the tools that the server names
	History  string // a rule of dialect.History by its name in JSON
	Beside   string // another one, which holds as well
	Wire     string // as Learnt.Wire
	MaxTools int
	Safe     bool // all schemas in the safe subset
	Closed   bool // all schemas say additionalProperties false
	Halve    bool // find the tools that are to blame
	NoTools  bool // if a request with one trivial tool is refused too: no tools at all
	// For this request only:
	DropPictures bool // without its pictures
	Nudge        bool // the model's own call was malformed: it is asked again
	MaxTokens    int  // a shorter answer, in tokens
	Least        bool // every field omitted that can be, and all schemas safe: the server does not say what it minds
}

// changeKey identifies a change among those of one request.
func (c *Change) changeKey() string {
	return fmt.Sprint(
		c.Omit,
		"|",
		c.Rename,
		">",
		c.To,
		"|",
		c.Set,
		"=",
		c.Value,
		"|",
		c.Aside,
		c.History,
		"+",
		c.Beside,
		"|",
		c.Wire,
		c.MaxTools,
		c.Safe,
		c.Closed,
		c.Halve,
		c.NoTools,
		c.DropPictures,
		c.Nudge,
		c.MaxTokens,
		c.Least,
	)
}

//go:embed patterns.json
var patternsJSON []byte

// pattern is a row of patterns.json, as written and compiled.
type pattern struct {
	Class  string   `json:"class"`
	Words  []string `json:"words"`
	Not    string   `json:"not"`
	Place  string   `json:"place"` // what a named part of the request has to match; "^$" = no part is named
	Needs  string   `json:"needs"`
	Become string   `json:"become"` // the class whose change is made; "" = Class
	Field  string   `json:"field"`
	Value  string   `json:"value"`
	Omit   string   `json:"omit"`

	words      []*regexp.Regexp
	not, place *regexp.Regexp
}

// fieldRow is what is done with a field other than to omit it.
type fieldRow struct {
	Name  string `json:"name"`
	Other string `json:"other"`
}

type patternTable struct {
	Rows   []*pattern `json:"rows"`
	Fields []fieldRow `json:"fields"`
}

// patterns reads the table once. It is part of the program, so a mistake in it is a programmer's.
var patterns = sync.OnceValues(func() (*patternTable, error) {
	var t patternTable
	if err := json.Unmarshal(patternsJSON, &t); err != nil {
		return nil, fmt.Errorf("patterns.json: %w", err)
	}
	for _, row := range t.Rows {
		var err error
		for _, expr := range row.Words {
			re, compileErr := regexp.Compile(expr)
			if compileErr != nil {
				return nil, fmt.Errorf("patterns.json: %s: %w", row.Class, compileErr)
			}
			row.words = append(row.words, re)
		}
		if row.Not != "" {
			if row.not, err = regexp.Compile(row.Not); err != nil {
				return nil, fmt.Errorf("patterns.json: %s: %w", row.Class, err)
			}
		}
		if row.Place != "" {
			if row.place, err = regexp.Compile(row.Place); err != nil {
				return nil, fmt.Errorf("patterns.json: %s: %w", row.Class, err)
			}
		}
	}
	return &t, nil
})

// Read returns the changes after which the server may take the request, the likeliest first; none if the refusal is not
// about the form of the request. d is the dialect in which it was sent. The error is a
// mistake in the table of patterns.
func Read(said *Said, sent *Sent, d *dialect.Dialect) ([]Change, error) {
	table, err := patterns()
	if err != nil || !formalStatus(said.Status) {
		return nil, err
	}
	r := &recogniser{said: said, sent: sent, dialect: d, table: table, words: plainWords(said), places: said.Places}
	r.recogniseAll()
	return r.found, nil
}

// formalStatus reports whether a status can mean that the form of a request is refused. Servers with templates fail
// with 500 where others refuse with 400.
func formalStatus(status int) bool {
	switch status {
	case 0, 400, 402, 404, 405, 406, 415, 422, 500, 501, 503:
		return true
	default:
		return false
	}
}

// recogniser reads one refusal.
type recogniser struct {
	said    *Said
	sent    *Sent
	dialect *dialect.Dialect
	table   *patternTable
	words   string
	places  []string
	found   []Change
}

func (r *recogniser) addChange(c Change) {
	if !slices.ContainsFunc(r.found, func(have Change) bool { return have.changeKey() == c.changeKey() }) {
		r.found = append(r.found, c)
	}
}

// isClear reports whether the server clearly speaks of a request that it does not want.
func (r *recogniser) isClear() bool {
	return r.said.Status < 500 && r.said.Status != 404 && !r.said.Unknown
}

func (r *recogniser) recogniseAll() {
	if n := affordableTokens(r.words); n > 0 {
		r.addChange(Change{Class: "afford", MaxTokens: n})
		return
	}
	if r.said.Status == 402 {
		return
	}
	if c := r.matchingRow("malformed_call"); c != nil {
		r.addChange(Change{Class: c.Class, Nudge: true})
		return
	}
	// What one tool lacks all others lack, too: to set aside the one that is named would cost a request for each.
	if r.matchingRow("closed") != nil && !r.dialect.Schema.Closed {
		r.addChange(Change{Class: "closed", Closed: true})
	}
	r.namedTools()
	r.addClasses(func(class string) bool { return class != "vague" && class != "bad_picture" && isHistoric(class) })
	r.placedFields()
	r.addClasses(func(class string) bool {
		return class != "vague" && class != "bad_picture" && !isHistoric(class) && !aboutTools(class)
	})
	r.spokenFields()
	r.spokenTools()
	r.findKeywords()
	r.addClasses(aboutTools)
	if !r.isClear() {
		return
	}
	r.addClasses(func(class string) bool { return class == "bad_picture" })
	if len(r.found) == 0 {
		r.addClasses(func(class string) bool { return class == "vague" })
	}
	if r.sent.Pictures { // one broken picture must not end a conversation
		r.addChange(Change{Class: "bad_picture", DropPictures: true})
	}
}

// isHistoric reports whether a class is about the order and the content of messages, or about the wire.
func isHistoric(class string) bool {
	switch class {
	case "keep_tools", "wire", "one_system", "bridge", "last_user", "alternate",
		"call_ids", "reasoning", "no_reasoning", "empty_content", "tool_names", "blocks":
		return true
	default:
		return false
	}
}

func aboutTools(class string) bool {
	switch class {
	case "closed", "tool_choice", "no_tools", "too_many_tools", "tools_size", "schema":
		return true
	default:
		return false
	}
}

// matchingRow returns the first row of a class that matches.
func (r *recogniser) matchingRow(class string) *pattern {
	for _, row := range r.table.Rows {
		if row.Class == class && r.rowMatches(row) {
			return row
		}
	}
	return nil
}

// addClasses adds the changes for all rows that match.
func (r *recogniser) addClasses(want func(class string) bool) {
	for _, row := range r.table.Rows {
		if want(row.Class) && r.rowMatches(row) {
			r.addRowChanges(row)
		}
	}
}

func (r *recogniser) rowMatches(row *pattern) bool {
	if !r.hasNeeded(row.Needs) || row.not != nil && row.not.MatchString(r.words) {
		return false
	}
	if row.place != nil {
		match := row.place.MatchString
		if len(r.places) == 0 && !match("") || len(r.places) > 0 && !slices.ContainsFunc(r.places, match) {
			return false
		}
	}
	return slices.ContainsFunc(row.words, func(re *regexp.Regexp) bool { return re.MatchString(r.words) })
}

// hasNeeded reports whether the request has what a row needs.
func (r *recogniser) hasNeeded(needs string) bool {
	kind, name, _ := strings.Cut(needs, ":")
	switch kind {
	case "":
		return true
	case "tools":
		return len(r.sent.Tools) > 0
	case "no_tools_sent":
		return len(r.sent.Tools) == 0 && r.sent.Calls
	case "calls":
		return r.sent.Calls
	case "pictures":
		return r.sent.Pictures
	case "role":
		return slices.Contains(r.sent.Roles, name)
	case "field":
		return r.sent.Has(name)
	default:
		return false
	}
}

// addRowChanges adds the changes that belong to a class.
func (r *recogniser) addRowChanges(row *pattern) {
	class := row.Class
	if row.Become != "" {
		class = row.Become
	}
	switch class {
	case "wire":
		if r.sent.Has("messages") {
			r.addChange(Change{Class: class, Wire: "responses"})
			r.addChange(Change{Class: class, Set: "reasoning_effort", Value: `"none"`})
		}
	case "alternate":
		r.addChange(Change{Class: class, History: class})
		// such a template counts the system message among those that alternate
		if slices.Contains(r.sent.Roles, "system") {
			r.addChange(Change{Class: class, History: "no_system", Beside: class})
		}
	case "one_system", "bridge", "last_user", "call_ids", "empty_content",
		"tool_names", "reasoning", "no_reasoning", "keep_tools", "no_system", "no_channels":
		r.addChange(Change{Class: class, History: class})
	case "blocks":
		for _, path := range r.blockPaths() {
			r.addChange(Change{Class: class, Rename: blocksPrefix + path, To: "string"})
		}
	case "developer":
		r.addChange(Change{Class: class, Rename: rolePrefix + "developer", To: "system"})
	case "no_stream":
		r.addChange(Change{Class: class, Omit: Stream})
	case "no_pictures":
		r.addChange(Change{Class: class, Omit: Pictures})
	case "bad_picture":
		r.addChange(Change{Class: class, DropPictures: true})
	case "effort_none":
		r.addChange(Change{Class: class, Omit: row.Omit})
	case "set":
		r.addChange(Change{Class: class, Set: row.Field, Value: row.Value})
	case "no_tools":
		r.addChange(Change{Class: class, NoTools: true})
	case "too_many_tools":
		if n := fewerTools(r.words, len(r.sent.Tools)); n > 0 {
			r.addChange(Change{Class: class, MaxTools: n})
		}
	case "schema":
		r.addSchemas(class)
	case "vague":
		r.addVague()
	}
}

// blockPaths returns the paths of lists of text that the server wants as one text: those that it names, else those
// whose name is in its words, the deepest first.
func (r *recogniser) blockPaths() []string {
	var sent, named []string
	for _, field := range r.sent.Fields {
		if path, ok := strings.CutSuffix(field, "[].text"); ok {
			sent = append([]string{path}, sent...)
		}
	}
	for _, path := range sent {
		last := path[strings.LastIndexByte(path, '.')+1:]
		if slices.ContainsFunc(r.places, func(place string) bool {
			place = indexes().ReplaceAllString(ofBody(place), "[]$1")
			return place == path || strings.HasPrefix(place, path+".") || place == last
		}) || len(r.places) == 0 && strings.Contains(r.words, last) {
			named = append(named, path)
		}
	}
	return named
}

// addSchemas adds what helps against schemas of which nobody says which one is wrong.
func (r *recogniser) addSchemas(class string) {
	r.addChange(Change{Class: class, Safe: true})
	r.addChange(Change{Class: class, Halve: true})
}

// addVague adds what may help where the server says nothing.
func (r *recogniser) addVague() {
	if r.sent.Pictures {
		r.addChange(Change{Class: "vague", DropPictures: true})
	}
	if r.sent.Calls && !r.dialect.History.ToolNames && slices.Contains(r.sent.Roles, "tool") {
		r.addChange(Change{Class: "vague", History: "tool_names"})
	}
	r.addChange(Change{Class: "vague", Least: true})
	if len(r.sent.Tools) > 0 { // in a form that every server is known to take, one of them may still be the cause
		r.addChange(Change{Class: "vague", NoTools: true})
	}
}

// toolPaths match the paths by which servers name a tool. Of a path with function_declarations, that index counts:
// Gemini puts all tools into the first one.
var toolPaths = []*regexp.Regexp{
	regexp.MustCompile(`(?i)function_?declarations(?:\[(\d+)\]|\.(\d+))([\w.\[\]]*)`),
	regexp.MustCompile(
		`(?i)(?:^|[^\w])(?:body\.|request\.|toolconfig\.)?(?:tools|functions)(?:\[(\d+)\]|\.(\d+))([\w.\[\]]*)`,
	),
}

// namedTools finds tools that are named by a path in the request.
func (r *recogniser) namedTools() {
	if len(r.sent.Tools) == 0 {
		return
	}
	var aside []int
	for _, text := range append(slices.Clone(r.places), r.said.Message) {
		for _, re := range toolPaths {
			all := re.FindAllStringSubmatch(text, -1)
			for _, m := range all {
				i, err := strconv.Atoi(m[1] + m[2])
				if err != nil || i >= len(r.sent.Tools) {
					continue
				}
				if field := r.ownToolField(m[3]); field != "" {
					r.addChange(Change{Class: "field", Omit: field})
					continue
				}
				if !slices.Contains(aside, i) {
					aside = append(aside, i)
				}
			}
			if len(all) > 0 {
				break
			}
		}
	}
	if named := r.toolsByName(); len(named) > 0 {
		aside = named // the name is surer than a number: some servers count from one, or count theirs
	}
	if len(aside) > 0 {
		slices.Sort(aside)
		r.addChange(Change{Class: "tool", Aside: aside})
	}
}

// toolFields are the fields of a tool without which it is none.
var toolFields = []string{
	"", "type", "name", "description", "parameters", "input_schema", "function", "custom", "tool_spec", "toolspec",
	"member",
}

// ownToolField returns the path of a field that all tools have besides those that make a tool, such as strict, if the
// rest of a tool's path names it; else "".
func (r *recogniser) ownToolField(rest string) string {
	names := strings.FieldsFunc(rest, func(c rune) bool { return c == '.' || c == '[' || c == ']' })
	if len(names) == 0 {
		return ""
	}
	if slices.ContainsFunc(names, func(n string) bool { return slices.Contains(schemaFields, n) }) {
		return ""
	}
	last := names[len(names)-1]
	if slices.Contains(toolFields, last) {
		return ""
	}
	for _, field := range r.sent.Fields {
		if strings.HasPrefix(field, "tools[]") && field[strings.LastIndexByte(field, '.')+1:] == last {
			return field
		}
	}
	return ""
}

// toolMentions match how servers name a tool in their words; the name may be in quotation marks or not.
var toolMentions = lazyregexp.New("(?i)(?:schema for|functions?|tools?|declarations?)(?: (?:function|tool))?(?: " +
	"definition| schema| call)?(?: name| named| called| for)*[ :=]*['\"`‘“(\\[]*([A-Za-z_][A-Za-z0-9_.:-]{0,127})")

// toolsByName finds tools that are named after a word such as function.
func (r *recogniser) toolsByName() []int {
	var list []int
	for _, text := range append(slices.Clone(r.places), r.said.Message) {
		for _, m := range toolMentions().FindAllStringSubmatch(text, 64) {
			if i := slices.Index(r.sent.Tools, strings.TrimRight(m[1], ".:")); i >= 0 && !slices.Contains(list, i) {
				list = append(list, i)
			}
		}
	}
	slices.Sort(list)
	return list
}

// spokenTools finds tools by their names alone where no path was named.
func (r *recogniser) spokenTools() {
	if list := r.toolsByName(); len(list) > 0 && !r.said.Unknown {
		r.addChange(Change{Class: "tool", Aside: list})
	}
}

// findKeywords finds keywords of JSON Schema that the server does not know, where it names no tool.
func (r *recogniser) findKeywords() {
	if len(r.sent.Tools) == 0 || len(r.sent.Keywords) == 0 {
		return
	}
	for _, name := range append(quotedNames(r.said.Message), r.places...) {
		name = name[strings.LastIndexByte(name, '.')+1:]
		if !slices.Contains(plainKeywords, name) && slices.Contains(r.sent.Keywords, name) && !r.sent.Has(name) {
			r.addSchemas("keyword")
			return
		}
	}
}

// plainKeywords are those that every schema has: that one of them is named says nothing about the others.
var plainKeywords = []string{"type", "description", "name", "title"}

// protected are fields without which there is no request, or that are more than a field.
var protected = []string{
	"model", "messages", "input", "role", "content", "type", "text", "id", "name", "function", "parameters",
	"arguments", "description", "system", "instructions", "tool_calls", "tool_call_id", "input_schema", "call_id",
	"output", "tool_use_id", "image_url", "url", "source",
}

// placedFields finds fields that the server names in a field of its own.
func (r *recogniser) placedFields() {
	first := len(r.found)
	for _, p := range r.places {
		r.addField(p)
	}
	for i := range r.found[first:] {
		r.found[first+i].Placed = r.found[first+i].Omit != ""
	}
}

// refusing are words that mean that a field is not wanted.
var refusing = lazyregexp.New(
	`unsupported|not (currently |yet )?support|n't support|unknown|unrecogni[sz]ed|unexpected|extra|not (an? ` +
		`)?(permitted|allowed|accepted|available|compatible|defined|recogni[sz]ed|enabled|valid|known|supported)|n't ` +
		`(allow|accept)|deprecated|only .{0,24}(allowed|supported|accepted|valid)|invalid|no such|not implemented|` +
		`cannot (be )?(set|used|specif)|can't be|must (not )?be|removed|incompatible|additional propert|forbidden|` +
		`ignored|unavailable|disallowed|illegal|cannot find field|out of range|should be|不支持|不允许|不合法|无效|未知`,
)

// spokenFields finds fields that the server names in its words.
func (r *recogniser) spokenFields() {
	if !refusing().MatchString(r.words) || r.said.Unknown {
		return
	}
	for _, name := range quotedNames(r.said.Message) {
		r.addField(name)
	}
	for _, name := range bareNames(r.said.Message, r.sent) {
		r.addField(name)
	}
}

// addField adds what is done about a field that the server names, if it was sent.
func (r *recogniser) addField(named string) {
	path := r.sentPath(named)
	if path == "" {
		return
	}
	last := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case path == "tools":
		if len(r.sent.Tools) > 0 && r.matchingRow("too_many_tools") == nil {
			r.addChange(Change{Class: "no_tools", NoTools: true})
		}
		return
	case path == "stream":
		r.addChange(Change{Class: "no_stream", Omit: Stream})
		return
	case path == "reasoning_effort" && len(r.sent.Tools) > 0 && strings.Contains(r.words, "tool"):
		r.addChange(Change{Class: "field", Set: path, Value: `"none"`})
		return
	case strings.HasPrefix(path, "messages[]") &&
		slices.Contains([]string{"reasoning_content", "reasoning", "reasoning_details", "thinking"}, last):
		r.addChange(Change{Class: "no_reasoning", History: "no_reasoning"})
		return
	case slices.Contains(protected, last) && path != "messages[].name":
		return
	}
	if list := r.alikePaths(named, path); len(list) > 1 { // it is at several places, such as marks for a cache
		for _, one := range list {
			r.addChange(Change{Class: "field", Omit: one, Placed: true})
		}
		return
	}
	if most := limitOf(r.words, path); most > 0 {
		r.addChange(Change{Class: "field", Set: path, Value: strconv.Itoa(most)})
		return
	}
	if other := r.otherName(path); other != "" {
		r.addChange(Change{Class: "field", Rename: path, To: other})
	}
	r.addChange(Change{Class: "field", Omit: path})
}

// alikePaths returns the paths of all fields with the name of one within the request, if the
// server names it without a path.
func (r *recogniser) alikePaths(named, path string) []string {
	if !strings.ContainsAny(path, ".[") || strings.ContainsAny(named, ".[") {
		return nil
	}
	var list []string
	want := foldName(named)
	for _, field := range r.sent.Fields {
		if foldName(field[strings.LastIndexByte(field, '.')+1:]) == want {
			list = append(list, field)
		}
	}
	return list
}

// otherName returns the name under which other servers know a field; "" if there is none, or the request had that name
// before.
func (r *recogniser) otherName(path string) string {
	for _, row := range r.table.Fields {
		if row.Name != path {
			continue
		}
		for from, to := range r.dialect.Params.Rename {
			if to == path && from == row.Other {
				return ""
			}
		}
		return row.Other
	}
	return ""
}

// ofBody is a path without what some servers call the request.
func ofBody(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "body."), "request.")
}

var indexes = lazyregexp.New(`\[\d+\]|\.\d+(\.|$)`)

// sentPath returns the path of the field that a server names: as a path with numbers, in another spelling, or by its
// last name; "" if no such field was sent.
func (r *recogniser) sentPath(named string) string {
	named = ofBody(named)
	path := indexes().ReplaceAllString(named, "[]$1")
	if _, ok := slices.BinarySearch(r.sent.Fields, path); ok {
		return path
	}
	want := foldName(path)
	if want == "" {
		return ""
	}
	for _, field := range r.sent.Fields { // the top level first: there, names are the server's own
		if !strings.ContainsAny(field, ".[") && foldName(field) == want {
			return field
		}
	}
	if last := path[strings.LastIndexByte(path, '.')+1:]; path != "" &&
		path[0] >= 'A' && path[0] <= 'Z' && r.sent.Has(last) {
		return last // under the name of a validator's own class
	}
	if strings.ContainsAny(path, ".[") || len(want) < 4 {
		return ""
	}
	for _, field := range r.sent.Fields {
		if foldName(field[strings.LastIndexByte(field, '.')+1:]) == want {
			return field
		}
	}
	return ""
}

// foldName is a name without case and without what separates words: presencePenalty and presence_penalty are one.
func foldName(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			return c
		case c >= 'A' && c <= 'Z':
			return unicode.ToLower(c)
		default:
			return -1
		}
	}, name)
}

var (
	quoted = lazyregexp.New("['\"`‘“\\[]([A-Za-z_][A-Za-z0-9_.\\[\\]-]{1,95}?)['\"`’”\\]]")
	coined = lazyregexp.New(`\b(?:[a-z]+(?:_[a-z0-9]+)+|[a-z]+[a-z0-9]*(?:[A-Z][a-z0-9]+)+)\b`)
	// announced matches a name after a word that says what follows, before one that refuses it, or at the beginning.
	announced = lazyregexp.New(
		`(?i)(?:parameters?|param|fields?|arguments?|propert(?:y|ies)|keys?|inputs?|options?|unsupported|unknown|` +
			`unrecognized|unexpected|invalid|name|supplied|model|参数)(?:\(s\))?[:： ]+(?:(?:is|are|not|provided|` +
			`received|supplied|supported|allowed|permitted|accepted|request|arguments?|parameters?|fields?|inputs?|` +
			`keys?|propert(?:y|ies)|options?|names?)(?:\(s\))?[:： ]+)*[:=]?\s*(?:\$\.)?([A-Za-z_][A-Za-z0-9_.]{1,63})`,
	)
	// validated matches a name where Python's pydantic prints it, on a line of its own.
	validated = lazyregexp.New(`validation errors? for \w+\s+([A-Za-z_][A-Za-z0-9_.]{1,63})\s`)
	refused   = lazyregexp.New(
		`(?i)\b([A-Za-z_][A-Za-z0-9_.]{1,63})(?: parameter| field| argument| option| value)?:? (?:is |are |was |does ` +
			`|has )*(?:not|un|no longer|deprecated|only|must|extra|invalid|cannot|can't|should|incompatible|forbidden)`,
	)
	leading = lazyregexp.New(`^\W*([A-Za-z_][A-Za-z0-9_.]{1,63}):`)
)

// maxNames bounds the names that are looked at in one refusal.
const maxNames = 64

// quotedNames returns the names in quotation marks or brackets.
func quotedNames(text string) []string {
	var list []string
	for _, m := range quoted().FindAllStringSubmatch(text, maxNames) {
		list = append(list, m[1])
	}
	return list
}

// bareNames returns words that can be names of fields without quotation marks: those that no other word looks like, and
// names of fields that were sent where the sentence speaks of one.
func bareNames(text string, sent *Sent) []string {
	list := coined().FindAllString(text, maxNames)
	for _, re := range []*regexp.Regexp{announced(), validated(), refused(), leading()} {
		for _, m := range re.FindAllStringSubmatch(text, maxNames) {
			if name := strings.Trim(ofBody(m[1]), "."); sent.Has(name) {
				list = append(list, name)
			}
		}
	}
	return list
}

var blanks = lazyregexp.New(`\s+`)

// plainWords is what a server says in lower case, without quotation marks, with single blanks.
func plainWords(said *Said) string {
	text := []rune(strings.ToLower(said.Message))
	if code := strings.ToLower(said.Code); code != "" && !strings.Contains(string(text), code) {
		text = append(text, []rune(" ("+code+")")...)
	}
	letter := func(i int) bool { return i >= 0 && i < len(text) && unicode.IsLetter(text[i]) }
	out := make([]rune, 0, len(text))
	for i, c := range text {
		switch c {
		case '"', '`', '‘', '“', '”', '«', '»', '\\':
		case '\'', '’':
			if letter(i-1) && letter(i+1) {
				out = append(out, '\'')
			}
		default:
			out = append(out, c)
		}
	}
	return strings.TrimSpace(blanks().ReplaceAllString(string(out), " "))
}

var numbers = lazyregexp.New(`\d[\d_,]*`)

func numbersIn(text string) []int {
	var list []int
	for _, word := range numbers().FindAllString(text, maxNames) {
		if n, err := strconv.Atoi(strings.NewReplacer(",", "", "_", "").Replace(word)); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// fewerTools returns how many tools a server takes: the largest number that it says below the number that was
// sent; without one, half of them.
func fewerTools(words string, sent int) int {
	most := 0
	for _, n := range numbersIn(words) {
		if n < sent {
			most = max(most, n)
		}
	}
	if most == 0 {
		most = sent / 2
	}
	return most
}

var limits = lazyregexp.New(`(?:at most|maximum|max|up to|less than or equal to|<=|≤|no more than|not exceed|` +
	`exceeds?|> ?|range .{0,40}\[ ?\d+ ?, ?|between .{0,12}and|\[ ?\d+ ?, ?|limit)\D{0,60}?(\d[\d_,]*)`)

// limitOf returns the largest value that a server takes for a field with a number of tokens; 0 = it does not say.
func limitOf(words, path string) int {
	if !strings.HasPrefix(path, "max_") || strings.Contains(words, "unsupported") ||
		strings.Contains(words, "not supported") {
		return 0
	}
	least := 0
	for _, m := range limits().FindAllStringSubmatch(words, maxNames) {
		if list := numbersIn(m[1]); len(list) > 0 && list[0] >= 16 && (least == 0 || list[0] < least) {
			least = list[0]
		}
	}
	return least
}

var afford = lazyregexp.New(`can only afford (\d+)`)

// affordableTokens returns how many tokens of an answer the account still pays for; 0 = the server does not say.
func affordableTokens(words string) int {
	m := afford().FindStringSubmatch(words)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return n
}

// optionalFields returns the fields at the top level of a request that no server needs.
func optionalFields(sent *Sent) []string {
	needed := append(slices.Clone(protected), Tools, Stream, "max_tokens", "max_completion_tokens", "max_output_tokens")
	list := map[string]bool{}
	for _, field := range sent.Fields {
		if !strings.ContainsAny(field, ".[") && !slices.Contains(needed, field) {
			list[field] = true
		}
	}
	return slices.Sorted(maps.Keys(list))
}
