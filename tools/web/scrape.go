package web

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/PuerkitoBio/goquery"
	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"github.com/zephbot/zephbot/tools"
)

const (
	defaultLimit = 10
	maxSelector  = 1000 // bytes of a selector
)

// query is what web_scrape searches for.
type query struct {
	selector string
	match    goquery.Matcher
	extract  func(*html.Node) string
	markup   bool // what is extracted may have addresses as the page writes them
	limit    int
}

// newQuery converts the arguments. An unknown kind of extraction counts as text, as in the original.
func newQuery(in scrapeArgs) (query, error) {
	q := query{selector: strings.TrimSpace(in.Select), limit: defaultLimit, extract: visibleText}
	wrong := func(message, suggestion string, err error) (query, error) {
		return query{}, &tools.Error{
			Category: tools.InvalidParameters, Message: message, Suggestion: suggestion,
			Err: err,
		}
	}
	if q.selector == "" || len(q.selector) > maxSelector {
		return wrong(fmt.Sprintf("select: want a CSS selector of 1 to %d bytes", maxSelector),
			"For example: article h2", nil)
	}
	match, err := cascadia.Compile(q.selector)
	if err != nil {
		return wrong("select: this is not a valid CSS selector",
			"Use tag, .class, #id, [attribute], > and : forms, for example: div.price > span", err)
	}
	q.match = match
	if in.Limit != nil {
		if q.limit = *in.Limit; q.limit < 0 {
			return wrong("limit: want 0 or more", "Leave limit out for the first 10 elements.", nil)
		}
	}
	switch kind := strings.TrimSpace(in.Extract); {
	case kind == "html":
		q.extract, q.markup = innerHTML, true
	case strings.HasPrefix(kind, "attr:"):
		name := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(kind, "attr:")))
		if name == "" {
			return wrong("extract: attr: needs the name of an attribute", "For example: attr:href", nil)
		}
		q.extract = func(n *html.Node) string { return oneLine(value(n, name)) }
		q.markup = name == "href" || name == "src"
	}
	return q, nil
}

// scrape is the web_scrape tool. It handles one element after the other, so that it can stop at the limit and at the
// timeout.
func (c *client) scrape(ctx context.Context, p *page, q query) (*tools.Result, error) {
	if t := p.mediaType(); len(p.body) > 0 && !isHTML(t) {
		e := unreadable(t, nil)
		e.Message, e.Suggestion = strings.Replace(e.Message, "a page of text", "an HTML page", 1),
			"Use fetch for JSON and plain text."
		return nil, e
	}
	doc, err := p.parse()
	if err != nil {
		return nil, err
	}
	if err := affordable(q.selector, doc); err != nil {
		return nil, err
	}
	values, found, err := q.find(ctx, doc, c.o.MaxBody)
	if err != nil {
		return nil, err
	}
	res := &tools.Result{}
	if len(values) == 0 {
		res.Text = "No results for selector: " + q.selector
		if found > 0 {
			res.Text += fmt.Sprintf(" (%d elements match, but what was asked for is empty or hidden in them)", found)
		}
		return res, nil
	}
	res.Text, res.Truncated = cut(strings.Join(values, "\n"), c.o.MaxBody)
	if q.markup {
		res.Links = links(baseOf(goquery.NewDocumentFromNode(doc), p.url), values)
	}
	if res.Truncated || p.truncated {
		res.Text += fmt.Sprintf("\n[cut: only the first %d bytes were read]", c.o.MaxBody)
	}
	return res, nil
}

// links returns the addresses that values of attributes, or markup, name in a form that is relative to the page.
func links(home *url.URL, values []string) (list []string) {
	add := func(text string) {
		if to := absolute(home, text); to != "" && !strings.Contains(text, "://") {
			list = append(list, to)
		}
	}
	for _, v := range values {
		if !strings.ContainsAny(v, "<> ") {
			add(v)
			continue
		}
		for tokens := html.NewTokenizer(strings.NewReader(v)); tokens.Next() != html.ErrorToken; {
			for _, a := range tokens.Token().Attr {
				if a.Key == "href" || a.Key == "src" {
					add(a.Val)
				}
			}
		}
	}
	return list
}

// find returns the values of matching elements until there are enough of them or enough text, and the number of
// matching elements. Empty values count, but are left out.
func (q query) find(ctx context.Context, doc *html.Node, enough int) (values []string, found int, err error) {
	size := 0
	for _, element := range goquery.NewDocumentFromNode(doc).Find("*").EachIter() {
		if found >= q.limit || size > enough {
			break
		}
		if ctx.Err() != nil {
			return nil, 0, broken(ctx, ctx.Err())
		}
		if !element.IsMatcher(q.match) {
			continue
		}
		found++
		if v := q.extract(element.Get(0)); v != "" {
			values, size = append(values, v), size+len(v)+1
		}
	}
	return values, found, nil
}

// visibleText returns the text of an element as a reader sees it, on one line, with a space where a block ends. It is
// empty inside hidden elements. An element like script, which is never shown, returns its own text if it was selected
// by name.
func visibleText(n *html.Node) string {
	var b strings.Builder
	if !raw(n) {
		for p := n; p != nil; p = p.Parent {
			if p.Type == html.ElementNode && p.Data != "head" && hidden(p) {
				return ""
			}
		}
	}
	for child := range n.ChildNodes() {
		collect(&b, child)
	}
	return strings.Join(strings.Fields(strings.Map(invisible, b.String())), " ")
}

// raw reports whether the element contains text that is never shown, so that a query that selects it wants that text.
func raw(n *html.Node) bool {
	return n.Data == "script" || n.Data == "style" || n.Data == "title" || n.Data == "noscript"
}

func collect(b *strings.Builder, n *html.Node) {
	switch n.Type {
	case html.TextNode:
		b.WriteString(n.Data)
	case html.ElementNode:
		if hidden(n) {
			return
		}
		apart := !inline(n.Data)
		if apart {
			b.WriteByte(' ')
		}
		for child := range n.ChildNodes() {
			collect(b, child)
		}
		if apart {
			b.WriteByte(' ')
		}
	}
}

// inline reports whether an element does not interrupt a line of text.
func inline(tag string) bool {
	switch tag {
	case "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd",
		"label", "mark", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup",
		"time", "tt", "u", "var", "wbr":
		return true
	}
	return false
}

// innerHTML returns the markup inside an element, unchanged.
func innerHTML(n *html.Node) string {
	var b strings.Builder
	for child := range n.ChildNodes() {
		if err := html.Render(&b, child); err != nil { // only for a tree that no parser produces
			return ""
		}
	}
	return strings.TrimSpace(b.String())
}

func value(n *html.Node, name string) string {
	if v := attr(n, name); v != nil {
		return *v
	}
	return ""
}

// oneLine makes sure that there is one value per line.
func oneLine(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, s))
}
