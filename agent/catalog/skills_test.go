package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/skill"
)

// TestSkills: few skills are all listed, of many those that fit; without any, the tool that loads them is not shown.
func TestSkills(t *testing.T) {
	t.Parallel()
	use := tools.Definition{Name: skill.ToolName, Description: "Loads a skill that fits the work.", Schema: []byte(`{"type":"object"}`)}
	k := setup(t, catalog.Options{Filter: catalog.Filter{MinSimilarity: 0.3}}, tools.Definition{Name: "bash", Description: "Runs a command.", Schema: use.Schema}, use)
	var list []skill.Entry
	add := func(name, description string) {
		list = append(list, skill.Entry{Skill: &skill.Skill{Name: name, Description: description}, State: skill.InUse})
	}
	own := func(tools.Origin) []skill.Entry { return slices.Clone(list) }
	s, err := catalog.NewSkills(k.Catalog, own, func() []skill.Entry {
		return append(own(tools.Origin{}), skill.Entry{
			Skill: &skill.Skill{Name: "invoices", Description: "Writes invoices for customers."}, State: skill.InUse, // of another chat
		})
	}, use)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	show := func(query string, overlay *tools.Overlay) (names []string, lines []string) {
		n++
		turn := &agent.Turn{ID: fmt.Sprint(n), Tools: overlay, Origin: tools.Origin{Session: "s"}}
		for _, o := range s.Tools(cost.WithPayer(t.Context(), cost.Unlimited{}), turn, agent.View{Query: query, Step: 1}) {
			names = append(names, o.Name)
		}
		return names, turn.Skills
	}
	if names, lines := show("hello", nil); slices.Contains(names, skill.ToolName) || lines != nil || len(names) != 1 {
		t.Errorf("without skills: %v %v", names, lines)
	}
	add("pdf", "Fills in\nPDF forms.")
	if names, lines := show("hello", nil); len(names) != 2 || !slices.Equal(lines, []string{"pdf: Fills in PDF forms."}) {
		t.Errorf("one skill: %v %v", names, lines)
	}
	if names, lines := show("hello", tools.Only(func(name string) bool { return name == "bash" })); len(names) != 1 || lines != nil {
		t.Errorf("a chat without the tool: %v %v", names, lines)
	}
	for name := range strings.FieldsSeq("alpha beta gamma delta epsilon zeta eta theta iota kappa") {
		add(name, "Deals with "+name+" particles in accelerators.")
	}
	add("travel", "Books trains and hotels for a journey.")
	_, lines := show("please book trains and hotels for my journey to invoices", nil)
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "travel: ") }) || len(lines) >= len(list) {
		t.Errorf("of many: %v", lines)
	}
	if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "invoices") }) {
		t.Errorf("a skill of another chat is listed: %v", lines)
	}
	if _, lines := show("use kappa", nil); !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "kappa: ") }) {
		t.Errorf("by name: %v", lines)
	}
	for range 200 {
		add(fmt.Sprintf("more-%d", len(list)), "Сделает всё.")
	}
	if _, lines := show("сделай всё", nil); len(lines) > 16 {
		t.Errorf("%d lines", len(lines))
	}
}
