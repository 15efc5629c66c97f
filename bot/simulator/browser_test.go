package simulator_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/zephbot/zephbot/bot/simulator"
	"github.com/zephbot/zephbot/bot/webpage/browsertest"
)

// tab is an open page of a simulator.
type tab struct {
	*site
	*browsertest.Tab
}

// openPage starts a browser with the page.
func openPage(t *testing.T, s *site) *tab {
	t.Helper()
	// Toasts go by themselves; a slow test would miss them.
	remember := browsertest.Run(`window.toasts = [];
		new MutationObserver((list) => list.forEach((m) => m.addedNodes.forEach((n) => window.toasts.push(n.textContent))))
			.observe(document.querySelector("#toasts"), { childList: true })`)
	return &tab{s, browsertest.Open(t, browsertest.Options{URL: s.url, Microphone: true, First: []browsertest.Action{remember}})}
}

// as runs the subtest with its own t.
func (b *tab) as(t *testing.T, name string, f func(*tab)) bool {
	t.Helper()
	return t.Run(name, func(t *testing.T) {
		s, page := *b.site, *b.Tab
		s.t, page.T = t, t
		f(&tab{&s, &page})
	})
}

// clearText empties the text field.
var clearText = chromedp.Evaluate[chromedp.Void](`document.querySelector("#text").value = ""; document.querySelector("#text").dispatchEvent(new Event("input"))`)

// enter presses Enter.
func enter() browsertest.Action { return browsertest.Strike("Enter", 13) }

// write types into the text field and sends with Enter.
func (b *tab) write(text string) {
	b.t.Helper()
	b.Do("focus", chromedp.Evaluate[chromedp.Void](`document.querySelector("#text").focus()`))
	if _, err := chromedp.Call(b.Ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		b.t.Fatal(err)
	}
	b.Until(fmt.Sprintf(`document.querySelector("#text").value === %q`, text))
	b.Do("send", enter())
}

// shows is an expression that is true when a message of this kind has the text.
func shows(class, text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("li.message%s .text")].some((e) => e.textContent === %q)`, class, text)
}

func TestBrowser(t *testing.T) {
	t.Parallel()
	browsertest.Need(t)
	s := launch(t, func(o *simulator.Options) {
		o.Dir = t.TempDir()
		o.Inspect = &memoryOf{story: simulator.Story{Turns: []simulator.StoryTurn{{
			ID: "t1", Text: "formats", Began: epoch.Add(time.Hour), Steps: []simulator.Step{
				{Kind: simulator.StepModel, Name: "offline", Millis: 412, Tokens: 1830, USD: 0.0041},
				{Kind: simulator.StepTool, Name: "bash", Text: `{"command":"find . -name '*.tmp' -delete"}`, Rule: "3 (ask find … -delete)", Millis: 86},
				{Kind: simulator.StepApproval, Name: "Approved once", By: "Ann, 14:22"},
				{Kind: simulator.StepTool, Name: "read", Text: "no such file: notes.txt", Millis: 2, Failed: true},
				{Kind: simulator.StepAnswer, Text: "Three files are gone."},
			},
		}}}}
	})
	b := openPage(t, s)
	// One after the other, on one page: when a step fails the next ones have no ground to stand on.
	for _, step := range []struct {
		name string
		do   func(*tab)
	}{
		{"empty state", (*tab).emptyState},
		{"say and hear", (*tab).sayAndHear},
		{"composer", (*tab).composer},
		{"entities", (*tab).entities},
		{"button", (*tab).button},
		{"draft", (*tab).draft},
		{"pictures", (*tab).pictures},
		{"album of the bot", (*tab).sent},
		{"voice", (*tab).voice},
		{"quote", (*tab).quote},
		{"menu", (*tab).menu},
		{"commands in messages", (*tab).tap},
		{"search", (*tab).search},
		{"another person in the group", (*tab).group},
		{"for one alone", (*tab).alone},
		{"topic", (*tab).topic},
		{"kill", (*tab).kill},
		{"faults", (*tab).faults},
		{"dark", (*tab).dark},
		{"narrow", (*tab).narrow},
	} {
		if !b.as(t, step.name, step.do) {
			break
		}
	}
}

func (b *tab) emptyState() {
	b.Until(`document.body.dataset.ready === "1001/1001/0" && document.querySelector("#pill").dataset.state === "running"`)
	b.Until(`document.querySelector("#empty").textContent.includes("delete the temp files")`)
	b.Shot("1-empty")
	// Nothing is selected, so nothing is inspected; who asks for it all the same is told so.
	b.Until(`getComputedStyle(document.querySelector("#inspector")).display === "none"`)
	b.Do("inspect nothing", browsertest.Click("#inspector-button"))
	b.Until(`window.toasts.includes("The bot has not answered here yet.") && getComputedStyle(document.querySelector("#inspector")).display === "none"`)
	b.Do("try", browsertest.Click(".tries button"))
	b.Until(`document.activeElement.id === "text" && document.activeElement.value === "what files are here?"`)
	b.Do("clear", clearText)
}

func (b *tab) sayAndHear() {
	b.write("hello <b>you</b>")
	b.Until(shows(".mine", "hello <b>you</b>"))
	b.Until(shows(".bot-made", "echo: hello <b>you</b>"))
	b.Until(`document.querySelector("#live").textContent.includes("Zeph: echo: hello")`)
	b.Until(`document.querySelector(".bot-made .quote").textContent.includes("Ann")`)
	if n := browsertest.Eval[int](b.Tab, `document.querySelectorAll("#messages .day").length`); n != 1 {
		b.t.Errorf("%d day separators, want 1", n)
	}
	// Shift+Enter is a new line, ↑ edits the last own message.
	b.Do("two lines", chromedp.Focus(chromedp.CSS("#text")), chromedp.KeyEvent("a"), chromedp.KeyEvent("\r", chromedp.KeyModifiers(chromedp.ModifierShift)), chromedp.KeyEvent("b"))
	b.Until(`document.querySelector("#text").value === "a\nb"`)
	b.Do("clear", clearText, chromedp.Focus(chromedp.CSS("#text")), chromedp.KeyEvent(kb.ArrowUp))
	b.Until(`document.querySelector("#text").value === "hello <b>you</b>" && !document.querySelector("#strip").hidden`)
	b.Do("edit", chromedp.KeyEvent("!"), enter())
	b.Until(shows(".mine", "hello <b>you</b>!"))
	b.Until(`document.querySelector(".mine .meta").textContent.includes("edited")`)
	b.Do("commands", chromedp.SendKeys(chromedp.CSS("#text"), "/h"))
	b.Until(`document.querySelectorAll("#commands li").length === 1 && !document.querySelector("#commands").hidden`)
	b.Do("escape", chromedp.KeyEvent(kb.Escape), clearText)
	b.Until(`[...document.querySelectorAll(".mine .ticks")].every((e) => e.textContent === "✓✓")`)
	// One message can be reached by Tab, whatever is in it; the arrows walk to the others.
	b.Until(`[...document.querySelectorAll("#messages li, #messages button, #messages pre")].filter((e) => e.tabIndex === 0).length === 1`)
}

// composer: a command is sent by one Enter, a long text in pieces, and a file says what becomes of it.
func (b *tab) composer() {
	b.Do("command", chromedp.SendKeys(chromedp.CSS("#text"), "/h"))
	b.Until(`!document.querySelector("#commands").hidden`)
	b.Do("send it", enter())
	b.Until(shows(".mine", "/help"))
	b.Until(`document.querySelector("#text").value === "" && document.querySelector("#commands").hidden`)
	b.Do("complete", chromedp.SendKeys(chromedp.CSS("#text"), "/h"), chromedp.KeyEvent(kb.Tab))
	b.Until(`document.querySelector("#text").value === "/help " && document.querySelector("#commands").hidden`)
	before := browsertest.Eval[int](b.Tab, `document.querySelectorAll("li.mine").length`)
	b.Do("paste", chromedp.Evaluate[chromedp.Void](`document.querySelector("#text").value = "word ".repeat(1000) + "\n" + "😀".repeat(2100)`), enter())
	b.Until(fmt.Sprintf(`document.querySelectorAll("li.mine").length === %d`, before+3))
	sent := browsertest.Eval[string](b.Tab, `[...document.querySelectorAll("li.mine .text")].slice(-3).map((e) => e.textContent.length + (/[\uD800-\uDBFF]$/.test(e.textContent) ? " torn" : "")).join()`)
	if sent != "4094,4096,1010" {
		b.t.Errorf("pieces of %s characters", sent)
	}
	b.Do("attach", chromedp.Evaluate[chromedp.Void](`{ const list = new DataTransfer(); list.items.add(new File(["abc"], "a.txt", { type: "text/plain" }));
		const field = document.querySelector("#file"); field.files = list.files; field.dispatchEvent(new Event("change")); }`))
	b.Until(`document.querySelector("#strip").textContent.includes("a.txt · 3 B") && document.querySelector("#strip").textContent.includes("reads what it can")`)
	b.Do("cancel", browsertest.Click("#strip-close"))
	b.Until(`document.querySelector("#strip").hidden`)
	// Answers still come, and a reader at the end goes along with them: looked for until it holds.
	b.Do("look back", chromedp.Evaluate[chromedp.Void](`document.querySelector("#text").blur()`))
	b.Until(`(document.querySelector("#scroll").scrollTop = 0, !document.querySelector("#to-end").hidden)`)
	b.Do("to the end", browsertest.Click("#to-end"))
	b.Until(`document.querySelector("#to-end").hidden && document.activeElement.id === "text"`)
}

// highlights: the page divides code as the terminal does.
func (b *tab) highlights() {
	raw, err := os.ReadFile(filepath.Join("..", "syntax", "testdata", "samples.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.Do("load", chromedp.Evaluate[chromedp.Void](`import("/page/highlight.js").then((m) => { window.divide = m.highlight; })`))
	b.Until(`window.divide`)
	wrong := browsertest.Eval[[]string](b.Tab, `(`+string(raw)+`).map(({ language, code, pieces }) => {
		const got = divide(code, language).filter((n) => n.className).map((n) => [n.textContent, n.className.replace("code-", "")]);
		return JSON.stringify(got) === JSON.stringify(pieces || []) ? "" : language + ": " + JSON.stringify(got);
	}).filter(Boolean)`)
	if len(wrong) > 0 {
		b.t.Errorf("divided differently: %q", wrong)
	}
}

func (b *tab) entities() {
	b.write("formats")
	b.Until(`document.querySelector("figure.pre")`)
	for selector, want := range map[string]string{
		".text strong": "bold", ".text em": "italic", ".text > code": "code", ".text .spoiler": "secret", "figure.pre pre": `fmt.Println("<b>hi</b>")`, "figure.pre .code-string": `"<b>hi</b>"`,
		"figure.pre figcaption span": "go", ".text blockquote:not(.expandable)": "quoted", ".text s": "gone", ".text u": "under", ".text a": "link",
	} {
		if got := browsertest.Eval[string](b.Tab, fmt.Sprintf("document.querySelector(%q)?.textContent ?? ''", selector)); got != want {
			b.t.Errorf("%s: %q, want %q", selector, got, want)
		}
	}
	if hrefs := browsertest.Eval[[]string](b.Tab, `[...document.querySelectorAll(".text a")].map((a) => a.href + " " + a.rel)`); len(hrefs) != 1 ||
		hrefs[0] != "https://example.org/a?b=c noopener noreferrer" {
		b.t.Errorf("links: %q", hrefs)
	}
	if n := browsertest.Eval[int](b.Tab, `document.querySelectorAll(".text i, .text script").length`); n != 0 {
		b.t.Errorf("text became %d elements", n)
	}
	b.highlights()
	b.Do("spoiler", browsertest.Click(".spoiler"))
	b.Until(`document.querySelector(".spoiler.shown")`)
	b.Do("inspect", chromedp.Evaluate[chromedp.Void](`document.querySelector("figure.pre").closest("li").querySelector(".actions button:last-child").click()`))
	b.Until(`document.querySelector(".steps") && document.querySelector(".calls .method")?.textContent === "sendMessage"`)
	b.Until(`document.querySelector("#story").textContent.includes("Approved once")`)
	b.Shot("2-entities")
}

func (b *tab) button() {
	b.write("ask")
	b.Until(`document.querySelectorAll("button.key").length === 3`)
	if got := browsertest.Eval[string](b.Tab, `[...document.querySelectorAll("button.key")].map((k) => k.textContent + ":" + k.className.trim() + ":" + k.disabled).join(" ")`); got !=
		"Approve:key success:false Deny:key danger:false Later:key:true" {
		b.t.Errorf("keys: %q", got)
	}
	b.Shot("3-ask")
	b.Do("press", browsertest.Click(".key.success"))
	b.Until(`window.toasts.includes("Thanks, Ann")`)
	b.Until(shows(".bot-made", "✅ Approved by Ann"))
	b.Until(`document.querySelectorAll("button.key").length === 0`)
	b.write("ask")
	b.Do("deny", browsertest.Click(".key.danger"))
	b.Until(`document.querySelector("#alert").open && document.querySelector("#alert-text").textContent === "Thanks, Ann"`)
	b.Do("close", chromedp.Click(chromedp.CSS("#alert-ok")))
	b.Until(`!document.querySelector("#alert").open`)
}

func (b *tab) draft() {
	b.write("draft")
	b.Until(`document.querySelector(".draft .text")?.textContent === "half a sen"`)
	b.Do("stop", browsertest.Click(".draft .key"))
	b.Until(shows(".bot-made", "stopped"))
	b.Until(`!document.querySelector(".draft")`)
}

func (b *tab) group() {
	b.Do("be Ben", browsertest.Click(`[data-person="1002"]`))
	b.Until(`document.body.dataset.ready === "1002/1002/0" && document.querySelector("#list-title").textContent === "Ben’s chats"`)
	b.Until(`document.querySelector('[data-person="1003"] small').textContent === "reads German"`)
	b.Do("open Deploys", browsertest.Click(`[data-chat="-1001/7"]`))
	b.Until(`document.body.dataset.ready === "1002/-1001/7"`)
	b.write("@zephbot ship it")
	b.Until(shows(".bot-made", "echo: @zephbot ship it"))
	b.Until(`document.querySelector('[data-person="1001"] .badge')?.textContent === "2"`)
	b.Until(`document.querySelector('.mine .mention')?.textContent === "@zephbot"`)
	b.Do("be Cy with the keyboard", chromedp.Evaluate[chromedp.Void](`document.querySelector("[data-person='1002']").focus()`), chromedp.KeyEvent(kb.ArrowRight))
	b.Until(`document.body.dataset.ready === "1003/-1001/7" && document.querySelector(".unseen")`)
	b.Do("Ann writes elsewhere", chromedp.Evaluate[chromedp.Void](`fetch("/api/say", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ me: 1001, chat: -1001, text: "hi" }) }).then(() => {})`, chromedp.EvalAwaitPromise))
	b.Until(`document.title === "(1) Zeph simulator"`)
	b.Shot("4-group")
}

func (b *tab) kill() {
	pid := browsertest.Eval[string](b.Tab, `document.querySelector("#pill").dataset.pid`)
	b.Do("kill", browsertest.Click(`[data-do="kill"]`))
	b.Until(fmt.Sprintf(`document.querySelector("#pill").dataset.state === "running" && document.querySelector("#pill").dataset.pid !== %q`, pid))
	b.Do("process", browsertest.Click("#pill"))
	b.Until(`document.querySelector("#process").textContent.includes(document.querySelector("#pill").dataset.pid) && !document.querySelector("#controls").hidden`)
	b.Do("its output", browsertest.Click("#output"))
	b.Until(`!document.querySelector("#log").hidden && document.querySelector("#log").textContent !== ""`)
	b.Do("stop", browsertest.Click(`[data-do="stop"]`))
	b.Until(`document.querySelector("#pill").dataset.state === "stopped"`)
	b.write("@zephbot still there?")
	b.Until(shows(".mine", "@zephbot still there?"))
	b.Until(`[...document.querySelectorAll(".mine .ticks")].at(-1).textContent === "✓"`)
	b.Do("start", browsertest.Click(`[data-do="start"]`))
	b.Until(shows(".bot-made", "echo: @zephbot still there?"))
	b.Until(`[...document.querySelectorAll(".mine .ticks")].at(-1).textContent === "✓✓"`)
}

func (b *tab) faults() {
	b.Do("open", chromedp.Click(chromedp.CSS("#faults-button")), chromedp.WaitVisible(chromedp.CSS("#faults")),
		browsertest.Click(`[data-fault="429"]`))
	b.Until(`document.querySelector("#faults-badge").textContent === "1"`)
	b.Shot("5-faults")
	b.Do("calm", browsertest.Click("#calm"))
	b.Until(`document.querySelector("#faults-badge").hidden`)
	b.Do("escape", chromedp.KeyEvent(kb.Escape))
	b.Until(`document.querySelector("#faults").hidden && document.activeElement.id === "faults-button"`)
}

func (b *tab) dark() {
	background := `getComputedStyle(document.body).backgroundColor`
	light := browsertest.Eval[string](b.Tab, background)
	b.Prefer("dark")
	b.Until(fmt.Sprintf(`%s !== %q`, background, light))
	b.Do("be Ann", browsertest.Click(`[data-person="1001"]`), browsertest.Click(`[data-chat="1001/0"]`))
	b.Until(`document.body.dataset.ready === "1001/1001/0"`)
	b.write("ask")
	b.Until(`document.querySelectorAll("button.key").length === 3`)
	b.Shot("6-dark")
	b.Do("switch", chromedp.Click(chromedp.CSS("#theme")))
	b.Until(fmt.Sprintf(`document.documentElement.dataset.theme === "light" && %s === %q`, background, light))
	b.Do("switch", chromedp.Click(chromedp.CSS("#theme")), chromedp.Click(chromedp.CSS("#theme")))
	b.Until(`document.documentElement.dataset.theme === undefined`)
	b.Prefer("light")
}

// cutBadges gives every count that has room on the page three digits, and one beside a long name besides; it returns
// which are narrower than what they say.
const cutBadges = `(() => {
	const row = document.createElement("div");
	row.style = "display: flex; width: 90px; white-space: nowrap";
	for (const [name, text] of [["", "A name that needs more room than there is"], ["badge", ""]]) {
		const part = document.createElement("span");
		part.className = name;
		part.textContent = text;
		row.append(part);
	}
	document.querySelector("#chats").append(row);
	const shown = [...document.querySelectorAll(".badge")].filter((e) => e.offsetParent);
	const before = shown.map((e) => e.textContent);
	for (const e of shown) e.textContent = "128";
	const cut = shown.filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.parentElement.textContent);
	shown.forEach((e, i) => { e.textContent = before[i]; });
	row.remove();
	return cut.join(", ");
})()`

func (b *tab) narrow() {
	b.Do("360 px", chromedp.EmulateViewport(360, 740))
	b.Until(`getComputedStyle(document.querySelector(".list")).display === "none"`)
	fits := `document.documentElement.scrollWidth <= 360 && [...document.querySelectorAll("button, textarea, .bubble")].filter((e) => e.offsetParent).every((e) => e.getBoundingClientRect().right <= 361)`
	b.Until(fits)
	b.Until(`document.querySelector("#text").getBoundingClientRect().bottom <= innerHeight`)
	b.Shot("7-narrow-chat")
	b.Do("inspect", chromedp.Click(chromedp.CSS("#inspector-button")))
	b.Until(`getComputedStyle(document.querySelector("#inspector")).display === "block"`)
	b.Do("close", chromedp.KeyEvent(kb.Escape))
	b.Until(`getComputedStyle(document.querySelector("#inspector")).display === "none"`)
	b.Do("back", chromedp.Click(chromedp.CSS("#back")))
	b.Until(`getComputedStyle(document.querySelector(".chat")).display === "none" && document.activeElement.dataset.chat === "1001/0"`)
	b.Until(fits)
	if cut := browsertest.Eval[string](b.Tab, cutBadges); cut != "" {
		b.T.Errorf("counts are cut at 360 px: %s", cut)
	}
	b.Shot("8-narrow-list")
	b.Do("the bot's menu", chromedp.Click(chromedp.CSS("#pill")), chromedp.WaitVisible(chromedp.CSS(`[data-do="kill"]`)), chromedp.KeyEvent(kb.Escape))
	b.Do("open", browsertest.Click(`[data-chat="-1001/0"]`))
	b.Until(`document.body.dataset.ready === "1001/-1001/0" && document.querySelector("#text").offsetParent`)
}
