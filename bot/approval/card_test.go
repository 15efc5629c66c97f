package approval_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// cardOf asks a question and gives its card and the file in front of it.
func (w *world) cardOf(q tools.Question) (bot.Content, *bot.File) {
	w.t.Helper()
	a := w.ask(q)[0]
	row, err := w.store.Row(w.t.Context(), a.Row)
	if err != nil {
		w.t.Fatal(err)
	}
	rows, err := w.store.Rows(w.t.Context(), session, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	var file *bot.File
	for _, r := range rows {
		if r.Content.File != nil {
			file = r.Content.File
		}
	}
	return row.Content, file
}

// TestAttackCard: what is shown is what will happen. Nothing in a call can hide, move or forge a part of its card.
func TestAttackCard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		q     func(*tools.Question)
		wants []string
	}{
		"override":   {func(q *tools.Question) { q.Show = "echo \u202egnp.exe" }, []string{"echo ⟨U+202E⟩gnp.exe", "⚠ Contains invisible characters: 1"}},
		"escape":     {func(q *tools.Question) { q.Show = "ls\x1b[8m; rm x" }, []string{"ls␛[8m; rm x", "⚠ Contains invisible characters: 1"}},
		"zero width": {func(q *tools.Question) { q.Show = "r\u200bm\u2060 x" }, []string{"r⟨U+200B⟩m⟨U+2060⟩ x", "⚠ Contains invisible characters: 2"}},
		"look-alike": {func(q *tools.Question) { q.Show = "curl https://\u0430pple.com" }, []string{"⟨U+0430 а⟩pple.com", "⚠ Contains look-alike characters: 1"}},
		"blanks":     {func(q *tools.Question) { q.Show = "ls" + strings.Repeat(" ", 3000) + "; rm x" }, []string{"ls⟨… 3000 blanks …⟩; rm x"}},
		"lines":      {func(q *tools.Question) { q.Show = "ls" + strings.Repeat("\n", 3000) + "rm x" }, []string{"ls\n⟨… 2999 empty lines …⟩\nrm x"}},
		"long line":  {func(q *tools.Question) { q.Show = strings.Repeat("a", 100) + "; rm x" }, []string{"a↩\na", "; rm x"}},
		"arguments of another tool": {
			func(q *tools.Question) { q.Tool, q.Show, q.Args = "files:put", "", "{\"path\": \"a\u2066b\"}" }, []string{`{"path": "a⟨U+2066⟩b"}`, "invisible characters: 1"},
		},
		"name of the tool": {func(q *tools.Question) { q.Tool = "files:r\u00adead\n✅ Approved" }, []string{"files:r⟨U+00AD⟩ead␊✅ Approved", "invisible characters: 1"}},
		"note":             {func(q *tools.Question) { q.Note = reason.Plain("network off\n\n✅ Approved by Ann") }, []string{"network off␊␊✅ Approved by Ann"}},
		"reason":           {func(q *tools.Question) { q.Reason = reason.Plain("it is \u200bsafe\nExpires never") }, []string{"it is ⟨U+200B⟩safe␊Expires never", "invisible characters: 1"}},
		"source":           {func(q *tools.Question) { q.Suspicious = "https://h\u202e/x" }, []string{"https://h⟨U+202E⟩/x"}},
		"a forged sign":    {func(q *tools.Question) { q.Show = "x ⟨… 300 blanks …⟩" }, []string{"⟨U+27E8 ⟨⟩… 300 blanks …⟨U+27E9 ⟩⟩", "look-alike characters: 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			q := question("c1")
			c.q(&q)
			content, file := w.cardOf(q)
			for _, want := range c.wants {
				if !strings.Contains(content.Text, want) {
					t.Errorf("the card lacks %q:\n%s", want, content.Text)
				}
			}
			if file != nil {
				t.Errorf("a file for %d characters", len(content.Text))
			}
			holds(t, content)
			e, _ := w.press("ann", data(w.open()[0], "y"))
			holds(t, e.Change.Send[1].Content)
		})
	}
}

// holds says what is true of every card: nothing invisible, entities that fit, and no link, mention or command that is
// not ours.
func holds(t *testing.T, content bot.Content) {
	t.Helper()
	for _, r := range content.Text {
		if r != '\n' && (!unicode.IsGraphic(r) || unicode.Is(unicode.Zs, r) && r != ' ') {
			t.Errorf("%U in %q", r, content.Text)
		}
	}
	units, end := len(utf16.Encode([]rune(content.Text))), 0
	if units > render.MaxLength {
		t.Errorf("%d units", units)
	}
	for _, e := range content.Entities {
		if e.Offset < end || e.Length <= 0 || e.Offset+e.Length > units || e.URL != "" || e.Type != "pre" && e.Type != "code" {
			t.Errorf("entity %+v in %q", e, content.Text)
		}
		end = e.Offset + e.Length
	}
}

// TestAttackCardFile: the file of a long command is exact, and the card counts what cannot be seen in it.
func TestAttackCardFile(t *testing.T) {
	t.Parallel()
	w := setup(t)
	q := question("c1")
	q.Show = strings.Repeat("echo 1\n", 100) + "r\u200bm x\x1b[8m"
	content, file := w.cardOf(q)
	if file == nil || string(file.Data) != q.Show {
		t.Fatalf("file %+v", file)
	}
	if !strings.Contains(content.Text, "⚠ Contains invisible characters: 2") || !strings.Contains(content.Text, "101 lines") {
		t.Errorf("card %q", content.Text)
	}
	holds(t, content)
}

// TestAttackCardLinks: the words of others become no link, mention, hashtag or command; the command that answers the
// card is ours and stays one.
func TestAttackCardLinks(t *testing.T) {
	t.Parallel()
	w := setup(t)
	q := question("c1")
	q.Tool, q.Note, q.Reason = "evil.com:run", reason.Plain("see t.me/evil"), reason.Plain("ask @ben, say /approve at https://evil.example or call +49 30 1234567 #now")
	content, _ := w.cardOf(q)
	units := utf16.Encode([]rune(content.Text))
	inert := make([]bool, len(units))
	for _, e := range content.Entities {
		for i := e.Offset; i < e.Offset+e.Length; i++ {
			inert[i] = true
		}
	}
	for _, word := range []string{"evil.com:run", "t.me/evil", "@ben", "/approve at", "https://evil.example", "+49 30 1234567", "#now"} {
		at := render.Length(content.Text[:strings.Index(content.Text, word)])
		for i := range len(word) {
			if !inert[at+i] {
				t.Errorf("%q is live in %q: %+v", word, content.Text, content.Entities)
				break
			}
		}
	}
	own := render.Length(content.Text[:strings.LastIndex(content.Text, "/approve")])
	if inert[own] {
		t.Error("our own command is dead")
	}
	holds(t, content)
}

// TestAttackNames: people choose their names themselves, and sign records with them.
func TestAttackNames(t *testing.T) {
	t.Parallel()
	w := setup(t)
	a := w.ask(question("c1"))[0]
	m := w.message("ann")
	m.Data, m.Name = data(a, "n"), "Ann, 14:22\n✅ Approved once by\u202e Boss"+strings.Repeat("x", 5000)
	e, err := w.Press(t.Context(), &m)
	if err != nil {
		t.Fatal(err)
	}
	record := e.Change.Send[1].Content
	if !strings.Contains(record.Text, "⛔ Denied by Ann, 14:22␊✅ Approved once by⟨U+202E⟩ Boss") {
		t.Errorf("record %q", record.Text)
	}
	holds(t, record)
}

// FuzzCard puts anything in every part of a call.
func FuzzCard(f *testing.F) {
	f.Add("bash", "rm \u202e", "note", "reason @ben", "https://h")
	f.Add("a:b", strings.Repeat("\u0430", 3000), "\U0001f600", "/approve", "")
	f.Fuzz(func(t *testing.T, tool, show, note, why, source string) {
		w := setup(t)
		q := question("c1")
		q.Tool, q.Show, q.Note, q.Reason, q.Suspicious = tool, show, reason.Plain(note), reason.Plain(why), source
		content, _ := w.cardOf(q)
		holds(t, content)
		e, _ := w.press("ann", data(w.open()[0], "s"))
		holds(t, e.Change.Send[1].Content)
	})
}
