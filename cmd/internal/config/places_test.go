package config_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// namesFiles finds the keys that may name a file or a directory, by what they are called and by what their line says.
var namesFiles = regexp.MustCompile(`(?i)(^|_)(files?|paths?|dirs?|directory|directories|certs?|certificates?|ca|keyfile|destination|root|roots|uri|command|socket)(_|$)|^args$`)

var saysFiles = regexp.MustCompile(`(?i)\b(files?|director(y|ies)|paths?|certificates?)\b`)

// TestAttackEveryPathKeyIsClassified walks the configuration: a key that names a file says with the tag `place` whether
// tools may reach that file. A new key without one fails here, so that nobody forgets to deny it.
func TestAttackEveryPathKeyIsClassified(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	var visit func(typ reflect.Type, at string)
	visit = func(typ reflect.Type, at string) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for f := range typ.Fields() {
			name := f.Tag.Get("toml")
			if name == "" || name == "-" {
				continue
			}
			key := strings.TrimPrefix(at+"."+name, ".")
			visit(f.Type, key)
			text := f.Type.Kind() == reflect.String || f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.String
			if !text || f.Type == reflect.TypeFor[config.Secret]() {
				continue
			}
			place := f.Tag.Get("place")
			seen[place]++
			switch place {
			case "obeyed", "granted", "pattern", "none":
			case "":
				if namesFiles.MatchString(name) || saysFiles.MatchString(f.Tag.Get("doc")) && !excused(key) {
					t.Errorf("%s may name a file: give it the tag place (obeyed, granted, pattern, none; see Config)", key)
				}
			default:
				t.Errorf("%s: place %q is unknown", key, place)
			}
		}
	}
	visit(reflect.TypeFor[config.Config](), "")
	if seen["obeyed"] < 7 || seen["granted"] < 4 || seen["pattern"] < 4 {
		t.Errorf("the walk found %v", seen)
	}
}

// excused are keys whose line speaks of files and that name none.
func excused(key string) bool {
	return slices.Contains([]string{"tools.shell.blocked_commands", "database.url"}, key)
}

func TestObeyed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"server.py", "key.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "share"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := `
data_dir = "state"
[audit]
destination = "log/audit.jsonl"
[workspaces]
dir = "ws"
[tools.policy]
policy_file = "rules/policy.toml"
[tools.adversarial_policy]
policy_file = "~/judge.txt"
[tools.filters]
filters_path = "filters.d"
[[mcp.servers]]
id = "x"
command = "python3"
args = ["-u", "server.py", "--cert=missing.pem", "--key=key.json", "share", "line\nbreak"]
env = { GOOGLE_APPLICATION_CREDENTIALS = "key.json", MODE = "fast" }
`
	c, err := config.Load(config.Source{
		File: filepath.Join(dir, "etc", "bot.toml"), WorkDir: dir, Home: "/home/ann",
		ReadFile: func(string) ([]byte, error) { return []byte(text), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	in := func(names ...string) []string {
		for i, n := range names {
			names[i] = filepath.Join(dir, n)
		}
		return names
	}
	want := in("etc/.env", "etc/bot.toml", "etc/filters.toml", "filters.d", "key.json", "log/audit.jsonl", "rules/policy.toml", "server.py", "state", "ws", "zephbot.toml")
	want = append(want, "/home/ann/.config/zephbot/zephbot.toml", "/home/ann/judge.txt")
	slices.Sort(want)
	if diff := cmp.Diff(want, c.Obeyed()); diff != "" {
		t.Errorf("obeyed (-want +got):\n%s", diff)
	}
	c, err = config.Load(source("[audit]\ndestination = 'stdout'\n"))
	if err != nil {
		t.Fatal(err)
	}
	if list := c.Obeyed(); slices.ContainsFunc(list, func(p string) bool { return strings.Contains(p, "stdout") || !filepath.IsAbs(p) }) {
		t.Errorf("obeyed: %v", list)
	}
}

func TestAllowedPathsExist(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plain"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"shell", "file"} {
		for entry, want := range map[string]string{
			"missing": "does not exist", "plain": "is not a directory", "": "empty entry", "plain/x": "cannot be looked at", "odd": "cannot be looked at: strange", ".": "", "sub": "",
		} {
			src := config.Source{WorkDir: dir, Home: dir, ReadFile: func(string) ([]byte, error) {
				return fmt.Appendf(nil, "data_dir = \"x\"\n[tools.%s]\n\nallowed_paths = [%q]\n", table, entry), nil
			}}
			src.Stat = func(name string) (fs.FileInfo, error) {
				switch filepath.Base(name) {
				case "sub":
					name = dir
				case "odd":
					return nil, fmt.Errorf("strange")
				}
				return os.Stat(name)
			}
			_, err := config.Load(src)
			if want == "" {
				if err != nil {
					t.Errorf("%q: %v", entry, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ":4: tools."+table+".allowed_paths") {
				t.Errorf("%s %q: %v, want %q with its line", table, entry, err, want)
			}
		}
	}
}
