package mcp

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	maxSubjectPaths = 100 // paths to look for in the arguments of one call
	maxSubjectDepth = 10
)

// pathKeys lists the names of arguments that hold paths or addresses, in lower case and without separators.
var pathKeys = []string{
	"path", "paths", "file", "files", "filepath", "filepaths", "filename", "directory", "dir", "folder", "cwd",
	"workdir", "workingdirectory", "root", "dest", "destination", "target", "output", "outputpath", "source", "src",
	"input", "inputpath", "from", "to", "oldpath", "newpath", "repo", "repopath", "uri", "uris", "url", "urls", "link",
	"href", "endpoint", "host", "image", "imageurl", "baseurl",
}

// describeCall returns what the policy has to check. Only the server knows what the arguments of its tools mean, so the
// description is limited to what the arguments contain.
func (s *server) describeCall(call *tools.Call, t guard.Tool) (tools.Subject, error) {
	args := call.Args
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return tools.Subject{}, &tools.Error{
			Category: tools.InvalidParameters, Message: "the arguments are no JSON",
			Err: err,
		}
	}
	var compact, pretty bytes.Buffer
	if err := json.Compact(&compact, args); err != nil {
		return tools.Subject{}, &tools.Error{
			Category: tools.InvalidParameters, Message: "the arguments are no JSON",
			Err: err,
		}
	}
	if err := json.Indent(&pretty, compact.Bytes(), "", "  "); err != nil {
		return tools.Subject{}, &tools.Error{
			Category: tools.InvalidParameters, Message: "the arguments are no JSON",
			Err: err,
		}
	}
	raw := compact.String()
	found := finder{}
	found.walkValue(doc, false, 0)
	inputs := []string{raw}
	for _, p := range found.list {
		if p != raw {
			inputs = append(inputs, p)
		}
	}
	return tools.Subject{Inputs: inputs, Paths: found.list, Show: pretty.String(), Note: s.ownerNote(t)}, nil
}

// ownerNote returns one line that says whose tool this is, what an approval covers besides the call, and how the server
// describes the tool.
func (s *server) ownerNote(t guard.Tool) reason.Reason {
	text := reason.Notes(reason.New(reason.OfServer, s.cfg.ID), reason.Trust(string(s.cfg.Trust)))
	if s.m.o.Sample != nil && s.cfg.Trust != guard.Sandboxed {
		text = text.And(reason.New(reason.MayAskModel))
	}
	if says := t.Annotations.Note(s.cfg.Trust); says.Known() {
		text = text.And(says)
	}
	return text
}

// finder collects the paths and addresses in arguments.
type finder struct {
	list []string
}

// walkValue collects from one value. named says that its key is one that holds paths.
func (f *finder) walkValue(v any, named bool, depth int) {
	if depth > maxSubjectDepth || len(f.list) >= maxSubjectPaths {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			f.walkValue(v[k], isPathKey(k), depth+1)
		}
	case []any:
		for _, each := range v {
			f.walkValue(each, named, depth+1)
		}
	case string:
		f.addText(v, named)
	}
}

// addText adds a string that is a path or an address, according to its key or its form.
func (f *finder) addText(s string, named bool) {
	if s == "" || len(s) > 4096 || strings.ContainsAny(s, "\n\x00") {
		return
	}
	switch {
	case strings.Contains(s, "://"):
		if i := strings.Index(s, "://"); strings.ContainsAny(s[:i], " \t\"'(") {
			return // an address inside a longer text
		}
	case strings.HasPrefix(s, "/"), strings.HasPrefix(s, "~/"), strings.HasPrefix(s, "../"), strings.HasPrefix(s, "./"):
		if strings.ContainsAny(s, "\t") {
			return
		}
		s = path.Clean(s)
	case named:
		s = path.Clean(s)
	default:
		return
	}
	if !slices.Contains(f.list, s) {
		f.list = append(f.list, s)
	}
}

func isPathKey(key string) bool {
	key = strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', '.', ' ':
			return -1
		}
		return r
	}, strings.ToLower(key))
	return slices.Contains(pathKeys, key)
}
