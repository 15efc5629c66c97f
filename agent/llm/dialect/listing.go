package dialect

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// Listing is where a server says how long the windows of its models are.
type Listing struct {
	// Path is added to the base URL; behind "^" it begins at the root of the server.
	Path string `json:"path"`
	List string `json:"list"` // field with the list of models; "" = the answer is the list, or one model
	ID   string `json:"id"`   // field with the name of a model; "" = the server has one model
	// Window are fields with the size of the window in tokens, the first that is there: names separated by dots, numbers
	// in lists.
	Window []string `json:"window"`
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

// Listings returns where the server says how long its windows are, in the order in which it is asked; nil = nowhere.
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

// WindowOf reads the window of a model from a listing, in tokens; 0 = it is not said.
func (l *Listing) WindowOf(answer []byte, model string) int {
	var tree any
	if json.Unmarshal(answer, &tree) != nil {
		return 0
	}
	list, ok := fieldOf(tree, l.List).([]any)
	if !ok {
		list = []any{fieldOf(tree, l.List)}
	}
	for _, one := range list {
		if name, _ := fieldOf(one, l.ID).(string); l.ID != "" && name != model && name != model+":latest" {
			continue
		}
		for _, field := range l.Window {
			if n, ok := fieldOf(one, field).(float64); ok && n >= 1 && n < largest {
				return int(n)
			}
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
