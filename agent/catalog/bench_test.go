package catalog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/tools"
)

// noise embeds every text as a random vector of a common length.
type noise struct{}

func (noise) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		seed := uint64(len(t))
		for _, b := range []byte(t) {
			seed = seed*31 + uint64(b)
		}
		r := rand.New(rand.NewPCG(seed, 1))
		v := make([]float32, 1536)
		for j := range v {
			v[j] = r.Float32() - 0.5
		}
		out[i] = v
	}
	return out, nil
}

// thousand returns 1 000 tools of 20 servers.
func thousand() []tools.Definition {
	verbs := []string{"create", "list", "delete", "update", "search", "merge", "export", "import", "copy", "move"}
	things := []string{"issue", "file", "calendar", "invoice", "customer"}
	var defs []tools.Definition
	for i := range 1000 {
		verb, thing := verbs[i%10], things[i/10%5]
		defs = append(defs, tool(fmt.Sprintf("server%d:%s_%s_%d", i/50, verb, thing, i),
			fmt.Sprintf("Use this to %s one %s or several in workspace %d, with all their fields, comments and attachments. Answers with identifiers.", verb, thing, i),
			"workspace", thing+"_id", "fields", "page_size", "dry_run", "idempotency_key"))
	}
	return defs
}

// BenchmarkChoose1000 measures the whole choice for a new turn among 1 000 tools.
func BenchmarkChoose1000(b *testing.B) {
	const query = "Please search the invoices of last month, export them to a file, and create an issue about the missing customer"
	base := catalog.Options{Discovery: catalog.Discovery{TopK: 10, MinSimilarity: 0.3, MinToolsToFilter: 5}, TAFC: catalog.TAFC{Enabled: true}}
	vectors := base
	vectors.Embedder, vectors.Discovery.MinSimilarity = spend.NewEmbedder(noise{}, spend.Cost{}, nil), 0
	for name, o := range map[string]catalog.Options{"words": base, "embeddings": vectors} {
		b.Run(name, func(b *testing.B) {
			defs := thousand()
			o.Source = func(tools.Origin, *tools.Overlay) []tools.Definition { return defs }
			c, err := catalog.New(o)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := c.Sync(b.Context()); err != nil {
				b.Fatal(err)
			}
			choose := func(i int) {
				turn := &agent.Turn{ID: fmt.Sprint(i), Origin: tools.Origin{Session: "s"}}
				if got := c.Tools(b.Context(), turn, agent.View{Query: query, Step: 1}); len(got) != 10 {
					b.Fatalf("%d tools", len(got))
				}
			}
			choose(0)
			for i := 1; b.Loop(); i++ {
				choose(i)
			}
		})
	}
	b.Run("same turn", func(b *testing.B) {
		defs := thousand()
		o := base
		o.Source = func(tools.Origin, *tools.Overlay) []tools.Definition { return defs }
		c, err := catalog.New(o)
		if err != nil {
			b.Fatal(err)
		}
		turn := &agent.Turn{ID: "1"}
		for b.Loop() {
			c.Tools(b.Context(), turn, agent.View{Query: query, Step: 1})
		}
	})
	b.Run("new list", func(b *testing.B) {
		defs := thousand()
		o := base
		o.Source = func(tools.Origin, *tools.Overlay) []tools.Definition { return defs }
		c, err := catalog.New(o)
		if err != nil {
			b.Fatal(err)
		}
		for i := 0; b.Loop(); i++ {
			defs[0].Description = fmt.Sprint("Another description of this tool: ", i)
			c.Tools(b.Context(), &agent.Turn{ID: fmt.Sprint(i)}, agent.View{Query: query, Step: 1})
		}
	})
}
