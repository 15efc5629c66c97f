package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// maxModels limits a list of models, in bytes.
const maxModels = 4 << 20

// Models reads the names of the models that a vendor offers, sorted: GET address, which answers
// {"data":[{"id":…}]}. header is sent with it. Errors contain no key; a refusal names only the status.
func Models(ctx context.Context, client *http.Client, address string, header http.Header, key Key) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the address of the list of models cannot be formed")
	}
	req.Header = header
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "zephbot")
	resp, err := client.Do(req)
	if err != nil {
		return nil, errors.New(key.Clean(err.Error()))
	}
	defer func() { _ = resp.Body.Close() }() // it is only read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the list of models is refused with status %d", resp.StatusCode)
	}
	var answer struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxModels)).Decode(&answer); err != nil {
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
