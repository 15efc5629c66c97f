package content

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/policy/scan"
	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/schema"
)

// Limits of a request for input.
const (
	maxMessage = 500 // characters of the server's message (seed 001)
	maxText    = 200 // characters of a title or a description
	maxFields  = 50
	maxOptions = 200

	maxFormNodes = 5000 // nodes of the schema of a form: 50 fields with 200 options each, with or without titles
)

// Type is the type of a field.
type Type string

// Types of fields.
const (
	String  Type = "string"
	Integer Type = "integer"
	Number  Type = "number"
	Boolean Type = "boolean"
	Enum    Type = "enum"
	Multi   Type = "multi" // any number of options
)

// Form is a server's request for input from a person. Texts are cleaned. Names of fields and values of options are
// exactly what the server wrote, because the answer has to repeat them; show Label instead.
type Form struct {
	Mode    Mode
	Message string  // at most 500 characters, on one line
	Fields  []Field // the required ones first
	URL     string  // page to open, with ModeURL; "" when it is not a web address
	Problem string  // a sentence about why the form cannot be shown; "" = it can
}

// Mode is the way in which a server asks.
type Mode string

// Modes. With ModeURL, the server wants a page opened instead of an answer.
const (
	ModeForm Mode = "form"
	ModeURL  Mode = "url"
)

// Field is one question of a form.
type Field struct {
	Name        string // key in the answer
	Title       string
	Description string
	Type        Type
	Required    bool
	Sensitive   bool     // the name suggests a secret: warn before asking
	Default     any      // string, int64, float64, bool or []string; nil = none
	Options     []Option // for Enum and Multi
	Format      string   // for String: email, uri, date, date-time; "" = any
	MinLength   *int     // characters, for String
	MaxLength   *int
	Minimum     *float64 // for Integer and Number
	Maximum     *float64
	MinItems    *int // for Multi
	MaxItems    *int
}

// Option is one value of a choice.
type Option struct {
	Value string
	Title string // for people; never empty
}

// Label returns the field's name for people.
func (f Field) Label() string {
	if f.Title != "" {
		return f.Title
	}
	return line(f.Name, maxText)
}

// Sensitive reports whether the name of any field suggests a secret.
func (f Form) Sensitive() bool {
	return slices.ContainsFunc(f.Fields, func(f Field) bool { return f.Sensitive })
}

// Summary returns one line about what the server wants to know, for the notices to person and model. It has at most 700
// bytes.
func (f Form) Summary() string {
	text := f.Message
	if text == "" {
		text = "(no message)"
	}
	if f.Mode == ModeURL {
		text += " (it wants a page opened: " + host(f.URL) + ")"
	}
	if len(f.Fields) > 0 {
		labels := make([]string, 0, len(f.Fields))
		for _, field := range f.Fields {
			labels = append(labels, field.Label())
		}
		text += " (" + strings.Join(labels, ", ") + ")"
	}
	return guard.Line(text, 700)
}

func host(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return "an address that cannot be read"
}

// line cleans a foreign text for people: one line, no invisible characters, at most limit characters.
func line(text string, limit int) string {
	return cutRunes(strings.Join(strings.Fields(scan.Strip(Clean(cutText(text, 64*limit)))), " "), limit)
}

// property is a field in the protocol's form (PrimitiveSchemaDefinition of revisions 2025-06-18 to 2026-07-28).
type property struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Format      string   `json:"format"`
	Default     any      `json:"default"`
	Enum        []any    `json:"enum"`
	EnumNames   []string `json:"enumNames"`
	OneOf       []titled `json:"oneOf"`
	AnyOf       []titled `json:"anyOf"`
	Items       *struct {
		Enum  []any    `json:"enum"`
		OneOf []titled `json:"oneOf"`
		AnyOf []titled `json:"anyOf"`
	} `json:"items"`
	MinLength *int     `json:"minLength"`
	MaxLength *int     `json:"maxLength"`
	Minimum   *float64 `json:"minimum"`
	Maximum   *float64 `json:"maximum"`
	MinItems  *int     `json:"minItems"`
	MaxItems  *int     `json:"maxItems"`
}

type titled struct {
	Const any    `json:"const"`
	Title string `json:"title"`
}

// Elicit converts a request for input.
func Elicit(params *mcp.ElicitParams) Form {
	if params == nil {
		return Form{Mode: ModeForm, Problem: "The request is empty."}
	}
	form := Form{Mode: ModeForm, Message: line(params.Message, maxMessage)}
	if params.Mode == "url" || params.URL != "" || params.ElicitationID != "" {
		return form.withURL(params.URL)
	}
	if params.Mode != "" && params.Mode != "form" {
		form.Problem = "It asks in a way that is not known here."
		return form
	}
	var asked struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if raw := document(params.RequestedSchema); raw != nil {
		if !harmless(raw) {
			form.Problem = "Its fields are described in a way that cannot be checked."
			return form
		}
		if err := json.Unmarshal(raw, &asked); err != nil {
			form.Problem = "Its fields cannot be read."
			return form
		}
	}
	if len(asked.Properties) > maxFields {
		form.Problem = fmt.Sprintf("It asks for %d values at once; the limit is %d.", len(asked.Properties), maxFields)
		return form
	}
	for _, name := range inOrder(asked.Properties, asked.Required) {
		field, problem := readField(name, asked.Properties[name])
		if problem != "" {
			form.Problem = fmt.Sprintf("Its field %q %s.", line(name, maxText), problem)
			return form
		}
		field.Required = slices.Contains(asked.Required, name)
		form.Fields = append(form.Fields, field)
	}
	return form
}

// harmless reports whether the protocol library can safely check an answer against the schema of a form. The library
// checks without any limit, and follows a self-reference until the stack overflows.
func harmless(raw json.RawMessage) bool {
	size, problem := schema.Measure(raw)
	return problem == "" && size.Nodes <= maxFormNodes && size.Refs == 0 && len(size.Patterns) == 0
}

func (f Form) withURL(address string) Form {
	f.Mode = ModeURL
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		f.Problem = "It wants a page opened and gives no web address."
		return f
	}
	f.URL = line(u.String(), 4*maxMessage)
	return f
}

// inOrder returns the fields: required ones in the server's order, then the others by name.
func inOrder(properties map[string]json.RawMessage, required []string) []string {
	var names, others []string
	for _, name := range required {
		if _, ok := properties[name]; ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for name := range properties {
		if !slices.Contains(names, name) {
			others = append(others, name)
		}
	}
	sort.Strings(others)
	return append(names, others...)
}

func readField(name string, raw json.RawMessage) (f Field, problem string) {
	var p property
	if err := json.Unmarshal(raw, &p); err != nil {
		return Field{}, "cannot be read"
	}
	f = Field{
		Name: name, Title: line(p.Title, maxText), Description: line(p.Description, maxText), Type: Type(p.Type),
		MinLength: p.MinLength, MaxLength: p.MaxLength, Minimum: p.Minimum, Maximum: p.Maximum, MinItems: p.MinItems,
		MaxItems: p.MaxItems,
	}
	switch p.Format {
	case "email", "uri", "date", "date-time":
		f.Format = p.Format
	}
	f.Sensitive = Sensitive(name) || Sensitive(p.Title) || p.Format == "password"
	if problem = f.setType(p); problem != "" {
		return f, problem
	}
	if err := f.Validate(p.Default); p.Default != nil && err == nil {
		f.Default = f.normal(p.Default)
	}
	return f, ""
}

// setType sets type and options, or returns why the field cannot be asked.
func (f *Field) setType(p property) (problem string) {
	const anything = "is a list of anything, which cannot be asked"
	choices, named := append(p.OneOf, p.AnyOf...), p.Enum
	if p.Type == "array" {
		if p.Items == nil {
			return anything
		}
		f.Type, choices, named = Multi, append(p.Items.OneOf, p.Items.AnyOf...), p.Items.Enum
	}
	if f.Options, problem = options(named, p.EnumNames, choices); problem != "" {
		return problem
	}
	switch {
	case f.Type == Multi && len(f.Options) == 0:
		return anything
	case len(f.Options) > 0 && (f.Type == String || f.Type == ""):
		f.Type = Enum
	case f.Type == Multi, f.Type == String, f.Type == Integer, f.Type == Number, f.Type == Boolean:
	default:
		return "has a type that cannot be asked: " + line(p.Type, 40)
	}
	return ""
}

// options returns the values of a choice, from either of the protocol's two forms.
func options(enum []any, names []string, choices []titled) (list []Option, problem string) {
	add := func(value any, title string) bool {
		s, ok := value.(string)
		if !ok {
			return false
		}
		o := Option{Value: s, Title: line(title, maxText)}
		if o.Title == "" {
			o.Title = line(s, maxText)
		}
		list = append(list, o)
		return true
	}
	for i, v := range enum {
		title := ""
		if i < len(names) {
			title = names[i]
		}
		if !add(v, title) {
			return nil, "has options that are no texts"
		}
	}
	for _, c := range choices {
		if !add(c.Const, c.Title) {
			return nil, "has options that are no texts"
		}
	}
	if len(list) > maxOptions {
		return nil, fmt.Sprintf("has more than %d options", maxOptions)
	}
	return list, ""
}

// secretWords are words in a name that suggest a secret (the list of seed 001 with plurals and compounds).
var secretWords = []string{
	"password", "passwords", "passwd", "pwd", "token", "tokens", "secret", "secrets", "key", "keys", "apikey",
	"credential", "credentials", "auth", "oauth", "authorization", "private", "passphrase", "pin", "otp", "cvv",
}

// Sensitive reports whether a name suggests a secret. It compares whole words, so "shipping" does not match pin, nor
// "keyboard" key.
func Sensitive(name string) bool {
	words := splitWords(cutText(name, 1000))
	for i, w := range words {
		if slices.Contains(secretWords, w) {
			return true
		}
		// these are long enough not to be part of another word
		for _, s := range []string{"password", "passphrase", "secret", "token", "credential"} {
			if strings.Contains(w, s) {
				return true
			}
		}
		if i > 0 {
			if both := words[i-1] + w; both == "passphrase" || both == "password" || both == "passcode" {
				return true
			}
		}
	}
	return false
}

// splitWords splits a name into lower-case words: at characters other than letters and digits, and where a capital
// follows a lower-case letter.
func splitWords(name string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = nil
		}
	}
	var before rune
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case unicode.IsUpper(r) && (unicode.IsLower(before) || unicode.IsDigit(before)),
			// APIKey: API, Key
			unicode.IsUpper(r) && unicode.IsUpper(before) && i+1 < len(runes) && unicode.IsLower(runes[i+1]):
			end()
			word = append(word, r)
		case unicode.IsDigit(r) != unicode.IsDigit(before) && len(word) > 0: // token2
			end()
			word = append(word, r)
		default:
			word = append(word, r)
		}
		before = r
	}
	end()
	return words
}
