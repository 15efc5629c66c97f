package approval_test

import (
	"slices"
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
	for _, word := range []string{"evil.com:run", "t.me/evil", "@ben", "/approve", "https://evil.example", "+49 30 1234567", "#now"} {
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

// TestCardOfDeed: the first line of a card says what would happen, then comes what is approved, then why it is asked.
func TestCardOfDeed(t *testing.T) {
	t.Parallel()
	const diff = "--- a/notes.md\n+++ b/notes.md\n@@ -1 +1 @@\n-old\n+new\n"
	for name, c := range map[string]struct {
		change           func(*tools.Question)
		want             []string // in this order
		never            []string
		file             string
		button           bool
		record           string
		shown, shownFile string // after a press of What changes
	}{
		"tried": {
			change: func(q *tools.Question) {
				q.Effect = &tools.Effect{Deleted: []string{"export.tmp", "notes.tmp"}, Output: "a\nb\n", Exit: 2, Compared: 10, Partial: true}
			},
			want:   []string{"✋ Deletes 2 files: export.tmp, notes.tmp. May I?\nbash · ", "rm c1", "It would print:\na\nb\nIts exit code would be 2.", "first 10 are compared", "Why I ask: no rule"},
			record: "Deletes 2 files: export.tmp, notes.tmp\nrm c1\n⛔ Denied",
		},
		"tried, with differences": {
			change: func(q *tools.Question) {
				q.Effect = &tools.Effect{Changed: []tools.FileEffect{{Path: "notes.md", Added: 1, Removed: 1}}, Diff: diff}
			},
			want: []string{"✋ Writes notes.md (+1 −1). May I?", "rm c1"}, never: []string{"+new"}, button: true, record: "Writes notes.md (+1 −1)\nrm c1",
			shown: "Writes notes.md (+1 −1)\n@@ -1 +1 @@\n-old\n+new",
		},
		"tried, a new file": {
			change: func(q *tools.Question) {
				q.Effect = &tools.Effect{Created: []tools.FileEffect{{Path: "a.txt", Added: 1}}, Diff: "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+new\n"}
			},
			want: []string{"✋ Creates a.txt (+1). May I?"}, button: true, record: "Creates a.txt (+1)\nrm c1",
			shown: "Creates a.txt (+1)\n+new",
		},
		"tried, several files": {
			change: func(q *tools.Question) {
				q.Effect = &tools.Effect{
					Changed: []tools.FileEffect{{Path: "notes.md", Added: 1, Removed: 1}}, Created: []tools.FileEffect{{Path: "a.txt", Added: 1}, {Path: "b.txt", Added: 1}},
					Diff: "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+new\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+x\n" + diff,
				}
			},
			want: []string{"✋ Writes notes.md (+1 −1) · Creates 2 files: a.txt (+1), b.txt (+1). May I?"}, button: true, record: "Writes notes.md (+1 −1) · Creates",
			shown: "Writes notes.md (+1 −1) · Creates 2 files: a.txt (+1), b.txt (+1)\na.txt\n+new\nb.txt\n+x\n--- a/notes.md\n+++ b/notes.md\n@@ -1 +1 @@\n-old\n+new",
		},
		"tried, a long new file": {
			change: func(q *tools.Question) {
				q.Effect = &tools.Effect{Created: []tools.FileEffect{{Path: "d/a.txt", Added: 90}}, Diff: "--- /dev/null\n+++ b/d/a.txt\n@@ -0,0 +1,90 @@\n" + strings.Repeat("+x\n", 90)}
			},
			want: []string{"✋ Creates d/a.txt (+90). May I?"}, button: true, record: "Creates d/a.txt (+90)\nrm c1",
			shown: "Creates d/a.txt (+90)", shownFile: "a.txt.diff.txt",
		},
		"a file tool": {
			change: func(q *tools.Question) {
				q.Tool, q.Show, q.Command = "write", "write notes.md (4 bytes)\nnew\n", false
				q.Deed = &tools.Effect{Changed: []tools.FileEffect{{Path: "notes.md", Added: 1, Removed: 1}}, Diff: diff}
			},
			want: []string{"✋ Writes notes.md (+1 −1). May I?\nwrite", "-old\n+new", "Why I ask"}, never: []string{"4 bytes"}, record: "Writes notes.md (+1 −1)\n@@ -1 +1 @@\n-old\n+new\n⛔",
		},
		"a file tool, long": {
			change: func(q *tools.Question) {
				q.Deed = &tools.Effect{Created: []tools.FileEffect{{Path: "a", Added: 90}}, Diff: "--- /dev/null\n+++ b/a\n@@ -0,0 +1,90 @@\n" + strings.Repeat("+x\n", 90) + "\\ No newline at end of file\n"}
			},
			want: []string{"✋ Creates a (+90). May I?", "+x\n…", "The whole text is in the file above: 90 lines"}, file: "a.diff.txt", record: "Creates a (+90)",
		},
		"a move": {
			change: func(q *tools.Question) {
				q.Show, q.Command, q.Deed = "move a → b (file of 1 byte)", false, &tools.Effect{Moved: []tools.MoveEffect{{From: "a", To: "b"}}}
			},
			want: []string{"✋ Moves a to b. May I?", "move a → b"}, record: "Moves a to b\nmove a → b",
		},
		"nothing": {change: func(q *tools.Question) { q.Effect = &tools.Effect{} }, want: []string{"✋ Changes no file on this machine. May I?", "rm c1"}, record: "Changes no file on this machine\nrm c1"},
		"again":   {change: func(q *tools.Question) { q.Effect, q.Again = &tools.Effect{}, true }, want: []string{"rm c1", "⚠ What it would do has changed since it was approved."}, record: "Changes no file on this machine\nrm c1"},
		"not known": {
			change: func(q *tools.Question) { q.Effect = &tools.Effect{Unknown: tools.UnknownNetwork, Tried: "evil.com"} },
			want:   []string{"✋ May I run this?\nbash", "rm c1", "I cannot show beforehand what this does: it needs the network. (evil.com)"}, record: "rm c1",
		},
		"names that hide": {
			change: func(q *tools.Question) { q.Effect = &tools.Effect{Deleted: []string{"a\u202eb\nApproved @ben"}} },
			want:   []string{"✋ Deletes a⟨U+202E⟩b␊Approved @ben. May I?"}, record: "Deletes a⟨U+202E⟩b␊Approved @ben\nrm c1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			q := question("c1")
			q.Command = true
			c.change(&q)
			content, file := w.cardOf(q)
			holds(t, content)
			rest := content.Text
			for _, want := range c.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("the card lacks %q, or in another place:\n%s", want, content.Text)
				}
				rest = after
			}
			for _, never := range c.never {
				if strings.Contains(content.Text, never) {
					t.Errorf("the card has %q:\n%s", never, content.Text)
				}
			}
			if (file != nil) != (c.file != "") || file != nil && (file.Name != c.file || string(file.Data) != strings.TrimPrefix(strings.Repeat("\n+x", 90), "\n")) {
				t.Errorf("file %+v", file)
			}
			if got := content.Buttons[1][0].Label == "What changes"; got != c.button {
				t.Errorf("buttons %+v", content.Buttons)
			}
			a := w.open()[0]
			e, toast := w.press("boss", data(a, "d"))
			if c.button {
				if toast.Content.Text != "" {
					t.Errorf("nothing was decided: %q", toast.Content.Text)
				}
				if shown := e.Change.Send[1]; shown.Content.Text != c.shown || (shown.Content.File != nil) != (c.shownFile != "") || shown.Content.File != nil && shown.Content.File.Name != c.shownFile || shown.Place != here || w.read(a.ID).State != bot.Open {
					t.Errorf("what changes: %+v", shown)
				}
				holds(t, e.Change.Send[1].Content)
			} else if len(e.Change.Send) != 1 || !toast.Alert {
				t.Errorf("a forged press: %+v", e.Change.Send)
			}
			e, _ = w.press("ann", data(a, "n"))
			if record := e.Change.Send[1].Content; !strings.HasPrefix(record.Text, c.record) {
				t.Errorf("record %q", record.Text)
			} else {
				holds(t, record)
			}
		})
	}
}

// TestReasonDoesNotRepeat: why it is asked does not repeat the command without its quotes: it is above.
func TestReasonDoesNotRepeat(t *testing.T) {
	t.Parallel()
	rm, git := "`rm a b`", "`git show x:y z`"
	for _, c := range []struct {
		show string
		why  reason.Reason
		want string
	}{
		{"rm 'a b'", reason.New(reason.NoRule, rm), "No rule allows `rm`."},
		{"rm a b", reason.New(reason.NoRule, rm), "No rule allows this."},
		{"ls && rm a b", reason.New(reason.NoRule, rm), "No rule allows `rm a b`."},
		{"ls && r\"m\" 'a b'", reason.New(reason.NoRule, rm), "No rule allows this."},
		{"rm -rf " + strings.Repeat("a", 300), reason.New(reason.NoRule, "`rm -rf "+strings.Repeat("a", 60)+"…`"), "No rule allows this."},
		{"rm 'a b'", reason.New(reason.RuleAsks, rm), "A rule wants a person to approve `rm`."},
		{"git show 'x:y'", reason.New(reason.ShowsRepository, git), "`git` shows what the repository keeps, also of files that may not be read."},
		{"make", reason.New(reason.Tried).With(reason.New(reason.WantedWrite, "`Makefile`")), "It was tried where it can change nothing, and wanted to write `Makefile`."},
		{"xargs rm", reason.New(reason.RunsUncertain, "`xargs rm`").With(reason.New(reason.WordsUnknown)), "It is not certain what this command runs: its words are not known before it runs."},
		{"rm a", reason.Reason{}, "No rule allows `rm a`."},
	} {
		w := setup(t)
		q := question("c1")
		q.Command, q.Show, q.Reason, q.English = true, c.show, c.why, "No rule allows `rm a`."
		content, _ := w.cardOf(q)
		if !strings.Contains(content.Text, "Why I ask: "+strings.ReplaceAll(c.want, "`", "")) { // in the card, what is quoted is code
			t.Errorf("%s, %s: want %q in\n%s", c.show, c.why, c.want, content.Text)
		}
	}
}

// TestReasonWithoutCommand: a reason whose command is left out, because it is above, has a sentence that was written for
// that, rather than a gap with "this".
func TestReasonWithoutCommand(t *testing.T) {
	t.Parallel()
	english, left := reason.English(), 0
	for code, sentence := range english {
		args := slices.Repeat([]string{"`make x`"}, strings.Count(sentence, "%s"))
		if strings.HasSuffix(string(code), "_this") || len(args) == 0 {
			continue
		}
		w := setup(t)
		q := question("c1")
		q.Command, q.Show, q.Reason = true, "make x", reason.New(code, args...)
		content, _ := w.cardOf(q)
		_, why, _ := strings.Cut(content.Text, "Why I ask: ")
		why, _, _ = strings.Cut(why, "\n")
		if strings.Count(why, "make x") == len(args) {
			continue
		}
		left++
		if english[code+"_this"] == "" {
			t.Errorf("%s: %q", code, why)
		}
	}
	if left < 10 {
		t.Errorf("the command was left out of %d reasons", left)
	}
}
