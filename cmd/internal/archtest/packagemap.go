package archtest

import (
	"errors"
	"fmt"
	"go/doc"
	"io/fs"
	"slices"
	"strings"
)

// mapWidth is how many characters of a comment a line of the map shows.
const mapWidth = 62

// PackageMap returns the packages of a tree by layer, as the lines of a text block: for each its directory and what the
// first sentence of its comment says it is. A package below another one than its layer (agent/llm/openai)
// is named without a sentence, and one that only tests use (agent/llm/llmtest) is left out. names are the
// files of the tree, as for Check.
func PackageMap(tree fs.FS, names []string) (string, error) {
	module, err := moduleOf(tree)
	if err != nil {
		return "", err
	}
	said := map[string]string{}
	for _, name := range names {
		if !isGo(name) || strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := fs.ReadFile(tree, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read the tree: %w", err)
		}
		f, err := parse(module, name, data)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if said[f.dir] == "" {
			said[f.dir] = packageSummary(f.ast.Doc.Text())
		}
	}
	var b strings.Builder
	for _, layer := range layers {
		writeLayer(&b, layer, said)
	}
	return b.String(), nil
}

// writeLayer writes the packages of one layer. The directory cmd/internal counts as the layer itself.
func writeLayer(b *strings.Builder, layer string, said map[string]string) {
	inner := map[string][]string{} // the packages below a package of the layer
	var rooms []string
	for dir := range said {
		rest, below := strings.CutPrefix(dir, layer+"/")
		if !below {
			continue
		}
		rest = strings.TrimPrefix(rest, "internal/")
		room, deeper, isDeeper := strings.Cut(rest, "/")
		switch {
		case layer != "cmd" && strings.HasSuffix(dir, "test"):
		case isDeeper:
			inner[room] = append(inner[room], deeper)
		default:
			rooms = append(rooms, room)
		}
	}
	slices.Sort(rooms)
	writeRoom(b, strings.ToUpper(layer), said[layer])
	for _, room := range rooms {
		text := said[layer+"/"+room]
		if text == "" {
			text = said[layer+"/internal/"+room]
		}
		writeRoom(b, " "+room, text)
		if deeper := inner[room]; len(deeper) > 0 {
			slices.Sort(deeper)
			writeNames(b, room+"/", deeper)
		}
	}
}

func writeRoom(b *strings.Builder, room, text string) {
	b.WriteString(strings.TrimRight(fmt.Sprintf("%-12s %s", room, text), " ") + "\n")
}

// writeNames writes a list of packages, broken at the width of the map.
func writeNames(b *strings.Builder, head string, names []string) {
	line := "  " + head
	for _, name := range names {
		if len(line)+1+len(name) > mapWidth+20 {
			b.WriteString(line + "\n")
			line = "   "
		}
		line += " " + name
	}
	b.WriteString(line + "\n")
}

// packageSummary returns what the first sentence of a package comment says about the package, without its name, and
// without the list or the subordinate clause that explains it.
func packageSummary(comment string) string {
	text := strings.TrimSuffix(new(doc.Package).Synopsis(comment), ".")
	for _, kind := range []string{"Package ", "Command "} {
		if rest, ok := strings.CutPrefix(text, kind); ok {
			_, text, _ = strings.Cut(rest, " ")
		}
	}
	for _, mark := range []string{": ", "; ", " (", ", which ", ", so that "} {
		text, _, _ = strings.Cut(text, mark)
	}
	text = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(text, ":"), "is "), "the ")
	if len(text) <= mapWidth {
		return text
	}
	cut := strings.LastIndex(text[:mapWidth], ", ")
	if cut < mapWidth/3 {
		cut = strings.LastIndex(text[:mapWidth], " ")
		return text[:cut] + " …"
	}
	return text[:cut]
}
