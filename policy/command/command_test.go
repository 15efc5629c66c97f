package command_test

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/command"
)

// corpus has a head line, then one row a line: id, facets, blocked entry, names of all commands, text, why.
// ⏎ stands for a newline and ⇥ for a tab. The facets are letters: B blocked, C confirm, I indirect, N network,
// P problem, R only reads.
//
//go:embed testdata/commands.tsv
var corpus string

type row struct {
	line                             int
	id, facets, blocked, names, text string
}

func rows(tb testing.TB) (list []row) {
	tb.Helper()
	unescape := strings.NewReplacer("⏎", "\n", "⇥", "\t")
	for i, line := range strings.Split(strings.TrimSuffix(corpus, "\n"), "\n")[1:] {
		cols := strings.Split(line, "\t")
		if len(cols) != 6 {
			tb.Fatalf("line %d has %d columns, want 6", i+2, len(cols))
		}
		list = append(list, row{line: i + 2, id: cols[0], facets: cols[1], blocked: cols[2], names: cols[3], text: unescape.Replace(cols[4])})
	}
	return list
}

// judge returns everything that the package says about a text, in the letters of the corpus.
func judge(s command.Script, allowed ...string) (facets, blocked, names string) {
	blocked, isBlocked := command.Blocked(s, allowed)
	_, confirm := command.Confirm(s, nil)
	_, network := command.Network(s)
	_, reads := command.ReadsOnly(s)
	for _, facet := range []struct {
		letter string
		on     bool
	}{{"B", isBlocked}, {"C", confirm}, {"I", len(s.Reasons()) > 0}, {"N", network}, {"P", s.Problem != ""}, {"R", reads}} {
		if facet.on {
			facets += facet.letter
		}
	}
	var list []string
	for _, c := range s.Commands {
		list = append(list, c.Name)
	}
	return facets, blocked, strings.Join(list, " ")
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	list := rows(t)
	if len(list) < 160 {
		t.Errorf("the corpus has %d rows, want at least 160", len(list))
	}
	for _, r := range list {
		t.Run(fmt.Sprintf("%d_%s", r.line, r.id), func(t *testing.T) {
			t.Parallel()
			var allowed []string
			if r.id == "S19" {
				allowed = []string{"curl"}
			}
			facets, blocked, names := judge(command.Parse(r.text), allowed...)
			want := []string{r.facets, strings.TrimSpace(r.blocked), r.names}
			if diff := cmp.Diff(want, []string{facets, strings.TrimSpace(blocked), names}); diff != "" {
				t.Errorf("%q (-want +got):\n%s%q", r.text, diff, command.Parse(r.text).Indirect)
			}
		})
	}
}
