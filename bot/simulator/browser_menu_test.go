package simulator_test

import (
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// open shows the menu of the last message that matches, as a right click does.
func (b *tab) open(selector string) {
	b.t.Helper()
	b.do("right click", chromedp.Evaluate[chromedp.Void](`{ getSelection().removeAllRanges(); const e = [...document.querySelectorAll("`+selector+`")].at(-1);
		e.scrollIntoView({ block: "center" }); const r = e.getBoundingClientRect();
		e.dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true, clientX: r.left + 5, clientY: r.top + 5 })); }`))
	b.until(`!document.querySelector("#menu").hidden`)
}

// menu: a message is answered, edited, copied and reacted to from its menu; others see the reaction, and it can be taken
// back.
func (b *tab) menu() {
	b.write("with a menu")
	b.until(shows(".bot-made", "echo: with a menu"))
	b.open("li.mine .text")
	b.shot("30-menu")
	entries := `[...document.querySelectorAll("#menu [role=menuitem]")].map((e) => e.dataset.menu).join()`
	if got := eval[string](b, entries); got != "reply,edit,copy,delete" {
		b.t.Errorf("menu of an own message: %s", got)
	}
	b.do("walk to edit", chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelector("#menu").hidden && document.activeElement.id === "text" && document.querySelector("#text").value === "with a menu"`)
	b.do("not", chromedp.KeyEvent(kb.Escape))
	b.open("li.bot-made .text")
	if got := eval[string](b, entries); got != "reply,copy,what happened" {
		b.t.Errorf("menu of a message of the bot: %s", got)
	}
	b.do("react", click(`#menu [data-emoji="🎉"]`))
	reaction := `[...document.querySelectorAll("li.bot-made")].at(-1).querySelector(".reactions")?.getAttribute("aria-label")`
	b.until(reaction + ` === "Reactions: 🎉 Ann"`)
	b.open("li.bot-made .text")
	b.until(`document.querySelector('#menu [data-emoji="🎉"]').getAttribute("aria-checked") === "true"`)
	b.do("take it back", click(`#menu [data-emoji="🎉"]`))
	b.until(reaction + ` === undefined`)
	b.open("li.bot-made .text")
	b.do("press elsewhere", chromedp.Evaluate[chromedp.Void](`document.querySelector("#chat-title").dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }))`))
	b.until(`document.querySelector("#menu").hidden`)
	b.open("li.bot-made .text")
	b.do("reply", click(`#menu [data-menu="reply"]`))
	b.until(`document.querySelector("#strip-text").textContent.startsWith("Reply to Zeph")`)
	b.do("not", chromedp.KeyEvent(kb.Escape))
}

// tap: a command in a message of the bot is sent by a click, and by the menu; paths and links are none.
func (b *tab) tap() {
	b.write("try /help (or /stop), not a/b, /etc/passwd or https://example.org/x")
	b.until(shows(".bot-made", "echo: try /help (or /stop), not a/b, /etc/passwd or https://example.org/x"))
	last := `[...document.querySelectorAll("li.bot-made")].at(-1)`
	if got := eval[string](b, `[...`+last+`.querySelectorAll("button.inline")].map((e) => e.textContent).join()`); got != "/help,/stop" {
		b.t.Errorf("commands: %s", got)
	}
	b.do("tap", chromedp.Evaluate[chromedp.Void](last+`.querySelector("button.inline").click()`))
	b.until(shows(".mine", "/help"))
	b.until(shows(".bot-made", "echo: /help"))
	b.open("li.bot-made .text")
	b.do("send it again", click(`#menu [data-menu="send /help"]`))
	b.until(`[...document.querySelectorAll("li.mine .text")].slice(-2).every((e) => e.textContent === "/help")`)
}

// search: messages are found by their words, from the newest to the oldest, and the date of what is on top stays there.
func (b *tab) search() {
	b.do("open", click("#search-button"))
	b.until(`document.activeElement.id === "search-text" && document.querySelector("#search-button").getAttribute("aria-expanded") === "true"`)
	b.do("words", chromedp.SendKeys(chromedp.CSS("#search-text"), "FIRST half"))
	b.until(`document.querySelector("#search-count").textContent === "1 of 2" && document.querySelector(".found .text").textContent.startsWith("echo: the first half")`)
	b.until(`CSS.highlights.get("search").size === 2`)
	b.do("older", enter())
	b.until(`document.querySelector("#search-count").textContent === "2 of 2" && document.querySelector(".found.mine")`)
	b.until(`(() => { const r = document.querySelector(".found").getBoundingClientRect(), s = document.querySelector("#scroll").getBoundingClientRect(); return r.top >= s.top && r.bottom <= s.bottom; })()`)
	b.until(`(() => { const r = document.querySelector(".date").getBoundingClientRect(), s = document.querySelector("#scroll").getBoundingClientRect(); return r.top >= s.top - 5 && r.bottom < s.top + 60; })()`)
	b.shot("31-search")
	b.do("other words", chromedp.SendKeys(chromedp.CSS("#search-text"), " of nothing"))
	b.until(`document.querySelector("#search-count").textContent === "nothing found" && !document.querySelector(".found")`)
	b.do("end", chromedp.KeyEvent(kb.Escape))
	b.until(`document.querySelector("#search").hidden && document.activeElement.id === "text" && CSS.highlights.get("search").size === 0`)
	// Messages and composer have the same edges, with a scrollbar too.
	if off := eval[float64](b, `(() => { const m = document.querySelector("#messages").getBoundingClientRect(), c = document.querySelector(".composer .row").getBoundingClientRect();
		return Math.abs(m.left - c.left) + Math.abs(m.right - c.right); })()`); off > 1 {
		b.t.Errorf("composer and messages are %v px apart", off)
	}
}
