package overflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/overflow"
	"github.com/zephbot/zephbot/tools/toolstest"
)

func readTool(t *testing.T, o overflow.Options) tools.Tool {
	t.Helper()
	tool, err := overflow.Tool(o)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

// stored returns a memory with one output of the usual session.
func stored(t *testing.T, text string) *overflow.Memory {
	t.Helper()
	memory := overflow.NewMemory(0)
	err := memory.Save(t.Context(), overflow.Item{
		ID: firstID, Session: call().Origin.Session, Call: "c", Source: "https://example.com/", Text: text, Created: start, Expires: start.Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	return memory
}

func TestRead(t *testing.T) {
	t.Parallel()
	const flags = "ab🇩🇪🇫🇷cd"
	for name, test := range map[string]struct {
		text, args, want string
	}{
		"all":                             {"häuser", `{"id":"%s"}`, "häuser\n[characters 0 to 6 of 6; this is the end]"},
		"the form of the notice":          {"häuser", `{"id":" overflow:%s\n"}`, "häuser\n[characters 0 to 6 of 6; this is the end]"},
		"an offset":                       {"häuser", `{"id":"%s","offset":2}`, "user\n[characters 2 to 6 of 6; this is the end]"},
		"a limit":                         {"häuser", `{"id":"%s","limit":2}`, "hä\n[characters 0 to 2 of 6; read on with offset 2]"},
		"both":                            {"häuser", `{"id":"%s","offset":1,"limit":3}`, "äus\n[characters 1 to 4 of 6; read on with offset 4]"},
		"the last":                        {"häuser", `{"id":"%s","offset":5,"limit":1}`, "r\n[characters 5 to 6 of 6; this is the end]"},
		"more than there may be":          {strings.Repeat("a", 300), `{"id":"%s","limit":1000}`, strings.Repeat("a", 200) + "\n[characters 0 to 200 of 300; read on with offset 200]"},
		"nothing":                         {"", `{"id":"%s"}`, "[characters 0 to 0 of 0; this is the end]"},
		"a page ends with the line":       {"ab\ncd\n", `{"id":"%s","limit":3}`, "ab\n[characters 0 to 3 of 6; read on with offset 3]"},
		"no flag is torn":                 {flags, `{"id":"%s","limit":5}`, "ab🇩🇪\n[characters 0 to 4 of 8; read on with offset 4]"},
		"a flag is torn where it must be": {flags, `{"id":"%s","offset":2,"limit":1}`, "\U0001F1E9\n[characters 2 to 3 of 8; read on with offset 3]"},
		"no text":                         {"a\xffb", `{"id":"%s"}`, "a\uFFFDb\n[characters 0 to 3 of 3; this is the end]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(stored(t, test.text))
			o.Threshold = 400
			got, err := readTool(t, o).Run(t.Context(), toolstest.Call(overflow.ToolName, fmt.Sprintf(test.args, firstID)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tools.Result{Text: test.want, Untrusted: "https://example.com/"}, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args string
		want tools.Category
		says string
	}{
		"no id":               {`{"id":""}`, tools.InvalidParameters, "is not a reference"},
		"a path":              {`{"id":"../../etc/passwd"}`, tools.InvalidParameters, "is not a reference"},
		"a uuid without dash": {`{"id":"0f8fad5bd9cb469fa165708600000001"}`, tools.InvalidParameters, "is not a reference"},
		"a uuid in braces":    {`{"id":"{` + firstID + `}"}`, tools.InvalidParameters, "is not a reference"},
		"a double prefix":     {`{"id":"overflow:overflow:` + firstID + `"}`, tools.InvalidParameters, "is not a reference"},
		"behind the end":      {`{"id":"` + firstID + `","offset":6}`, tools.InvalidParameters, "the output has 6 characters"},
		"a negative offset":   {`{"id":"` + firstID + `","offset":-1}`, tools.InvalidParameters, "offset must be 0 or more"},
		"a negative limit":    {`{"id":"` + firstID + `","limit":-1}`, tools.InvalidParameters, "limit 1 or more"},
		"an unknown field":    {`{"id":"` + firstID + `","page":1}`, tools.InvalidParameters, "page"},
		"a number as id":      {`{"id":1}`, tools.TypeMismatch, "id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := readTool(t, options(stored(t, "häuser"))).Run(t.Context(), toolstest.Call(overflow.ToolName, test.args))
			if e := tools.AsError(err); e.Category != test.want || !strings.Contains(e.Message, test.says) {
				t.Errorf("got %v, want %s with %q", err, test.want, test.says)
			}
		})
	}
}

// TestNobodyLearnsWhatIsThere: unknown, expired and foreign outputs give exactly the same answer.
func TestNobodyLearnsWhatIsThere(t *testing.T) {
	t.Parallel()
	args := `{"id":"` + firstID + `"}`
	answers := map[string]string{}
	for name, set := range map[string]func(*overflow.Options, *tools.Call){
		"unknown":         func(_ *overflow.Options, c *tools.Call) { c.Args = []byte(strings.Replace(args, "0001", "0002", 1)) },
		"expired":         func(o *overflow.Options, _ *tools.Call) { o.Now = func() time.Time { return start.Add(time.Hour) } },
		"foreign":         func(_ *overflow.Options, c *tools.Call) { c.Origin.Session = "telegram:43" },
		"no conversation": func(_ *overflow.Options, c *tools.Call) { c.Origin.Session = "" },
	} {
		o, c := options(stored(t, "secret")), toolstest.Call(overflow.ToolName, args)
		set(&o, c)
		_, err := readTool(t, o).Run(t.Context(), c)
		if e := tools.AsError(err); e.Category != tools.PermanentFailure {
			t.Errorf("%s: %v", name, err)
		}
		answers[tools.Feedback(err)] = name
	}
	if len(answers) != 1 {
		t.Errorf("%d different answers: %v", len(answers), answers)
	}
}

func TestReadWithAStoreThatFails(t *testing.T) {
	t.Parallel()
	_, err := readTool(t, options(broken{})).Run(t.Context(), toolstest.Call(overflow.ToolName, `{"id":"`+firstID+`"}`))
	if e := tools.AsError(err); e.Category != tools.ServerError || strings.Contains(e.Message, "disk") || !strings.Contains(e.Error(), "disk is broken") {
		t.Errorf("a broken store: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = readTool(t, options(stored(t, "x"))).Run(ctx, toolstest.Call(overflow.ToolName, `{"id":"`+firstID+`"}`))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped turn: %v", err)
	}
	if _, err := overflow.Tool(overflow.Options{}); err == nil {
		t.Error("a tool without a store was made")
	}
}

// TestEveryPageOfALongOutput goes through the whole chain: a tool prints too much, and the model reads page after page,
// as each page says, until it has everything.
func TestEveryPageOfALongOutput(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	for n := range 400 {
		fmt.Fprintf(&lines, "line %d: häuser 🏘 🇩🇪🇫🇷 e\u0301\r\n", n)
	}
	long := lines.String()
	for _, threshold := range []int{1000, 301, 20} {
		t.Run(fmt.Sprint(threshold), func(t *testing.T) {
			t.Parallel()
			o := options(overflow.NewMemory(0))
			o.Threshold = threshold
			prints := tools.Tool{
				Definition: tools.Definition{Name: "print", Schema: []byte(`{"type":"object"}`), ReadOnly: true},
				Run:        gives(tools.Result{Text: long, Untrusted: "mcp:x"}),
			}
			registry, err := tools.NewRegistry(prints, readTool(t, o))
			if err != nil {
				t.Fatal(err)
			}
			stages := chain.Options{Registry: registry, Overflow: overflow.New(o)}
			stages.Gate.Policy = toolstest.Always(policy.Allow)
			c := chain.New(stages)
			execute := func(tool, args string) *tools.Result {
				t.Helper()
				result, err := c.Execute(t.Context(), toolstest.Call(tool, args))
				if err != nil {
					t.Fatal(err)
				}
				if n := utf8.RuneCountInString(result.Text); n > threshold+overflow.Extra || result.Untrusted != "mcp:x" {
					t.Fatalf("%d characters from %q", n, result.Untrusted)
				}
				return result
			}
			if first := execute("print", `{}`); !first.Truncated || !strings.Contains(first.Text, overflow.Prefix+firstID) {
				t.Fatalf("first result %q", first.Text)
			}
			if got := pages(t, execute); got != long {
				t.Errorf("%d bytes were read, %d printed", len(got), len(long))
			}
		})
	}
}

// pages reads the first output to its end, following the last line of each page.
func pages(t *testing.T, execute func(tool, args string) *tools.Result) string {
	t.Helper()
	var all strings.Builder
	for offset := 0; ; {
		text := execute(overflow.ToolName, fmt.Sprintf(`{"id":"overflow:%s","offset":%d}`, firstID, offset)).Text
		at := strings.LastIndex(text, "[characters ")
		page, last := text[:at], text[at:]
		var from, to, total int
		if _, err := fmt.Sscanf(last, "[characters %d to %d of %d;", &from, &to, &total); err != nil || from != offset || to <= from {
			t.Fatalf("last line %q after offset %d (%v)", last, offset, err)
		}
		if utf8.RuneCountInString(page) != to-from { // a line break was put in
			page = strings.TrimSuffix(page, "\n")
		}
		all.WriteString(page)
		if to == total {
			if !strings.Contains(last, "this is the end") {
				t.Errorf("last line %q", last)
			}
			return all.String()
		}
		if !strings.Contains(last, fmt.Sprintf("read on with offset %d]", to)) {
			t.Fatalf("last line %q", last)
		}
		offset = to
	}
}

func TestDefinition(t *testing.T) {
	t.Parallel()
	o := options(overflow.NewMemory(0))
	for threshold, page := range map[int]string{0: "at most 49744,", 1000: "at most 744,", 300: "at most 150,", 1: "at most 1,"} {
		o.Threshold = threshold
		def := readTool(t, o).Definition
		if def.Name != "read_overflow" || !def.ReadOnly || def.Destructive || !strings.Contains(string(def.Schema), page) {
			t.Errorf("threshold %d: %+v\n%s", threshold, def, def.Schema)
		}
	}
	tool := readTool(t, o)
	got, err := tool.Describe(t.Context(), toolstest.Call(overflow.ToolName, `{"id":"overflow:`+strings.ToUpper(firstID)+`"}`))
	if err != nil || !cmp.Equal(got.Inputs, []string{firstID}) || got.Show != "overflow:"+firstID {
		t.Errorf("subject %+v, %v", got, err)
	}
	_, err = tool.Describe(t.Context(), toolstest.Call(overflow.ToolName, `{"id":"x"}`))
	if tools.AsError(err).Category != tools.InvalidParameters {
		t.Errorf("subject of a bad id: %v", err)
	}
}
