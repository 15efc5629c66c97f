package simulator_test

import (
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/zephbot/zephbot/bot/webpage/browsertest"
)

// open shows the menu of the last message that matches, as a right click does.
func (b *tab) open(selector string) {
	b.t.Helper()
	b.Do("right click", chromedp.Evaluate[chromedp.Void](`{ getSelection().removeAllRanges(); const e = [...document.querySelectorAll("`+selector+`")].at(-1);
		e.scrollIntoView({ block: "center" }); const r = e.getBoundingClientRect();
		e.dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true, clientX: r.left + 5, clientY: r.top + 5 })); }`))
	b.Until(`!document.querySelector("#menu").hidden`)
}

// menu: a message is answered, edited, copied and reacted to from its menu; others see the reaction, and it can be taken
// back.
func (b *tab) menu() {
	b.write("with a menu")
	b.Until(shows(".bot-made", "echo: with a menu"))
	b.open("li.mine .text")
	b.Shot("30-menu")
	entries := `[...document.querySelectorAll("#menu [role=menuitem]")].map((e) => e.dataset.menu).join()`
	if got := browsertest.Eval[string](b.Tab, entries); got != "reply,edit,copy,delete" {
		b.t.Errorf("menu of an own message: %s", got)
	}
	b.Do("walk to edit", chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.Until(`document.querySelector("#menu").hidden && document.activeElement.id === "text" && document.querySelector("#text").value === "with a menu"`)
	b.Do("not", chromedp.KeyEvent(kb.Escape))
	b.open("li.bot-made .text")
	if got := browsertest.Eval[string](b.Tab, entries); got != "reply,copy,what happened" {
		b.t.Errorf("menu of a message of the bot: %s", got)
	}
	b.Do("react", browsertest.Click(`#menu [data-emoji="🎉"]`))
	reaction := `[...document.querySelectorAll("li.bot-made")].at(-1).querySelector(".reactions")?.getAttribute("aria-label")`
	b.Until(reaction + ` === "Reactions: 🎉 Ann"`)
	b.open("li.bot-made .text")
	b.Until(`document.querySelector('#menu [data-emoji="🎉"]').getAttribute("aria-checked") === "true"`)
	b.Do("take it back", browsertest.Click(`#menu [data-emoji="🎉"]`))
	b.Until(reaction + ` === undefined`)
	b.open("li.bot-made .text")
	b.Do("press elsewhere", chromedp.Evaluate[chromedp.Void](`document.querySelector("#chat-title").dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }))`))
	b.Until(`document.querySelector("#menu").hidden`)
	b.open("li.bot-made .text")
	b.Do("reply", browsertest.Click(`#menu [data-menu="reply"]`))
	b.Until(`document.querySelector("#strip-text").textContent.startsWith("Reply to Zeph")`)
	b.Do("not", chromedp.KeyEvent(kb.Escape))
}

// tap: a command in a message of the bot that only shows something is sent by a click, and by the menu; one that does
// something is written into the text field, with the name of its question, and loses nothing there. Paths and links are none.
func (b *tab) tap() {
	b.write("try /help (or /stop), not a/b, /etc/passwd or https://example.org/x")
	b.Until(shows(".bot-made", "echo: try /help (or /stop), not a/b, /etc/passwd or https://example.org/x"))
	last := `[...document.querySelectorAll("li.bot-made")].at(-1)`
	if got := browsertest.Eval[string](b.Tab, `[...`+last+`.querySelectorAll("button.inline")].map((e) => e.textContent).join()`); got != "/help,/stop" {
		b.t.Errorf("commands: %s", got)
	}
	b.Do("tap", chromedp.Evaluate[chromedp.Void](last+`.querySelector("button.inline").click()`))
	b.Until(shows(".mine", "/help"))
	b.Until(shows(".bot-made", "echo: /help"))
	b.open("li.bot-made .text")
	b.Do("send it again", browsertest.Click(`#menu [data-menu="send /help"]`))
	b.Until(`[...document.querySelectorAll("li.mine .text")].slice(-2).every((e) => e.textContent === "/help")`)
	b.write("expires 14:31 · or send /approve losiz")
	b.Until(shows(".bot-made", "echo: expires 14:31 · or send /approve losiz"))
	b.Do("tap", chromedp.Evaluate[chromedp.Void](last+`.querySelector("button.inline").click()`))
	b.Until(`document.activeElement.id === "text" && document.querySelector("#text").value === "/approve losiz "`)
	b.Do("tap another", chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll("li.bot-made button.inline")].find((e) => e.textContent === "/stop").click()`))
	b.Until(`document.querySelector("#text").value === "/approve losiz " && document.querySelector("#toasts").textContent.includes("The text field is not empty")`)
	b.Do("clear", chromedp.Evaluate[chromedp.Void](`document.querySelector("#text").value = ""`))
	b.open("li.bot-made .text")
	b.Do("write it by the menu", browsertest.Click(`#menu [data-menu="write /approve losiz"]`))
	b.Until(`document.querySelector("#text").value === "/approve losiz " && [...document.querySelectorAll("li.mine .text")].at(-1).textContent.startsWith("expires")`)
	b.Do("clear", chromedp.Evaluate[chromedp.Void](`document.querySelector("#text").value = ""`))
}

// search: messages are found by their words, from the newest to the oldest, and the date of what is on top stays there.
func (b *tab) search() {
	b.Do("open", browsertest.Click("#search-button"))
	b.Until(`document.activeElement.id === "search-text" && document.querySelector("#search-button").getAttribute("aria-expanded") === "true"`)
	b.Do("words", chromedp.SendKeys(chromedp.CSS("#search-text"), "FIRST half"))
	b.Until(`document.querySelector("#search-count").textContent === "1 of 2" && document.querySelector(".found .text").textContent.startsWith("echo: the first half")`)
	b.Until(`CSS.highlights.get("search").size === 2`)
	b.Do("older", enter())
	b.Until(`document.querySelector("#search-count").textContent === "2 of 2" && document.querySelector(".found.mine")`)
	b.Until(`(() => { const r = document.querySelector(".found").getBoundingClientRect(), s = document.querySelector("#scroll").getBoundingClientRect(); return r.top >= s.top && r.bottom <= s.bottom; })()`)
	b.Until(`(() => { const r = document.querySelector(".date").getBoundingClientRect(), s = document.querySelector("#scroll").getBoundingClientRect(); return r.top >= s.top - 5 && r.bottom < s.top + 60; })()`)
	b.Shot("31-search")
	b.Do("other words", chromedp.SendKeys(chromedp.CSS("#search-text"), " of nothing"))
	b.Until(`document.querySelector("#search-count").textContent === "nothing found" && !document.querySelector(".found")`)
	b.Do("end", chromedp.KeyEvent(kb.Escape))
	b.Until(`document.querySelector("#search").hidden && document.activeElement.id === "text" && CSS.highlights.get("search").size === 0`)
	// Messages and composer have the same edges, with a scrollbar too.
	if off := browsertest.Eval[float64](b.Tab, `(() => { const m = document.querySelector("#messages").getBoundingClientRect(), c = document.querySelector(".composer .row").getBoundingClientRect();
		return Math.abs(m.left - c.left) + Math.abs(m.right - c.right); })()`); off > 1 {
		b.t.Errorf("composer and messages are %v px apart", off)
	}
}
