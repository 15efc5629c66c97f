package config

import (
	"slices"

	"github.com/pelletier/go-toml/v2/unstable"
)

// maxDepth limits the length of paths that are indexed; deeper keys have the line of the table that contains them.
const maxDepth = 12

// lines finds the line of every key and table of a document by its path (see join and item).
type lines struct {
	at     map[string]int
	starts []int          // offset of the beginning of each line
	counts map[string]int // number of entries of each [[table]] so far
}

// indexLines reads the positions of data, which must be a valid document.
func indexLines(data []byte) map[string]int {
	l := lines{at: map[string]int{}, starts: []int{0}, counts: map[string]int{}}
	for i, c := range data {
		if c == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	var p unstable.Parser
	p.Reset(data)
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = l.header(e.Key(), e.Kind == unstable.ArrayTable)
		case unstable.KeyValue:
			l.keyValue(table, e, 0)
		default: // comments
		}
	}
	return l.at
}

// header records a table header and returns the path of the table.
func (l *lines) header(keys unstable.Iterator, array bool) string {
	path, depth := "", 0
	for keys.Next() {
		if depth++; depth > maxDepth {
			return path
		}
		key := keys.Node()
		path = join(path, string(key.Data))
		l.note(path, key)
		last := key.Next() == nil
		if last && array {
			l.counts[path]++
		}
		if n := l.counts[path]; n > 0 {
			path = item(path, n-1)
			l.note(path, key)
		}
	}
	return path
}

func (l *lines) keyValue(path string, kv *unstable.Node, depth int) {
	keys := kv.Key()
	for keys.Next() {
		if depth++; depth > maxDepth {
			return
		}
		path = join(path, string(keys.Node().Data))
		l.note(path, keys.Node())
	}
	l.value(path, kv.Value(), depth)
}

// value records the keys inside inline tables and lists of them.
func (l *lines) value(path string, v *unstable.Node, depth int) {
	if depth > maxDepth {
		return
	}
	children := v.Children()
	switch v.Kind {
	case unstable.InlineTable:
		for children.Next() {
			l.keyValue(path, children.Node(), depth+1)
		}
	case unstable.Array:
		for i := 0; children.Next(); i++ {
			l.at[item(path, i)] = l.at[path]
			l.value(item(path, i), children.Node(), depth+1)
		}
	default: // scalars contain no keys
	}
}

// note records the line of a key, unless it has one already.
func (l *lines) note(path string, key *unstable.Node) {
	if _, ok := l.at[path]; ok {
		return
	}
	line, exact := slices.BinarySearch(l.starts, int(key.Raw.Offset))
	if exact {
		line++
	}
	l.at[path] = line
}
