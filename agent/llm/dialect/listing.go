package dialect

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// Sizes are what a server says of a model, in tokens; 0 = it does not say.
type Sizes struct {
	Window int // the answer included, where the server counts it
	Output int // the longest answer
}

// Listing is where a server says how long the windows and the answers of its models are.
type Listing struct {
	// Path is added to the base URL; behind "^" it begins at the root of the server.
	Path string `json:"path"`
	List string `json:"list"` // field with the list of models; "" = the answer is the list, or one model
	ID   string `json:"id"`   // field with the name of a model; "" = the server has one model
	// Prefix is before the names of models there, and not where they are asked for answers.
	Prefix string `json:"prefix"`
	// Key is the header in which the key is sent; "" = as with other requests.
	Key string `json:"key"`
	// Window are fields with the size of the window in tokens, the first that is there: names separated by dots,
	// numbers in lists. Output are the same with the longest answer.
	Window []string `json:"window"`
	Output []string `json:"output"`
}

//go:embed listings.json
var listingRows []byte

var listings = sync.OnceValues(func() (map[string][]Listing, error) {
	var all map[string][]Listing
	if err := json.Unmarshal(listingRows, &all); err != nil {
		return nil, fmt.Errorf("listings.json: %w", err)
	}
	return all, nil
})

// Listings returns where the server says how long its windows are, in the order in which it is asked; nil = nowhere. A
// server that nobody knows is asked for what others say in their list of models: proxies pass that on.
func (d *Dialect) Listings() []Listing {
	all, err := listings()
	if err != nil { // the tests find a mistake in the table
		return nil
	}
	return all[d.Name]
}

// Address returns where a listing is asked for, with the base URL of a server.
func (l *Listing) Address(base string) (string, error) {
	path, root := strings.CutPrefix(l.Path, "^")
	if !root {
		return strings.TrimRight(base, "/") + path, nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("base_url is no address")
	}
	return u.Scheme + "://" + u.Host + path, nil
}

// largest limits a window that is believed, in tokens.
const largest = 1 << 30

// SizesOf reads the sizes of a model from a listing.
func (l *Listing) SizesOf(answer []byte, model string) Sizes {
	var tree any
	if json.Unmarshal(answer, &tree) != nil {
		return Sizes{}
	}
	list, ok := tree.([]any) // some servers answer with the list alone
	if !ok {
		if list, ok = fieldOf(tree, l.List).([]any); !ok {
			list = []any{fieldOf(tree, l.List)}
		}
	}
	var sizes Sizes
	for _, one := range list {
		if name, _ := fieldOf(one, l.ID).(string); l.ID != "" && name != model &&
			name != model+":latest" && (l.Prefix == "" || name != l.Prefix+model) {
			continue
		}
		sizes.Window, sizes.Output = cmp.Or(sizes.Window, tokensOf(one, l.Window)), cmp.Or(sizes.Output, tokensOf(one, l.Output))
	}
	return sizes
}

// tokensOf returns the first number of tokens of some fields; 0 = there is none.
func tokensOf(model any, fields []string) int {
	for _, field := range fields {
		if n, ok := fieldOf(model, field).(float64); ok && n >= 1 && n < largest {
			return int(n)
		}
	}
	return 0
}

// fieldOf follows names and indices separated by dots; "" = the value itself. nil = there is no such field.
func fieldOf(value any, path string) any {
	if path == "" {
		return value
	}
	name, rest, _ := strings.Cut(path, ".")
	switch v := value.(type) {
	case map[string]any:
		return fieldOf(v[name], rest)
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return fieldOf(v[i], rest)
		}
	}
	return nil
}
