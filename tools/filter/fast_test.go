package filter_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools/filter"
)

// What is done fast is compared here with the plain way to do it.

func TestFirstLookAtCommands(t *testing.T) {
	t.Parallel()
	e := engine(t, filter.Options{})
	slow := e.Thorough()
	samples := corpus(t)
	text := strings.Join(harmless, "\n")
	list := append([]string{}, commands...)
	for _, s := range samples {
		list = append(list, s.command, "CARGO "+s.command, s.command+" && ls", "sudo env A=1 "+s.command+" 2>&1 | tail -5", "npx "+s.command, "git -C x "+s.command)
	}
	for _, command := range list {
		if diff := cmp.Diff(slow.Filter(command, new(0), text), e.Filter(command, new(0), text)); diff != "" {
			t.Errorf("%s (-thorough +Filter):\n%s", command, diff)
		}
	}
}

func TestManyRules(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 70 {
		b.WriteString("[[rules]]\nname = \"r" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + "\"\nmatch = { regex = \"^word" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + "\" }\n" +
			"strategy = { type = \"strip_noise\", patterns = [\"noise\"] }\n")
	}
	rules, problems := load(t, b.String())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e := engine(t, filter.Options{Rules: rules})
	for _, name := range []string{"aa", "cl", "cm", "cr"} {
		if out := e.Filter("word"+name, new(0), "noise\nnoise\nnoise\nkept"); len(out.Rules) != 1 || out.Rules[0] != "r"+name {
			t.Errorf("word%s: %v", name, out.Rules)
		}
	}
}

func TestCharacters(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"a", "abcdefgh", "é", "日", "𝐢", "\xff", "\xe2\x80", "\n", "plain text of some length"}
	for range 3000 {
		var b strings.Builder
		for range random.IntN(20) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		if got, want := filter.Characters(b.String()), utf8.RuneCountInString(b.String()); got != want {
			t.Fatalf("%q: %d, want %d", b.String(), got, want)
		}
	}
}

// plainEvent returns what the decoder says of a line.
func plainEvent(line string) (action, pkg, test string, ok bool) {
	var e struct{ Action, Package, Test, Output string }
	ok = json.Unmarshal([]byte(line), &e) == nil
	return e.Action, e.Package, e.Test, ok
}

func sameEvent(t *testing.T, line string) bool {
	t.Helper()
	action, pkg, test, quick := filter.Quick(line)
	wantAction, wantPkg, wantTest, ok := plainEvent(line)
	if quick && (!ok || action != wantAction || pkg != wantPkg || test != wantTest) {
		t.Fatalf("%q: %q %q %q, want %q %q %q %v", line, action, pkg, test, wantAction, wantPkg, wantTest, ok)
	}
	return quick
}

func TestEventsLikeTheDecoder(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		`{"Time":"2026-01-02T03:04:05.6Z","Action":"output","Package":"a/b","Test":"TestA","Output":"=== RUN   TestA\n"}`: true,
		`{"Action":"pass","Package":"a","Elapsed":0.01}`:                                                                  true,
		`{"Action":"pass","Elapsed":1,"Action":"fail"}`:                                                                   true,
		`{"Action":"output","Output":"a\u00e9\"\\ é✓"}`:                                                                   true,
		`{"Action":"output","Output":"bad \u00 escape"}`:                                                                  false,
		`{"Action":"output","Output":"\/\b\f\r\uD83D\ude00"}`:                                                             true,
		`{"Action":"output","Output":"bad \x escape"}`:                                                                    false,
		`{"Action":"pass","Test":"Test\u0041"}`:                                                                           false,
		`{"Action":"pass","Test":"Testé"}`:                                                                                false,
		`{"action":"pass"}`:                                                                                               false,
		`{"Action":"pass","Elapsed":01}`:                                                                                  false,
		`{"Action":"pass","Elapsed":}`:                                                                                    false,
		`{"Action":"pass","Elapsed":1e-5}`:                                                                                false,
		`{"Action":"pass"} `:                                                                                              false,
		`{"Action":"pass",}`:                                                                                              false,
		`{"Action":"pass"`:                                                                                                false,
		`{"Action":"pass","Other":{"Action":"fail"}}`:                                                                     false,
		`{"Action":5}`: false,
		"{\"Action\":\"output\",\"Output\":\"a\tb\"}":    false,
		"{\"Action\":\"output\",\"Output\":\"cut off \\": false,
		`{}`: false, `{"`: false, `{`: false, ``: false,
	} {
		if got := sameEvent(t, line); got != want {
			t.Errorf("%q: quick is %v", line, got)
		}
	}
	for _, s := range corpus(t) {
		for line := range strings.SplitSeq(s.input, "\n") {
			sameEvent(t, line)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add(`{"Time":"x","Action":"output","Package":"a/b","Test":"TestA","Output":"a\n","Elapsed":0.5}`)
	f.Fuzz(func(t *testing.T, line string) { sameEvent(t, line) })
}

func TestOnePassForAllWords(t *testing.T) {
	t.Parallel()
	e := engine(t, filter.Options{})
	apart := e.JudgeApart()
	check := func(line string) {
		t.Helper()
		failure, security := e.Judge(line)
		wantFailure, wantSecurity := apart(line)
		if failure != wantFailure || security != wantSecurity {
			t.Errorf("%q: failure %v, want %v; security %v, want %v", line, failure, wantFailure, security, wantSecurity)
		}
	}
	for _, line := range append(append([]string{
		"", "warning: unused `Result` that must be used", "raw pointer dereference", "HTTP 403 Forbidden", "401 UNAUTHORIZED", "Weak Cipher", "RUSTSEC-2024-0001", "INSECURE HASH",
		"0 errors, no vulnerability detected", "failed: 0, permission denied", "unſafe query", "no error: SQL injection", "security advisory: 0 failed",
	}, failing...), harmless...) {
		check(line)
	}
	seen := map[string]bool{}
	for _, s := range corpus(t) {
		for line := range strings.SplitSeq(s.input, "\n") {
			if !seen[line] && len(seen) < 2000 {
				seen[line] = true
				check(line)
			}
		}
	}
}
