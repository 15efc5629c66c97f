package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/layout"
)

// TestToolchains: what is installed below the home directory is listed, and granted to commands by the mode of the
// program, unless the configuration says otherwise.
func TestToolchains(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	node, other := filepath.Join(home, ".nvm", "versions", "node", "v20.19.2", "bin"), filepath.Join(home, "zig")
	for _, dir := range []string{node, filepath.Join(other, "bin")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for set, tc := range map[string]struct {
		says          string
		serve, atHome string // directory of programs that is granted; "" = none
	}{
		"":                                 {"not in serve (tools.shell.toolchains)", "", node},
		`toolchains = "none"`:              {"commands cannot use them (tools.shell.toolchains)", "", ""},
		`toolchains = "auto"`:              {"; commands can use them", node, node},
		`toolchains = ["~/zig"]`:           {"commands can use ~/zig (tools.shell.toolchains)", filepath.Join(other, "bin"), filepath.Join(other, "bin")},
		`toolchains = ["` + other + `"]`:   {"commands can use " + other, filepath.Join(other, "bin"), filepath.Join(other, "bin")},
		`toolchains = ["~/.nvm", "~/zig"]`: {"commands can use ~/.nvm, ~/zig", node, filepath.Join(other, "bin")},
	} {
		cfg, err := config.Load(config.Source{
			File: "z.toml", Home: home,
			ReadFile: func(string) ([]byte, error) { return []byte("[tools.shell]\n" + set + "\n"), nil },
		})
		if err != nil {
			t.Errorf("%s: %v", set, err)
			continue
		}
		d := &doctor{c: cfg}
		rows := d.toolchains(t.Context())
		if len(rows) != 1 || rows[0].Status != OK || !strings.Contains(rows[0].Text, "nvm in "+filepath.Join(home, ".nvm")) ||
			!strings.Contains(rows[0].Text, tc.says) {
			t.Errorf("%s: %+v, want %q", set, rows, tc.says)
		}
		for mode, want := range map[string]string{
			layout.Serve: tc.serve, layout.Simulate: tc.serve, layout.Chat: tc.atHome, layout.ACP: tc.atHome,
		} {
			if path := ":" + app.Toolchains(cfg, mode).Path("/bin") + ":"; want != "" != strings.Contains(path, home) ||
				want != "" && !strings.Contains(path, ":"+want+":") {
				t.Errorf("%s in %s: PATH %s, want %q in it", set, mode, path, want)
			}
		}
	}
	for set, want := range map[string]string{
		`toolchains = ["auto", "~/zig"]`: "write it alone", `toolchains = "~/nowhere"`: "does not exist", `toolchains = ["none"]`: "",
	} {
		_, err := config.Load(config.Source{
			File: "z.toml", Home: home,
			ReadFile: func(string) ([]byte, error) { return []byte("[tools.shell]\n" + set + "\n"), nil },
		})
		if want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", set, err, want)
		}
	}
}
