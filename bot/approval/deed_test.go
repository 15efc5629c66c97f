package approval_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// TestCardOfDeed: the first line of a card says what would happen, then comes what is approved, then why it is asked.
func TestCardOfDeed(t *testing.T) {
	t.Parallel()
	const diff = "--- a/notes.md\n+++ b/notes.md\n@@ -1 +1 @@\n-old\n+new\n"
	for name, c := range map[string]struct {
		change func(*tools.Question)
		want   []string // in this order
		never  []string
		file   string
		button bool
		record string
	}{
		"tried": {
			change: func(q *tools.Question) {
				q.Effect = &tools.Effect{Deleted: []string{"export.tmp", "notes.tmp"}, Output: "a\nb\n", Exit: 2, Compared: 10, Partial: true}
			},
			want:   []string{"✋ Deletes 2 files: export.tmp, notes.tmp. May I?\nbash · ", "rm c1", "It printed:\na\nb\nIts exit code was 2.", "first 10 are compared", "Why I ask: no rule"},
			record: "Deletes 2 files: export.tmp, notes.tmp\nrm c1\n⛔ Denied",
		},
		"tried, with differences": {
			change: func(q *tools.Question) {
				q.Effect = &tools.Effect{Changed: []tools.FileEffect{{Path: "notes.md", Added: 1, Removed: 1}}, Diff: diff}
			},
			want: []string{"✋ Writes notes.md (+1 −1). May I?", "rm c1"}, never: []string{"+new"}, button: true, record: "Writes notes.md (+1 −1)\nrm c1",
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
			want: []string{"✋ Creates a (+90). May I?", "+x\n…", "The whole text is in the file above: 90 lines"}, file: "changes.diff.txt", record: "Creates a (+90)",
		},
		"a move": {
			change: func(q *tools.Question) {
				q.Show, q.Command, q.Deed = "move a → b (file of 1 byte)", false, &tools.Effect{Moved: []tools.MoveEffect{{From: "a", To: "b"}}}
			},
			want: []string{"✋ Moves a to b. May I?", "move a → b"}, record: "Moves a to b\nmove a → b",
		},
		"nothing": {change: func(q *tools.Question) { q.Effect = &tools.Effect{} }, want: []string{"✋ Changes no file. May I?", "rm c1"}, record: "Changes no file\nrm c1"},
		"again":   {change: func(q *tools.Question) { q.Effect, q.Again = &tools.Effect{}, true }, want: []string{"rm c1", "⚠ What it would do has changed since it was approved."}, record: "Changes no file\nrm c1"},
		"not known": {
			change: func(q *tools.Question) { q.Effect = &tools.Effect{Unknown: tools.UnknownNetwork, Tried: "evil.com"} },
			want:   []string{"✋ May I run this?\nbash", "rm c1", "I cannot show beforehand what this does: it needs the network. (evil.com)"}, record: "bash\nrm c1",
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
				if shown := e.Change.Send[1]; !strings.HasSuffix(shown.Content.Text, "-old\n+new") || shown.Place != here || w.read(a.ID).State != bot.Open {
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
		{"xargs rm", reason.New(reason.RunsUncertain, "`xargs rm`").With(reason.New(reason.WordsUnknown)), "It is not certain what this runs: its words are not known before it runs."},
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
