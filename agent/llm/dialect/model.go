package dialect

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// Traits are what is known of a model by its name, besides what its template wants of messages.
type Traits struct {
	// AnswerLimit is the field of a chat completion that limits the answer; "" = max_tokens, the
	// only one that most servers know.
	AnswerLimit string
	// Encrypted: the model reasons, and gives its reasoning encrypted to those who ask for it (Responses API). Others
	// refuse such a request.
	Encrypted bool
	// OpensThought: the template writes the opening tag of a thought into the prompt, so that an answer begins with a
	// thought of which only the closing tag is seen. It matters where the server does not keep thoughts apart.
	OpensThought bool
}

// modelRow says what holds for a family of models, or for some of it, whichever server has them.
type modelRow struct {
	Words []string `json:"words"` // one of them is in the name of the model
	// or a pattern (path.Match) fits the name, without the name of a vendor before a "/"
	Names  []string `json:"names"`
	Except []string `json:"except"` // patterns of names that are not meant
	At     []string `json:"at"`     // only at these servers, by the names of their rows

	History []string `json:"history"` // as Learnt.History
	// as Params.Set, if the row of the server does not set it
	Set         map[string]json.RawMessage `json:"set"`
	Wire        string                     `json:"wire"`         // as Dialect.Wire
	AnswerLimit string                     `json:"answer_limit"` // as Traits.AnswerLimit
	Encrypted   bool                       `json:"encrypted"`    // as Traits.Encrypted
	// OpensThought is as Traits.OpensThought.
	OpensThought bool `json:"opens_thought"`
	// Accepts are the kinds of contents that the model takes besides text, as in the configuration; null = the row does
	// not say it.
	Accepts []string `json:"accepts"`

	Facts []string `json:"facts"`
}

// meansModel reports whether a model is one of the row. full is its name in lower case, name the same without a vendor.
func (r *modelRow) meansModel(full, name string) bool {
	fits := func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}
	if slices.ContainsFunc(r.Except, fits) {
		return false
	}
	return slices.ContainsFunc(r.Words, func(word string) bool {
		return strings.Contains(full, word)
	}) || slices.ContainsFunc(r.Names, fits)
}

//go:embed models.json
var modelRows []byte

var models = sync.OnceValues(func() ([]modelRow, error) {
	var list []modelRow
	if err := json.Unmarshal(modelRows, &list); err != nil {
		return nil, fmt.Errorf("models.json: %w", err)
	}
	return list, nil
})

// rowsOf returns the rows of a model, in the order of the table.
func rowsOf(model string) []modelRow {
	list, err := models()
	if err != nil { // the tests find a mistake in the table
		return nil
	}
	full := strings.ToLower(model)
	name := full[strings.LastIndexByte(full, '/')+1:]
	var found []modelRow
	for i := range list {
		if list[i].meansModel(full, name) {
			found = append(found, list[i])
		}
	}
	return found
}

// OfModel returns the dialect for a model of the server, by its name: what its template and its vendor want is added.
func (d Dialect) OfModel(model string) Dialect {
	for _, r := range rowsOf(model) {
		if len(r.At) > 0 && !slices.Contains(r.At, d.Name) {
			continue
		}
		d.History = d.History.withRules(r.History)
		if r.Wire != "" {
			d.Wire = r.Wire
		}
		if r.AnswerLimit != "" {
			d.Traits.AnswerLimit = r.AnswerLimit
		}
		d.Traits.Encrypted = d.Traits.Encrypted || r.Encrypted
		d.Traits.OpensThought = d.Traits.OpensThought || r.OpensThought
		if len(r.Set) > 0 {
			set := maps.Clone(r.Set)
			maps.Copy(set, d.Params.Set)
			d.Params.Set = set
		}
	}
	return d
}

// AcceptedBy returns the kinds of contents that a model takes besides text ("image", "file"), by its name; known is
// false for a model of which no row says it.
func AcceptedBy(model string) (kinds []string, known bool) {
	for _, r := range rowsOf(model) {
		if r.Accepts != nil {
			return r.Accepts, true
		}
	}
	return nil, false
}
