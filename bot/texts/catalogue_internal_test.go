package texts

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pelletier/go-toml/v2"

	"github.com/zephbot/zephbot/bot/texts/languages"
)

// TestLanguageFiles: every language has every sentence, with the same gaps, and nothing else. What it reports is the
// list of what is left to translate.
func TestLanguageFiles(t *testing.T) {
	t.Parallel()
	for _, problem := range library().problems {
		if Drafts() && !strings.HasPrefix(problem, "de.") && strings.HasSuffix(problem, " is missing") {
			t.Log(problem)
			continue
		}
		t.Error(problem)
	}
	if n := len(library().books); n < 2 || n != len(languages.Tags()) {
		t.Errorf("%d languages, of %v", n, languages.Tags())
	}
}

// TestNewLanguage: a file is all that a language needs. What is missing or malformed in it is reported, and said in
// English.
func TestNewLanguage(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{}
	for _, name := range []string{"en.toml", "de.toml"} {
		data, err := fs.ReadFile(languages.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: data}
	}
	files["eo.toml"] = &fstest.MapFile{Data: []byte(`
[ended]
stopped = "Haltigita."
stopped_nothing = 7
limit.one = "Mi haltis post paŝo."
limit.other = "Mi haltis post %d paŝoj."
key = "Ŝlosilo %d"
loop = "Trifoje la sama: %[1]s"
stoped = "x"
refusal = " "
[card]
so_far = "%[2]s por %[1]s"
[grants]
more = "%d ĝis %d"
[commands.list.approve]
does = "jesi"
[commands.list.hepl]
does = "helpi"
[reason]
rule_denies = "Regulo malpermesas %s."
rule_allows = "Regulo permesas."
runs_uncertain = "Ne certas, kion %s faras."
nobody = "Neniu."
`)}
	s := read(files)
	b, english := s.books["eo"], s.books["en"]
	for _, tt := range []struct{ got, want string }{
		{b.Ended.Stopped, "Haltigita."},
		{b.Ended.StoppedNothing, english.Ended.StoppedNothing},
		{b.Ended.Limit.say(1), english.Ended.Limit.say(1)},
		{b.Ended.Limit.say(5), "Mi haltis post 5 paŝoj."},
		{b.Ended.Key, english.Ended.Key},
		{b.Ended.Refusal, english.Ended.Refusal},
		{b.Ended.Gone, english.Ended.Gone},
		{b.Ended.Loop, "Trifoje la sama: %[1]s"},
		{b.Card.SoFar, "%[2]s por %[1]s"},
		{b.Grants.More, english.Grants.More},
		{b.Commands.List["approve"].Does, "jesi"},
		{b.Commands.List["approve"].Example, "/approve akun"},
		{b.Commands.List["deny"].Does, english.Commands.List["deny"].Does},
		{b.Reason["rule_denies"], "Regulo malpermesas %s."},
		{b.Reason["runs_uncertain"], english.Reason["runs_uncertain"]},
		{b.Quota.List.Names[User], english.Quota.List.Names[User]},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
	all := strings.Join(s.problems, "\n")
	for _, want := range []string{
		"eo.toml: ended.stopped_nothing must be a text", "eo.toml: ended.limit.one must leave open what English does", "eo.toml: ended.key must leave open",
		"eo.toml: ended.refusal is empty", "eo.toml: ended.gone is missing", "eo.toml: ended.stoped is no sentence", "eo.toml: grants.more must leave open",
		"eo.toml: commands.list.hepl is no sentence",
		"eo.toml: reason.rule_allows must leave open", "eo.toml: reason.runs_uncertain must have the same reason in it",
		"eo.toml: reason.nobody is no sentence", "eo.toml: reason.no_rule is missing",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("not reported: %s", want)
		}
	}
	if strings.Contains(all, "de.toml") || strings.Contains(all, "ended.loop must") || strings.Contains(all, "so_far") {
		t.Errorf("reported in vain:\n%s", all)
	}
}

// TestBrokenLanguage: a file that cannot be read at all is English, and breaks nothing else.
func TestBrokenLanguage(t *testing.T) {
	t.Parallel()
	english, err := fs.ReadFile(languages.Files, "en.toml")
	if err != nil {
		t.Fatal(err)
	}
	s := read(fstest.MapFS{"en.toml": {Data: english}, "xx.toml": {Data: []byte("[ended\n")}, "esperanto.toml": {Data: english}})
	if got, want := s.books["xx"].Ended.Stopped, "Stopped."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if all := strings.Join(s.problems, "\n"); !strings.Contains(all, "xx.toml: toml:") || !strings.Contains(all, "esperanto.toml: a file is named") {
		t.Errorf("problems: %s", all)
	}
}

// kept is what every language says alike: commands, names of settings, signs, ids and what a person types after them.
var kept = regexp.MustCompile(`(?:^|[\s(,])(/[a-z]+(?: (?:add|accept|list|set|unset|rules|check|status|signin|remove|restart|tools|unblock)\b)?)|\b([a-z]+(?:_[a-z]+)*\.[a-z_]+[a-z])\b|([⏳✋✅⛔⚠▓✗🛑↩📎👀])`)

// TestKeptWords: what people must type, and where they must look, is the same in every language.
func TestKeptWords(t *testing.T) {
	t.Parallel()
	english := flat(t, languages.Standard)
	for _, tag := range languages.Tags()[1:] {
		for name, text := range flat(t, tag) {
			form := name[strings.LastIndexByte(name, '.')+1:]
			standard, ok := english[name]
			if !ok && (form == "few" || form == "many") {
				standard = english[strings.TrimSuffix(name, form)+"other"]
			}
			if want, got := keptIn(standard), keptIn(text); !slices.Equal(want, got) {
				t.Errorf("%s.toml: %s says %v, English %v", tag, name, got, want)
			}
		}
	}
}

func keptIn(text string) []string {
	var list []string
	for _, m := range kept.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1]+m[2]+m[3])
	}
	slices.Sort(list)
	return list
}

// flat is a file with each sentence by its name.
func flat(t *testing.T, tag string) map[string]string {
	t.Helper()
	data, err := fs.ReadFile(languages.Files, tag+".toml")
	if err != nil {
		t.Fatal(err)
	}
	content, out := map[string]any{}, map[string]string{}
	if err := toml.Unmarshal(data, &content); err != nil {
		t.Fatal(err)
	}
	var walk func(at string, part any)
	walk = func(at string, part any) {
		switch part := part.(type) {
		case string:
			out[at] = part
		case map[string]any:
			for name, inner := range part {
				walk(join(at, name), inner)
			}
		}
	}
	walk("", content)
	return out
}
