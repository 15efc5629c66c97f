package file

import (
	"io/fs"
	"strings"

	"github.com/zephbot/zephbot/tools"
)

type listArgs struct {
	Path string `json:"path" jsonschema:"directory to list, relative to the working directory or absolute"`
}

func (t *toolset) listDirectory() (tools.Tool, error) {
	return onPath[listArgs]{
		def: tools.Definition{
			Name: "list_directory", ReadOnly: true,
			Description: "Lists what is in a directory: directories first, then files, then links, each " +
				"sorted by name.",
		},
		path: func(in listArgs) string { return in.Path }, follow: true,
		may: func(s *scope, p place, _ listArgs) error {
			if p.isRoot() { // it is made when it is used first
				return nil
			}
			return mayList(s, p)
		},
		run: func(s *scope, p place, _ listArgs) (*tools.Result, error) { return listDir(s, p) },
	}.newTool(t)
}

// maxListed limits the lines of a listing.
const maxListed = 2000

// mayList returns why there is nothing to list.
func mayList(s *scope, p place) error {
	switch {
	case !p.doesExist():
		return s.missingError(p)
	case !p.isDir():
		return failedError("Use read to see its content.", "%s is not a directory, but %s", quoteName(p.given),
			kindName(p.info.mode))
	}
	return nil
}

func listDir(s *scope, p place) (*tools.Result, error) {
	if err := mayList(s, p); err != nil {
		return nil, err
	}
	d, err := s.dirAt(p.root, p.abs)
	if err != nil {
		return nil, systemError(err, "list", p.given)
	}
	defer d.close()
	groups := map[string][]string{}
	entries, err := s.listEntries(d)
	if err != nil {
		return nil, systemError(err, "list", p.given)
	}
	for _, e := range entries {
		label := labelOf(e.Type())
		groups[label] = append(groups[label], e.Name())
	}
	total := len(entries)
	if total == 0 {
		return &tools.Result{Text: "Empty directory: " + showName(s.displayPath(p.abs))}, nil
	}
	return groupListing(groups, total), nil
}

func labelOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "[dir]  "
	case m&fs.ModeSymlink != 0:
		return "[symlink] "
	case m.IsRegular():
		return "[file] "
	default:
		return "[other] "
	}
}

func groupListing(groups map[string][]string, total int) *tools.Result {
	lines := make([]string, 0, min(total, maxListed)+1)
	for _, label := range []string{"[dir]  ", "[file] ", "[symlink] ", "[other] "} {
		for _, name := range groups[label] {
			if len(lines) < maxListed {
				lines = append(lines, label+showName(name))
			}
		}
	}
	cut := total > maxListed
	if cut {
		lines = append(lines, "… and "+countNoun(total-maxListed, "more entry", "more entries")+
			": use find_path with a pattern")
	}
	return &tools.Result{Text: strings.Join(lines, "\n"), Truncated: cut}
}
