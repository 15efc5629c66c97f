package texts_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/policy/reason"
)

func TestReason(t *testing.T) {
	t.Parallel()
	clause := reason.New(reason.FunctionExported)
	for _, tt := range []struct {
		language string
		why      reason.Reason
		want     string
	}{
		{"de", reason.New(reason.NoRule, "`touch it`"), "Keine Regel erlaubt `touch it`."},
		{"de", reason.New(reason.NoRule, "`100 %s {of}`"), "Keine Regel erlaubt `100 %s {of}`."},
		{"de", reason.New(reason.NoRule, "`x`").Quoting(""), "Keine Regel erlaubt das."},
		{"de", reason.New(reason.RunsUncertain, "`x`").With(clause).Quoting(""), "Es ist nicht sicher, was dieser Befehl ausführt: eine Funktion geht an andere Shells."},
		{"de", reason.New(reason.NoRuleOn, "`a`").With(reason.Verb("write")), "Keine Regel erlaubt, `a` zu schreiben."},
		{"de", reason.New(reason.NoRuleOn, "`a`").With(reason.Verb("x%s:y")), "Keine Regel erlaubt, `a` mit x%s:y zu bearbeiten."},
		{"de", reason.New(reason.FilesUncertain, "`cat $x`"), "Es ist nicht sicher, welche Dateien `cat $x` liest."},
		{"de", reason.Reason{Code: reason.OptionUnnamed, Args: []string{"`--output`"}, Detail: "of git diff writes a file"}, "`--output` kann mehr, als die Regel nennt."},
		{"de", reason.New(reason.Tried).With(reason.New(reason.WantedWrite, "`a`")), "Er wurde dort versucht, wo er nichts ändern kann, und wollte `a` schreiben."},
		{"es", reason.New(reason.RuleDeniesUse, "`/a b`").With(reason.Verb("write")), "Una regla prohíbe escribir `/a b`."},
		{"ru", reason.New(reason.RedirectionWrites, "`a > b`", "`b`"), "`a > b` записывает свой вывод в `b`."},
		{"en", reason.New(reason.RuleDenies, "`rm`"), "A rule denies `rm`."},
		{
			"de", reason.New(reason.ContentFlagged, "file:a.txt"),
			"Fremder Text (die Datei a.txt) hat in diesem Gespräch versucht, mir Anweisungen zu geben; darum muss das jemand erlauben.",
		},
		{"ru", reason.New(reason.WayServer, "command", "`x`"), "После чужого текста (вывод команды) это может передать что-то из этого разговора серверу `x`."},
		{"es", reason.New(reason.WayServer, "the file x", "`x`"), "Después de un texto ajeno (the file x), esto puede llevar algo de esta conversación al servidor `x`."},
		{"de", reason.Reason{}, ""},
		{"de", reason.New("of_tomorrow"), ""},
		{"de", reason.New(reason.NoRule), ""},
	} {
		if got := w.Reason(tt.language, tt.why); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.why, got, tt.want)
		}
	}
	if got := w.Said("de", reason.Notes(reason.New(reason.OfServer, "x"), reason.Trust("untrusted"), reason.New(reason.ServerSaysDoubtful).With(reason.New(reason.HintReads), reason.New(reason.HintOpen)))); got !=
		"Server x · nicht vertrauenswürdig · Der Server sagt: er liest nur, er erreicht andere Systeme. Er ist nicht vertrauenswürdig." {
		t.Error(got)
	}
}

// TestReasonLeftOut: a sentence without the command that it is about is whole, and says nothing twice.
func TestReasonLeftOut(t *testing.T) {
	t.Parallel()
	write := reason.Verb("write")
	for _, tt := range []struct {
		why            reason.Reason
		de, es, ru, en string
	}{
		{
			reason.New(reason.RedirectionWrites, "`echo Kuchen > kuchen.txt`", "`kuchen.txt`"), "Dieser Befehl schreibt seine Ausgabe nach `kuchen.txt`.",
			"Este comando escribe su salida en `kuchen.txt`.", "Эта команда записывает свой вывод в `kuchen.txt`.", "This command writes its output to `kuchen.txt`.",
		},
		{
			reason.New(reason.NoRuleOn, "x").With(write), "Keine Regel erlaubt das.",
			"Ninguna regla permite esto.", "Ни одно правило этого не разрешает.", "No rule allows this.",
		},
		{reason.New(reason.RuleDenies, "x"), "Eine Regel verbietet das.", "Una regla prohíbe esto.", "Правило запрещает это.", "A rule denies this."},
		{reason.New(reason.NoRule, "x"), "Keine Regel erlaubt das.", "Ninguna regla permite esto.", "Ни одно правило этого не разрешает.", "No rule allows this."},
		{
			reason.New(reason.GrantedAlways, "x"), "Eine Regel, die ein Admin gespeichert hat, erlaubt das.",
			"Una regla que guardó un administrador permite esto.", "Правило, сохранённое администратором, разрешает это.", "A rule that an admin stored allows this.",
		},
	} {
		for language, want := range map[string]string{"de": tt.de, "es": tt.es, "ru": tt.ru, "en": tt.en} {
			if got := w.Reason(language, tt.why.Quoting("")); got != want {
				t.Errorf("%s, %s: %q, want %q", language, tt.why.Code, got, want)
			}
		}
	}
	for code := range reason.English() {
		base, whole := strings.CutSuffix(string(code), "_this")
		if !whole {
			continue
		}
		for _, l := range w.Languages() {
			args := strings.Count(reason.English()[code], "%s")
			left := reason.New(reason.Code(base), slices.Repeat([]string{"x"}, args+1)...).Quoting("")
			if got, want := w.Reason(l, left), w.Reason(l, reason.New(code, slices.Repeat([]string{"x"}, args)...)); got != want || got == "" {
				t.Errorf("%s, %s: %q, want %q", l, base, got, want)
			}
		}
	}
}

// TestReasonOfOldRecord: what an older version stored has only its English sentence, which is shown as it is.
func TestReasonOfOldRecord(t *testing.T) {
	t.Parallel()
	old := texts.Refusal{Tool: "bash", Args: "{}", Reason: reason.Plain("No rule allows `x`."), Rule: "default: ask (no matching rules)"}
	if got := w.Why("de", true, []texts.Refusal{old}); !strings.Contains(got, old.Reason.String()) {
		t.Error(got)
	}
}

// TestReasonsHaveSentences: every language says every code; the files of languages are checked for it as they are read,
// and English is what the audit log says. No code is left that nothing gives.
func TestReasonsHaveSentences(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, layer := range []string{"policy", "tools", "agent", "bot", "persistence", "cmd"} {
		err := filepath.WalkDir(filepath.Join("../..", layer), func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "reason/codes.go") {
				return err
			}
			data, err := os.ReadFile(name)
			source.Write(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	word := regexp.MustCompile(`[A-Za-z]+`)
	same := []reason.Code{reason.Name, reason.Note, reason.OfServer, reason.TextUnparsed, reason.SandboxHas, reason.SandboxWhy} // in every language
	used := map[string]bool{}
	for _, name := range word.FindAllString(source.String(), -1) {
		used[strings.ToLower(name)] = true
	}
	for code, english := range reason.English() {
		said := reason.New(code, slices.Repeat([]string{"x"}, strings.Count(english, "%s"))...)
		said.Detail, said.Of = "x", []reason.Reason{reason.Plain("x")}
		for _, l := range w.Languages() {
			if got := w.Reason(l, said); l != "en" && got == w.Reason("en", said) && !slices.Contains(same, code) || got == "" || strings.Contains(got, "%!") {
				t.Errorf("%s: %s says %q", code, l, got)
			}
		}
		if name := strings.ReplaceAll(string(code), "_", ""); !used[name] && !strings.HasPrefix(string(code), "verb_") && !strings.HasPrefix(string(code), "from_") && !strings.HasPrefix(string(code), "trust_") && !strings.HasSuffix(string(code), "_this") {
			t.Errorf("nothing gives the reason %s", code)
		}
	}
	if diff := cmp.Diff(reason.English(), texts.EnglishReasons()); diff != "" {
		t.Errorf("en.toml says other words than the audit log (-audit +en.toml):\n%s", diff)
	}
}

func TestSaid(t *testing.T) {
	t.Parallel()
	level := reason.New(reason.SandboxPartial).With(
		reason.New(reason.SandboxHas).With(reason.Plain("Landlock ABI 5"), reason.Plain("seccomp"), reason.New(reason.SandboxRoot)),
		reason.New(reason.SandboxLacks).With(reason.New(reason.SandboxTable), reason.New(reason.SandboxModes)),
		reason.New(reason.SandboxWhy).With(reason.New(reason.SandboxLinux, "x")),
	)
	want := "Befehle sind teilweise eingeschränkt; Sandbox des Kernels: Landlock ABI 5 + seccomp + eigenes Wurzelverzeichnis; aber die Prozesse eines Befehls sind in der Tabelle der Maschine, Rechte, Besitzer und Zeiten von Dateien außerhalb sind änderbar (die hat nur Linux, das hier ist x)"
	if got := w.Said("de", level); got != want {
		t.Errorf("%q", got)
	}
	taken := reason.New(reason.ServerTaken, "files", "files")
	if got := w.ServerFailed("es", "files", taken); got != "files no funciona: ya hay un servidor files; /mcp remove files lo quita" {
		t.Errorf("%q", got)
	}
	near := reason.New(reason.NamesNoTool, `"raed"`).With(reason.New(reason.DidYouMean, "read"))
	if got := w.Said("de", near); got != `"raed" ist der Name keines Werkzeugs (war read gemeint?)` {
		t.Errorf("%q", got)
	}
}
