// Package transcript writes a conversation as a page: one HTML file without scripts that loads nothing
// from elsewhere. What people and models have written is text in it, whatever it looks like.
package transcript

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/visible"
)

// Bounds of a page.
const (
	maxPicture  = 3 << 20  // bytes of one picture; a larger one is named
	maxPictures = 20 << 20 // bytes of all of them
	maxOutput   = 20_000   // UTF-16 units of what a call returned
	maxArgs     = 5_000    // UTF-16 units of what a tool was called with
	maxLine     = 160      // UTF-16 units of a line that says what a call was
	maxQuote    = 500      // UTF-16 units of what was replied to
)

//go:embed page.css
var style string

// Page is a conversation for one reader.
type Page struct {
	Entries []journal.Entry // of the conversation, oldest first
	Cut     bool            // earlier ones are left out
	Name    string          // of the reader: what they are called where entries do not say who spoke
	Caller  string          // caller id of the reader
	Group   bool            // others take part
	// Everything: the reader may see what tools did for others, too.
	Everything bool
	Bare       bool // pictures are named and not shown
	Language   string
	Made       time.Time
}

// Deps are the dependencies of Write. All but Receipt are required.
type Deps struct {
	// Open opens a picture of the conversation.
	Open   func(ctx context.Context, hash string) (io.ReadCloser, error)
	Redact func(text string) string // removes credentials
	Plain  func(text string) string // returns what a model reads of a result as people read it
	// Receipt says what the answer of a turn took; "" = nothing worth saying. nil = there are none.
	Receipt func(ctx context.Context, turn []journal.Entry) (string, error)
	Words   texts.Words // with the clock of the reader
}

// writer writes a page. The first error ends it.
type writer struct {
	Deps
	page     *Page
	words    texts.Transcript
	out      *bufio.Writer
	err      error
	pictures int64 // bytes that are left for them
	day      string
}

// Write writes the page. Besides the entries it holds no content as a whole.
func Write(ctx context.Context, deps Deps, page *Page, out io.Writer) error {
	w := &writer{
		Deps: deps, page: page, words: deps.Words.Transcript(page.Language), out: bufio.NewWriter(out),
		pictures: maxPictures,
	}
	w.head()
	for _, turn := range turnsOf(page.Entries) {
		if w.err == nil {
			w.err = ctx.Err()
		}
		w.writeTurn(ctx, turn)
	}
	w.raw("</main>\n<footer><p>")
	w.text(w.Words.TranscriptFoot(page.Language, page.Made))
	w.raw("</p></footer>\n</body>\n</html>\n")
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}

// raw writes markup of ours.
func (w *writer) raw(markup string) {
	if w.err == nil {
		_, w.err = w.out.WriteString(markup)
	}
}

// text writes what somebody has said, as text. Control characters, which have no place in HTML, are shown as signs.
func (w *writer) text(s string) { w.raw(escape(s)) }

func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return html.EscapeString(s)
}

// name writes what a person or a file is called, in one line that does not change the direction of its surroundings.
func (w *writer) name(s string) {
	w.raw("<bdi>")
	w.text(visible.Name(s))
	w.raw("</bdi>")
}

func (w *writer) head() {
	lang := w.page.Language
	if lang == "" {
		lang = "en"
	}
	sum := sha256.Sum256([]byte(style))
	w.raw("<!DOCTYPE html>\n<html lang=\"" + escape(lang) + "\">\n<head>\n<meta charset=\"utf-8\">\n" +
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'\">\n" +
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
		"<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"robots\" content=\"noindex\">\n<title>")
	w.text(w.words.Title)
	w.raw("</title>\n<style>" + style + "</style>\n</head>\n<body>\n<header><h1>")
	w.text(w.words.Title)
	w.raw("</h1>")
	for _, note := range []struct {
		text string
		on   bool
	}{{w.words.Cut, w.page.Cut}, {w.words.Others, w.page.Group && !w.page.Everything}, {w.words.Bare, w.page.Bare}} {
		if note.on {
			w.raw("<p class=\"quiet\">")
			w.text(note.text)
			w.raw("</p>")
		}
	}
	w.raw("</header>\n<main>\n")
}

// turnsOf divides a conversation into its turns.
func turnsOf(entries []journal.Entry) (list [][]journal.Entry) {
	start := 0
	for i := range entries {
		if i > 0 && entries[i].Turn != entries[i-1].Turn {
			list, start = append(list, entries[start:i]), i
		}
	}
	if start < len(entries) {
		list = append(list, entries[start:])
	}
	return list
}

// writeTurn writes what was asked and what came of it. What tools did is part of what the bot said next.
func (w *writer) writeTurn(ctx context.Context, turn []journal.Entry) {
	var calls []call
	var shown []llm.Part // what tools have sent
	asker := askerOf(turn)
	for i := range turn {
		e := &turn[i]
		if e.Child != "" {
			continue // its call says what came of it
		}
		switch e.Kind {
		case journal.UserEntry:
			w.person(ctx, e)
		case journal.AssistantEntry:
			calls = append(calls, callsOf(e)...)
		case journal.ResultEntry:
			addResult(calls, e)
			shown = append(shown, e.Parts...)
		case journal.AnswerEntry, journal.EndEntry:
			w.answer(ctx, turn, e, calls, shown, asker)
			calls, shown = nil, nil
		case journal.StartedEntry, journal.SummaryEntry, journal.ResetEntry:
		}
	}
	if len(calls) > 0 || len(shown) > 0 { // it has not come to its end yet
		w.answer(ctx, nil, &journal.Entry{At: turn[len(turn)-1].At}, calls, shown, asker)
	}
}

func askerOf(turn []journal.Entry) string {
	for i := range turn {
		if e := &turn[i]; e.Kind == journal.UserEntry && e.Child == "" {
			return e.Caller
		}
	}
	return ""
}

// begin begins what somebody has said.
func (w *writer) begin(class, name string, at time.Time, signs ...string) {
	day, hour := w.Words.TranscriptTime(at)
	if day != w.day {
		w.day = day
		w.raw("<h2>")
		w.text(day)
		w.raw("</h2>\n")
	}
	w.raw("<article" + class + "><div class=\"who\"><b>")
	w.name(name)
	w.raw("</b><time datetime=\"" + at.UTC().Format(time.RFC3339) + "\">")
	w.text(hour)
	w.raw("</time>")
	for _, sign := range signs {
		w.raw("<span>")
		w.text(sign)
		w.raw("</span>")
	}
	w.raw("</div>")
}

// person writes what a person has said.
func (w *writer) person(ctx context.Context, e *journal.Entry) {
	name, class := e.Speaker, ""
	own := e.Caller == w.page.Caller
	if own {
		class = ` class="mine"`
	}
	said, passed, hook := e.Text, "", e.Foreign.HookName()
	if e.Foreign != "" || e.Scheduled {
		said, passed = prompt.Divide(e.Text)
	}
	if hook != "" {
		name, class = w.Words.HookCalled(w.page.Language, hook), ""
	}
	if name == "" && (own || !w.page.Group) {
		name = w.page.Name
	}
	if name == "" {
		name = w.words.Somebody
	}
	var signs []string
	for _, sign := range []struct {
		text string
		on   bool
	}{
		{w.words.Edited, e.Joins == journal.Edited},
		{w.words.Scheduled, e.Scheduled},
		{w.words.Forwarded, e.Foreign != "" && hook == "" && !e.Scheduled},
	} {
		if sign.on {
			signs = append(signs, sign.text)
		}
	}
	w.begin(class, name, e.At, signs...)
	if q := e.Quote; q != nil {
		w.raw("<blockquote class=\"reply\" dir=\"auto\">")
		if q.Own {
			w.name(w.words.Bot)
		} else if q.Author != "" {
			w.name(q.Author)
		}
		w.raw(": ")
		w.text(render.Cut(w.Redact(q.Text), maxQuote))
		w.raw("</blockquote>")
	}
	w.said(render.Message{Text: w.Redact(said)})
	if hook != "" {
		w.folded(w.words.Brought, passed)
	} else {
		w.said(render.Message{Text: w.Redact(passed)})
	}
	for i := range e.Parts {
		p := &e.Parts[i]
		switch {
		case p.Own: // a voice message, in words below a line that says so to the model
			_, spoken, _ := strings.Cut(p.Text, "\n")
			w.said(render.Message{Text: w.Redact(spoken)})
		case p.Kind == llm.TextPart && p.Label != "": // a place, a contact
			w.said(render.Message{Text: p.Label + ": " + w.Redact(p.Text)})
		case p.Kind != llm.TextPart:
			w.part(ctx, p)
		}
	}
	w.raw("</article>\n")
}

// folded writes a text of a machine behind a line that says what it is.
func (w *writer) folded(what, text string) {
	if text == "" {
		return
	}
	w.raw("<details><summary>")
	w.text(what)
	w.raw("</summary>")
	w.block(w.Redact(text), maxOutput)
	w.raw("</details>")
}

// answer writes what the bot has said, with what led to it.
func (w *writer) answer(
	ctx context.Context, turn []journal.Entry, e *journal.Entry, calls []call, shown []llm.Part, asker string,
) {
	w.begin("", w.words.Bot, e.At)
	for i := range shown {
		if shown[i].Outgoing || shown[i].Kind == llm.ImagePart {
			w.part(ctx, &shown[i])
		}
	}
	w.said(render.Whole(w.Redact(e.Text)))
	if w.page.Everything || !w.page.Group || asker == w.page.Caller {
		w.calls(calls)
		w.receipt(ctx, turn)
	}
	w.raw("</article>\n")
}

func (w *writer) receipt(ctx context.Context, turn []journal.Entry) {
	if w.Receipt == nil || w.err != nil || len(turn) == 0 {
		return
	}
	text, err := w.Receipt(ctx, turn)
	if err != nil {
		w.err = err
		return
	}
	if text != "" {
		w.raw("<div class=\"receipt\" dir=\"auto\">")
		w.text(text)
		w.raw("</div>")
	}
}

// part writes what came along: a picture as such, anything else by its name.
func (w *writer) part(ctx context.Context, p *llm.Part) {
	w.raw("<figure>")
	if p.Kind == llm.ImagePart && !w.page.Bare && p.Hash != "" && w.err == nil {
		if err := w.picture(ctx, p); err != nil && w.err == nil {
			w.err = err
		}
	}
	w.raw("<figcaption>")
	if p.Label != "" {
		w.text(p.Label + " ")
	}
	w.name(w.Redact(p.Name))
	if p.Size > 0 {
		w.text(fmt.Sprintf(" (%d KB)", (p.Size+1023)/1024))
	}
	if p.Outgoing && p.Text != "" {
		w.text(" " + visible.Controls(w.Redact(p.Text)))
	}
	w.raw("</figcaption></figure>")
}

// picture writes a picture into the page, if it is one that browsers only draw, and small enough. An SVG is a document.
func (w *writer) picture(ctx context.Context, p *llm.Part) error {
	in, err := w.Open(ctx, p.Hash)
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read a picture: %w", err)
	}
	defer func() { _ = in.Close() }() // it was read
	var first [512]byte
	n, err := io.ReadFull(in, first[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil // empty
	}
	kind := http.DetectContentType(first[:n])
	switch kind {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		return nil
	}
	limit := min(maxPicture, w.pictures)
	if p.Size > limit || p.Size == 0 {
		return nil // what is not known cannot be taken back once it is written
	}
	w.pictures -= p.Size
	w.raw("<img alt=\"")
	w.text(visible.Name(w.Redact(p.Name)))
	w.raw("\" src=\"data:" + kind + ";base64,")
	if w.err != nil {
		return nil
	}
	e := base64.NewEncoder(base64.StdEncoding, w.out)
	if _, err = e.Write(first[:n]); err == nil {
		_, err = io.Copy(e, io.LimitReader(in, limit-int64(n)))
	}
	if err = errors.Join(err, e.Close()); err != nil {
		return fmt.Errorf("show a picture: %w", err)
	}
	w.raw("\">")
	return nil
}
