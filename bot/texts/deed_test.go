package texts_test

import (
	"testing"

	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/tools"
)

// unknowns are all reasons why an effect is not known, and one that is new.
var unknowns = []tools.Unknown{
	tools.UnknownNetwork, tools.UnknownElsewhere, tools.UnknownSlow, tools.UnknownLarge, tools.UnknownSpecial, tools.UnknownBusy, tools.UnknownFailed,
	tools.UnknownRename, tools.UnknownOwners, tools.UnknownHidden, tools.UnknownBehind, tools.UnknownRule, tools.UnknownMachine,
	tools.UnknownBackground, tools.UnknownOutside, "?",
}

// deeds says everything about what a call would do.
func deeds(l string, m map[string][]string) {
	for _, c := range doings {
		m["Deed"] = append(m["Deed"], w.Deed(l, &c.effect))
	}
	m["Printed"] = []string{w.Printed(l)}
	for _, why := range unknowns {
		m["Untold"] = append(m["Untold"], w.Untold(l, why, "h"))
	}
	m["DiffButton"] = []string{w.DiffButton(l)}
	m["CardFoot"] = append(m["CardFoot"], w.CardFoot(l, texts.Card{Again: true, NoAlways: true, Exit: 2, Partial: 1, Untold: w.Untold(l, "slow", "")}), w.CardFoot(l, texts.Card{Partial: 1000}))
	m["CardHead"] = append(m["CardHead"], w.CardHead(l, texts.Card{Tool: "x", Deed: w.Deed(l, &doings[0].effect)}))
}

var doings = []struct {
	effect tools.Effect
	want   string
}{
	{tools.Effect{Deleted: []string{"export.tmp", "notes.tmp"}}, "Deletes 2 files: export.tmp, notes.tmp"},
	{tools.Effect{Changed: []tools.FileEffect{{Path: "notes.md", Added: 12, Removed: 3}}}, "Writes notes.md (+12 −3)"},
	{tools.Effect{Created: []tools.FileEffect{{Path: "a", Added: 1}}}, "Creates a (+1)"},
	{tools.Effect{Created: []tools.FileEffect{{Path: "d/"}, {Path: "e.png"}}}, "Creates e.png · Creates d/"},
	{
		tools.Effect{Created: []tools.FileEffect{{Path: "a", Added: 1}, {Path: "d/"}, {Path: "b"}, {Path: "e/"}}, Omitted: tools.Omitted{CreatedDirs: 5}},
		"Creates 2 files: a (+1), b · Creates 7 directories: d/, e/, 5 more",
	},
	{tools.Effect{Deleted: []string{"d/", "e/", "f"}}, "Deletes f · Deletes 2 directories: d/, e/"},
	{tools.Effect{Created: []tools.FileEffect{{Path: "d/"}}, Omitted: tools.Omitted{Created: 3}}, "Creates 3 files: … · Creates d/"},
	{tools.Effect{Changed: []tools.FileEffect{{Path: "a", Removed: 2}, {Path: "b", Added: 1}}}, "Writes 2 files: a (−2), b (+1)"},
	{tools.Effect{Moved: []tools.MoveEffect{{From: "a", To: "b"}}}, "Moves a to b"},
	{tools.Effect{Copied: []tools.MoveEffect{{From: "a", To: "b"}}}, "Copies a to b"},
	{tools.Effect{Modes: []tools.ModeEffect{{Path: "run.sh", Before: 0o644, After: 0o755}}}, "Changes permissions: run.sh (0644 → 0755)"},
	{tools.Effect{Deleted: []string{"a", "b", "c", "d", "e", "f"}, Omitted: tools.Omitted{Deleted: 1}}, "Deletes 7 files: a, b, c, d, 3 more"},
	{tools.Effect{Deleted: []string{"a"}, Created: []tools.FileEffect{{Path: "b", Added: 1}}}, "Deletes a · Creates b (+1)"},
	{tools.Effect{Deleted: []string{"a\u202eb\nc"}}, "Deletes a⟨U+202E⟩b␊c"},
	{tools.Effect{}, "Changes no file on this machine"},
}

// TestDeed: the first line of a card says what would happen; names cannot hide or break it.
func TestDeed(t *testing.T) {
	t.Parallel()
	for _, c := range doings {
		if got, _ := render.Marked(w.Deed("en", &c.effect)); got != c.want {
			t.Errorf("%+v:\n%s, want\n%s", c.effect, got, c.want)
		}
	}
	if got := w.Deed("en", nil) + w.Deed("en", &tools.Effect{Unknown: tools.UnknownNetwork}); got != "" {
		t.Errorf("what is not known: %q", got)
	}
}
