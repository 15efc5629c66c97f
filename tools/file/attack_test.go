package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/file"
)

// everyPath calls every tool with a path as each of its arguments, and checks that nothing outside is returned or
// changed.
func everyPath(b *box, path string) {
	b.t.Helper()
	b.put("plain.txt", "plain")
	for name, in := range map[string]args{
		"read": {"path": path}, "write": {"path": path, "content": "evil"}, "edit": {"path": path, "old_string": "SECRET", "new_string": "evil", "replace_all": true},
		"grep": {"pattern": "SE[C]RET", "path": path}, "list_directory": {"path": path}, "find_path": {"pattern": "**", "path": path},
		"create_directory": {"path": path + "/made"}, "delete_path": {"path": path + "/zephbot.db"}, "move_path": {"source": path + "/zephbot.db", "destination": "stolen"},
		"copy_path": {"source": path, "destination": "stolen"},
	} {
		text, err := b.try(name, in)
		b.harmless(text, in)
		if err != nil {
			b.harmless(tools.Feedback(err), in)
		}
		if _, err := b.tools[name].Describe(b.t.Context(), b.call(name, in)); err != nil {
			b.harmless(tools.Feedback(err), in)
		}
	}
	_, _ = b.try("move_path", args{"source": "plain.txt", "destination": path + "/moved"}) // only its effect counts
	b.untouched()
}

// untouched checks that what is outside is as it was, and that nothing of it came inside.
func (b *box) untouched() {
	b.t.Helper()
	for name, want := range map[string]string{
		filepath.Join(b.outside, "secret.txt"): "SECRET outside", filepath.Join(b.data, "zephbot.db"): "SECRET database",
		filepath.Join(b.data, "workspaces", "two", "other.txt"): "SECRET of another session",
	} {
		if got := b.content(name); got != want {
			b.t.Errorf("%s holds %q", name, got)
		}
	}
	for dir, want := range map[string]int{b.outside: 1, filepath.Join(b.data, "workspaces", "two"): 1, b.data: 2} {
		if list, err := os.ReadDir(dir); err != nil || len(list) != want {
			b.t.Errorf("%s holds %v (%v)", dir, list, err)
		}
	}
	err := filepath.WalkDir(b.ws, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(b.content(path), "SECRET") {
			b.t.Errorf("%s holds a secret", path)
		}
		return err
	})
	if err != nil {
		b.t.Error(err)
	}
}

func TestEscapes(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(b *box) string{
		"absolute":          func(b *box) string { return b.outside },
		"absolute file":     func(b *box) string { return filepath.Join(b.outside, "secret.txt") },
		"data":              func(b *box) string { return b.data },
		"data file":         func(b *box) string { return filepath.Join(b.data, "zephbot.db") },
		"other session":     func(b *box) string { return "../two" },
		"dots":              func(*box) string { return "../../../outside/secret.txt" },
		"dots inside":       func(*box) string { return "a/./../.././../../outside//secret.txt" },
		"trailing slash":    func(b *box) string { return b.outside + "/" },
		"case of data":      func(b *box) string { return strings.Replace(b.data, "/data", "/DATA", 1) },
		"link":              func(b *box) string { b.link(b.outside, "l"); return "l" },
		"link, slash":       func(b *box) string { b.link(b.outside, "l"); return "l/" },
		"link to file":      func(b *box) string { b.link(filepath.Join(b.outside, "secret.txt"), "l"); return "l" },
		"below link":        func(b *box) string { b.link(b.outside, "l"); return "l/secret.txt" },
		"relative link":     func(b *box) string { b.link("../../../outside/secret.txt", "l"); return "l" },
		"link to data":      func(b *box) string { b.link("../..", "l"); return "l" },
		"link to neighbour": func(b *box) string { b.link("../two/other.txt", "l"); return "l" },
		"chain": func(b *box) string {
			b.link("m", "l")
			b.link("d/n", "m")
			b.link(b.outside, "d/n")
			return "l/secret.txt"
		},
		"loop":     func(b *box) string { b.link("m", "l"); b.link("l", "m"); return "l" },
		"own loop": func(b *box) string { b.link("l", "l"); return "l/x" },
		"dangling": func(b *box) string { b.link(filepath.Join(b.outside, "new"), "l"); return "l" },
		"link below shared": func(b *box) string {
			b.link(b.outside, filepath.Join(b.shared, "l"))
			return filepath.Join(b.shared, "l")
		},
		"link to shared link": func(b *box) string {
			b.link(b.outside, filepath.Join(b.shared, "l"))
			b.link(filepath.Join(b.shared, "l"), "l")
			return "l"
		},
		"link into proc": func(b *box) string { b.link("/proc/self/root"+b.outside, "l"); return "l" },
		"proc":           func(b *box) string { return "/proc/self/root" + b.outside },
		"proc cwd":       func(*box) string { return "/proc/self/cwd" },
		"home":           func(*box) string { return "~" },
		"below home":     func(*box) string { return "~/x" },
		"nul":            func(*box) string { return "a\x00/../../x" },
		"newline":        func(b *box) string { return "x\n" + b.outside },
		"long name":      func(*box) string { return strings.Repeat("n", 300) },
		"long path":      func(*box) string { return strings.Repeat("n/", 3000) },
		"nothing":        func(*box) string { return "" },
		"root":           func(*box) string { return "/" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, nil)
			everyPath(b, prepare(b))
		})
	}
}

// What the model reads when it leaves its place.
func TestEscapeMessages(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.link(b.outside, "out")
	b.link("b", "a")
	b.link("a", "b")
	for path, want := range map[string]struct {
		category tools.Category
		text     string
	}{
		"out/secret.txt":            {tools.PolicyBlocked, `"out/secret.txt" is off limits: files are reached only in the working directory of this conversation and "` + b.shared + `"`},
		"a":                         {tools.PermanentFailure, "too many links"},
		"~/x":                       {tools.InvalidParameters, "~ is not expanded"},
		"a\x00b":                    {tools.InvalidParameters, "is not a path"},
		"":                          {tools.InvalidParameters, "the path is empty"},
		strings.Repeat("n", 300):    {tools.InvalidParameters, "300 bytes"},
		strings.Repeat("n/n/", 2e3): {tools.InvalidParameters, "at most 4096"},
	} {
		b.refuse("read", args{"path": path}, want.category, want.text)
	}
}

// Links that stay inside are followed, absolute ones too, also from one allowed place to another.
func TestLinksInside(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.put("d/a.txt", "here")
	b.put(filepath.Join(b.shared, "s.txt"), "there")
	b.link("d", "rel")
	b.link(b.path("d"), "abs")
	b.link(b.shared, "shared")
	b.link("rel/../d/a.txt", "dots")
	for path, want := range map[string]string{"rel/a.txt": "here", "abs/a.txt": "here", "shared/s.txt": "there", "dots": "here"} {
		if got := b.run("read", args{"path": path}); got != "   1\t"+want {
			t.Errorf("%s: %q", path, got)
		}
	}
	if s := b.describe("read", args{"path": "shared/s.txt"}); s.Inputs[0] != filepath.Join(b.shared, "s.txt") || !strings.Contains(s.Note.String(), "allowed path") {
		t.Errorf("the policy sees %+v", s)
	}
	b.run("write", args{"path": "abs/new/b.txt", "content": "x"})
	if b.content("d/new/b.txt") != "x" {
		t.Error("not written through the link")
	}
}

// An allowed path that is reached through a link has both names. One that contains the data directory does not give
// access to it.
func TestRootAliases(t *testing.T) {
	t.Parallel()
	b := newBox(t, func(b *box, o *file.Options) {
		if err := os.Symlink(b.shared, filepath.Join(b.top, "alias")); err != nil {
			t.Fatal(err)
		}
		o.AllowedPaths = []string{filepath.Join(b.top, "alias"), b.top}
	})
	b.put(filepath.Join(b.shared, "s.txt"), "there")
	for _, path := range []string{filepath.Join(b.top, "alias", "s.txt"), filepath.Join(b.shared, "s.txt"), "../../../shared/s.txt"} {
		if got := b.run("read", args{"path": path}); got != "   1\tthere" {
			t.Errorf("%s: %q", path, got)
		}
	}
	b.refuse("read", args{"path": filepath.Join(b.data, "zephbot.db")}, tools.PolicyBlocked, "off limits")
	for _, tool := range []string{"list_directory", "find_path", "grep"} {
		in := args{"path": b.top, "pattern": "**"}
		if tool == "list_directory" {
			delete(in, "pattern")
		}
		if tool == "grep" {
			in["pattern"] = "database|another"
		}
		if text := b.run(tool, in); strings.Contains(text, "data\n") || strings.Contains(text, "zephbot.db") || strings.Contains(text, "other.txt") {
			t.Errorf("%s: %s", tool, text)
		}
	}
	b.run("copy_path", args{"source": b.outside, "destination": "copy"}) // inside the wide root now
	b.refuse("delete_path", args{"path": b.top}, tools.PolicyBlocked, "working directory")
	b.refuse("delete_path", args{"path": filepath.Join(b.top, "alias")}, tools.PolicyBlocked, "working directory")
	b.refuse("move_path", args{"source": b.shared, "destination": "x"}, tools.PolicyBlocked, "working directory")
}

// What holds something of the service is neither deleted, moved nor copied along.
func TestDeniedInside(t *testing.T) {
	t.Parallel()
	b := newBox(t, func(b *box, o *file.Options) {
		o.DeniedPaths = append(o.DeniedPaths, filepath.Join(b.ws, "etc", "zephbot.toml"), filepath.Join(b.ws, "state"))
	})
	b.put("etc/zephbot.toml", "token SECRET")
	b.put("etc/plain", "x")
	b.put("state/db", "SECRET")
	for _, tool := range []string{"read", "list_directory"} {
		b.refuse(tool, args{"path": "etc/zephbot.toml"}, tools.PolicyBlocked, "off limits")
		b.refuse(tool, args{"path": "ETC/Zephbot.toml"}, tools.PolicyBlocked, "off limits")
		b.refuse(tool, args{"path": "state"}, tools.PolicyBlocked, "off limits")
	}
	b.refuse("delete_path", args{"path": "etc"}, tools.PolicyBlocked, "files of this service")
	b.refuse("move_path", args{"source": "etc", "destination": "x"}, tools.PolicyBlocked, "files of this service")
	if got := b.run("list_directory", args{"path": "."}) + b.run("find_path", args{"pattern": "**"}) + b.run("grep", args{"pattern": "S.CRET"}); strings.Contains(got, "toml") || strings.Contains(got, "state") || strings.Contains(got, "SECRET") {
		t.Errorf("got %s", got)
	}
	b.run("copy_path", args{"source": "etc", "destination": "copy"})
	if b.exists("copy/zephbot.toml") || !b.exists("copy/plain") {
		t.Error("the wrong files were copied")
	}
	// and no hint at the denied name
	b.refuse("read", args{"path": "etc/zephbot.tom"}, tools.PermanentFailure, "Use list_directory")
}

// A file that may not be read stays unread, whatever way round is tried.
func TestDenyReadDetours(t *testing.T) {
	t.Parallel()
	b := denying(t, "data/workspaces/one/private/*", "data/workspaces/one/*.env", "data/workspaces/one/caf\u00e9*")
	b.put("private/key.txt", "SECRET key")
	b.put("prod.env", "SECRET env")
	b.put("cafe\u0301.txt", "SECRET decomposed")
	b.put("Caf\u00e9.txt", "SECRET composed")
	b.put("public.txt", "fine")
	b.link("private/key.txt", "l")
	b.link("private", "dir")
	if err := os.Link(b.path("prod.env"), b.path("hard.txt")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"private/key.txt", "prod.env", "l", "dir/key.txt", "hard.txt", "cafe\u0301.txt", "Caf\u00e9.txt", "./private/../private/key.txt"} {
		b.refuse("read", args{"path": path}, tools.PolicyBlocked, "may not be read here")
		b.refuse("edit", args{"path": path, "old_string": "nothing like it", "new_string": "x"}, tools.PolicyBlocked, "may not be read here")
		b.refuse("grep", args{"path": path, "pattern": "SE.RET"}, tools.PolicyBlocked, "may not be read here")
		if path != "l" { // a link is copied as a link, and refused when it is read
			b.refuse("copy_path", args{"source": path, "destination": "copy.txt"}, tools.PolicyBlocked, "may not be read here")
		}
		if path != "l" && path != "hard.txt" {
			b.refuse("move_path", args{"source": path, "destination": "moved.txt"}, tools.PolicyBlocked, "may not be read here")
		}
	}
	b.run("copy_path", args{"source": "l", "destination": "l2"})
	b.refuse("read", args{"path": "l2"}, tools.PolicyBlocked, "may not be read here")
	b.run("move_path", args{"source": "hard.txt", "destination": "hard2.txt"})
	b.refuse("read", args{"path": "hard2.txt"}, tools.PolicyBlocked, "may not be read here")
	b.refuse("move_path", args{"source": "private", "destination": "open"}, tools.PolicyBlocked, "may not be read here")
	if got := b.run("copy_path", args{"source": "private", "destination": "open"}); !strings.Contains(got, "0 files") || b.exists("open/key.txt") {
		t.Errorf("got %s", got)
	}
	if got := b.run("grep", args{"pattern": "SE.RET|fine"}); strings.Contains(got, "SECRET") || !strings.Contains(got, "public.txt:1: fine") || !strings.Contains(got, "not searched: may not be read here") {
		t.Errorf("got %s", got)
	}
	if got := b.run("list_directory", args{"path": "."}); !strings.Contains(got, "prod.env") {
		t.Errorf("names are shown: %s", got)
	}
}

// A directory with one denied file is copied without it, and not moved.
func TestDenyReadTree(t *testing.T) {
	t.Parallel()
	b := denying(t, "data/workspaces/one/d/*.key")
	b.put("d/a.txt", "fine")
	b.put("d/sub/b.key", "SECRET")
	if got := b.run("copy_path", args{"source": "d", "destination": "e"}); !strings.Contains(got, "1 file, 4 bytes") || !strings.Contains(got, "d/sub/b.key: it may not be read here") {
		t.Errorf("got %s", got)
	}
	if b.exists("e/sub/b.key") || b.content("e/a.txt") != "fine" {
		t.Error("the wrong files were copied")
	}
	b.refuse("move_path", args{"source": "d", "destination": "f"}, tools.PolicyBlocked, `"d/sub/b.key" may not be read here`)
}

// A second name of a file in the data directory gives no access to it. A file whose names are all inside is readable.
func TestHardLinks(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.put("a", "inside")
	for from, to := range map[string]string{filepath.Join(b.data, "zephbot.db"): "stolen", b.path("a"): "b", filepath.Join(b.data, "workspaces", "two", "other.txt"): "other"} {
		if err := os.Link(from, b.path(to)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"stolen", "other"} {
		b.refuse("read", args{"path": path}, tools.PolicyBlocked, "several names")
		b.refuse("write", args{"path": path, "content": "evil"}, tools.PolicyBlocked, "several names")
		b.refuse("copy_path", args{"source": path, "destination": "c"}, tools.PolicyBlocked, "several names")
		b.refuse("edit", args{"path": path, "old_string": "SECRET", "new_string": "x"}, tools.PolicyBlocked, "several names")
	}
	if got := b.run("grep", args{"pattern": "."}); strings.Contains(got, "SECRET") || !strings.Contains(got, "a:1: inside\nb:1: inside\n[2 files not searched") {
		t.Errorf("got %s", got)
	}
	if got := b.run("read", args{"path": "b"}); got != "   1\tinside" {
		t.Errorf("got %s", got)
	}
	for _, tool := range []string{"move_path", "copy_path"} {
		b.put("src", "x")
		b.refuse(tool, args{"source": "src", "destination": "b"}, tools.PolicyBlocked, "several names")
	}
	b.refuse("write", args{"path": "b", "content": "x"}, tools.PolicyBlocked, "several names")
	b.refuse("edit", args{"path": "b", "old_string": "inside", "new_string": "x"}, tools.PolicyBlocked, "several names")
	if b.content("a") != "inside" {
		t.Error("written through the other name")
	}
}

// Pipes and devices neither block nor are read or written.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.mkdir("d")
	if err := unix.Mkfifo(b.path("d/pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.link("/dev/zero", "zero")
	b.refuse("read", args{"path": "d/pipe"}, tools.PermanentFailure, "a pipe")
	b.refuse("write", args{"path": "d/pipe", "content": "x"}, tools.PermanentFailure, "a pipe")
	b.refuse("edit", args{"path": "d/pipe", "old_string": "a", "new_string": "x"}, tools.PermanentFailure, "a pipe")
	b.refuse("grep", args{"path": "d/pipe", "pattern": "x"}, tools.PermanentFailure, "a pipe")
	b.refuse("copy_path", args{"source": "d/pipe", "destination": "p"}, tools.PermanentFailure, "a pipe")
	b.refuse("move_path", args{"source": "d/pipe", "destination": "p"}, tools.PermanentFailure, "a pipe")
	b.refuse("list_directory", args{"path": "d/pipe"}, tools.PermanentFailure, "a pipe")
	b.refuse("read", args{"path": "zero"}, tools.PolicyBlocked, "off limits")
	if got := b.run("list_directory", args{"path": "d"}); got != "[other] pipe" {
		t.Errorf("got %s", got)
	}
	if got := b.run("grep", args{"pattern": "x"}); got != "No matches for x" {
		t.Errorf("got %s", got)
	}
	if got := b.run("copy_path", args{"source": "d", "destination": "e"}); !strings.Contains(got, "d/pipe: not a regular file") {
		t.Errorf("got %s", got)
	}
	b.run("delete_path", args{"path": "d"})
	if b.exists("d") {
		t.Error("not deleted")
	}
}

// A device node in the workspace is refused; making one needs rights that a test may not have.
func TestDeviceNode(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	if err := unix.Mknod(b.path("dev"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
		t.Skip("no right to make a device:", err)
	}
	for _, tool := range []string{"read", "write", "grep"} {
		in := args{"path": "dev", "pattern": "x", "content": "x"}
		for _, k := range []string{"pattern", "content"} {
			if (tool == "read") || (tool == "write" && k == "pattern") || (tool == "grep" && k == "content") {
				delete(in, k)
			}
		}
		b.refuse(tool, in, tools.PermanentFailure, "a device")
	}
}

// Deleting and moving take the link, not its target.
func TestLinkItself(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.put("d/a", "x")
	b.link("d", "l")
	b.link(b.outside, "out")
	b.link("../one/d/a", "m")
	if s := b.describe("delete_path", args{"path": "l"}); s.Paths[0] != b.path("l") || s.Show != "l" || s.Note.String() != "in the workspace · link" {
		t.Errorf("got %+v", s)
	}
	b.run("delete_path", args{"path": "l"})
	b.run("delete_path", args{"path": "out"})
	b.refuse("move_path", args{"source": "m", "destination": filepath.Join(b.shared, "m")}, tools.PolicyBlocked, "lead out")
	b.run("move_path", args{"source": "m", "destination": "n"})
	if b.exists("l") || b.exists("out") || b.exists("m") || b.content("n") != "x" {
		t.Error("the wrong thing moved")
	}
	b.refuse("write", args{"path": "gone/../../x", "content": ""}, tools.PolicyBlocked, "off limits")
	b.untouched()
}

func TestCopiedLinks(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.put("d/a", "x")
	b.link("a", "d/in")
	b.link("../../../../outside/secret.txt", "d/out")
	b.link("/etc/passwd", "d/abs")
	got := b.run("copy_path", args{"source": "d", "destination": "e"})
	for _, want := range []string{"1 file", "d/abs: a link that would lead out", "d/out: a link that would lead out"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if target, err := os.Readlink(b.path("e/in")); err != nil || target != "a" || b.exists("e/out") || b.exists("e/abs") {
		t.Errorf("%q, %v", target, err)
	}
	b.refuse("copy_path", args{"source": "d/abs", "destination": "f"}, tools.PolicyBlocked, "lead out")
}

func TestNames(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	for _, name := range []string{"new\nline", "caf\u00e9", "cafe\u0301", "-rf", "~", "\u202egnp.exe", "sp ace ", strings.Repeat("ä", 127)} {
		path := "./" + name
		b.run("write", args{"path": path, "content": "in " + name})
		if got := b.content(name); got != "in "+name {
			t.Errorf("%q holds %q", name, got)
		}
	}
	got := b.run("list_directory", args{"path": "."})
	for _, want := range []string{`[file] "new\nline"`, `"\u202egnp.exe"`, "[file] caf\u00e9", "[file] cafe\u0301", "[file] ~"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if s := b.describe("delete_path", args{"path": "new\nline"}); strings.Contains(s.Show, "\n") {
		t.Errorf("got %q", s.Show)
	}
}

func TestDeepTree(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.put(strings.Repeat("d/", 60)+"f.txt", "deep needle")
	if got := b.run("grep", args{"pattern": "needle"}); !strings.HasSuffix(got, "/f.txt:1: deep needle") {
		t.Errorf("got %q", got)
	}
	b.put(strings.Repeat("e/", 205)+"f.txt", "too deep")
	if got := b.run("find_path", args{"pattern": "e/**/f.txt"}); !strings.Contains(got, "1 directory could not be opened") {
		t.Errorf("got %q", got)
	}
	b.refuse("delete_path", args{"path": "e"}, tools.PermanentFailure, "nested deeper")
	b.refuse("copy_path", args{"source": "e", "destination": "x"}, tools.PermanentFailure, "nested deeper")
	list, err := os.ReadDir(b.ws)
	if err != nil || len(list) != 2 {
		t.Errorf("something was left behind: %v, %v", list, err)
	}
	b.run("delete_path", args{"path": "d"})
}

func TestLockedDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("nothing is locked for root")
	}
	b := newBox(t, nil)
	b.put("d/a", "needle")
	b.put("open", "needle")
	if err := os.Chmod(b.path("d"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(b.path("d"), 0o755) }) // so that the directory can be removed
	b.refuse("read", args{"path": "d/a"}, tools.PolicyBlocked, "permission denied")
	b.refuse("list_directory", args{"path": "d"}, tools.PolicyBlocked, "permission denied")
	if got := b.run("grep", args{"pattern": "needle"}); got != "open:1: needle\n[1 directory could not be opened]" {
		t.Errorf("got %q", got)
	}
}

// The workspace itself replaced by a link leads nowhere.
func TestWorkspaceReplaced(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	shared := b.shared
	if err := os.Rename(shared, shared+".old"); err != nil {
		t.Fatal(err)
	}
	b.link(b.outside, shared)
	b.refuse("read", args{"path": filepath.Join(shared, "secret.txt")}, tools.PolicyBlocked, "replaced by a link")
	b.untouched()
}
