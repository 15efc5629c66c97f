package simulator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/zephbot/zephbot/bot/simulator"
	"github.com/zephbot/zephbot/bot/webpage/browsertest"
)

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
	browsertest.Need(t)
	axe := browsertest.AxeSource(t)
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
	b.Do("load axe-core", chromedp.Evaluate[chromedp.Void](axe))
	b.converse()
	for _, colours := range []string{"light", "dark"} {
		b.Prefer(colours)
		for _, width := range []int64{browsertest.Wide, browsertest.Narrow} {
			b.as(t, fmt.Sprintf("%s %d", colours, width), func(b *tab) {
				b.Do("resize", chromedp.EmulateViewport(width, 800))
				b.states(fmt.Sprintf("%s-%d", colours, width))
			})
		}
	}
}

// states leads the page through its states and examines each.
func (b *tab) states(name string) {
	for _, state := range []struct {
		name  string
		reach []browsertest.Action
		until string
		leave []browsertest.Action
	}{
		{
			"chat",
			[]browsertest.Action{browsertest.Click(`[data-person="1001"]`), browsertest.Click(`[data-chat="1001/0"]`)},
			`document.querySelectorAll("#messages button.key").length === 3 && [...document.images].every((i) => i.complete)`, nil,
		},
		{
			// Photos that arrive push a reader at the end along: looked for until it holds.
			"top of the chat", nil,
			`(document.querySelector("#scroll").scrollTop = 0, !document.querySelector("#to-end").hidden && document.querySelector("#scroll").scrollTop === 0)`, nil,
		},
		{
			"inspector",
			[]browsertest.Action{browsertest.Click(`#inspector-button`)},
			`document.querySelector(".calls .method")`,
			[]browsertest.Action{browsertest.Click(`#inspector-close`)},
		},
		{
			"viewer",
			[]browsertest.Action{browsertest.Click(`.photo`)},
			`document.querySelector("#viewer").open && document.querySelector("#viewer-image").naturalWidth`,
			[]browsertest.Action{browsertest.Click(`#viewer-close`)},
		},
		{
			"files to send",
			[]browsertest.Action{chromedp.Evaluate[chromedp.Void](`{ const list = new DataTransfer();
				list.items.add(new File(["x"], "a.txt")); list.items.add(new File(["x"], "a.png", { type: "image/png" }));
				const field = document.querySelector("#file"); field.files = list.files; field.dispatchEvent(new Event("change")); }`)},
			`document.querySelectorAll(".thumbs li").length === 2`,
			[]browsertest.Action{browsertest.Click(`#strip-close`)},
		},
		{
			"commands",
			[]browsertest.Action{clearText, chromedp.SendKeys(chromedp.CSS("#text"), "/")},
			`!document.querySelector("#commands").hidden`,
			[]browsertest.Action{clearText},
		},
		{
			"menu",
			[]browsertest.Action{browsertest.Click(`li.mine [data-act="more"]`)},
			`!document.querySelector("#menu").hidden && document.querySelector("#menu").getBoundingClientRect().right <= innerWidth`,
			[]browsertest.Action{chromedp.KeyEvent(kb.Escape)},
		},
		{
			"search",
			[]browsertest.Action{browsertest.Click(`#search-button`), chromedp.SendKeys(chromedp.CSS("#search-text"), "a")},
			`document.querySelector(".found") && document.querySelector("#search-count").textContent.startsWith("1 of ")`,
			[]browsertest.Action{browsertest.Click(`#search-close`)},
		},
		{"faults", []browsertest.Action{browsertest.Click(`#faults-button`)}, `!document.querySelector("#faults").hidden`, []browsertest.Action{browsertest.Click(`#faults-button`)}},
		{
			"process",
			[]browsertest.Action{browsertest.Click(`#pill`), browsertest.Click(`#output`)},
			`!document.querySelector("#log").hidden`,
			[]browsertest.Action{browsertest.Click(`#pill`)},
		},
		{"group", []browsertest.Action{browsertest.Click(`[data-chat="-1001/7"]`)}, `document.querySelector("li.alone") && document.body.dataset.ready === "1001/-1001/7"`, nil},
		{"list", []browsertest.Action{browsertest.Click(`#back`)}, `document.querySelectorAll(".chat-row").length === 4`, nil},
		{"topic", []browsertest.Action{browsertest.Click(`[data-topic]`)}, `document.querySelector("#topic").open`, []browsertest.Action{browsertest.Click(`#topic-cancel`)}},
		{"empty", []browsertest.Action{browsertest.Click(`[data-person="1004"]`), browsertest.Click(`[data-chat="1004/0"]`)}, `!document.querySelector("#empty").hidden && document.querySelector(".tries")`, nil},
	} {
		b.Do("reach "+state.name, state.reach...)
		b.Until(state.until)
		b.Examine(state.name)
		b.Shot("axe-" + name + "-" + strings.ReplaceAll(state.name, " ", "-"))
		b.Do("leave "+state.name, state.leave...)
	}
}

// TestKeyboard does with the keyboard alone what a person does: every stop of Tab has a name and shows that it has the
// focus.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	browsertest.Need(t)
	s := launch(t, nil)
	b := openPage(t, s)
	b.converse()
	b.Until(`document.querySelectorAll("#messages button.key").length === 3`)
	b.Do("begin at the top", chromedp.Evaluate[chromedp.Void](`document.activeElement.blur(); document.querySelector(".bar").tabIndex = -1; document.querySelector(".bar").focus()`))
	where := `(() => { const e = document.activeElement; const s = getComputedStyle(e.closest(".attach") || e);
		const seen = s.outlineStyle !== "none" && s.outlineWidth !== "0px" || e.id === "text" && getComputedStyle(e.closest(".row")).borderColor !== "rgba(0, 0, 0, 0)";
		const name = e.getAttribute("aria-label") || e.textContent.trim() || (e.labels && e.labels.length ? e.labels[0].textContent : "") || e.title;
		return JSON.stringify([e.id || e.className || e.tagName, name || "", seen]); })()`
	var stops []string
	for range 60 {
		b.Do("tab", chromedp.KeyEvent(kb.Tab))
		var stop struct {
			what, name string
			seen       bool
		}
		var raw []any
		if err := json.Unmarshal([]byte(browsertest.Eval[string](b.Tab, where)), &raw); err != nil {
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
	browsertest.Need(t)
	b := openPage(t, launch(t, nil))
	b.converse()
	b.Until(`document.querySelectorAll("#messages button.key").length === 3`)
	b.Until(`(document.querySelector("#scroll").scrollTop = 0, !document.querySelector("#to-end").hidden)`)
	b.Do("the way to the end", chromedp.Evaluate[chromedp.Void](`document.querySelector("#to-end").focus()`))
	b.Until(`(document.querySelector("#scroll").scrollTop = 1e6, document.querySelector("#to-end").hidden)`)
	if at := browsertest.Eval[string](b.Tab, `document.activeElement.localName`); at != "li" {
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
		at := browsertest.Eval[string](b.Tab, fmt.Sprintf(`(async () => {
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
	browsertest.Need(t)
	b := openPage(t, launch(t, nil))
	b.converse()
	b.Until(`document.querySelector("li.message .player audio")`)
	row := `document.querySelector("li.message .player").closest("li.message")`
	b.Do("remember it", chromedp.Evaluate[chromedp.Void](`{ window.sound = document.querySelector(".player audio"); window.drawn = `+row+`; `+row+`.focus(); }`))
	b.Do("draw it again", browsertest.Strike("Enter", 13)) // what is looked behind is marked
	b.Until(row + ` !== window.drawn`)
	if !browsertest.Eval[bool](b.Tab, `document.querySelector(".player audio") === window.sound`) {
		t.Error("another player took its place")
	}
}

// approve decides about the question with the keyboard alone, looks behind it and goes to another chat.
func (b *tab) approve() {
	b.Do("to the button", chromedp.Evaluate[chromedp.Void](`document.querySelector("button.key.success").focus()`), chromedp.KeyEvent(kb.Enter))
	b.Until(shows(".bot-made", "✅ Approved by Ann"))
	b.Until(`document.activeElement.id === "text"`)
	last := `[...document.querySelectorAll("li.message")].at(-1)`
	b.Do("back to the message", chromedp.Evaluate[chromedp.Void](`document.querySelector('li.message[tabindex="0"]').focus()`), chromedp.KeyEvent(kb.End))
	b.Until(`document.activeElement === ` + last)
	b.Do("its menu", browsertest.Strike("m", 77))
	b.Until(`!document.querySelector("#menu").hidden && document.activeElement.dataset.menu === "reply"`)
	b.Do("away", chromedp.KeyEvent(kb.Escape))
	b.Until(`document.querySelector("#menu").hidden && document.activeElement === ` + last)
	b.Do("look behind it", browsertest.Strike("Enter", 13))
	b.Until(`document.querySelector(".calls .method")`)
	b.Do("close", chromedp.KeyEvent(kb.Escape))
	b.Until(`getComputedStyle(document.querySelector("#inspector")).display === "none" && document.activeElement.id === "text"`)
	b.Do("another chat", chromedp.Evaluate[chromedp.Void](`document.querySelector(".chat-row").focus()`), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.Until(`document.body.dataset.ready === "1001/-1001/0"`)
	b.Do("viewer", chromedp.Evaluate[chromedp.Void](`document.querySelector(".chat-row").focus()`), chromedp.KeyEvent(kb.Enter))
	b.Until(`document.body.dataset.ready === "1001/1001/0" && document.querySelector(".photo")`)
	b.Do("open a photo", chromedp.Evaluate[chromedp.Void](`document.querySelector(".photo").focus()`), chromedp.KeyEvent(kb.Enter))
	b.Until(`document.querySelector("#viewer").open && document.activeElement.id === "viewer-close"`)
	b.Do("close it", chromedp.KeyEvent(kb.Enter))
	b.Until(`!document.querySelector("#viewer").open`)
}
