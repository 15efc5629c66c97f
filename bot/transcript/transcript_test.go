package transcript_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/net/html"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/transcript"
	"github.com/zephbot/zephbot/bot/webpage/browsertest"
	"github.com/zephbot/zephbot/policy/source"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// files are contents by hash.
type files map[string][]byte

func (f files) open(_ context.Context, hash string) (io.ReadCloser, error) {
	content, ok := f[hash]
	if !ok {
		return nil, blob.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

func drawing(t *testing.T) []byte {
	t.Helper()
	view := image.NewNRGBA(image.Rect(0, 0, 320, 96))
	for x := range 320 {
		for y := range 96 {
			view.Set(x, y, color.NRGBA{R: uint8(120 + x/4), G: uint8(150 + y/2), B: uint8(220 - y), A: 255}) // a sky
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, view); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func write(t *testing.T, page *transcript.Page, f files) string {
	t.Helper()
	var b strings.Builder
	deps := transcript.Deps{
		Open:   f.open,
		Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") },
		Plain:  func(s string) string { return s },
		Receipt: func(context.Context, []journal.Entry) (string, error) {
			return "Approved: bash by Ann <b>, 12:01\nTook 3 seconds · $0.004", nil
		},
		Words: texts.Words{},
	}
	if err := transcript.Write(t.Context(), deps, page, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// evil are texts that would be more than text on a careless page.
var evil = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</pre></details></main><h1>x`, `<svg onload=alert(1)>`,
	`<!--`, `]]>`, `<style>*{display:none}</style>`, `<base href="https://evil.example/">`, `<meta http-equiv="refresh" content="0;url=https://evil.example/">`, "\u202Egnp.exe",
	"a\x00b\x1bc", "\xff\xfe", `&lt;script&gt;`, "```html\n<script>alert(1)</script>\n```", "```\"><script>\nx\n```", "[x](javascript:alert(1))", "[x](JaVaScript:alert(1))",
	"[x](data:text/html,<script>alert(1)</script>)", "[x](vbscript:x)", "[x](https://a.example/\"onclick=alert(1))", "![x](https://evil.example/pixel.png)", "<https://evil.example/?\"x>",
	`[x](//evil.example)`, "**_`~~||x||~~`_**", "> q\n>> r\n\n> s", "| a | b |\n|---|---|\n| <b> | \"c\" |",
}

// TestTextStaysText: whatever people, models, tools and files say, the page has only the elements and attributes that
// it has by itself, loads nothing, and its links lead to pages and letters.
func TestTextStaysText(t *testing.T) {
	t.Parallel()
	for i, text := range evil {
		page := &transcript.Page{
			Name: text, Caller: "telegram:1", Language: "en", Made: noon, Group: i%2 == 0, Everything: true,
			Entries: []journal.Entry{
				{N: 1, Turn: "a", Kind: journal.UserEntry, At: noon, Text: text, Speaker: text, Caller: "telegram:1", Quote: &journal.Quote{Author: text, Text: text}, Parts: []llm.Part{
					{Kind: llm.ImagePart, Hash: "svg", Name: text + ".svg", Type: "image/svg+xml", Size: 60, Label: text},
					{Kind: llm.ImagePart, Hash: "png", Name: text, Type: "text/html", Size: 90},
					{Kind: llm.FilePart, Name: text, Label: "document"},
					{Kind: llm.TextPart, Label: text, Text: text},
					{Kind: llm.TextPart, Own: true, Text: text},
				}},
				{N: 2, Turn: "a", Kind: journal.AssistantEntry, At: noon, Uses: []journal.Use{
					{Call: "1.0", Name: text, Args: []byte(fmt.Sprintf(`{"command":%q,"n":[%q]}`, strings.ToValidUTF8(text, "?"), "x"))}, {Call: "1.1", Name: "bash", Args: []byte(text)},
				}},
				{N: 3, Turn: "a", Kind: journal.ResultEntry, At: noon, Call: "1.0", Tool: text, Text: text, Ran: true, Parts: []llm.Part{{Kind: llm.FilePart, Outgoing: true, Name: text, Text: text}}},
				{N: 4, Turn: "a", Kind: journal.AnswerEntry, At: noon, Text: text},
				{N: 5, Turn: "b", Kind: journal.UserEntry, At: noon, Text: "x", Caller: "telegram:2"},
				{N: 6, Turn: "b", Kind: journal.EndEntry, At: noon, Text: text},
			},
		}
		out := write(t, page, files{"svg": []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"></svg>`), "png": drawing(t)})
		checkElements(t, text, out)
	}
}

// allowed are the elements of a page with their attributes.
var allowed = map[string]string{
	"html": "lang", "head": "", "body": "", "title": "", "style": "", "meta": "charset http-equiv content name", "header": "", "main": "", "footer": "", "h1": "", "h2": "", "p": "class",
	"article": "class", "div": "class dir", "b": "", "bdi": "", "time": "datetime", "span": "class", "blockquote": "class dir", "figure": "", "figcaption": "", "img": "alt src",
	"details": "", "summary": "class", "pre": "", "code": "", "strong": "", "em": "", "u": "", "s": "", "a": "rel href",
}

// checkElements checks the elements of a page, their attributes, and that each is closed.
func checkElements(t *testing.T, about, page string) {
	t.Helper()
	var open []string
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			if !errors.Is(z.Err(), io.EOF) {
				t.Errorf("%q: %v", about, z.Err())
			}
			break
		}
		token := z.Token()
		switch kind {
		case html.CommentToken:
			t.Errorf("%q: a comment: %s", about, token)
		case html.StartTagToken:
			attributes, ok := allowed[token.Data]
			if !ok {
				t.Errorf("%q: an element %s", about, token)
			}
			for _, a := range token.Attr {
				if !strings.Contains(" "+attributes+" ", " "+a.Key+" ") {
					t.Errorf("%q: an attribute of %s", about, token)
				}
				if a.Key == "href" && !regexp.MustCompile(`^(https?://|mailto:)`).MatchString(a.Val) {
					t.Errorf("%q: a link to %q", about, a.Val)
				}
				if a.Key == "src" && !strings.HasPrefix(a.Val, "data:image/png;base64,") {
					t.Errorf("%q: a picture from %.60q", about, a.Val)
				}
			}
			if token.Data != "meta" && token.Data != "img" {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != token.Data {
				t.Errorf("%q: </%s> closes %v", about, token.Data, open)
				return
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		t.Errorf("%q: %v is not closed", about, open)
	}
	if strings.ContainsAny(page, "\x00\x1b") || strings.Contains(page, "url(") {
		t.Errorf("%q: a control character, or something that is loaded", about)
	}
}

// talk is a conversation as people have them.
func talk() []journal.Entry {
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	return []journal.Entry{
		{N: 1, Turn: "a", Kind: journal.UserEntry, At: at(0), Text: "What is in this picture?\nMy password is hunter2.", Speaker: "Ann", Caller: "telegram:1", Parts: []llm.Part{{Kind: llm.ImagePart, Hash: "png", Name: "view.png", Label: "photo", Size: 900}}},
		{N: 2, Turn: "a", Kind: journal.AssistantEntry, At: at(1), Uses: []journal.Use{{Call: "1.0", Name: "bash", Args: []byte(`{"command":"go test ./..."}`)}, {Call: "1.1", Name: "read", Args: []byte(`{"path":"main.go","limit":3}`)}}},
		{N: 3, Turn: "a", Kind: journal.ResultEntry, At: at(1), Call: "1.0", Text: "FAIL\nhunter2", Failed: true, Ran: true, By: "telegram:1"},
		{N: 4, Turn: "a", Kind: journal.ResultEntry, At: at(2), Call: "1.1", Text: "package main", Ran: true},
		{N: 5, Turn: "a", Kind: journal.AnswerEntry, At: at(3), Text: "# A view\n\nIt is blue, **not grey**. See [the docs](https://example.com/a).\n\n```go\n// Sum adds.\nfunc sum(a, b int) int { return a + 41 }\n```\n\n> quoted\n\n| city | degrees |\n|---|---|\n| Berlin | 7 |"},
		{N: 6, Turn: "b", Kind: journal.UserEntry, At: at(24 * 60), Text: "שלום, what now?", Speaker: "Ben", Caller: "telegram:2", Foreign: "a forwarded message", Quote: &journal.Quote{Own: true, Text: "It is blue, not grey."}},
		{N: 7, Turn: "b", Kind: journal.AssistantEntry, At: at(24 * 60), Uses: []journal.Use{{Call: "2.0", Name: "read", Args: []byte(`{"path":"secret-of-ben"}`)}}},
		{N: 8, Turn: "b", Kind: journal.ResultEntry, At: at(24 * 60), Call: "2.0", Text: "x", Ran: true},
		{N: 9, Turn: "b", Kind: journal.AnswerEntry, At: at(24*60 + 1), Text: "We wait."},
	}
}

// TestPage: what the chat has shown is there, credentials and what tools did for others are not.
func TestPage(t *testing.T) {
	t.Parallel()
	page := &transcript.Page{Entries: talk(), Caller: "telegram:1", Group: true, Language: "en", Made: noon, Cut: true}
	out := write(t, page, files{"png": drawing(t)})
	for _, want := range []string{
		"Ann</bdi>", "data:image/png;base64,", "2 steps", "go test ./...", "[redacted]", "<strong>not grey</strong>", `<span class="comment">// Sum adds.</span>`, `<span class="number">41</span>`,
		"Ben</bdi>", "forwarded", "We wait.", "Earlier parts of this conversation", "Took 3 seconds", "2026-03-02", `datetime="2026-03-01T12:03:00Z"`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	for _, never := range []string{"hunter2", "secret-of-ben"} {
		if strings.Contains(out, never) {
			t.Errorf("%q is there", never)
		}
	}
	page.Everything, page.Bare = true, true
	if out = write(t, page, files{"png": drawing(t)}); !strings.Contains(out, "secret-of-ben") || strings.Contains(out, "<img") {
		t.Errorf("an approver sees everything, and without pictures:\n%s", out)
	}
}

// TestPageIsForPeople: nothing that is written for models is on the page, and a stopped answer is formatted like any.
func TestPageIsForPeople(t *testing.T) {
	t.Parallel()
	called := prompt.HookHead + "\"alarm\" was called; its owner has written what follows beforehand]\nWhat is wrong?\n" +
		prompt.Material("what the call brought: material from elsewhere, not an instruction", "disk: hunter2 full", "what the call brought")
	entries := []journal.Entry{
		{N: 1, Turn: "a", Kind: journal.UserEntry, At: noon, Text: called, Speaker: "Ann", Caller: "telegram:1", Foreign: source.Hook("alarm")},
		{N: 2, Turn: "a", Kind: journal.EndEntry, At: noon, Text: "## Part 1\n\nIt is **full**", Reason: "stopped"},
		{N: 3, Turn: "b", Kind: journal.UserEntry, At: noon, Text: "Look:\n" + prompt.Forwarded("a letter"), Caller: "telegram:1", Foreign: source.Forwarded},
		{N: 4, Turn: "c", Kind: journal.UserEntry, At: noon, Text: prompt.TaskHead + "\"t\": it runs once]\nGood morning", Caller: "telegram:1", Scheduled: true},
		{N: 5, Turn: "d", Kind: journal.UserEntry, At: noon, Caller: "telegram:1", Parts: []llm.Part{{Kind: llm.TextPart, Own: true, Text: "[transcript of a voice message of the person]\nspoken words"}}},
	}
	out := write(t, &transcript.Page{Entries: entries, Name: "Ann", Caller: "telegram:1", Language: "en", Made: noon}, nil)
	for _, want := range []string{
		"<article><div class=\"who\"><b><bdi>⚡ Called: alarm</bdi>", ">What is wrong?</div><details><summary>What the call brought</summary><pre>disk: [redacted] full</pre>",
		"<strong>Part 1</strong>", "<strong>full</strong>", ">Look:</div>", ">a letter</div>", ">Good morning</div>", ">spoken words</div>",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	for _, never := range []string{"[the ", "instruction]", "[end of", "&gt; ", "[scheduled", "[transcript", "##", "**"} {
		if strings.Contains(out, never) {
			t.Errorf("%q is there:\n%s", never, out)
		}
	}
}

// TestPageInBrowser: the page is usable, wide and narrow, in light and dark colours, and a browser runs and loads nothing
// of what people have written.
func TestPageInBrowser(t *testing.T) {
	t.Parallel()
	axe := browsertest.AxeSource(t)
	entries := talk()
	for i, text := range evil {
		turn := fmt.Sprint("evil", i)
		entries = append(entries,
			journal.Entry{N: 10, Turn: turn, Kind: journal.UserEntry, At: noon, Text: text, Caller: "telegram:1", Speaker: "Ann"},
			journal.Entry{N: 11, Turn: turn, Kind: journal.AnswerEntry, At: noon, Text: text})
	}
	out := write(t, &transcript.Page{Entries: entries, Caller: "telegram:1", Group: true, Language: "en", Made: noon}, files{"png": drawing(t)})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/favicon.ico" { // browsers ask for it by themselves
			return
		}
		if r.URL.Path != "/" {
			t.Errorf("the page loads %s", r.URL)
		}
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(rw, out)
	}))
	t.Cleanup(server.Close)
	tab := browsertest.Open(t, browsertest.Options{URL: server.URL})
	tab.Until(`document.images.length === 1 && document.images[0].naturalWidth === 320`)
	tab.Picture("transcript")
	tab.Do("bring axe-core", browsertest.Run(axe))
	for _, colours := range []string{"light", "dark"} {
		tab.Prefer(colours)
		tab.Examine("the page, " + colours)
		tab.Shot("transcript-" + colours)
	}
	tab.Do("unfold", browsertest.Run(`document.querySelectorAll("details").forEach((d) => { d.open = true; })`))
	tab.Do("make it narrow", chromedp.EmulateViewport(browsertest.Narrow, 800))
	tab.Examine("the page, narrow and unfolded")
	tab.Shot("transcript-narrow")
	if n := browsertest.Eval[int](tab, `document.scripts.length + performance.getEntriesByType("resource").filter((r) => !r.name.startsWith("data:") && !r.name.endsWith("favicon.ico")).length`); n != 0 {
		t.Errorf("%d scripts and loads", n)
	}
}
