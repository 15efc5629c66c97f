package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// wrongUses are uses of every command that cannot be meant: what is typed behind it, and what the answer must say
// besides what is wrong. "" is a command that takes anything.
var wrongUses = map[string]map[string]string{
	"zephbot":               {"nonsense": "there are:", "--confg x": "did you mean --config?"},
	"zephbot acp":           {"x": "zephbot acp"},
	"zephbot user":          {"": "erase, export", "exprt": "did you mean export?"},
	"zephbot user erase":    {"": "zephbot user erase ID", "a b": "zephbot user erase ID"},
	"zephbot user export":   {"": "zephbot user export ID", "a b": "zephbot user export ID"},
	"zephbot audit":         {"": "tail, verify", "tial": "did you mean tail?"},
	"zephbot audit tail":    {"a b": "zephbot audit tail [FILE]", "--mode x": "there are serve", "-n 0": "want 1 to", "-n x": "want a whole number", "--since x": "is no time"},
	"zephbot audit export":  {"--format cvs": "did you mean csv?", "--result x": "there are success"},
	"zephbot audit verify":  {"--mode x": "there are serve"},
	"zephbot backup":        {"": "zephbot backup FILE", "a b": "zephbot backup FILE", "--no-workspace x": "did you mean --no-workspaces?"},
	"zephbot chat":          {"hello": "--once", "--once=": "needs a message", "a b": "--once"},
	"zephbot completion":    {"": "bash|zsh|fish", "x": "bash|zsh|fish", "bash x": "bash|zsh|fish"},
	"zephbot config":        {"": "check, init, print", "chek": "did you mean check?"},
	"zephbot config check":  {"x": "zephbot config check"},
	"zephbot config init":   {"a b": "zephbot config init [FILE]"},
	"zephbot config print":  {"x": "zephbot config print"},
	"zephbot debug":         {"": "dump", "dmp": "did you mean dump?"},
	"zephbot debug dump":    {"": "zephbot debug dump TURN", "nonsense": "it looks like telegram-", "a b": "zephbot debug dump TURN"},
	"zephbot doctor":        {"x": "zephbot doctor", "--ofline": "did you mean --offline?"},
	"zephbot filter":        {"x": "zephbot filter --command", "": "needs --command", "--command x --exit-code 999": "0 to 255", "--exit-code x": "want a whole number"},
	"zephbot health":        {"x": "zephbot health", "--redy": "did you mean --ready?"},
	"zephbot mcp":           {"": "list, signin, test", "lst": "did you mean list?"},
	"zephbot mcp list":      {"x": "zephbot mcp list"},
	"zephbot mcp signin":    {"": "zephbot mcp signin ID", "nobody": "oauth.enabled"},
	"zephbot mcp test":      {"": "zephbot mcp test ID", "nobody": "no MCP server"},
	"zephbot migrate":       {"now": "zephbot migrate", "--dryrun": "did you mean --dry-run?"},
	"zephbot policy":        {"": "check", "chck": "did you mean check?"},
	"zephbot policy replay": {"--since x": "is no time", "--groups 0": "want 1 or more"},
	"zephbot policy test":   {"": "requires at least 1 arg", "/nowhere.toml": "no such file"},
	"zephbot policy check":  {"": "zephbot policy check TOOL JSON", "bash": "TOOL and JSON", "bash {": "not a JSON object", "- {}": "or - alone", "nosuch {}": "nosuch"},
	"zephbot render":        {"x": "zephbot render"},
	"zephbot restore":       {"": "zephbot restore FILE", "a b": "zephbot restore FILE"},
	"zephbot scan":          {"": "zephbot scan secrets|injection", "x": "secrets or injection"},
	"zephbot serve":         {"x": "zephbot serve", "--log-level loud": "log.level"},
	"zephbot setup":         {"x": "zephbot setup", "--no-strt": "did you mean --no-start?", "": "terminal"},
	"zephbot simulate":      {"x": "zephbot simulate", "--listen nonsense": "--listen", "--listen 0.0.0.0:0": "loopback"},
	"zephbot tools":         {"": "call, list", "cal": "did you mean call?"},
	// the chain answers the rest, as it answers a model
	"zephbot tools call": {"bash": "zephbot tools call NAME JSON"},
	"zephbot tools list": {"x": "zephbot tools list", "--jsn": "did you mean --json?"},
	"zephbot version":    {"x": "zephbot version", "--jsn": "did you mean --json?"},
}

// TestEveryCommandRefusesNonsense: what cannot be meant is exit code 2, one line on stderr with what would be right,
// and nothing on stdout.
func TestEveryCommandRefusesNonsense(t *testing.T) {
	t.Parallel()
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.IsAvailableCommand() && wrongUses[cmd.CommandPath()] == nil {
			t.Errorf("no wrong use of %s is listed", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			if sub.Name() != "help" {
				walk(sub)
			}
		}
	}
	walk((&command{env: Standard()}).root())
	for path, uses := range wrongUses {
		for typed, want := range uses {
			t.Run(path+" "+typed, func(t *testing.T) {
				t.Parallel()
				var out, errs bytes.Buffer
				dir := t.TempDir()
				args := strings.Fields(path)[1:]
				if typed != "" {
					args = append(args, strings.Split(typed, " ")...)
				}
				code := Main(t.Context(), args, Env{
					In: strings.NewReader(""), Out: &out, Err: &errs, Environ: []string{"ZEPH_DATA_DIR=" + filepath.Join(dir, "data")}, WorkDir: dir, Home: dir, Executable: "/nowhere/zephbot",
				})
				said := fmt.Sprintf("exit %d, stdout %q, stderr %q", code, out.String(), errs.String())
				if code != Usage || out.Len() > 0 {
					t.Errorf("%s; want 2 and nothing on stdout", said)
				}
				if !strings.Contains(errs.String(), want) || strings.Count(errs.String(), "\n") != 1 {
					t.Errorf("%s; want a line with %q", said, want)
				}
			})
		}
	}
}
