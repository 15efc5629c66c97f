package file_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/file"
)

// box is a set of tools and the directories around it: data (denied) contains the workspace, shared is allowed, outside
// is not.
type box struct {
	t                              testing.TB
	tools                          map[string]tools.Tool
	names                          []string
	top, data, ws, shared, outside string
}

type args map[string]any

func newBox(t testing.TB, change func(*box, *file.Options)) *box {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &box{
		t: t, tools: map[string]tools.Tool{}, top: top, data: filepath.Join(top, "data"), ws: filepath.Join(top, "data", "workspaces", "one"),
		shared: filepath.Join(top, "shared"), outside: filepath.Join(top, "outside"),
	}
	for _, d := range []string{b.ws, b.shared, b.outside, filepath.Join(b.data, "workspaces", "two")} {
		b.mkdir(d)
	}
	b.put(filepath.Join(b.data, "zephbot.db"), "SECRET database")
	b.put(filepath.Join(b.outside, "secret.txt"), "SECRET outside")
	b.put(filepath.Join(b.data, "workspaces", "two", "other.txt"), "SECRET of another session")
	o := file.Options{
		Workspace:    func(tools.Origin) (string, error) { return b.ws, nil },
		AllowedPaths: []string{b.shared}, DeniedPaths: []string{b.data},
	}
	if change != nil {
		change(b, &o)
	}
	list, err := file.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list {
		b.tools[tool.Definition.Name] = tool
		b.names = append(b.names, tool.Definition.Name)
	}
	return b
}

// denying makes a box with deny globs, relative to its top.
func denying(t testing.TB, globs ...string) *box {
	t.Helper()
	return newBox(t, func(b *box, o *file.Options) {
		var deny []string
		for _, g := range globs {
			deny = append(deny, b.top+"/"+g)
		}
		rules, err := pathrule.New(deny, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Rules = rules
	})
}

// path is absolute: relative ones are in the workspace.
func (b *box) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(b.ws, name)
}

func (b *box) mkdir(name string) {
	b.t.Helper()
	if err := os.MkdirAll(b.path(name), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) put(name, content string) {
	b.t.Helper()
	b.mkdir(filepath.Dir(b.path(name)))
	if err := os.WriteFile(b.path(name), []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) link(target, name string) {
	b.t.Helper()
	b.mkdir(filepath.Dir(b.path(name)))
	if err := os.Symlink(target, b.path(name)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) content(name string) string {
	b.t.Helper()
	c, err := os.ReadFile(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(c)
}

func (b *box) exists(name string) bool {
	_, err := os.Lstat(b.path(name))
	return err == nil
}

func (b *box) call(name string, in args) *tools.Call {
	b.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		b.t.Fatal(err)
	}
	return &tools.Call{Tool: name, Args: raw, Trail: &tools.Trail{}}
}

func (b *box) try(name string, in args) (string, error) {
	b.t.Helper()
	res, err := b.tools[name].Run(b.t.Context(), b.call(name, in))
	if err != nil {
		return "", err
	}
	return res.Text, nil
}

// run fails the test when the call fails.
func (b *box) run(name string, in args) string {
	b.t.Helper()
	text, err := b.try(name, in)
	if err != nil {
		b.t.Fatalf("%s %v: %v", name, in, err)
	}
	return text
}

// refuse expects an error of a category whose text for the model contains holds and no secret.
func (b *box) refuse(name string, in args, category tools.Category, holds string) {
	b.t.Helper()
	text, err := b.try(name, in)
	var e *tools.Error
	if !errors.As(err, &e) {
		b.t.Errorf("%s %v: got %q, %v, want %s", name, in, text, err, category)
		return
	}
	feedback := tools.Feedback(err)
	if e.Category != category || !strings.Contains(feedback, holds) {
		b.t.Errorf("%s %v: want %s with %q, got\n%s", name, in, category, holds, feedback)
	}
	b.harmless(feedback, in)
}

// harmless fails if a text contains what nobody may read, or the location of the data directory. Text from the
// arguments does not count.
func (b *box) harmless(text string, in args) {
	b.t.Helper()
	for _, v := range in {
		if s, ok := v.(string); ok && s != "" {
			text = strings.ReplaceAll(text, s, "")
		}
	}
	if strings.Contains(text, "SECRET") || strings.Contains(text, b.data) {
		b.t.Errorf("%v: the model reads %q", in, text)
	}
}

func (b *box) describe(name string, in args) tools.Subject {
	b.t.Helper()
	s, err := b.tools[name].Describe(b.t.Context(), b.call(name, in))
	if err != nil {
		b.t.Fatalf("%s %v: %v", name, in, err)
	}
	return s
}

func TestNew(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	want := []string{"read", "write", "edit", "find_path", "grep", "list_directory", "create_directory", "delete_path", "move_path", "copy_path"}
	if diff := cmp.Diff(want, b.names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	readOnly := map[string]bool{"read": true, "find_path": true, "grep": true, "list_directory": true}
	destructive := map[string]bool{"write": true, "edit": true, "delete_path": true, "move_path": true}
	for name, tool := range b.tools {
		if d := tool.Definition; d.ReadOnly != readOnly[name] || d.Destructive != destructive[name] || d.Description == "" || tool.Describe == nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "file")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := file.New(file.Options{AllowedPaths: []string{"relative", filepath.Join(dir, "missing"), plain}, DeniedPaths: []string{"also/relative"}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"no workspace", `"relative": want an absolute path`, "missing", "is not a directory", `denied path "also/relative"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestWorkspace(t *testing.T) {
	t.Parallel()
	failing := errors.New("no such session")
	for _, tc := range []struct {
		name, dir string
		err       error
		want      string
	}{{"fails", "", failing, "find the working directory"}, {"relative", "here", nil, "want an absolute path"}} {
		list, err := file.New(file.Options{Workspace: func(tools.Origin) (string, error) { return tc.dir, tc.err }})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list {
			call := &tools.Call{Args: json.RawMessage(`{"path":"x","pattern":"x","source":"a","destination":"b","content":"","old_string":"a","new_string":"b"}`)}
			var in map[string]json.RawMessage
			var schema struct{ Properties map[string]any }
			if err := errors.Join(json.Unmarshal(call.Args, &in), json.Unmarshal(tool.Definition.Schema, &schema)); err != nil {
				t.Fatal(err)
			}
			for k := range in {
				if schema.Properties[k] == nil {
					delete(in, k)
				}
			}
			if call.Args, err = json.Marshal(in); err != nil {
				t.Fatal(err)
			}
			if _, err := tool.Run(t.Context(), call); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s, %s: %v", tc.name, tool.Definition.Name, err)
			}
			if _, err := tool.Describe(t.Context(), call); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s, describe %s: %v", tc.name, tool.Definition.Name, err)
			}
		}
	}
}

// A workspace that nobody used yet is described as empty and made by the first call.
func TestFreshWorkspace(t *testing.T) {
	t.Parallel()
	b := newBox(t, func(b *box, _ *file.Options) { b.ws = filepath.Join(b.data, "workspaces", "three") })
	s := b.describe("write", args{"path": "d/a.txt", "content": "x"})
	if diff := cmp.Diff([]string{filepath.Join(b.ws, "d/a.txt")}, s.Paths); diff != "" || b.exists("") {
		t.Errorf("described and made: %t\n%s", b.exists(""), diff)
	}
	b.run("write", args{"path": "d/a.txt", "content": "x"})
	if got := b.content("d/a.txt"); got != "x" {
		t.Errorf("got %q", got)
	}
}

// The rows of the behaviour table for files, here and in the two tests below.
func TestVectorsReadAndWrite(t *testing.T) {
	t.Parallel()
	t.Run("read outside", func(t *testing.T) {
		t.Parallel()
		newBox(t, nil).refuse("read", args{"path": "/etc/passwd"}, tools.PolicyBlocked, `"/etc/passwd" is off limits`)
	})
	t.Run("read numbers", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, nil)
		b.put("n", strings.Repeat("x\n", 20))
		if got, want := b.run("read", args{"path": "n", "offset": 10, "limit": 2}), "  11\tx\n  12\tx\n[more lines follow: go on with offset 12]"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("edit", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, nil)
		b.put("e", "foo bar baz")
		b.run("edit", args{"path": "e", "old_string": "bar", "new_string": "qux"})
		if got := b.content("e"); got != "foo qux baz" {
			t.Errorf("got %q", got)
		}
		b.refuse("edit", args{"path": "e", "old_string": "absent", "new_string": "x"}, tools.PermanentFailure, "does not occur")
	})
	t.Run("write outside", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, nil)
		evil := filepath.Join(b.outside, "evil", "escape.txt")
		b.refuse("write", args{"path": evil, "content": "x"}, tools.PolicyBlocked, "off limits")
		if b.exists(filepath.Dir(evil)) {
			t.Error("something was made outside")
		}
	})
	t.Run("grep outside", func(t *testing.T) {
		t.Parallel()
		newBox(t, nil).refuse("grep", args{"pattern": "root", "path": "../../etc"}, tools.PolicyBlocked, "off limits")
	})
}

func TestVectorsRemove(t *testing.T) {
	t.Parallel()
	t.Run("find_path outside is empty", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, nil)
		for _, in := range []args{{"pattern": "/etc/*"}, {"pattern": "../../*"}, {"pattern": "*", "path": "/etc"}, {"pattern": b.outside + "/**"}} {
			if got := b.run("find_path", in); !strings.HasPrefix(got, "No files matching") {
				t.Errorf("%v: %q", in, got)
			}
			b.describe("find_path", in)
		}
	})
	t.Run("delete the root", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, nil)
		for _, p := range []string{".", b.ws, b.shared, "x/.."} {
			b.refuse("delete_path", args{"path": p}, tools.PolicyBlocked, "working directory")
		}
		for _, p := range []string{"..", b.top, "/"} {
			b.refuse("delete_path", args{"path": p}, tools.PolicyBlocked, "off limits")
		}
		if !b.exists(".") || !b.exists(b.shared) {
			t.Error("a root is gone")
		}
	})
	t.Run("delete recursively", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, nil)
		b.put("d/a", "")
		b.refuse("delete_path", args{"path": "d", "recursive": false}, tools.PermanentFailure, "not empty")
		b.run("delete_path", args{"path": "d"})
		if b.exists("d") {
			t.Error("it is there")
		}
	})
	t.Run("move and copy outside", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, nil)
		b.put("a", "x")
		for _, tool := range []string{"move_path", "copy_path"} {
			b.refuse(tool, args{"source": "a", "destination": filepath.Join(b.outside, "a")}, tools.PolicyBlocked, "off limits")
			b.refuse(tool, args{"source": filepath.Join(b.outside, "secret.txt"), "destination": "s"}, tools.PolicyBlocked, "off limits")
		}
		if !b.exists("a") || b.exists(filepath.Join(b.outside, "a")) || b.exists("s") {
			t.Error("something moved")
		}
	})
}

func TestVectorsListAndDeny(t *testing.T) {
	t.Parallel()
	t.Run("list", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, nil)
		for _, d := range []string{"zd", "ad", "empty"} {
			b.mkdir(d)
		}
		b.put("b", "")
		b.put("a", "")
		b.link("a", "l")
		if diff := cmp.Diff("[dir]  ad\n[dir]  empty\n[dir]  zd\n[file] a\n[file] b\n[symlink] l", b.run("list_directory", args{"path": "."})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got := b.run("list_directory", args{"path": "empty"}); !strings.HasPrefix(got, "Empty directory") {
			t.Errorf("got %q", got)
		}
		b.refuse("list_directory", args{"path": "a"}, tools.PermanentFailure, "not a directory")
		b.refuse("list_directory", args{"path": "missing"}, tools.PermanentFailure, "does not exist")
	})
	t.Run("deny and allow", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, func(b *box, o *file.Options) {
			rules, err := pathrule.New([]string{b.shared + "/*"}, []string{b.shared + "/hostname"})
			if err != nil {
				t.Fatal(err)
			}
			o.Rules = rules
		})
		b.put(filepath.Join(b.shared, "shadow"), "SECRET")
		b.put(filepath.Join(b.shared, "hostname"), "h")
		b.refuse("read", args{"path": filepath.Join(b.shared, "shadow")}, tools.PolicyBlocked, "may not be read")
		if got := b.run("read", args{"path": filepath.Join(b.shared, "hostname")}); got != "   1\th" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("read without path", func(t *testing.T) {
		t.Parallel()
		b := newBox(t, nil)
		b.refuse("read", args{}, tools.InvalidParameters, "path")
		if !strings.Contains(string(b.tools["read"].Definition.Schema), `"required":["path"]`) {
			t.Errorf("schema %s", b.tools["read"].Definition.Schema)
		}
	})
}

// quoted returns a string as JSON.
func quoted(t *testing.T, s string) string {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
