// Package config reads the configuration of zephbot: a TOML file, the environment and flags become one Config, and
// everything that is wrong with them is reported at once, with file, line, key and what is allowed. It is the only
// package that uses viper; the others declare plain option structs, which are filled from a Config.
//
// Flags override the environment, which overrides the file, which overrides the defaults.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/viper"

	"github.com/zephbot/zephbot/policy/act"
)

// FileName is the name of the config file in the places where Load looks for it.
const FileName = "zephbot.toml"

// maxFile is the largest config file that is read, in bytes.
const maxFile = 256 << 10

// delimiter separates keys for viper; the usual dot may be part of a key.
const delimiter = "::"

// Source is the input of Load, which reads neither the process's environment nor its flags by itself.
type Source struct {
	// File is the config file. If it is empty: zephbot.toml in WorkDir, then in $XDG_CONFIG_HOME/zephbot
	// (Home/.config/zephbot); if neither exists, the defaults apply.
	File string
	// Env is the environment, "NAME=value" each, as os.Environ returns it. Empty values count as not set.
	Env []string
	// Flags are values by the name of their key, such as "log.level", in the form of environment variables.
	Flags map[string]string
	// Home and WorkDir are the person's home and the working directory, for relative paths and "~".
	Home, WorkDir string
	// Tools are what our own tools say of themselves: other names of tools are mistakes. nil = names are not checked.
	Tools []act.Tool
	// ReadFile replaces os.ReadFile if it is not nil.
	ReadFile func(name string) ([]byte, error)
	// Stat replaces os.Stat if it is not nil. It is called for directories that must exist.
	Stat func(name string) (fs.FileInfo, error)
}

// Load reads the configuration. Its error is of type Problems and contains everything that is wrong; what is only
// unusual is in Config.Warnings.
func Load(src Source) (*Config, error) {
	c, err := Examine(src)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Examine is like Load, but also returns a Config together with an error, as far as it could be read; nil if it could
// not be read at all. Invalid values have their defaults. The Config is for finding further problems, not for use.
func Examine(src Source) (*Config, error) {
	data, name, err := src.read()
	if err != nil {
		return nil, err
	}
	data, doubled := withoutDoubled(data)
	tree, lines, err := parseFile(name, data)
	if err != nil {
		return nil, err
	}
	c := Default()
	c.File, c.home, c.workDir = name, src.Home, src.WorkDir
	c.tools = src.Tools
	for _, place := range src.places() {
		c.places = append(c.places, src.resolve(place))
	}
	d := decoder{
		file: name, lines: lines, origins: map[string]Origin{}, bad: map[string]bool{},
		moved: map[string]any{}, places: uniquePlaces(),
	}
	d.moveKeys(tree)
	d.table("", tree, reflect.ValueOf(&c).Elem())
	c.origins = d.origins

	e := newEnvironment(src.Env)
	e.addProviders(&c)
	e.apply(&c)
	flags, flagProblems := readFlags(src.Flags, &c)
	c.Warnings = e.warnings
	for _, h := range doubled {
		c.Warnings = append(c.Warnings, h.warning(name))
	}
	problems := append(append(d.problems, e.problems...), flagProblems...)
	if err := layer(&c, data, &d, e.values, flags); err != nil {
		return nil, Problems{{File: name, Text: "cannot be read: " + err.Error()}}
	}
	k := checker{c: &c, bad: d.bad, read: problems, stat: src.Stat, env: src.Env}
	if k.stat == nil {
		k.stat = os.Stat
	}
	k.run()
	c.Warnings = append(c.Warnings, k.warnings...).sorted()
	if problems = append(problems, k.problems...); len(problems) > 0 {
		return &c, problems.sorted()
	}
	return &c, nil
}

// read finds and reads the config file.
func (src Source) read() (data []byte, name string, err error) {
	readFile := src.ReadFile
	if readFile == nil {
		readFile = os.ReadFile
	}
	candidates := []string{src.File}
	if src.File == "" {
		candidates = src.places()
	}
	for _, name := range candidates {
		data, err := readFile(src.resolve(name))
		switch {
		case err == nil && len(data) > maxFile:
			return nil, "", Problems{{
				File: name, Text: fmt.Sprintf("is larger than %d KiB; a config file is smaller", maxFile>>10),
			}}
		case err == nil: // some editors put a byte order mark in front
			return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), name, nil
		case errors.Is(err, fs.ErrNotExist) && src.File == "":
			continue
		default:
			return nil, "", Problems{{File: name, Text: readFailure(err)}}
		}
	}
	return nil, "", nil
}

// places returns the paths of the config file if none is given.
func (src Source) places() []string {
	places := []string{FileName}
	dir := ""
	for _, kv := range src.Env {
		if v, ok := strings.CutPrefix(kv, "XDG_CONFIG_HOME="); ok {
			dir = v
		}
	}
	if !filepath.IsAbs(dir) && src.Home != "" { // the XDG specification ignores relative paths
		dir = filepath.Join(src.Home, ".config")
	}
	if filepath.IsAbs(dir) {
		places = append(places, filepath.Join(dir, "zephbot", FileName))
	}
	return places
}

func (src Source) resolve(path string) string {
	if src.WorkDir == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(src.WorkDir, path)
}

// readFailure returns in a sentence why a file cannot be read.
func readFailure(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "this config file does not exist; zephbot config init writes one"
	case errors.Is(err, fs.ErrPermission):
		return "this config file may not be read by the user who runs zephbot; change its owner or its mode"
	default:
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err
		}
		return "this config file cannot be read: " + err.Error()
	}
}

// parseFile returns the tree of a TOML document and the lines of its keys.
func parseFile(name string, data []byte) (map[string]any, map[string]int, error) {
	tree := map[string]any{}
	if err := toml.Unmarshal(data, &tree); err != nil {
		p := Problem{File: name, Text: "not valid TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
		if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := bad.Position()
			p.Line = line
			p.Text = fmt.Sprintf("not valid TOML at column %d: %s", column, strings.TrimPrefix(bad.Error(), "toml: "))
		}
		return nil, nil, Problems{p}
	}
	return tree, indexLines(data), nil
}

// movedKeys are the keys that are in another table in older configurations, with their current place.
func movedKeys() map[[2]string][2]string {
	return map[[2]string][2]string{
		{"memory", "vector_backend"}: {"vector", "backend"}, // seed 000
	}
}

// moveKeys moves the keys of older configurations to their current place.
func (d *decoder) moveKeys(tree map[string]any) {
	for from, to := range movedKeys() {
		table, _ := tree[from[0]].(map[string]any)
		raw, there := table[from[1]]
		if !there {
			continue
		}
		oldKey, newKey := join(from[0], from[1]), join(to[0], to[1])
		if _, ok := tree[to[0]]; !ok {
			tree[to[0]] = map[string]any{}
		}
		target, ok := tree[to[0]].(map[string]any)
		if !ok {
			continue // the wrong type of the table is reported when it is decoded
		}
		delete(table, from[1])
		if other, set := target[to[1]]; set {
			if !reflect.DeepEqual(other, raw) {
				d.wrong(oldKey, "is another spelling of %s, which is also set, to something else; keep one of them",
					newKey)
			}
			continue
		}
		target[to[1]] = raw
		d.lines[newKey] = d.lines[oldKey]
		d.moved[newKey] = raw
	}
}

// layer has viper merge defaults, file, environment and flags, and sets every key with a fixed place to the result.
// Entries of lists and maps are decoded without viper, which would convert their keys to lower case.
func layer(c *Config, data []byte, d *decoder, env map[string]any, flags map[string]any) error {
	v := viper.NewWithOptions(viper.KeyDelimiter(delimiter))
	v.SetConfigType("toml")
	if err := v.ReadConfig(bytes.NewReader(data)); err != nil {
		return err
	}
	if err := v.MergeConfigMap(nest(d.moved)); err != nil {
		return err
	}
	if err := v.MergeConfigMap(nest(env)); err != nil {
		return err
	}
	for key, value := range flags {
		v.Set(viperKey(key), value)
	}
	walk(c, func(l leaf) {
		if !l.fixed {
			return
		}
		if def := defaultOf(l.field); !def.IsZero() {
			v.SetDefault(viperKey(l.key), def.Interface())
		}
		_, fromEnv := env[l.key]
		_, fromFlag := flags[l.key]
		if d.bad[l.key] && !fromEnv && !fromFlag {
			return
		}
		raw := v.Get(viperKey(l.key))
		if raw == nil {
			return
		}
		if value := reflect.ValueOf(raw); value.Type() == l.typ {
			l.value.Set(value)
			return
		}
		if value, _, ok := convert(raw, l.typ); ok {
			l.value.Set(value)
		}
	})
	for key := range flags {
		c.origins[key] = Origin{Flag: key}
	}
	return nil
}

// viperKey returns the path of a fixed key, whose words need no quotes, in viper's form.
func viperKey(key string) string { return strings.ReplaceAll(key, ".", delimiter) }

// nest returns a tree of values by path. Paths of list entries are omitted, because viper does not support them.
func nest(values map[string]any) map[string]any {
	root := map[string]any{}
	for key, value := range values {
		if strings.ContainsAny(key, `["`) {
			continue
		}
		parts := strings.Split(key, ".")
		table := root
		for _, part := range parts[:len(parts)-1] {
			next, ok := table[part].(map[string]any)
			if !ok {
				next = map[string]any{}
				table[part] = next
			}
			table = next
		}
		table[parts[len(parts)-1]] = value
	}
	return root
}

// Origin returns where the value of key comes from. Keys are written as in the file, with dots; list entries as in
// "llm.providers[0].model".
func (c *Config) Origin(key string) Origin { return c.origins[key] }

// Path resolves a path of the configuration: "~" is the person's home, relative paths start at the working directory.
// The empty path remains empty.
func (c *Config) Path(path string) string {
	rest, home := strings.CutPrefix(path, "~")
	switch {
	case path == "":
		return ""
	case home && c.home != "" && (rest == "" || strings.HasPrefix(rest, "/")):
		return filepath.Join(c.home, rest)
	case filepath.IsAbs(path) || c.workDir == "":
		return filepath.Clean(path)
	default:
		return filepath.Join(c.workDir, path)
	}
}
