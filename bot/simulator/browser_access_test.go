package simulator_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/zephbot/zephbot/bot/simulator"
)

// axeSource returns the code of axe-core, which .ci/run brings, or skips. Where CI promised it, its absence is a failure.
func axeSource(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ZEPH_AXE")
	if path == "" {
		path = filepath.Join(os.TempDir(), "zephbot-ci", "axe.min.js")
	}
	raw, err := os.ReadFile(path)
	if err == nil {
		return string(raw)
	}
	if os.Getenv("ZEPH_CI") == "1" {
		t.Fatalf("no axe-core, and ZEPH_CI=1 says there has to be one: %v", err)
	}
	t.Skipf("the page is not examined with axe-core: %v; `.ci/run tools` brings it", err)
	return ""
}

// finding is a rule of axe-core that the page breaks.
type finding struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Nodes  []struct {
		HTML   string   `json:"html"`
		Target []string `json:"target"`
		Why    string   `json:"failureSummary"`
	} `json:"nodes"`
}

// examine runs axe-core on the page as it is, and reports what it finds, whatever its impact.
func (b *tab) examine(state string) {
	b.t.Helper()
	raw := evalPromise(b, `axe.run(document, { resultTypes: ["violations"] }).then((r) => JSON.stringify(r.violations))`)
	var found []finding
	if err := json.Unmarshal([]byte(raw), &found); err != nil {
		b.t.Fatal(err)
	}
	for _, f := range found {
		for _, n := range f.Nodes {
			b.t.Errorf("%s: %s (%s): %s\n%s\n%s %s", state, f.ID, f.Impact, f.Help, n.HTML, n.Target, n.Why)
		}
	}
}

func evalPromise(b *tab, expression string) string {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return out
}

// converse makes one message of each kind, for Ann in private and in the group.
func (b *tab) converse() {
	b.t.Helper()
	b.site.post("say", p{"me": ann, "chat": ann, "text": "formats"}, nil)
	b.site.await(ann, ann, 0, func(v *simulator.View) bool { return len(v.Messages) == 2 })
	b.site.post("say", p{"me": ann, "chat": ann, "text": "look", "files": []p{upload("a.png", "photo", picture(160, 90)), upload("b.png", "photo", picture(90, 160))}}, nil)
	b.site.post("say", p{"me": ann, "chat": ann, "files": []p{{"name": "v.ogg", "as": "voice", "data": []byte("OggS\x00"), "duration": 7}}}, nil)
	b.site.post("say", p{"me": ann, "chat": ann, "files": []p{upload("notes.txt", "", []byte("x"))}}, nil)
	b.site.say(ann, ann, 0, "file")
	b.site.say(ann, ann, 0, "photo")
	b.site.say(ann, ann, 0, "quote")
	b.site.say(ann, ann, 0, "ask")
	b.site.await(ann, ann, 0, func(v *simulator.View) bool {
		return len(v.Messages) == 15 && v.Messages[3].Reactions != nil
	})
	b.site.say(ann, team, deploys, "@zephbot aside")
	b.site.await(ann, team, deploys, func(v *simulator.View) bool { return len(v.Messages) == 2 })
	b.site.say(ben, team, deploys, "@zephbot something new")
	b.site.awaitText(ann, team, deploys, "echo: @zephbot something new")
}

// TestAccessible examines the page in every state: light and dark, wide and 360 px.
func TestAccessible(t *testing.T) {
	t.Parallel()
	chromium(t)
	axe := axeSource(t)
	s := launch(t, func(o *simulator.Options) {
		o.Inspect = &memoryOf{story: simulator.Story{Turns: []simulator.StoryTurn{{
			ID: "t1", Text: "formats", Began: epoch, Steps: []simulator.Step{
				{Kind: simulator.StepTool, Name: "bash", Text: strings.Repeat("long ", 80), Rule: "3 (ask find … -delete)", Millis: 86},
				{Kind: simulator.StepApproval, Name: "Approved once", By: "Ann, 14:22"},
				{Kind: simulator.StepTool, Name: "read", Text: "no such file", Failed: true},
			},
		}}}}
	})
	b := openPage(t, s)
	b.do("load axe-core", chromedp.Evaluate[chromedp.Void](axe))
	b.converse()
	for _, colours := range []string{"light", "dark"} {
		b.prefer(colours)
		for _, width := range []int64{1440, 360} {
			b.as(t, fmt.Sprintf("%s %d", colours, width), func(b *tab) {
				b.do("resize", chromedp.EmulateViewport(width, 800))
				b.states(fmt.Sprintf("%s-%d", colours, width))
			})
		}
	}
}

// states leads the page through its states and examines each.
func (b *tab) states(name string) {
	for _, state := range []struct {
		name  string
		reach []chromedp.Action[chromedp.Void]
		until string
		leave []chromedp.Action[chromedp.Void]
	}{
		{
			"chat",
			[]chromedp.Action[chromedp.Void]{click(`[data-person="1001"]`), click(`[data-chat="1001/0"]`)},
			`document.querySelectorAll("#messages button.key").length === 3 && [...document.images].every((i) => i.complete)`, nil,
		},
		{
			// Photos that arrive push a reader at the end along: looked for until it holds.
			"top of the chat", nil,
			`(document.querySelector("#scroll").scrollTop = 0, !document.querySelector("#to-end").hidden && document.querySelector("#scroll").scrollTop === 0)`, nil,
		},
		{
			"inspector",
			[]chromedp.Action[chromedp.Void]{click(`#inspector-button`)},
			`document.querySelector(".calls .method")`,
			[]chromedp.Action[chromedp.Void]{click(`#inspector-close`)},
		},
		{
			"viewer",
			[]chromedp.Action[chromedp.Void]{click(`.photo`)},
			`document.querySelector("#viewer").open && document.querySelector("#viewer-image").naturalWidth`,
			[]chromedp.Action[chromedp.Void]{click(`#viewer-close`)},
		},
		{
			"files to send",
			[]chromedp.Action[chromedp.Void]{chromedp.Evaluate[chromedp.Void](`{ const list = new DataTransfer();
				list.items.add(new File(["x"], "a.txt")); list.items.add(new File(["x"], "a.png", { type: "image/png" }));
				const field = document.querySelector("#file"); field.files = list.files; field.dispatchEvent(new Event("change")); }`)},
			`document.querySelectorAll(".thumbs li").length === 2`,
			[]chromedp.Action[chromedp.Void]{click(`#strip-close`)},
		},
		{
			"commands",
			[]chromedp.Action[chromedp.Void]{clearText, chromedp.SendKeys(chromedp.CSS("#text"), "/")},
			`!document.querySelector("#commands").hidden`,
			[]chromedp.Action[chromedp.Void]{clearText},
		},
		{
			"menu",
			[]chromedp.Action[chromedp.Void]{click(`li.mine [data-act="more"]`)},
			`!document.querySelector("#menu").hidden && document.querySelector("#menu").getBoundingClientRect().right <= innerWidth`,
			[]chromedp.Action[chromedp.Void]{chromedp.KeyEvent(kb.Escape)},
		},
		{
			"search",
			[]chromedp.Action[chromedp.Void]{click(`#search-button`), chromedp.SendKeys(chromedp.CSS("#search-text"), "a")},
			`document.querySelector(".found") && document.querySelector("#search-count").textContent.startsWith("1 of ")`,
			[]chromedp.Action[chromedp.Void]{click(`#search-close`)},
		},
		{"faults", []chromedp.Action[chromedp.Void]{click(`#faults-button`)}, `!document.querySelector("#faults").hidden`, []chromedp.Action[chromedp.Void]{click(`#faults-button`)}},
		{
			"process",
			[]chromedp.Action[chromedp.Void]{click(`#pill`), click(`#output`)},
			`!document.querySelector("#log").hidden`,
			[]chromedp.Action[chromedp.Void]{click(`#pill`)},
		},
		{"group", []chromedp.Action[chromedp.Void]{click(`[data-chat="-1001/7"]`)}, `document.querySelector("li.alone") && document.body.dataset.ready === "1001/-1001/7"`, nil},
		{"list", []chromedp.Action[chromedp.Void]{click(`#back`)}, `document.querySelectorAll(".chat-row").length === 4`, nil},
		{"topic", []chromedp.Action[chromedp.Void]{click(`[data-topic]`)}, `document.querySelector("#topic").open`, []chromedp.Action[chromedp.Void]{click(`#topic-cancel`)}},
		{"empty", []chromedp.Action[chromedp.Void]{click(`[data-person="1004"]`), click(`[data-chat="1004/0"]`)}, `!document.querySelector("#empty").hidden && document.querySelector(".tries")`, nil},
	} {
		b.do("reach "+state.name, state.reach...)
		b.until(state.until)
		if over := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			b.t.Errorf("%s: %d px too wide", state.name, over)
		}
		b.examine(state.name)
		b.shot("axe-" + name + "-" + strings.ReplaceAll(state.name, " ", "-"))
		b.do("leave "+state.name, state.leave...)
	}
}

// TestKeyboard does with the keyboard alone what a person does: every stop of Tab has a name and shows that it has the
// focus.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	chromium(t)
	s := launch(t, nil)
	b := openPage(t, s)
	b.converse()
	b.until(`document.querySelectorAll("#messages button.key").length === 3`)
	b.do("begin at the top", chromedp.Evaluate[chromedp.Void](`document.activeElement.blur(); document.querySelector(".bar").tabIndex = -1; document.querySelector(".bar").focus()`))
	where := `(() => { const e = document.activeElement; const s = getComputedStyle(e.closest(".attach") || e);
		const seen = s.outlineStyle !== "none" && s.outlineWidth !== "0px" || e.id === "text" && getComputedStyle(e.closest(".row")).borderColor !== "rgba(0, 0, 0, 0)";
		const name = e.getAttribute("aria-label") || e.textContent.trim() || (e.labels && e.labels.length ? e.labels[0].textContent : "") || e.title;
		return JSON.stringify([e.id || e.className || e.tagName, name || "", seen]); })()`
	var stops []string
	for range 60 {
		b.do("tab", chromedp.KeyEvent(kb.Tab))
		var stop struct {
			what, name string
			seen       bool
		}
		var raw []any
		if err := json.Unmarshal([]byte(eval[string](b, where)), &raw); err != nil {
			t.Fatal(err)
		}
		stop.what, stop.name, stop.seen = fmt.Sprint(raw[0]), fmt.Sprint(raw[1]), raw[2] == true
		if stop.what == "BODY" {
			break
		}
		stops = append(stops, stop.what)
		if stop.name == "" || !stop.seen {
			t.Errorf("stop %d, %s: name %q, focus visible %v", len(stops), stop.what, stop.name, stop.seen)
		}
	}
	all := strings.Join(stops, "\n")
	for _, want := range []string{"person", "pill", "faults-button", "theme", "inspector-button", "search-button", "chat-row", "message", "photo", "play", "file", "key success", "text", "record", "send"} {
		if !strings.Contains(all, want) {
			t.Errorf("Tab never reaches %q:\n%s", want, all)
		}
	}
	b.approve()
}

// TestFocusStays: where the element with the focus is hidden or removed, its place has the focus, not the top of the page.
func TestFocusStays(t *testing.T) {
	t.Parallel()
	chromium(t)
	b := openPage(t, launch(t, nil))
	b.converse()
	b.until(`document.querySelectorAll("#messages button.key").length === 3`)
	b.until(`(document.querySelector("#scroll").scrollTop = 0, !document.querySelector("#to-end").hidden)`)
	b.do("the way to the end", chromedp.Evaluate[chromedp.Void](`document.querySelector("#to-end").focus()`))
	b.until(`(document.querySelector("#scroll").scrollTop = 1e6, document.querySelector("#to-end").hidden)`)
	if at := eval[string](b, `document.activeElement.localName`); at != "li" {
		t.Errorf("the way to the end was hidden: the focus is at %q", at)
	}
	for _, c := range []struct{ name, focus, then, want string }{
		{"the last one", "2", "01", "1"},
		{"the first one", "0", "12", "1"},
		{"one between", "1", "02", "2"},
		{"replaced", "1", "01*2", "1*"},
		{"moved", "2", "210", "2"},
		{"all", "0", "", ""},
	} {
		at := evalPromise(b, fmt.Sprintf(`(async () => {
			const { h, reconcile } = await import("/page/dom.js");
			const list = document.body.appendChild(h("ul"));
			const show = (keys) => reconcile(list, [...keys.matchAll(/(\d)(\*?)/g)].map(([all, key, mark]) =>
				({ key, version: mark, make: () => h("li", {}, h("button", {}, key + mark)) })));
			show("012");
			list.querySelectorAll("button")[%s].focus();
			show(%q);
			const at = list.contains(document.activeElement) ? document.activeElement.textContent : "";
			list.remove();
			return at;
		})()`, c.focus, c.then))
		if at != c.want {
			t.Errorf("%s: the focus is at %q instead of %q", c.name, at, c.want)
		}
	}
}

// TestPlayerStays: a recording goes on playing while its message is drawn again, for instance because it was read.
func TestPlayerStays(t *testing.T) {
	t.Parallel()
	chromium(t)
	b := openPage(t, launch(t, nil))
	b.converse()
	b.until(`document.querySelector("li.message .player audio")`)
	row := `document.querySelector("li.message .player").closest("li.message")`
	b.do("remember it", chromedp.Evaluate[chromedp.Void](`{ window.sound = document.querySelector(".player audio"); window.drawn = `+row+`; `+row+`.focus(); }`))
	b.do("draw it again", strike("Enter", 13)) // what is looked behind is marked
	b.until(row + ` !== window.drawn`)
	if !eval[bool](b, `document.querySelector(".player audio") === window.sound`) {
		t.Error("another player took its place")
	}
}

// approve decides about the question with the keyboard alone, looks behind it and goes to another chat.
func (b *tab) approve() {
	b.do("to the button", chromedp.Evaluate[chromedp.Void](`document.querySelector("button.key.success").focus()`), chromedp.KeyEvent(kb.Enter))
	b.until(shows(".bot-made", "✅ Approved by Ann"))
	b.until(`document.activeElement.id === "text"`)
	last := `[...document.querySelectorAll("li.message")].at(-1)`
	b.do("back to the message", chromedp.Evaluate[chromedp.Void](`document.querySelector('li.message[tabindex="0"]').focus()`), chromedp.KeyEvent(kb.End))
	b.until(`document.activeElement === ` + last)
	b.do("its menu", strike("m", 77))
	b.until(`!document.querySelector("#menu").hidden && document.activeElement.dataset.menu === "reply"`)
	b.do("away", chromedp.KeyEvent(kb.Escape))
	b.until(`document.querySelector("#menu").hidden && document.activeElement === ` + last)
	b.do("look behind it", strike("Enter", 13))
	b.until(`document.querySelector(".calls .method")`)
	b.do("close", chromedp.KeyEvent(kb.Escape))
	b.until(`getComputedStyle(document.querySelector("#inspector")).display === "none" && document.activeElement.id === "text"`)
	b.do("another chat", chromedp.Evaluate[chromedp.Void](`document.querySelector(".chat-row").focus()`), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.until(`document.body.dataset.ready === "1001/-1001/0"`)
	b.do("viewer", chromedp.Evaluate[chromedp.Void](`document.querySelector(".chat-row").focus()`), chromedp.KeyEvent(kb.Enter))
	b.until(`document.body.dataset.ready === "1001/1001/0" && document.querySelector(".photo")`)
	b.do("open a photo", chromedp.Evaluate[chromedp.Void](`document.querySelector(".photo").focus()`), chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("#viewer").open && document.activeElement.id === "viewer-close"`)
	b.do("close it", chromedp.KeyEvent(kb.Enter))
	b.until(`!document.querySelector("#viewer").open`)
}
