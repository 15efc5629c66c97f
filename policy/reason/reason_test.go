package reason_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/reason"
)

// TestCodes: each constant has a sentence, and each sentence a constant. Codes are snake_case, because they are stored.
func TestCodes(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	english := reason.English()
	form := regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	codes := map[reason.Code]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		value, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		code := reason.Code(value)
		if err != nil || v.Type.(*ast.Ident).Name != "Code" || codes[code] || !form.MatchString(value) {
			t.Errorf("%s is %q: %v", v.Names[0].Name, value, err)
		}
		codes[code] = true
		if english[code] == "" {
			t.Errorf("%s has no sentence", code)
		}
		return true
	})
	if len(codes) != len(english) {
		t.Errorf("%d codes, %d sentences", len(codes), len(english))
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()
	deep := reason.Reason{Code: reason.StartupFile, Args: []string{"`100%d`"}, Detail: "%s {of}"}
	for want, r := range map[string]reason.Reason{
		"":                                        {},
		"A rule denies `rm %s {}`.":               reason.New(reason.RuleDenies, "`rm %s {}`"),
		"No rule allows this.":                    reason.New(reason.NoRule, "`rm`").Quoting(""),
		"A rule wants a person to approve x.":     reason.New(reason.RuleAsks, "y").Quoting("x"),
		"A rule that an admin stored allows x.":   reason.Reason{Code: reason.GrantedAlways}.Quoting("x"),
		"To read this needs a person's approval.": reason.New(reason.ReadAsks, "y").Quoting(""),
		"No rule allows writing x.":               reason.New(reason.NoRuleOn, "x").With(reason.Verb("write")),
		"No rule allows using a:b on x.":          reason.New(reason.NoRuleOn, "x").With(reason.Verb("a:b")),
		"It is not certain what x runs: `100%d` is obeyed by %s {of}: its content decides what later commands do..": reason.New(reason.RunsUncertain, "x").With(deep),
		"It is not certain what x runs.":                      reason.New(reason.RunsUncertain, "x"),
		"It is not certain what x runs: reading, write {of}.": reason.New(reason.RunsUncertain, "x").With(reason.Verb("read"), reason.Plain("write {of}")),
		"in the workspace · untrusted · x":                    reason.Notes(reason.New(reason.InWorkspace)).And(reason.Trust("untrusted"), reason.Trust("x")),
		"kernel sandbox: none (why)":                          reason.New(reason.Sandbox).With(reason.New(reason.SandboxNone), reason.New(reason.SandboxWhy).With(reason.Plain("why"))),
		"100% sure":                                           reason.Plain("100% sure"),
		"as an older version said":                            reason.Or(reason.Reason{}, "as an older version said"),
		"A rule denies x.":                                    reason.Or(reason.New(reason.RuleDenies, "x"), "as an older version said"),
	} {
		if got := r.String(); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
	for _, unknown := range []reason.Reason{
		reason.New("of_tomorrow"), reason.New(reason.NoRule), reason.New(reason.NoRuleThis, "x"),
		reason.New(reason.RunsUncertain, "x").With(reason.New("of_tomorrow")),
	} {
		if unknown.Known() || unknown.String() != "" {
			t.Errorf("%+v is %q", unknown, unknown)
		}
	}
	language := map[reason.Code]string{reason.RedirectionWrites: "%[2]s < %[1]s", reason.This: "esto"}
	if got := reason.New(reason.RedirectionWrites, "", "b").In(language); got != "b < esto" {
		t.Error(got)
	}
	language[reason.RedirectionWritesThis] = "esto > %s"
	if got := reason.New(reason.RedirectionWrites, "a", "b").Quoting("").In(language); got != "esto > b" {
		t.Error(got)
	}
	language = map[reason.Code]string{reason.RunsUncertain: "%s {+of}", reason.VerbRead: "a", reason.VerbWrite: "b"}
	if got := reason.New(reason.RunsUncertain, "x").With(reason.Verb("read"), reason.Verb("write")).In(language); got != "x a + b" {
		t.Error(got)
	}
	for _, verb := range act.Verbs() {
		use, want := reason.Verb(string(verb)), fmt.Sprintf("No rule allows using %s on x.", verb)
		if use.Code != reason.UseTool {
			want = fmt.Sprintf("No rule allows %sing x.", strings.TrimSuffix(string(verb), "e"))
		}
		if got := reason.New(reason.NoRuleOn, "x").With(use).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestFrom: a source is a part of sentences, whatever an older version or a tool calls it.
func TestFrom(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"": "", "command": "the output of a command", "file:a %s.txt": "the file a %s.txt", "file": "file", "file:": "file:",
		"recording:a.ogg": "a recording", "sub-agent:x": "the sub-agent x", "https://a": "https://a", "the file x": "the file x",
	} {
		if got := reason.From(from).String(); got != want {
			t.Errorf("%q: %q, want %q", from, got, want)
		}
	}
	if got, want := reason.New(reason.WayServer, "hook:a", "`x`").String(),
		"After text from a call of the hook a, this may carry something of this conversation to the server `x`."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestStored: a reason is the same after it was stored, and what is changed in a copy is not changed in it.
func TestStored(t *testing.T) {
	t.Parallel()
	r := reason.New(reason.RunsUncertain, "`a`").With(reason.Reason{Code: reason.GivenUnparsed, Args: []string{"sh"}, Detail: "why"})
	data, err := json.Marshal(r)
	var back reason.Reason
	if err != nil || json.Unmarshal(data, &back) != nil || !r.Equal(back) {
		t.Errorf("%s: %+v, %v", data, back, err)
	}
	if up := r.Map(strings.ToUpper); r.Equal(up) || up.String() != "It is not certain what `A` runs: the text given to SH cannot be parsed: WHY." ||
		!r.Equal(back) {
		t.Errorf("%q, %q", r, up)
	}
	for _, other := range []reason.Reason{
		r.Quoting("b"), reason.New(reason.RunsUncertain, "`a`"), r.With(reason.New(reason.TextNested)), reason.New(reason.NoRule, "`a`"),
	} {
		if r.Equal(other) || other.Equal(r) {
			t.Errorf("%+v", other)
		}
	}
}
