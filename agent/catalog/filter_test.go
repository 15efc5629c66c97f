package catalog_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/agent/spend"
)

func filter() catalog.Filter {
	return catalog.Filter{Enabled: true, MinSimilarity: 0.3, AlwaysOn: []string{"bash"}}
}

func TestEverythingIsShownWithoutFilter(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{Discovery: catalog.Discovery{Strategy: "none"}}, slices.Concat(builtins(), github())...)
	if got := k.show("1", "anything"); len(got) != 14 {
		t.Errorf("shown: %v", got)
	}
	if ch := k.last("github:fork"); !ch.Has(catalog.Unfiltered) {
		t.Errorf("reasons: %v", ch)
	}
}

func TestFilterByWords(t *testing.T) {
	t.Parallel()
	tests := []struct {
		query string
		want  []string
	}{
		{"search the files for a pattern", []string{"bash", "grep"}},
		{"download https://example.org/page", []string{"bash", "fetch"}},
		{"downloading pages", []string{"bash", "fetch"}},
		{"remind me with a reminder at eight", []string{"bash", "schedule_deferred"}},
		{"use WEB_SCRAPE", []string{"bash", "web_scrape"}},
		{"what does the thread breadcrumb mean?", []string{"bash"}},
		{"please read it", []string{"bash", "read"}},
		{"hello!", []string{"bash"}},
		{"", []string{"bash"}},
		{"what is the capital of France?", []string{"bash"}},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			t.Parallel()
			k := setup(t, catalog.Options{Filter: filter()}, builtins()...)
			if diff := cmp.Diff(tt.want, k.show("1", tt.query)); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
				for _, ch := range k.seen[0].Tools {
					t.Log(ch.Tool, ch)
				}
			}
			if k.ranked() != catalog.ByWords {
				t.Errorf("ranked by %s", k.ranked())
			}
			if n := k.log.count("tools are ranked by words"); n != 1 {
				t.Errorf("said %d times", n)
			}
		})
	}
}

func TestForeignLanguageIsNotRanked(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{Filter: filter()}, builtins()...)
	for _, query := range []string{"Lösche alles Alte", "Was ist in der Datei?", "削除してください"} {
		if got := k.show(query, query); len(got) != len(builtins()) {
			t.Errorf("%s: shown: %v", query, got)
		}
	}
	if ch := k.last("edit"); !ch.Has(catalog.Unranked) {
		t.Errorf("reasons: %v", ch)
	}
}

func TestFilterByEmbedding(t *testing.T) {
	t.Parallel()
	vocabulary := []string{"file", "page", "later", "pattern", "command"}
	tests := []struct {
		name, query string
		topK        int
		want        []string
		reason      catalog.Reason
		of          string
	}{
		{"threshold", "a file", 0, []string{"bash", "read", "edit", "grep", "short"}, catalog.SimilarityRank, "read"},
		{"top k", "a file", 1, []string{"bash", "read", "short"}, catalog.NotRelevant, "grep"},
		{"always on", "page", 0, []string{"bash", "fetch", "web_scrape", "short"}, catalog.AlwaysOn, "bash"},
		{"mentioned", "page EDIT.", 1, []string{"bash", "edit", "fetch", "short"}, catalog.NameMentioned, "edit"},
		{"short description", "page", 1, []string{"bash", "fetch", "short"}, catalog.ShortDescription, "short"},
		{"no direction", "zzz", 0, []string{"bash", "short"}, catalog.NotRelevant, "read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := filter()
			f.TopK = tt.topK
			k := setup(t, catalog.Options{Filter: f, Embedder: spend.NewEmbedder(newWords(vocabulary...), spend.Cost{}, nil)}, append(builtins(), tool("short", "Four words of text."))...)
			if diff := cmp.Diff(tt.want, k.show("1", tt.query)); diff != "" {
				t.Errorf("shown (-want +got):\n%s", diff)
			}
			if ch := k.last(tt.of); !ch.Has(tt.reason) {
				t.Errorf("%s: %v, want %s", tt.of, ch, tt.reason)
			}
			if k.ranked() != catalog.ByEmbedding {
				t.Errorf("ranked by %s", k.ranked())
			}
		})
	}
}

func TestEmbedderDownRanksByWords(t *testing.T) {
	t.Parallel()
	clock := newClock()
	w := newWords("file", "page")
	w.fail(true)
	k := setup(t, catalog.Options{Filter: filter(), Embedder: spend.NewEmbedder(w, spend.Cost{}, nil), Now: clock.now}, builtins()...)
	want := []string{"bash", "fetch"}
	for _, turn := range []string{"1", "2"} {
		if diff := cmp.Diff(want, k.show(turn, "downloading pages")); diff != "" {
			t.Errorf("shown (-want +got):\n%s", diff)
		}
	}
	if n := k.log.count("embedding failed: tools are ranked by words"); n != 1 {
		t.Errorf("said %d times", n)
	}
	w.fail(false)
	if k.show("3", "downloading pages"); len(w.take()) != 0 {
		t.Error("the provider was asked during the pause")
	}
	clock.add(31)
	if k.show("4", "downloading pages"); k.ranked() != catalog.ByEmbedding {
		t.Errorf("ranked by %s after the pause", k.ranked())
	}
	if n := k.log.count("ranked by embeddings again"); n != 1 {
		t.Errorf("said %d times that it is over", n)
	}
}

func TestMentioned(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text, name string
		want       bool
	}{
		{"use web_scrape now", "web_scrape", true},
		{"web_scrape", "web_scrape", true},
		{"thread breadcrumb", "read", false},
		{"thread, then read.", "read", true},
		{"read_file", "read", false},
		{"äread", "read", false},
		{"read5", "read", false},
		{"github:fork!", "github:fork", true},
		{"", "read", false},
		{"read", "", false},
	}
	for _, tt := range tests {
		if got := catalog.Mentioned(tt.text, tt.name); got != tt.want {
			t.Errorf("mentioned(%q, %q) = %t", tt.text, tt.name, got)
		}
	}
}
