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

// granted wants the directories of a list to exist: a misspelt one would silently take away what the list was meant to
// grant, and one that somebody makes later would be granted unseen.
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

// withoutPath is an error of the file system without the path, which the message names already.
func withoutPath(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// Obeyed lists the files and directories, absolute and without repetition, that this configuration makes the program
// keep, read or run, now or at its next start: whoever writes one of them changes what the bot does, and most hold
// secrets. No tool and no child may reach them. Some need not exist yet: a config file in a place where one is looked
// for, a .env file beside it.
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
	// what stands beside the config: the environment that deployments read, and the rules of output filters
	if c.File != "" {
		dir := filepath.Dir(c.Path(c.File))
		list = append(list, filepath.Join(dir, ".env"), filepath.Join(dir, "filters.toml"))
	}
	list = slices.DeleteFunc(list, func(p string) bool { return !filepath.IsAbs(p) })
	slices.Sort(list)
	return slices.Compact(list)
}

// texts are the values of a leaf that holds text.
func texts(l leaf) []string {
	switch v := l.value.Interface().(type) {
	case string:
		return []string{v}
	case []string:
		return v
	}
	return nil
}

// program is the file that an argument or a variable of a server names, such as its script or its key; "" when it is
// none. A directory is what the server works in, and is left to the tools.
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
