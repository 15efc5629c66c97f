package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// maxModels limits a list of models, in bytes.
const maxModels = 4 << 20

// ErrKey is the error of a server that wants another key.
var ErrKey = errors.New("refused with status 401")

// FetchAnswer reads what is at an address: GET, with header. Errors contain no key; a refusal names only the status.
func FetchAnswer(
	ctx context.Context, client *http.Client, address string, header http.Header, key Key,
) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the address cannot be formed")
	}
	req.Header = header
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "zephbot")
	resp, err := client.Do(req)
	if err != nil {
		return nil, errors.New(key.Clean(err.Error()))
	}
	defer func() { _ = resp.Body.Close() }() // it is only read
	if resp.StatusCode == http.StatusUnauthorized {
		return nil, ErrKey
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("refused with status %d", resp.StatusCode)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxModels))
	if err != nil {
		return nil, errors.New(key.Clean(err.Error()))
	}
	return answer, nil
}

// AskSizes asks a server how long the window and the answers of a model are, at the places where it says that. header
// returns what is sent with a request.
func AskSizes(
	ctx context.Context,
	client *http.Client,
	base string,
	places []dialect.Listing,
	model string,
	header func() http.Header,
	key Key,
) dialect.Sizes {
	for _, place := range places {
		address, err := place.Address(base)
		if err != nil {
			continue
		}
		sent := header()
		if place.Key != "" && key != "" {
			sent.Del("Authorization")
			sent.Set(place.Key, string(key))
		}
		answer, err := FetchAnswer(ctx, client, address, sent, key)
		if err != nil {
			continue // a server that does not tell it is none that fails
		}
		if sizes := place.SizesOf(answer, model); sizes != (dialect.Sizes{}) {
			return sizes
		}
	}
	return dialect.Sizes{}
}

// ListModels reads the names of the models that a vendor offers, sorted: GET address, which answers
// {"data":[{"id":…}]}. header is sent with it. Errors contain no key; a refusal names only the status.
func ListModels(
	ctx context.Context, client *http.Client, address string, header http.Header, key Key,
) ([]string, error) {
	body, err := FetchAnswer(ctx, client, address, header, key)
	if err != nil {
		return nil, fmt.Errorf("list of models: %w", err)
	}
	var answer struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return nil, errors.New("the list of models cannot be read")
	}
	names := make([]string, 0, len(answer.Data))
	for _, m := range answer.Data {
		if m.ID != "" {
			names = append(names, m.ID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
