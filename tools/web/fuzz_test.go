package web_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/web"
)

// FuzzMarkdown: any page becomes text without a crash, and the text holds no link out of the web.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{
		article, "<table><tr><td colspan=9>x<table><td>y", "<ul><li><ol start=7><li><blockquote>x", "<a href='java\tscript:x'>y</a>", "<b><p><i></b>x", "<img alt=']('>",
		"<template><p>x", "<svg><title><a href=x>", "<pre>```", "<base href=//x><a href=y>z</a>", "<p style='\\'>", "<select><table>", "<frameset>", "\x00", "<dialog open>",
	} {
		f.Add(s)
	}
	location := &url.URL{Scheme: "https", Host: "site.example", Path: "/a/b"}
	f.Fuzz(func(t *testing.T, page string) {
		if len(page) > 4096 {
			return
		}
		doc, err := html.Parse(strings.NewReader(strings.ToValidUTF8(page, "?")))
		if err != nil {
			return
		}
		text, err := web.Markdown(doc, location)
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.ValidString(text) {
			t.Errorf("not UTF-8: %q", text)
		}
		for n := range doc.Descendants() { // what was converted: the cleaned page
			if n.Type == html.CommentNode {
				t.Errorf("comment %q is left", n.Data)
			}
			for _, a := range n.Attr {
				if (n.Data == "a" && a.Key == "href" || n.Data == "img" && a.Key == "src") && !strings.HasPrefix(a.Val, "http") {
					t.Errorf("%s=%q is left", a.Key, a.Val)
				}
			}
		}
	})
}

// FuzzSelector: any selector is either refused as a wrong parameter, or finds something or nothing.
func FuzzSelector(f *testing.F) {
	for _, s := range []string{
		"li", "div > span", "[[[invalid", "a:has(b:not(c))", `a[b='c\'d']`, "a:nth-child(2n+1)", "a ~ b ~ c", ":matches([)])", "::x", "a\\", "a:contains(\"x", "", "*", "a,b",
	} {
		f.Add(s, "text")
		f.Add(s, "attr:class")
	}
	w := newWorld(f, sends("text/html", "<div class=a><ul><li>A<li id=b>B</ul><p hidden>C</p><a href=x>D</a></div>"), nil)
	f.Fuzz(func(t *testing.T, selector, extract string) {
		c := call(t, "web_scrape", map[string]any{"url": "https://site.example/", "select": selector, "extract": extract})
		if _, err := w.tools["web_scrape"].Describe(t.Context(), c); err != nil {
			if e := failure(t, err); e.Category != tools.InvalidParameters {
				t.Errorf("%q: %+v", selector, e)
			}
			return
		}
		res, err := w.tools["web_scrape"].Run(t.Context(), c)
		if err != nil {
			if e := failure(t, err); e.Category != tools.InvalidParameters {
				t.Errorf("%q: %+v", selector, e)
			}
			return
		}
		if res.Text == "" || strings.Contains(res.Text, "C") && extract == "text" && !strings.HasPrefix(res.Text, "No results") {
			t.Errorf("%q: %q", selector, res.Text)
		}
	})
}

// FuzzStyle: no style crashes the reader, and what hides goes on hiding when more is said.
func FuzzStyle(f *testing.F) {
	for _, s := range []string{"display:none", "d\\69 splay:none", "/*", "opacity:.0", "left:-1e9px", "\\ffffff", ";:;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, style string) {
		if web.HiddenStyle(style) && !web.HiddenStyle("color:red;"+style) && !strings.Contains(style, "*/") {
			t.Errorf("%q", style)
		}
	})
}
