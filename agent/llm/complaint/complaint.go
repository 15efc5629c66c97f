// Package complaint reads what a model server says when it refuses a request or breaks off an answer: in which form
// ever the server says it, and in which words. It imports the standard library and package llm only.
//
// Servers agree on little: an object named error, the same in an array, a string, fields at the top level, a list of
// validation errors, another server's answer as a string of JSON within their own, a page of HTML, or nothing. Read
// finds the same few things in all of them. What the words mean is decided by the tables in patterns.json.
package complaint

import (
	"bytes"
	"encoding/json"
	"html"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy/lazyregexp"
)

// Bounds of what is read of a complaint, whatever a server sends.
const (
	maxBody    = 64 << 10 // bytes of a body
	maxNodes   = 2048     // JSON values of it
	maxDepth   = 12       // of nested values, those within strings included
	maxList    = 32       // places and codes that are kept
	maxMessage = 4 << 10  // bytes of the message
	maxWord    = 256      // bytes of a code, a type or a place
	maxFailed  = 32 << 10 // bytes of Failed
)

// MaxRetryAfter bounds the wait that a server asks for, so that absurd values do not overflow.
const MaxRetryAfter = 24 * time.Hour

// Complaint is a server's description of a failure. The zero value says nothing. A Complaint is not changed after Read,
// so it is safe for concurrent use.
type Complaint struct {
	// Status is the HTTP status. Within a stream, or in an answer with status 2xx, it is the one that
	// the complaint names; 0 = none.
	Status  int
	Message string // the server's words, at most 4 KiB; "" if it said nothing
	Type    string // the first identifier of a class of errors, e.g. "invalid_request_error"
	Code    string // the first code that is not an HTTP status; some servers put a sentence here
	Param   string // the part of the request, as the server names it; the first of Places
	// Places are all names of parts of the request, in the order in which they were found, each once: those of
	// fields such as param, loc and field, whose elements are joined by dots, and paths within the words, such
	// as tools[2].function.parameters.
	Places []string
	// RetryAfter is how long the server asks to wait, in headers, fields or words, at most
	// MaxRetryAfter; 0 = it does not say.
	RetryAfter time.Duration
	// Failed is what the model wrote if the server refuses that as a malformed call (Groq's failed_generation).
	Failed string
	// Page is set if the body is a page of HTML, so that not a model server speaks, but something before it. Message is
	// then its title or its beginning.
	Page bool

	codes       []string // all codes and types, in lower case
	limit, size int      // tokens, from fields; 0 = not said
	words       string   // Message and Code for the tables: lower case, numbers without separators
}

// Read reads the body of a refused request, or the complaint within a stream; status is the HTTP status of the answer,
// 0 = unknown. header may be nil; now is for dates in it. Of a body, 64 KiB are read, and what is cut is read as far as
// it goes.
func Read(status int, header http.Header, body []byte, now time.Time) Complaint {
	r := reader{now: now}
	if status >= 300 {
		r.c.Status = status
	}
	body = bytes.TrimSpace(bytes.TrimPrefix(body[:min(len(body), maxBody)], []byte("\xef\xbb\xbf")))
	switch {
	case len(body) == 0:
	case body[0] == '<':
		r.c.Page = true
		r.addText(pageText(string(body)))
	case bytes.ContainsRune([]byte(`{["`), rune(body[0])):
		r.readValue(decodePrefix(body), "", 0)
		if len(r.texts) == 0 && len(r.c.codes) == 0 {
			r.addText(string(body))
		}
	default:
		if text := string(body); text != "null" {
			r.readText(text, 0)
		}
	}
	r.finishFields()
	if wait := retryAfter(header, now); wait > 0 {
		r.c.RetryAfter = wait
	} else if r.c.RetryAfter == 0 {
		r.c.RetryAfter = waitInWords(r.c.words)
	}
	return r.c
}

// Text is the complaint in one line for a log: the words, and the code or the type in brackets.
func (c *Complaint) Text() string {
	word := c.Code
	if word == "" {
		word = c.Type
	}
	if word == "" || strings.Contains(c.Message, word) {
		return c.Message
	}
	return strings.TrimSpace(c.Message + " (" + word + ")")
}

// Has reports whether a code or a type contains one of the words, which are in lower case.
func (c *Complaint) Has(words ...string) bool {
	for _, code := range c.codes {
		for _, word := range words {
			if strings.Contains(code, word) {
				return true
			}
		}
	}
	return false
}

// reader collects a Complaint. Not safe for concurrent use.
type reader struct {
	c     Complaint
	now   time.Time
	texts []string
	nodes int
}

// addText adds a text to the message, unless it is there already.
func (r *reader) addText(text string) {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	if text == "" || len(r.texts) >= maxList {
		return
	}
	for _, known := range r.texts {
		if strings.Contains(known, text) {
			return
		}
	}
	r.texts = append(r.texts, text)
}

// readText reads a string: a message, which can contain another server's complaint as JSON.
func (r *reader) readText(text string, depth int) {
	start := strings.IndexByte(text, '{')
	if start < 0 || depth >= maxDepth {
		r.addText(text)
		return
	}
	before := len(r.texts) + len(r.c.codes)
	inner, isObject := decodePrefix([]byte(text[start:])).(map[string]any)
	if start > 0 || !isObject {
		r.addText(text[:cutRunes(text, maxMessage)])
	}
	if isObject {
		r.readValue(inner, "", depth+1)
	}
	if start == 0 && len(r.texts)+len(r.c.codes) == before {
		r.addText(text[:cutRunes(text, maxMessage)])
	}
}

// The fields that are read, in this order. Vendors are named where only one is known to use a field.
var (
	innerFields = []string{ // objects, lists or texts that are read like the whole
		"error", "errors", "base_resp" /* MiniMax */, "message", "msg",
		"status_msg", "error_message", "error_msg", "errormessage", "errmsg",
		"error_description", "detail", "details", "description", "title",
		"metadata" /* OpenRouter */, "raw", "innererror", "inner_error",
		"cause", "body", "violations", "fieldviolations" /* Gemini */, "data", "response", "output", "issues", /* Zod */
		"validation", /* celebrate */
	}
	// problemFields are lists of objects with the name of a part of the request and what is wrong with it (RFC 7807).
	problemFields = []string{
		"invalid_params", "invalid-params", "invalidparams", "invalid_parameters", "invalidparameters",
		"invalid_fields", "field_errors", "fielderrors",
	}
	codeFields = []string{
		"code", "status_code", "error_code", "errorcode", "errcode", "err_code", "reason", "quotaid", "quotametric",
		"limit_source", "limit_type", "internal_code", "provider_code",
	}
	typeFields  = []string{"type", "error_type", "status", "name", "__type"}
	placeFields = []string{
		"param", "loc", "field", "location", "pointer", "instancepath", "path",
		"parameter", "parameter_name", "param_name", "field_name", "fieldname",
		"property", "property_name", "propertyname", "attribute", "argument", "additionalproperty", /* Ajv */
	}
	waitFields = []string{
		"retrydelay", "retry_delay", "retry_after", "retryafter", "retry_after_seconds", "retry_after_ms",
		"next_flush_time",
	}
	limitFields = []string{
		"n_ctx", "context_length", "max_context_length", "context_window", "max_model_len", "max_input_tokens",
		"max_prompt_tokens",
	}
	sizeFields = []string{"n_prompt_tokens", "prompt_tokens", "input_tokens", "requested_tokens", "n_tokens"}
)

// readValue collects what a decoded value says. origin is "base_resp" within MiniMax's field of that name, whose
// numbers mean other things than the same numbers of other vendors.
func (r *reader) readValue(value any, origin string, depth int) {
	if r.nodes++; r.nodes > maxNodes || depth > maxDepth {
		return
	}
	switch v := value.(type) {
	case string:
		r.readText(v, depth)
	case []any:
		for _, element := range v {
			r.readValue(element, origin, depth+1)
		}
	case map[string]any:
		r.readObject(v, origin, depth)
	}
}

func (r *reader) readObject(fields map[string]any, origin string, depth int) {
	for _, name := range innerFields {
		value, ok := fields[name]
		if !ok {
			continue
		}
		inner := origin
		if name == "base_resp" {
			inner = name
		}
		r.readValue(value, inner, depth+1)
	}
	for _, name := range problemFields {
		r.readProblems(fields[name], depth+1)
	}
	for _, name := range []string{"source" /* JSON:API */, "params" /* Ajv */} {
		if inner, ok := fields[name].(map[string]any); ok {
			for _, place := range placeFields {
				r.notePlace(joinedName(inner[place]))
			}
		}
	}
	if keys, ok := fields["keys"].([]any); ok && len(keys) <= maxList { // Zod, Joi
		for _, key := range keys {
			r.notePlace(scalarText(key))
		}
	}
	if len(r.texts)+len(r.c.codes) == 0 || fields["errors"] != nil {
		r.readNamed(fields, depth)
	}
	for _, name := range codeFields {
		r.noteCode(scalarText(fields[name]), origin)
	}
	for _, name := range typeFields {
		r.noteClass(scalarText(fields[name]))
	}
	for _, name := range placeFields {
		r.notePlace(joinedName(fields[name]))
	}
	for _, name := range waitFields {
		if wait := waitOf(name, scalarText(fields[name]), r.now); wait > 0 && r.c.RetryAfter == 0 {
			r.c.RetryAfter = wait
		}
	}
	for _, name := range limitFields {
		if n := believedTokens(fields[name]); n > 0 && r.c.limit == 0 {
			r.c.limit = n
		}
	}
	for _, name := range sizeFields {
		if n := believedTokens(fields[name]); n > 0 && r.c.size == 0 {
			r.c.size = n
		}
	}
	if text := scalarText(fields["failed_generation"]); text != "" && r.c.Failed == "" {
		r.c.Failed = strings.ToValidUTF8(text[:cutRunes(text, maxFailed)], "\uFFFD")
	}
}

// readProblems reads a list of objects that name a part of the request and say what is wrong with it.
func (r *reader) readProblems(value any, depth int) {
	list, _ := value.([]any)
	for _, element := range list {
		one, ok := element.(map[string]any)
		if r.nodes++; !ok || r.nodes > maxNodes {
			continue
		}
		name := scalarText(one["name"])
		r.notePlace(name)
		if reason := scalarText(one["reason"]); reason != "" {
			r.addText(strings.TrimPrefix(name+": "+reason, ": "))
		}
		delete(one, "name")
		delete(one, "reason")
		r.readObject(one, "", depth+1)
	}
}

// readNamed reads objects whose fields are the parts of the request that are wrong, each with its complaints: of Rails
// and ASP.NET within errors, of Django's REST framework at the top, where each has a list of texts.
func (r *reader) readNamed(fields map[string]any, depth int) {
	errors, within := fields["errors"].(map[string]any)
	if within {
		fields = errors
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !within && (slices.Contains(innerFields, name) || !isComplaint(fields[name])) {
			continue
		}
		// a complaint as such, read before
		if within && slices.Contains(innerFields, name) && scalarText(fields[name]) != "" {
			continue
		}
		r.readAbout(name, fields[name], depth+1)
	}
}

// isComplaint reports whether a value is a list of nothing but texts, or a list of objects with such lists.
func isComplaint(value any) bool {
	list, _ := value.([]any)
	return len(list) > 0 && !slices.ContainsFunc(list, func(element any) bool {
		inner, ok := element.(map[string]any)
		if ok {
			return slices.ContainsFunc(slices.Collect(maps.Values(inner)), func(v any) bool { return !isComplaint(v) })
		}
		return scalarText(element) == ""
	})
}

// readAbout reads what is said about a part of the request.
func (r *reader) readAbout(place string, value any, depth int) {
	if r.nodes++; r.nodes > maxNodes || depth > maxDepth {
		return
	}
	switch v := value.(type) {
	case string:
		if place == "non_field_errors" || place == "base" { // Django, Rails: of the whole
			r.addText(v)
			return
		}
		r.notePlace(place)
		r.addText(place + ": " + v)
	case []any:
		for i, element := range v {
			inner := place
			if _, ok := element.(map[string]any); ok {
				inner += "[" + strconv.Itoa(i) + "]"
			}
			r.readAbout(inner, element, depth+1)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			r.readAbout(place+"."+name, v[name], depth+1)
		}
	}
}

// noteCode notes a code. An HTTP status is the status of a complaint that has none.
func (r *reader) noteCode(code, origin string) {
	if code == "" || code == "0" {
		return
	}
	if n, err := strconv.Atoi(code); err == nil && n >= 100 && n <= 599 {
		if r.c.Status == 0 && n >= 300 {
			r.c.Status = n
		}
		return
	}
	code = shortWord(code)
	if r.c.Code == "" {
		r.c.Code = code
	}
	if origin != "" {
		code = origin + "." + code
	}
	r.noteWord(code)
}

// noteClass notes a type. What has no letters is a number that says nothing; "error" says nothing either.
func (r *reader) noteClass(word string) {
	word = shortWord(word)
	if lower := strings.ToLower(word); lower == "error" || !strings.ContainsFunc(lower, func(c rune) bool {
		return c >= 'a' && c <= 'z'
	}) ||
		strings.HasPrefix(lower, "type.googleapis.com") {
		return
	}
	if r.c.Type == "" {
		r.c.Type = word
	}
	r.noteWord(word)
}

func (r *reader) noteWord(word string) {
	word = strings.ToLower(word)
	if len(r.c.codes) < maxList && !slices.Contains(r.c.codes, word) {
		r.c.codes = append(r.c.codes, word)
	}
}

func (r *reader) notePlace(place string) {
	if pointer, ok := strings.CutPrefix(strings.TrimPrefix(place, "#"), "/"); ok { // a JSON pointer, also in a fragment
		place = strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(pointer, "/", "."), "~1", "/"), "~0", "~")
	}
	place = strings.TrimPrefix(strings.TrimPrefix(place, "data.attributes."), "$.")
	if place = shortWord(place); place != "" && len(r.c.Places) < maxList && !slices.Contains(r.c.Places, place) {
		r.c.Places = append(r.c.Places, place)
	}
}

// paths match parts of a request within words: tools[2].function.parameters, tools.5.custom.input_schema,
// toolConfig.tools.3.member.toolSpec.name, messages[1].tool_calls[0].id.
var paths = lazyregexp.New(`\b(?:body|request|tools|toolConfig|messages|input|functions|contents|` +
	`generation_config|generationConfig)(?:\[\d+\]|\.[A-Za-z0-9_]+)+`)

// finishFields completes the fields that are made of others.
func (r *reader) finishFields() {
	c := &r.c
	c.Message = strings.Join(r.texts, "; ")
	c.Message = c.Message[:cutRunes(c.Message, maxMessage)]
	for _, path := range paths().FindAllString(c.Message, maxList) {
		r.notePlace(path)
	}
	if len(c.Places) > 0 {
		c.Param = c.Places[0]
	}
	words := c.Message
	if strings.Contains(c.Code, " ") { // xAI's code is a sentence
		words += ". " + c.Code
	}
	c.words = normalWords(words)
	// MiniMax puts its code in brackets behind the words.
	if m := bracketed().FindStringSubmatch(c.words); m != nil {
		r.noteWord("base_resp." + m[1])
	}
}

var bracketed = lazyregexp.New(`\(([12]\d{3})\)\s*$`)

// decodePrefix reads a JSON value as far as it goes: of one that is cut or has too much in it, the beginning. nil =
// nothing. Names of fields are in lower case.
func decodePrefix(data []byte) any {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	left := maxNodes
	value, _ := decodeValue(d, 0, &left)
	return value
}

// decodeValue reads the next value; whole is false if the input ended or broke within it.
func decodeValue(d *json.Decoder, depth int, left *int) (value any, whole bool) {
	token, err := d.Token()
	if *left--; err != nil || *left < 0 || depth > maxDepth {
		return nil, false
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			element, ok := decodeValue(d, depth+1, left)
			if element != nil {
				list = append(list, element)
			}
			if !ok {
				return list, false
			}
		}
		_, err = d.Token()
		return list, err == nil
	case json.Delim('{'):
		fields := map[string]any{}
		for d.More() {
			key, err := d.Token()
			name, ok := key.(string)
			if err != nil || !ok {
				return fields, false
			}
			element, ok := decodeValue(d, depth+1, left)
			if name = strings.ToLower(name); element != nil && fields[name] == nil {
				fields[name] = element
			}
			if !ok {
				return fields, false
			}
		}
		_, err = d.Token()
		return fields, err == nil
	}
	if delim, ok := token.(json.Delim); ok {
		return nil, delim == 0 // a bracket that closes nothing
	}
	return token, true
}

// scalarText returns a string or a number as text; "" for anything else.
func scalarText(value any) string {
	switch v := value.(type) {
	case string:
		return strings.TrimSpace(v)
	case json.Number:
		return v.String()
	default:
		return ""
	}
}

// joinedName returns a text, or the elements of a list of names and indices, joined by dots.
func joinedName(value any) string {
	list, ok := value.([]any)
	if !ok {
		text, _ := value.(string)
		return text
	}
	parts := make([]string, 0, len(list))
	for _, element := range list {
		if part := scalarText(element); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ".")
}

// believedTokens returns a number of tokens; 0 = none, or not to be believed.
func believedTokens(value any) int {
	n, err := strconv.Atoi(scalarText(value))
	if err != nil || n <= 0 || n > mostTokens {
		return 0
	}
	return n
}

// shortWord bounds a word and drops what is not text.
func shortWord(word string) string {
	word = strings.TrimSpace(strings.ToValidUTF8(word, "\uFFFD"))
	return word[:cutRunes(word, maxWord)]
}

// cutRunes returns the largest length of a text up to limit bytes that does not cut a character.
func cutRunes(text string, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return limit
}

var (
	pageTitle  = lazyregexp.New(`(?is)<title[^>]*>(.*?)</title`)
	pageHidden = lazyregexp.New(`(?is)<(script|style|head)\b.*?</(?:script|style|head)>`)
	pageTags   = lazyregexp.New(`(?s)<[^>]*>`)
)

// pageText returns the title of a page, or its words.
func pageText(page string) string {
	text := ""
	if m := pageTitle().FindStringSubmatch(page); m != nil {
		text = m[1]
	}
	if strings.TrimSpace(text) == "" {
		text = pageTags().ReplaceAllString(pageHidden().ReplaceAllString(page, " "), " ")
	}
	text = strings.Join(strings.Fields(html.UnescapeString(text)), " ")
	return text[:cutRunes(text, maxWord)]
}

// retryAfter reads retry-after-ms (OpenAI, Azure) and Retry-After as seconds or date (RFC 9110, 10.2.3). 0 = not given.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d := readDuration(h.Get("Retry-After-Ms"), time.Millisecond); d > 0 {
		return d
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if d := readDuration(value, time.Second); d > 0 {
		return d
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), MaxRetryAfter)
	}
	return 0
}

// readDuration reads a number of units; 0 = none.
func readDuration(s string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	switch {
	case err != nil && !math.IsInf(n, 1), math.IsNaN(n), n <= 0:
		return 0
	case n > float64(MaxRetryAfter/unit):
		return MaxRetryAfter
	default:
		return time.Duration(n * float64(unit))
	}
}

// beijing is the zone of the times without a zone that z.ai sends.
var beijing = time.FixedZone("UTC+8", 8*60*60)

// waitOf reads a field that says how long to wait, or until when; 0 = nothing that can be read.
func waitOf(name, value string, now time.Time) time.Duration {
	if value == "" {
		return 0
	}
	unit := time.Second
	if strings.HasSuffix(name, "_ms") {
		unit = time.Millisecond
	}
	if name != "next_flush_time" {
		if d := readDuration(value, unit); d > 0 {
			return d
		}
		if d, err := time.ParseDuration(value); err == nil { // Gemini: "37s"
			return min(max(d, 0), MaxRetryAfter)
		}
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && n > 0 {
		at := time.Unix(n, 0)
		if n > 1e11 { // milliseconds
			at = time.UnixMilli(n)
		}
		return min(max(at.Sub(now), 0), MaxRetryAfter)
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05"} {
		if at, err := time.ParseInLocation(layout, value, beijing); err == nil {
			return min(max(at.Sub(now), 0), MaxRetryAfter)
		}
	}
	return 0
}

var (
	waitWords = lazyregexp.New(
		`(?:again|retry|retrying|wait|waiting|available|resets?)\b[^0-9.;]{0,24}((?:\d+(?:\.\d+)?\s*(?:milliseconds?|` +
			`ms|minutes?|mins?|m|seconds?|secs?|s|hours?|hrs?|h|days?|d)\b,?\s*(?:and\s+)?|` +
			`\d+(?:\.\d+)?(?:ms|m|h|d|s))+)`,
	)
	waitParts = lazyregexp.New(
		`(\d+(?:\.\d+)?)\s*(milliseconds?|ms|minutes?|mins?|m|seconds?|secs?|s|hours?|hrs?|h|days?|d)`,
	)
	waitHan = lazyregexp.New(`(\d+)\s*(秒|分钟|小时)(?:后|之后)`)
)

// waitInWords finds "try again in 1m2.5s", "retry after 30 seconds" and "20秒后重试"; 0 = nothing is said.
func waitInWords(words string) time.Duration {
	if m := waitHan().FindStringSubmatch(words); m != nil {
		return readDuration(m[1], map[string]time.Duration{"秒": time.Second, "分钟": time.Minute, "小时": time.Hour}[m[2]])
	}
	m := waitWords().FindStringSubmatch(words)
	if m == nil {
		return 0
	}
	var sum time.Duration
	for _, part := range waitParts().FindAllStringSubmatch(m[1], maxList) {
		unit := time.Second
		switch {
		case part[2] == "ms" || strings.HasPrefix(part[2], "milli"):
			unit = time.Millisecond
		case part[2][0] == 'm':
			unit = time.Minute
		case part[2][0] == 'h':
			unit = time.Hour
		case part[2][0] == 'd':
			unit = 24 * time.Hour
		}
		sum = min(sum+readDuration(part[1], unit), MaxRetryAfter)
	}
	return sum
}

// Body reads what is needed of a refused answer's body, and an error of reading is ignored: the status matters more
// than a body that cannot be read to its end.
func Body(r io.Reader) []byte {
	data, _ := io.ReadAll(io.LimitReader(r, maxBody))
	return data
}
