package deploytest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/cost"
)

var (
	proposed  = regexp.MustCompile(`title: "OpenAI", [^}]*propose: "([^"]+)"`)
	ofOpenAI  = regexp.MustCompile(`\bgpt-\d[\d.]*(?:-(?:mini|nano|pro))?["\s]`)
	ownPrices = regexp.MustCompile(`#   (input|output)_usd_per_mtok = ([0-9.]+)`)
)

// TestOneModel: where an example names a model of OpenAI, it is the one that setup proposes, with the prices that the
// program knows.
func TestOneModel(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	found := proposed.FindStringSubmatch(read("cmd/internal/cli/setup_model.go"))
	if found == nil {
		t.Fatal("setup proposes no model of OpenAI")
	}
	model := found[1]
	examples := []string{
		"cmd/internal/config/begin.toml", "cmd/internal/cli/setup.go", "charts/zephbot/values.yaml", ".env.example",
		"docker-compose.yml", "compose.replicas.yml", "fly.toml",
	}
	for _, page := range pagesOf(t) {
		if page != "CHANGELOG.md" && page != "docs/models.md" && !strings.HasPrefix(page, "docs/decisions/") {
			examples = append(examples, page)
		}
	}
	named := 0
	for _, name := range examples {
		for _, other := range ofOpenAI.FindAllString(read(name), -1) {
			if named++; strings.Trim(other, "\" \n") != model {
				t.Errorf("%s: an example names %s, and setup proposes %s", name, other, model)
			}
		}
	}
	if named < 6 {
		t.Errorf("only %d examples were found", named)
	}
	prices := ownPrices.FindAllStringSubmatch(read("cmd/internal/config/begin.toml"), -1)
	if len(prices) != 2 {
		t.Fatalf("prices of the example: %q", prices)
	}
	tariff, known := cost.TariffOf("https://api.openai.com/v1", model)
	if !known {
		t.Fatalf("the price of %s is not known", model)
	}
	input, _, output := tariff.Highest()
	for _, p := range prices {
		want := map[string]float64{"input": input, "output": output}[p[1]]
		if got, err := strconv.ParseFloat(p[2], 64); err != nil || got != want {
			t.Errorf("%s of the example: %s, and the table says %g", p[1], p[2], want)
		}
	}
}
