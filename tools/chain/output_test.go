package chain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/filter"
	"github.com/zephbot/zephbot/tools/overflow"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// service is shell, redaction, filter and overflow joined as the service joins them.
type service struct {
	t     *testing.T
	dir   string
	chain *chain.Chain
	n     int
}

func newService(t *testing.T, o overflow.Options, s shell.Options) *service {
	t.Helper()
	v := &service{t: t, dir: t.TempDir()}
	s.Workspace = func(tools.Origin) (string, error) { return v.dir, nil }
	bash, runner, err := shell.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runner.Shutdown(context.WithoutCancel(t.Context())) })
	o.Store = overflow.NewMemory(0)
	reader, err := overflow.Tool(o)
	if err != nil {
		t.Fatal(err)
	}
	list, err := tools.NewRegistry(bash, reader)
	if err != nil {
		t.Fatal(err)
	}
	engine := filter.NewEngine(filter.Options{Quiet: true})
	v.chain = chain.New(chain.Options{
		Registry: list, Gate: chain.GateOptions{Policy: toolstest.Always(policy.Allow)}, Overflow: overflow.New(o), Filter: filter.New(engine, filter.Hooks{}),
		Redact: chain.NewRedact(redact.New(nil)), Warn: chain.WarnRedacted,
	})
	return v
}

func (v *service) call(tool string, args any) *tools.Result {
	v.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		v.t.Fatal(err)
	}
	v.n++
	call := toolstest.Call(tool, string(raw))
	call.ID = fmt.Sprint("call-", v.n)
	res, err := v.chain.Execute(v.t.Context(), call)
	if err != nil {
		v.t.Fatalf("%s: %v", tool, err)
	}
	return res
}

// prints runs a command that prints text, and then does what then says.
func (v *service) prints(text, then string) *tools.Result {
	v.t.Helper()
	if err := os.WriteFile(filepath.Join(v.dir, "text"), []byte(text), 0o600); err != nil {
		v.t.Fatal(err)
	}
	return v.call(shell.Name, shell.In{Command: "cat text; " + then})
}

var (
	notice = regexp.MustCompile(`\[(\d+) characters kept as (overflow:[0-9a-f-]{36}); read_overflow reads them\]`)
	pageOf = regexp.MustCompile(`\n?\[characters (\d+) to (\d+) of (\d+); [^\]]*\]$`)
)

// whole reads what the note in a result refers to, page by page, and checks every number.
func (v *service) whole(res *tools.Result) string {
	v.t.Helper()
	said := notice.FindStringSubmatch(res.Text)
	if said == nil {
		v.t.Fatalf("no notice in %.200q…%q", res.Text, res.Text[max(0, len(res.Text)-300):])
	}
	var all strings.Builder
	for offset := 0; ; {
		page := v.call(overflow.ToolName, map[string]any{"id": said[2], "offset": offset}).Text
		at := pageOf.FindStringSubmatchIndex(page)
		if at == nil {
			v.t.Fatalf("a page without its place: %.100q", page)
		}
		number := func(i int) int { n, _ := strconv.Atoi(page[at[2*i]:at[2*i+1]]); return n }
		from, to, total := number(1), number(2), number(3)
		body := page[:at[0]]
		if utf8.RuneCountInString(body) == to-from-1 { // the page ended with its own newline
			body += "\n"
		}
		if all.WriteString(body); from != offset || utf8.RuneCountInString(body) != to-from || strconv.Itoa(total) != said[1] {
			v.t.Fatalf("characters %d to %d of %d, and there are %d", from, to, total, utf8.RuneCountInString(body))
		}
		if offset = to; offset == total {
			return all.String()
		}
	}
}

const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"

// TestOutputIsNeverLost: what the filter drops and overflow cuts can be read again, byte for byte and without
// credentials, up to 10 MiB, however the command ended.
func TestOutputIsNeverLost(t *testing.T) {
	t.Parallel()
	build := strings.Repeat("   Compiling serde v1.0.0 (a/b/ü)\n", 3000) + "error[E0308]: mismatched types\n"
	some := strings.Repeat("a line of its own, 0123456789\n", 50_000)  // more than is held in memory
	long := strings.Repeat("a line of its own, 0123456789\n", 300_000) // 9 MB
	for _, tc := range []struct {
		name, text, then string
		category         tools.Category
		end              string
	}{
		{"filtered", build, "exit 1", "", "[exit code 1]"},
		{"cut", strings.Repeat("äöü€😀 0123456789\n", 10_000), "", "", ""},
		{"a secret", strings.Repeat("x\n", 40_000) + "token " + secret + "\n" + strings.Repeat("y\n", 40_000), "", "", ""},
		{"many megabytes", long, "", "", ""},
		{"not found", some, "nowhere 2>/dev/null", tools.PermanentFailure, "[exit code 127]"},
		{"its time is up", some, "sleep 600", tools.Timeout, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			limit := 5 * time.Minute
			if tc.category == tools.Timeout {
				limit = 15 * time.Second
			}
			v := newService(t, overflow.Options{MaxBytes: overflow.DefaultMaxBytes}, shell.Options{Timeout: limit})
			res := v.prints(tc.text, tc.then)
			want := strings.TrimRight(strings.ReplaceAll(tc.text, secret, redact.Mask), "\n")
			if tc.end != "" {
				want += "\n" + tc.end
			}
			if got := v.whole(res); got != want {
				t.Errorf("%d of %d bytes can be read back", len(got), len(want))
			}
			if tc.category != "" && !strings.HasPrefix(res.Text, "[tool_error]\ncategory: "+string(tc.category)+"\n") {
				t.Errorf("the failure does not stand first: %.200q", res.Text)
			}
			if hidden := strings.Count(tc.text, secret); hidden > 0 != strings.HasSuffix(res.Text, "\n"+redact.Warning(1)) {
				t.Errorf("%d credentials were hidden: …%q", hidden, res.Text[len(res.Text)-100:])
			}
			if n := utf8.RuneCountInString(res.Text); n > overflow.DefaultThreshold+overflow.Extra+1000 || strings.Contains(res.Text, secret) {
				t.Errorf("the model is shown %d characters", n)
			}
		})
	}
}

// TestNumbersAreTrue: for random outputs and random limits, every number in the texts is correct.
func TestNumbersAreTrue(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	cut := regexp.MustCompile(`\[… (\d+) characters left out …\]\n`)
	for round := range 25 {
		threshold := 500 + r.IntN(5000)
		v := newService(t, overflow.Options{Threshold: threshold}, shell.Options{Timeout: 5 * time.Minute})
		var b strings.Builder
		for range r.IntN(3000) {
			b.WriteString(strings.Repeat(string("abcü€😀 "[r.IntN(4)]), r.IntN(60)) + strconv.Itoa(r.IntN(3)) + "€\n")
		}
		text := strings.ToValidUTF8(b.String(), "?")
		res := v.prints(text, "")
		want := strings.TrimRight(text, "\n")
		if notice.FindString(res.Text) == "" {
			if res.Text != want && (want != "" || res.Text != "(no output)") {
				t.Errorf("round %d: changed without a word", round)
			}
			continue
		}
		if got := v.whole(res); got != want {
			t.Errorf("round %d: %d of %d bytes can be read back", round, len(got), len(want))
		}
		at := cut.FindStringSubmatchIndex(res.Text)
		if at == nil {
			continue
		}
		shown := res.Text[:notice.FindStringIndex(res.Text)[0]]
		head, tail, left := shown[:at[0]], shown[at[1]:], res.Text[at[2]:at[3]]
		n := utf8.RuneCountInString
		if total := n(want) - n(strings.TrimRight(head, "\n")) - n(strings.TrimRight(tail, "\n")); n(head) > threshold || left != strconv.Itoa(total) && left != strconv.Itoa(total-1) && left != strconv.Itoa(total-2) {
			t.Errorf("round %d: %s characters are said to be left out, and it is %d", round, left, total)
		}
	}
}
