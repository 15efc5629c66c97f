package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Here is the entry of allowed_paths that means the working directory of the conversation.
const Here = "."

// granted checks that the directories of a list exist: a misspelt one would silently remove what the list was meant to
// grant, and one that somebody creates later would be granted without notice.
func (k *checker) granted(key string, list []string) {
	if k.bad[key] {
		return
	}
	for _, p := range list {
		if p == Here {
			continue
		}
		info, err := k.stat(k.c.Path(p))
		switch {
		case strings.TrimSpace(p) == "":
			k.wrong(key, "has an empty entry; write \".\" for the working directory")
		case errors.Is(err, fs.ErrNotExist):
			k.wrong(key, "%s does not exist; make it, or take it out", shorten(p))
		case err != nil:
			k.wrong(key, "%s cannot be looked at: %s", shorten(p), withoutPath(err))
		case !info.IsDir():
			k.wrong(key, "%s is not a directory", shorten(p))
		}
	}
}

// Words of tools.shell.toolchains.
const (
	ToolchainsAuto = "auto"
	ToolchainsNone = "none"
)

// toolchains checks tools.shell.toolchains: one word, or directories.
func (k *checker) toolchains() {
	const key = "tools.shell.toolchains"
	list := k.c.Tools.Shell.Toolchains
	if len(list) == 1 && (list[0] == ToolchainsAuto || list[0] == ToolchainsNone) {
		return
	}
	for _, p := range list {
		if p == ToolchainsAuto || p == ToolchainsNone {
			k.wrong(key, "%s is not a directory; write it alone, without a list", shorten(p))
			return
		}
	}
	k.granted(key, list)
}

// withoutPath returns an error of the file system without the path, which the message contains already.
func withoutPath(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// Obeyed lists the files and directories, absolute and without duplicates, that this configuration makes the program
// store, read or run, now or at its next start: writing to one of them changes what the bot does, and most contain
// secrets. No tool and no child may access them. Some need not exist yet: a config file in a place where one is
// searched for, or a .env file next to it.
func (c *Config) Obeyed() []string {
	var list []string
	add := func(p string) {
		if p != "" && p != "stdout" {
			list = append(list, c.Path(p))
		}
	}
	add(c.File)
	for _, p := range c.places {
		add(p)
	}
	walk(c, func(l leaf) {
		if l.place != "obeyed" {
			return
		}
		for _, p := range texts(l) {
			if strings.HasPrefix(l.key, "mcp.servers") {
				add(c.program(p))
				continue
			}
			add(p)
		}
	})
	for _, s := range c.MCP.Servers {
		for _, value := range s.Env {
			add(c.program(value.Reveal()))
		}
	}
	// Files next to the config: the environment that deployments read, and the rules of output filters.
	if c.File != "" {
		dir := filepath.Dir(c.Path(c.File))
		list = append(list, filepath.Join(dir, ".env"), filepath.Join(dir, "filters.toml"))
	}
	list = slices.DeleteFunc(list, func(p string) bool { return !filepath.IsAbs(p) })
	slices.Sort(list)
	return slices.Compact(list)
}

// texts returns the values of a leaf that contains text.
func texts(l leaf) []string {
	switch v := l.value.Interface().(type) {
	case string:
		return []string{v}
	case []string:
		return v
	}
	return nil
}

// program returns the file that an argument or a variable of a server names, such as its script or its key; "" if there
// is none. A directory is what the server works in, and is left to the tools.
func (c *Config) program(arg string) string {
	if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
		arg = value
	}
	if arg == "" || strings.ContainsAny(arg, "\n\x00") || len(arg) > 4096 {
		return ""
	}
	p := c.Path(arg)
	if info, err := os.Stat(p); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return p
}
