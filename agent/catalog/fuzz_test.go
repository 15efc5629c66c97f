package catalog_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/catalog"
)

// FuzzWithThinking checks the edit of a schema: the result is valid JSON with exactly one more property and no other
// change.
func FuzzWithThinking(f *testing.F) {
	for _, s := range []string{`{}`, `{"type":"object"}`, `{"properties":{}}`, `{"a":[1,{"properties":{}}],"properties":{"b":1}}`, `{"properties":1}`, `[`, `{"properties":{"thinking":{}}}`, `{"properties":{},"properties":{"a":{}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		catalog.Complexity(schema)
		got, ok := catalog.WithThinking(schema)
		if !ok {
			return
		}
		var before, after map[string]any
		if err := json.Unmarshal(schema, &before); err != nil {
			t.Fatalf("%s was taken for a schema: %v", schema, err)
		}
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%s became %s: %v", schema, got, err)
		}
		props, _ := after["properties"].(map[string]any)
		if props["thinking"] == nil {
			t.Fatalf("%s became %s: no field", schema, got)
		}
		delete(props, "thinking")
		if _, ok := before["properties"]; !ok {
			if len(props) != 0 {
				t.Fatalf("%s became %s", schema, got)
			}
			delete(after, "properties")
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("%s became %s:\n%s", schema, got, diff)
		}
	})
}

// FuzzParseNames checks the parser of a model's answer: it returns no empty names and reads a plain array of names
// unchanged.
func FuzzParseNames(f *testing.F) {
	for _, s := range []string{`["a"]`, "```json\n[\"a\"]\n```", `[[["a"]]]`, `[{"name":"a"}]`, `x [1] ["b"] ]`, `][`, `[`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		names, err := catalog.ParseNames(text)
		if err != nil && names != nil || slices.Contains(names, "") {
			t.Fatalf("names of %q: %q, %v", text, names, err)
		}
		if text == "" || !utf8.ValidString(text) || strings.Contains(text, "```") || len(text) > 1000 {
			return
		}
		plain, err := json.Marshal([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		if names, err := catalog.ParseNames("Here: " + string(plain) + "."); err != nil || !slices.Equal(names, []string{text}) {
			t.Fatalf("names of %s: %q, %v", plain, names, err)
		}
	})
}

// FuzzTerms checks the splitting of texts: the result is bounded, has no empty terms, does not depend on the case of a
// single lower-case word, and valid text stays valid.
func FuzzTerms(f *testing.F) {
	for _, s := range []string{"", "readFile HTTPServer2 snake_case", "ファイルを読む file", "\xff\xfe", "Ǆ ǅ İ", strings.Repeat("a ", 9000), strings.Repeat("漢", 3000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, stops := catalog.Terms(text)
		if len(list) > 512 || stops < 0 {
			t.Fatalf("%d terms, %d stop words", len(list), stops)
		}
		for _, term := range list {
			if term == "" || !utf8.ValidString(term) {
				t.Fatalf("terms of %q: %q", text, list)
			}
		}
		again, _ := catalog.Terms(text)
		if !slices.Equal(list, again) {
			t.Fatalf("terms of %q differ", text)
		}
		if c := catalog.Clean(text, 50); utf8.RuneCountInString(c) > 50 || strings.ContainsAny(c, "\n\r\x00") {
			t.Fatalf("clean of %q: %q", text, c)
		}
		catalog.Mentioned(text, "read")
	})
}

func TestALongLineWithoutSpacesIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	list, _ := catalog.Terms(strings.Repeat("漢", 100) + "字典")
	if !slices.Contains(list, "字典") || len(list) < 99 {
		t.Errorf("terms: %q", list)
	}
}

func TestTerms(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text  string
		want  []string
		stops int
	}{
		{"readFile", []string{"read", "fil"}, 0},
		{"HTTPServer2 snake_case kebab-case", []string{"http", "server", "2", "snak", "cas", "kebab", "cas"}, 0},
		{"Creating files, created a file; creates FILES", []string{"creat", "fil", "creat", "fil", "creat", "fil"}, 0},
		{"running directories classes branches", []string{"run", "directory", "class", "branch"}, 0},
		{"what is the status of this process", []string{"status", "process"}, 5},
		{"Über Größe", []string{"über", "größ"}, 0},
		{"読む ファイルread", []string{"読む", "ファ", "ァイ", "イル", "read"}, 0},
		{"was ist in der Datei", []string{"ist", "der", "datei"}, 0},
		{"yes please, ok", nil, 1},
		{"", nil, 0},
	}
	for _, tt := range tests {
		got, stops := catalog.Terms(tt.text)
		if diff := cmp.Diff(tt.want, got); diff != "" || stops != tt.stops {
			t.Errorf("terms of %q: %d stop words (-want +got):\n%s", tt.text, stops, diff)
		}
	}
}
