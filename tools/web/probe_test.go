package web_test

import (
	"fmt"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"strings"
	"testing"
	"time"
)

func TestProbe(t *testing.T) {
	fill := func(s string, n int) string { return strings.Repeat(s, n/len(s)) }
	M := 1 << 20
	deep := func(tag string, d int, inner string) string {
		return strings.Repeat("<"+tag+">", d) + inner + strings.Repeat("</"+tag+">", d)
	}
	cases := map[string]string{
		"para": fill("<p>x</p>", M), "text": fill("lorem ipsum ", M), "stars": fill("*", M), "brackets": fill("[", M), "ticks": fill("`", M), "lt": fill("&lt;", M), "us": fill("_a ", M), "dots": fill("1. ", M), "hash": fill("# ", M), "bang": fill("![a](", M),
		"b": fill("<b>x</b>", M), "bdeep8": deep("b", 8, fill("x ", M)), "divdeep400": deep("div", 400, fill("x ", M)), "spandeep400": deep("span", 400, fill("x ", M)), "qdeep8": deep("blockquote", 8, fill("x<br>", M)),
		"lideep8": deep("ul><li", 8, fill("x<br>", M)), "links": fill("<a href=https://e.com/>x</a>", M), "td": "<table><tr>" + fill("<td>x", M), "tr": "<table>" + fill("<tr><td>x", M), "br": fill("<br>", M), "li": "<ul>" + fill("<li>x", M), "ol": "<ol>" + fill("<li>x", M), "h1": fill("<h1>x</h1>", M), "pre": fill("<pre>x</pre>", M), "pre1": "<pre>" + fill("```\n", M), "code": fill("<code>`</code>", M), "code1": "<code>" + fill("`` ", M) + "</code>", "spaces": fill("<b> </b>", M), "nl": fill("\n", M), "img": fill("<img src=https://e.com/ alt=x>", M), "nested a b": fill("<a><b>", M), "bi": fill("<b><i>", M), "quotes": fill("<blockquote>x</blockquote>", M), "comment": fill("<!---->", M), "bcomma": fill("<b>a</b> ", M), "entity": fill("&nbsp;", M), "uli": fill("<ul><li>x</ul>", M), "empty": fill("<i></i>", M), "tables": fill("<table><tr><td>x</table>", M), "wrapdiv": fill("<div>x", M),
		"tableli": "<table>" + fill("<tr><td>a<td>b<td>c", M) + "</table>",
	}
	for k, h := range cases {
		c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)), table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
		done := make(chan string, 1)
		s := time.Now()
		go func() { b, err := c.ConvertString(h); done <- fmt.Sprint(len(b), err) }()
		select {
		case r := <-done:
			d := time.Since(s)
			if d > 300*time.Millisecond {
				fmt.Println(k, d.Round(time.Millisecond), r)
			}
		case <-time.After(6 * time.Second):
			fmt.Println(k, "SLOW >6s")
		}
	}
}
