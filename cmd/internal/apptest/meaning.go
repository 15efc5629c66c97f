package apptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"
)

// meaningPart is the part that says which words mean the same, a group a line.
const meaningPart = "meaning"

// nearConfig lets the service compute embeddings by the scene's server.
const nearConfig = `
[[llm.providers]]
name = "main"
type = "openai"
model = "none"
embedding_model = "near"
base_url = %q
[llm]
embedding = "main"
`

// openMeaning serves embeddings, if the scenario says what words mean, and adds them to the configuration.
func (s *scene) openMeaning() {
	groups, ok := s.parts[meaningPart]
	if !ok {
		return
	}
	server := httptest.NewServer(meaning(strings.Split(strings.TrimSpace(groups), "\n")))
	s.t.Cleanup(server.Close)
	s.extra += fmt.Sprintf(nearConfig, server.URL)
}

// meaning is a server of embeddings. It knows some groups of words that mean the same; of all others it knows only
// whether they are equal.
type meaning []string

// otherWords is how many numbers of a vector are for words that are in no group.
const otherWords = 64

// vector counts the words of each group, and, for less, all others.
func (m meaning) vector(text string) []float32 {
	v := make([]float32, len(m)+otherWords)
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		known := false
		for i, group := range m {
			if strings.Contains(" "+group+" ", " "+word+" ") {
				v[i]++
				known = true
			}
		}
		if !known {
			h := fnv.New32a()
			_, _ = h.Write([]byte(word))
			v[len(m)+int(h.Sum32()%otherWords)] += 0.05
		}
	}
	return v
}

// ServeHTTP implements http.Handler.
func (m meaning) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Input []string `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || !strings.HasSuffix(r.URL.Path, "/embeddings") {
		http.Error(w, "only embeddings are here", http.StatusBadRequest)
		return
	}
	type item struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	list := make([]item, len(asked.Input))
	for i, text := range asked.Input {
		list[i] = item{i, m.vector(text)}
	}
	w.Header().Set("Content-Type", "application/json")
	// An error is of a caller that has gone.
	_ = json.NewEncoder(w).Encode(map[string]any{
		"data":  list,
		"usage": map[string]int{"prompt_tokens": len(list), "total_tokens": len(list)},
	})
}

// module copies a module that this project depends on into a directory of a person's workspace, as it was published,
// but for its tests, which are most of it.
func (s *scene) module(words []string) error {
	if len(words) != 4 {
		return errors.New("module PERSON DIRECTORY MODULE")
	}
	person, dir, name := words[1], words[2], words[3]
	out, err := exec.CommandContext(s.t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", name).Output()
	from := strings.TrimSpace(string(out))
	if err != nil || from == "" {
		return fmt.Errorf("where the module is: %q %w", out, err)
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() != "testdata" {
			return err
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return s.file("put", person, s.chats[person], filepath.Join(dir, rel), string(content))
	})
}
