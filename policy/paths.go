package policy

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/pathrule"
)

// pathForms are the spellings of one path or URL. A glob matches the path if it matches one of them.
type pathForms []string

func (p pathForms) any(globs []*Glob) bool {
	for _, g := range globs {
		if slices.ContainsFunc(p, g.match) {
			return true
		}
	}
	return false
}

// pathKeys returns the arguments that name a path or a URL: those of the original (file_path, path, uri, url;
// directory, dest, source), and others that are missing there. query, which is from the original, comes last; see
// argumentPaths.
func pathKeys() []string {
	return []string{
		"file_path", "path", "uri", "url", "directory", "dir", "dest",
		"destination", "source", "cwd", "paths", "files", "urls",
	}
}

// canonicalForms returns the forms of clean paths: absolute, and relative to the working directory.
func canonicalForms(dir string, paths []string) []pathForms {
	out := make([]pathForms, 0, len(paths))
	for _, p := range paths {
		forms := pathForms{p}
		if rel, ok := relative(dir, p); ok {
			forms = append(forms, rel)
		}
		out = append(out, forms)
	}
	return out
}

// argumentPaths collects the paths that the arguments name, and for bash those in the command. It is lexical: "." and
// ".." are resolved, links are not.
//
// Like the original, it takes query for a path. Most queries are not, so these count only for deny rules; doubtful is
// their number, at the end of the list.
func argumentPaths(c *call) (out []pathForms, doubtful int) {
	for _, key := range pathKeys() {
		switch v := c.req.Args[key].(type) {
		case string:
			out = append(out, c.formsOf(v))
		case []string:
			for _, s := range v {
				out = append(out, c.formsOf(s))
			}
		case []any:
			for _, e := range v {
				if s, ok := e.(string); ok {
					out = append(out, c.formsOf(s))
				}
			}
		}
	}
	for i := range c.scripts {
		out = append(out, scriptPaths(&c.scripts[i].Script)...)
	}
	if text, ok := c.req.Args["command"].(string); ok && len(c.scripts) == 0 {
		out = append(out, textPaths(text)...)
	}
	if text, ok := c.req.Args["query"].(string); ok {
		return append(out, formsOf(text)), 1
	}
	return out, 0
}

// formsOf returns the spellings of an argument: those of the function formsOf, and both the absolute and the relative
// form if the working directory is known.
func (c *call) formsOf(v string) pathForms {
	forms := formsOf(v)
	clean, dir := path.Clean(forms[0]), c.dir()
	if dir == "" || strings.Contains(forms[0], "://") {
		return forms
	}
	if !path.IsAbs(clean) {
		clean = path.Join(dir, clean)
		forms = append(forms, clean)
	}
	if rel, ok := relative(dir, clean); ok && rel != forms[0] {
		forms = append(forms, rel)
	}
	return forms
}

// formsOf returns the spellings of one value: as written, without quotes, and cleaned; for a file URL also its path.
func formsOf(v string) pathForms {
	v = strings.Trim(strings.TrimSpace(v), `"'`)
	forms := pathForms{v}
	if clean := path.Clean(v); clean != v {
		forms = append(forms, clean)
	}
	if u, err := url.Parse(v); err == nil && strings.EqualFold(u.Scheme, "file") {
		forms = append(forms, path.Clean(u.Path))
	}
	return forms
}

// textPaths finds the absolute paths in the text of a command.
func textPaths(text string) []pathForms {
	var out []pathForms
	for i := 0; i < len(text); i++ {
		if text[i] != '/' {
			continue
		}
		end := len(text)
		if n := strings.IndexAny(text[i:], " \t\r\n;|&<>\"'`()"); n >= 0 {
			end = i + n
		}
		out = append(out, formsOf(text[i:end]))
		i = end
	}
	return out
}

// scriptPaths finds the absolute paths in a script: in its text, like the original, and in the words as the shell reads
// them, so that quotes in a path hide nothing. A path that leads upwards is resolved from the root, where enough ".."
// always end.
func scriptPaths(sc *command.Script) []pathForms {
	out := textPaths(sc.Text)
	for _, c := range sc.Commands {
		for _, w := range c.Words {
			if i := strings.IndexByte(w, '/'); i >= 0 {
				out = append(out, formsOf(w[i:]))
			}
		}
	}
	for _, r := range sc.Redirects {
		if i := strings.IndexByte(r.Target, '/'); i >= 0 {
			out = append(out, formsOf(r.Target[i:]))
		}
	}
	return out
}

// within reports whether p, as written in a command, is below one of the roots. A relative path starts at a working
// directory that is inside. A path that leaves it, a home directory, and what the shell would expand to several places
// are outside.
func within(roots []string, p string) bool {
	if p == "" || strings.ContainsAny(p, "{}$`\x00") || strings.HasPrefix(p, "~") {
		return false
	}
	clean := path.Clean(p)
	if !path.IsAbs(clean) {
		return len(roots) > 0 && clean != ".." && !strings.HasPrefix(clean, "../")
	}
	for _, root := range roots {
		if pathrule.Inside(root, clean) {
			return true
		}
	}
	return false
}
