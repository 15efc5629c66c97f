package deploytest_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

var (
	aKey      = regexp.MustCompile("`([a-z_]+(?:\\.[a-z0-9_]+)+)`")
	anEnv     = regexp.MustCompile(`\bZEPH_[A-Z0-9_]*[A-Z0-9]\b`)
	tomlBlock = regexp.MustCompile("(?ms)^ *```toml\n(.*?)^ *```")
	anEntry   = regexp.MustCompile(`\[\]|\.<[a-zA-Z]+>`)
)

// ofTests are variables that tests and CI read, not the program; the last one is an example of a name.
var ofTests = strings.Fields(`ZEPH_CI ZEPH_CRASH ZEPH_POSTGRES ZEPH_RECORD ZEPH_EMBED ZEPH_EMBED_REPO ZEPH_EMBED_DIR ZEPH_JUDGE ZEPH_JUDGE_SHOW ZEPH_UPDATE ZEPH_REPLICAS ZEPH_SEED
	ZEPH_VENDORS ZEPH_LOAD ZEPH_SOAK ZEPH_SOAK_PROFILES ZEPH_LANGUAGES ZEPH_PICTURES ZEPH_TEST_QDRANT ZEPH_MCP_CONFORMANCE ZEPH_GOPLS ZEPH_CODE ZEPH_SECTION_KEY`)

// TestKeysInDocs: every key of the configuration that a page names exists, and so does every variable.
func TestKeysInDocs(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	var variables []*regexp.Regexp
	for _, k := range config.Keys() {
		name := anEntry.ReplaceAllString(k.Name, "")
		for at := len(name); at > 0; at = strings.LastIndexByte(name[:at], '.') {
			known[name[:at]] = true
		}
		if k.Env != "" {
			pattern := regexp.MustCompile(`<[A-Za-z]+>`).ReplaceAllString(k.Env, "[A-Z0-9_]+")
			variables = append(variables, regexp.MustCompile("^"+pattern+"$"))
		}
	}
	named := 0
	for _, page := range pagesOf(t) {
		raw, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(page, "charts/") { // its keys are those of its values
			continue
		}
		for _, m := range aKey.FindAllStringSubmatch(string(raw), -1) {
			section, _, _ := strings.Cut(m[1], ".")
			if named++; known[section] && !known[m[1]] && !slices.Contains([]string{".go", ".toml", ".jsonl", ".db", ".md", ".policy"}, filepath.Ext(m[1])) {
				t.Errorf("%s: there is no key %s", page, m[1])
			}
		}
		for _, name := range anEnv.FindAllString(string(raw), -1) {
			if !slices.Contains(ofTests, name) && !slices.ContainsFunc(variables, func(v *regexp.Regexp) bool { return v.MatchString(name) }) {
				t.Errorf("%s: nothing reads the variable %s", page, name)
			}
		}
	}
	if named < 100 {
		t.Errorf("%d keys are named", named)
	}
}

// TestBlocksOfConfiguration: every block of TOML in a page is a configuration without unknown keys, or a file of filters
// or of examples of rules, which other tests read.
func TestBlocksOfConfiguration(t *testing.T) {
	t.Parallel()
	blocks := 0
	for _, page := range pagesOf(t) {
		raw, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range tomlBlock.FindAllStringSubmatch(string(raw), -1) {
			if strings.Contains(m[1], "[[rules]]") || strings.Contains(m[1], "[[example]]") || page == "docs/languages.md" || page == "docs/howto.md" { // filters, examples of rules, sentences
				continue
			}
			blocks++
			dir := t.TempDir()
			file := filepath.Join(dir, "zephbot.toml")
			if err := os.WriteFile(file, []byte(m[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := config.Load(config.Source{File: file, Home: dir, WorkDir: dir})
			var problems config.Problems
			errors.As(err, &problems)
			for _, p := range problems {
				if p.Line == 0 || strings.Contains(p.Text, "unknown key") || p.Key == "" {
					t.Errorf("%s: %s in:\n%s", page, p, m[1])
				}
			}
			if err != nil && problems == nil {
				t.Errorf("%s: %v in:\n%s", page, err, m[1])
			}
		}
	}
	if blocks < 10 {
		t.Errorf("%d blocks were found", blocks)
	}
}
