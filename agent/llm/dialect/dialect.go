// Package dialect knows what servers with the same API accept of it. Such servers differ in what they refuse: schemas
// of tools, parameters, orders of messages. A Dialect describes one of them as data (dialects.json, one row a server,
// each with its sources); the adapters read it and know no vendor by name.
//
// What a server takes beyond its row is found out by package negotiate and added with Dialect.With.
package dialect

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Dialect is what a server accepts. The zero value is the safest: what every known server takes. Dialects are
// shared and must not be changed.
type Dialect struct {
	Name    string   `json:"name"`     // of the preset, such as "openai"
	Also    []string `json:"also"`     // what people call it too: the vendor or a model of it
	Title   string   `json:"title"`    // for people
	BaseURL string   `json:"base_url"` // "" = the person has to say it
	// patterns (path.Match) of hosts, or of hosts with ports, by which the server of an address is recognised
	Hosts []string `json:"hosts"`
	// Port is where a local server usually listens; 0 = it is no local server.
	Port int `json:"port"`
	// Signs tell a local server from others at the same port; one of them is enough.
	Signs []Sign `json:"signs"`

	Key  string `json:"key"`  // environment variable in which the vendor's documentation keeps the key
	Free bool   `json:"free"` // it runs on machines of the operator: its tokens cost nothing
	Auth string `json:"auth"` // AuthBearer (or ""), AuthAPIKey or AuthNone
	// "chat", "responses", "anthropic"; "" = chat, and responses for models that take tools only there
	Wire string `json:"wire"`

	Schema  Schema  `json:"schema"`
	Params  Params  `json:"params"`
	History History `json:"history"`
	// Traits are those of the model that OfModel was called with.
	Traits Traits `json:"-"`

	// Facts say where the row is from, and what holds beyond it, in words.
	Facts []string `json:"facts"`
}

// The values of Dialect.Auth.
const (
	AuthBearer = "bearer"  // Authorization: Bearer KEY
	AuthAPIKey = "api-key" // the header api-key (Azure)
	AuthNone   = "none"
)

// Schema is what a server accepts as schemas of tools. Its zero value is the subset that every known server takes: an
// object with properties, one type for each property, arrays with items, enums of strings.
type Schema struct {
	// Keywords are those of JSON Schema that may be sent besides the safe subset: additionalProperties, anyOf (never at
	// the root, no type beside it), default, format, pattern, uniqueItems, and those with numbers, such as minimum.
	// Others are never sent. Some names stand for more: "format:date-time" = that format only, "type[]" = lists of
	// types, "enum*" = enums that are not only strings, "keys*" = names of properties of any alphabet and length
	// (without it, others than ^[A-Za-z0-9_.-]{1,64}$ are translated), "untyped" = properties without a type.
	Keywords []string `json:"keywords"`
	// Closed: objects say additionalProperties false.
	Closed bool `json:"closed"`
	// Strict: "strict": false is sent with each function, because the server would take true for granted.
	Strict         bool `json:"strict"`
	MaxTools       int  `json:"max_tools"`       // in a request; 0 = 128
	MaxDescription int  `json:"max_description"` // of a tool, in bytes; 0 = 1024. What is longer goes on in its schema
}

// Equal reports whether two servers accept the same.
func (s *Schema) Equal(o *Schema) bool {
	return s.Closed == o.Closed && s.Strict == o.Strict &&
		s.MaxTools == o.MaxTools && s.MaxDescription == o.MaxDescription &&
		slices.Equal(s.Keywords, o.Keywords)
}

// Params says which fields a request has besides model, messages, tools and stream.
type Params struct {
	// Omit are fields that are never sent, by their names in the request ("user", "stream_options", "tool_choice",
	// "stream", "tools", "image", …).
	Omit []string `json:"omit"`
	// Rename gives fields other names, such as max_tokens to max_completion_tokens.
	Rename map[string]string `json:"rename"`
	// Set are fields that are always sent, such as thinking or reasoning_effort.
	Set map[string]json.RawMessage `json:"set"`
}

// History says how messages have to look, beyond what is done for every server: arguments that are JSON objects, one
// result for each call directly after it, one system message, which is the first.
type History struct {
	// CallIDs is the form of the ids of calls: "" = at most 40 letters, digits, _ and -; CallIDsShort; CallIDsVerbatim.
	CallIDs string `json:"call_ids"`
	// Bridge: an assistant's message is put between a tool's result and a user's message.
	Bridge    bool `json:"bridge"`
	NoSystem  bool `json:"no_system"`  // there is no system message: its text begins the first message of the user
	Alternate bool `json:"alternate"`  // two messages of a role in a row are joined
	ToolNames bool `json:"tool_names"` // results carry the name of their tool
	// Reasoning says which of a model's thoughts are sent back with its messages, to the server and the model that gave
	// them: "" = the fields that it gave, with calls and with what follows their results; ReasoningAll = with every
	// message; ReasoningRequired; ReasoningKept; ReasoningNever.
	Reasoning string `json:"reasoning"`
	// EmptyContent: content is "" and not null beside calls.
	EmptyContent bool `json:"empty_content"`
	// KeepTools: calls are sent only in a request that offers tools; in another one they are told in words.
	KeepTools bool `json:"keep_tools"`
	// NoChannels: the template fails at <|channel|> in a message.
	NoChannels bool `json:"no_channels"`
}

// The values of History.Reasoning.
const (
	ReasoningAll = "all"
	// ReasoningRequired: as "", and a message with calls is refused without the reasoning that belongs to it. So calls
	// that another server or model has made are told in words.
	ReasoningRequired = "required"
	// ReasoningKept is ReasoningRequired and ReasoningAll: thoughts go back with every message.
	ReasoningKept  = "kept"
	ReasoningNever = "never"
)

// The values of History.CallIDs.
const (
	CallIDsShort    = "alnum9"   // exactly nine letters and digits (Mistral)
	CallIDsVerbatim = "verbatim" // as the model gave them, if it counts its calls (functions.NAME:INDEX, Kimi)
)

//go:embed dialects.json
var rows []byte

// table reads the rows once. They are part of the program, so a mistake in them is a programmer's.
var table = sync.OnceValues(func() ([]Dialect, error) {
	var list []Dialect
	if err := json.Unmarshal(rows, &list); err != nil {
		return nil, fmt.Errorf("dialects.json: %w", err)
	}
	return list, nil
})

// All returns the known dialects in the order in which people are shown them. The error is a mistake in the table.
func All() ([]Dialect, error) { return table() }

// Named returns the dialect of a preset.
func Named(name string) (Dialect, bool) {
	list, err := table()
	if err != nil {
		return Dialect{}, false
	}
	i := slices.IndexFunc(list, func(d Dialect) bool { return d.Name == name })
	if i < 0 {
		return Dialect{}, false
	}
	return list[i], true
}

// Sign is what a server answers at a path of its own and no other one does.
type Sign struct {
	Path  string `json:"path"`  // from the root of the server
	Field string `json:"field"` // of the answer: names separated by dots, numbers in lists; "" = the whole text
	Value string `json:"value"` // what it is, or for the whole text what is in it; "" = anything
}

// Shows reports whether an answer has the sign.
func (s *Sign) Shows(answer []byte) bool {
	if s.Field == "" {
		return strings.Contains(string(answer), s.Value)
	}
	var tree any
	if json.Unmarshal(answer, &tree) != nil {
		return false
	}
	found := fieldOf(tree, s.Field)
	return found != nil && (s.Value == "" || found == s.Value)
}

//go:embed others.json
var otherRows []byte

// others are servers without a preset, of which only title, base URL and other names are known.
var others = sync.OnceValues(func() ([]Dialect, error) {
	var list []Dialect
	if err := json.Unmarshal(otherRows, &list); err != nil {
		return nil, fmt.Errorf("others.json: %w", err)
	}
	return list, nil
})

// Meant returns the server that people mean by a name which is no preset, such as grok for xAI. Capitals
// and what stands between words do not count. Its Name is the preset to use; "" = there is none, and
// BaseURL shows where such a server is.
func Meant(name string) (Dialect, bool) {
	presets, err := table()
	if err != nil {
		return Dialect{}, false
	}
	rest, err := others()
	if err != nil {
		return Dialect{}, false
	}
	name = plainName(name)
	for _, d := range slices.Concat(presets, rest) {
		if name != "" && slices.ContainsFunc(append([]string{d.Name, d.Title}, d.Also...), func(also string) bool {
			return plainName(also) == name
		}) {
			return d, true
		}
	}
	return Dialect{}, false
}

// plainName returns the letters and digits of a name, in lower case.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}

// OfAddress returns the dialect of the server at an address; the zero Dialect, and false, for an unknown one.
func OfAddress(base string) (Dialect, bool) {
	u, err := url.Parse(base)
	list, tableErr := table()
	if err != nil || tableErr != nil {
		return Dialect{}, false
	}
	host, withPort := strings.ToLower(u.Hostname()), strings.ToLower(u.Host)
	for _, d := range list {
		for _, pattern := range d.Hosts {
			of := host
			if strings.Contains(pattern, ":") {
				of = withPort
			}
			if ok, _ := path.Match(pattern, of); ok {
				return d, true
			}
		}
	}
	return Dialect{}, false
}

// answerLimits are the names of the field that limits an answer.
var answerLimits = []string{"max_tokens", "max_completion_tokens", "max_output_tokens"}

// Unlimited reports whether requests are sent without a limit of the answer.
func (d *Dialect) Unlimited() bool {
	return slices.ContainsFunc(answerLimits, func(name string) bool { return slices.Contains(d.Params.Omit, name) })
}
