package render_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/render"
)

// part is the text of m that e covers.
func part(m render.Message, e render.Entity) string {
	units := utf16.Encode([]rune(m.Text))
	return string(utf16.Decode(units[e.Offset : e.Offset+e.Length]))
}

// describe lists the entities as "type text" plus URL or language.
func describe(m render.Message) []string {
	var out []string
	for _, e := range m.Entities {
		s := e.Type + " " + part(m, e)
		if e.URL != "" {
			s += " → " + e.URL
		}
		if e.Language != "" {
			s += " (" + e.Language + ")"
		}
		out = append(out, s)
	}
	return out
}

type example struct {
	name, in, text string
	entities       []string
}

func check(t *testing.T, examples []example) {
	t.Helper()
	for _, c := range examples {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := render.Markdown(c.in)
			if len(got) != 1 {
				t.Fatalf("%d messages, want 1: %+v", len(got), got)
			}
			if diff := cmp.Diff(c.text, got[0].Text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.entities, describe(got[0])); diff != "" {
				t.Errorf("entities (-want +got):\n%s", diff)
			}
			wellFormed(t, got[0])
		})
	}
}

func TestMarkdownInline(t *testing.T) {
	t.Parallel()
	check(t, []example{
		{"plain", "Hello, world.", "Hello, world.", nil},
		{"bold italic strike", "**b** *i* _j_ ~~s~~", "b i j s", []string{"bold b", "italic i", "italic j", "strikethrough s"}},
		{"nested", "***both*** and **a *b* c**", "both and a b c", []string{"bold both", "italic both", "bold a b c", "italic b"}},
		{"same kind nested", "**a __b__ c**", "a b c", []string{"bold a b c"}},
		{"code in bold", "**use `x` now**", "use x now", []string{"bold use", "code x", "bold now"}},
		{"code is literal", "`**a** <b> &amp; \\*`", "**a** <b> &amp; \\*", []string{"code **a** <b> &amp; \\*"}},
		{"code in link", "[`f()` docs](https://x.org/f)", "f() docs", []string{"text_link f() docs → https://x.org/f"}},
		{"bold in link", "[a **b**](https://x.org)", "a b", []string{"text_link a b → https://x.org", "bold b"}},
		{"link in bold", "**see [x](https://x.org)**", "see x", []string{"bold see x", "text_link x → https://x.org"}},
		{"tg and mail", "[u](tg://user?id=1) [m](mailto:a@b.c)", "u m", []string{"text_link u → tg://user?id=1", "text_link m → mailto:a@b.c"}},
		{"escaped target", `[x](https://x.org/a\_b&amp;c)`, "x", []string{"text_link x → https://x.org/a_b&c"}},
		{"script target", "[click](javascript:alert(1))", "click (javascript:alert(1))", nil},
		{"relative target", "[docs](./README.md#a)", "docs (./README.md#a)", nil},
		{"no host", "[a](https://)", "a (https://)", nil},
		{"target equals text", "[a.md](a.md)", "a.md", nil},
		{"empty label", "[](https://x.org)", "https://x.org", []string{"text_link https://x.org → https://x.org"}},
		{"image", "![a cat](https://x.org/c.png)", "a cat", []string{"text_link a cat → https://x.org/c.png"}},
		{"image without text", "![](https://x.org/c.png)", "https://x.org/c.png", []string{"text_link https://x.org/c.png → https://x.org/c.png"}},
		{"image in link", "[![badge](https://x.org/b.svg)](https://x.org)", "badge", []string{"text_link badge → https://x.org"}},
		{"autolink", "<https://x.org> <a@b.cd> www.x.org", "https://x.org a@b.cd www.x.org", []string{
			"text_link https://x.org → https://x.org", "text_link a@b.cd → mailto:a@b.cd", "text_link www.x.org → http://www.x.org",
		}},
		{"bare link ends before punctuation", "See https://x.org/a_b_c.", "See https://x.org/a_b_c.", []string{"text_link https://x.org/a_b_c → https://x.org/a_b_c"}},
		{"ftp is text", "ftp://x.org/a", "ftp://x.org/a", nil},
		{"reference", "See [a][1].\n\n[1]: https://x.org", "See a.", []string{"text_link a → https://x.org"}},
		{"unused reference", "See above.\n\n[1]: https://x.org \"Title\"", "See above.\n\n[1]: https://x.org (Title)", []string{"text_link https://x.org → https://x.org"}},
		{"single tilde", "3~5 and 10~20", "3~5 and 10~20", nil},
		{"snake case", "a snake_case_name and 2 * 3 * 4", "a snake_case_name and 2 * 3 * 4", nil},
		{"specials", `_*[]<>&`, `_*[]<>&`, nil},
		{"escapes", `\*a\* \_ \[x\] \<b\> \\`, `*a* _ [x] <b> \`, nil},
		{"references", "&lt;b&gt; &amp;amp; &copy; &#65;&#x42; &nope; & &#0; &#xD800;", "<b> &amp; © AB &nope; & � �", nil},
		{"escaped ampersand", `\&amp;`, `&amp;`, nil},
		{"html is text", "<b>x</b> <script>alert(1)</script>", "<b>x</b> <script>alert(1)</script>", nil},
		{"br", "a<br>b<br/>\nc", "a\nb\nc", nil},
		{"breaks", "a\nb  \nc\\\nd", "a\nb\nc\nd", nil},
		{"emphasis over lines", "**a\nb**", "a\nb", []string{"bold a\nb"}},
		{"trimmed ends", "x **&nbsp;b&nbsp;** y", "x \u00a0b\u00a0 y", []string{"bold b"}},
		{"rtl", "**שלום** `עולם` \u202Eabc", "שלום עולם abc", []string{"bold שלום", "code עולם"}},
		{"zwj", "👩‍👩‍👧‍👦 **👍🏽** x", "👩‍👩‍👧‍👦 👍🏽 x", []string{"bold 👍🏽"}},
		{"controls", "a\x00b\x07c\u2028d\xffe", "a�b c\nd�e", nil},
		{"carriage returns", "a\r\nb\rc", "a\nb\nc", nil},
	})
}

func TestMarkdownBlocks(t *testing.T) {
	t.Parallel()
	check(t, []example{
		{"headings", "# One\ntext\n## Two *i* `c`\n", "One\n\ntext\n\nTwo i c", []string{"bold One", "bold Two i", "italic i", "code c"}},
		{"setext", "Title\n===\ntext", "Title\n\ntext", []string{"bold Title"}},
		{"bullets", "- a\n- b\n  - c\n    1. d\n- e", "• a\n• b\n   • c\n      1. d\n• e", nil},
		{"numbers", "3. a\n4. b", "3. a\n4. b", nil},
		{"parens", "1) a\n2) b", "1) a\n2) b", nil},
		{"loose", "1. a\n\n   more\n\n2. b", "1. a\n\n   more\n\n2. b", nil},
		{"continued line", "- a\n  b", "• a\n   b", nil},
		{"after list", "- a\n\ntext", "• a\n\ntext", nil},
		{"tasks", "- [ ] a\n- [x] b\n1. [X] c", "☐ a\n☑ b\n\n1. ☑ c", nil},
		{"bold item", "- **a**: b", "• a: b", []string{"bold a"}},
		{"code in list", "1. run\n   ```sh\n   ls\n     -l\n   ```\n2. done", "1. run\nls\n  -l\n2. done", []string{"pre ls\n  -l (sh)"}},
		{"item is code", "- ```\n  x\n  ```", "• \nx", []string{"pre x"}},
		{"quote", "> a\n> b\n\nc", "a\nb\n\nc", []string{"blockquote a\nb"}},
		{"quote in quote", "> a\n>\n> > b\n> > c", "a\n\n> b\n> c", []string{"blockquote a\n\n> b\n> c"}},
		{"list and bold in quote", "> - **a**\n> - b", "• a\n• b", []string{"blockquote • a\n• b", "bold a"}},
		{"code in quote", "> ```\n>   x\n> ```", "  x", []string{"blockquote   x", "pre   x"}},
		{"long quote", "> " + strings.Repeat("word ", 200), strings.TrimSpace(strings.Repeat("word ", 200)), []string{
			"expandable_blockquote " + strings.TrimSpace(strings.Repeat("word ", 200)),
		}},
		{"fence", "a\n```go title=x\nfunc f() {\n\treturn\n}\n\n```\nb", "a\n\nfunc f() {\n    return\n}\n\nb", []string{"pre func f() {\n    return\n} (go)"}},
		{"fence keeps everything", "```\n  **a** <b> &amp; `x` [y](z)\n```", "  **a** <b> &amp; `x` [y](z)", []string{"pre   **a** <b> &amp; `x` [y](z)"}},
		{"tildes", "~~~ py\n```\n~~~", "```", []string{"pre ``` (py)"}},
		{"unclosed fence", "x\n```c++\nint a;", "x\n\nint a;", []string{"pre int a; (c++)"}},
		{"strange language", "```{.x \"y\"}\na\n```", "a", []string{"pre a"}},
		{"indented code", "a\n\n    x = 1\n\n    y = 2", "a\n\nx = 1\n\ny = 2", []string{"pre x = 1\n\ny = 2"}},
		{"empty fence", "a\n```\n```\nb", "a\n\nb", nil},
		{"rule", "a\n\n---\n\nb", "a\n\n———\n\nb", nil},
		{"html block", "<div onclick=\"x\">\n**a**\n</div>\n\n*b*", "<div onclick=\"x\">\n**a**\n</div>\n\nb", []string{"italic b"}},
		{"comment", "<!-- a\n\nb -->\nc", "<!-- a\n\nb -->\n\nc", nil},
		{"table", "| Name | Qty |\n|:--|--:|\n| **a** | 1 |\n| 漢字 | 20 |\n", "Name | Qty\n-----+----\na    |   1\n漢字 |  20", []string{
			"pre Name | Qty\n-----+----\na    |   1\n漢字 |  20",
		}},
		{"table cells", "|a|b|c|\n|-|:-:|-|\n|`x\\|y`|1|<br>z|\n|only|\n", "a    | b | c\n-----+---+--\nx|y  | 1 | z\nonly", []string{
			"pre a    | b | c\n-----+---+--\nx|y  | 1 | z\nonly",
		}},
		{
			"table links", "|a|\n|-|\n|[x](https://x.org)|\n|https://y.org|\n|[z](./z)|\n",
			"a\n-------------\nx\nhttps://y.org\nz (./z)\nx · https://y.org",
			[]string{"pre a\n-------------\nx\nhttps://y.org\nz (./z)", "text_link x → https://x.org", "text_link https://y.org → https://y.org"},
		},
	})
}

func TestMarkdownBlank(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", " \n\t\n", "\u200b", "&nbsp;", "```\n```", "#", "` `", "```\n \n\n```", "\ufeff", ">", "![]()"} {
		for name, got := range map[string][]render.Message{"Markdown": render.Markdown(in), "Plain": render.Plain(strings.Repeat(" \n", 5000))} {
			if got == nil || len(got) != 0 {
				t.Errorf("%s(%q) = %#v, want an empty list that is not nil", name, in, got)
			}
		}
		if got := render.Partial(in); got.Text != "" || got.Entities == nil || len(got.Entities) != 0 {
			t.Errorf("Partial(%q) = %#v, want nothing", in, got)
		}
	}
}

func TestMessageJSON(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(render.Markdown("a **b**"))
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"text":"a b","entities":[{"type":"bold","offset":2,"length":1}]}]`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, err = json.Marshal(render.Markdown("a")); err != nil || string(got) != `[{"text":"a","entities":[]}]` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	got := render.Plain("  **a** <b>\x00\r\n`c`  ")
	want := []render.Message{{Text: "**a** <b>�\n`c`", Entities: []render.Entity{}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLength(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{"": 0, "abc": 3, "äß": 2, "漢": 1, "😀": 2, "👍🏽": 4, "a\xffb": 3} {
		if got := render.Length(in); got != want {
			t.Errorf("Length(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"hello", 5, "hello"},
		{"hello", 4, "hel…"},
		{"hello", 1, "…"},
		{"hello", 0, ""},
		{"hello", -1, ""},
		{"ab cd", 4, "ab…"},
		{"😀😀", 4, "😀😀"},
		{"😀😀", 3, "😀…"},
		{"a😀b", 3, "a…"},
		{"a👍🏽b", 5, "a…"},
		{"a👍🏽bc", 6, "a👍🏽…"},
		{"e\u0301e\u0301e\u0301", 4, "e\u0301…"},
		{"\xff\xfe", 2, "�"},
		{"a" + strings.Repeat("\u0301", 50), 10, "a" + strings.Repeat("\u0301", 8) + "…"},
	} {
		if got := render.Cut(c.in, c.limit); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}
