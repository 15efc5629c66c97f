//go:build unix

package bench_test

import (
	"bufio"
	"context"
	"net/http"
	"strconv"
	"strings"
)

// scrape reads the metrics of a service at an address, by their names and labels.
func scrape(ctx context.Context, address string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // read only
	got := map[string]float64{}
	in := bufio.NewScanner(response.Body)
	for in.Scan() {
		name, value, ok := strings.Cut(in.Text(), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			got[name] = n
		}
	}
	return got, in.Err()
}
