package simulator_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/zephbot/zephbot/bot/simulator"
)

// browserTime bounds all browser tests together; it is only there so that a broken page fails and does not hang.
const browserTime = 4 * time.Minute

// chromium finds a browser, or skips. Where CI promised one, its absence is a failure.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("ZEPH_CI") == "1" {
		t.Fatal("no Chromium in PATH, and ZEPH_CI=1 says there has to be one: install chromium")
	}
	t.Skip("no Chromium in PATH: the page is not tested in a browser; install chromium to test it")
	return ""
}

// console collects what the page complains about.
type console struct {
	mu    sync.Mutex
	lines []string
}

func (c *console) listen(ev any) {
	line := ""
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		line = ev.ExceptionDetails.Text
		if e := ev.ExceptionDetails.Exception; e != nil {
			line += " " + e.Description
		}
	case *runtime.EventConsoleAPICalled:
		if ev.Type == runtime.ConsoleAPICalledTypeError || ev.Type == runtime.ConsoleAPICalledTypeWarning || ev.Type == runtime.ConsoleAPICalledTypeAssert {
			line = fmt.Sprintf("console.%s", ev.Type)
			for _, a := range ev.Args {
				line += " " + a.Value.String() + a.Description
			}
		}
	case *log.EventEntryAdded:
		if ev.Entry.Level == log.EntryLevelError || ev.Entry.Level == log.EntryLevelWarning {
			line = ev.Entry.Text + " " + ev.Entry.URL
		}
	}
	if line == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line)
}

// tab is an open page.
type tab struct {
	*site
	ctx     context.Context //nolint:containedctx // chromedp carries the page in it
	console *console
}

// openPage starts one browser for all tests of the page.
func openPage(t *testing.T, s *site) *tab {
	t.Helper()
	flags := append([]chromedp.ExecAllocatorOption{chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.NoFirstRun},
		chromedp.Flag("headless", "new"), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		// A microphone that beeps, and nobody who has to allow it.
		chromedp.Flag("use-fake-device-for-media-stream", true), chromedp.Flag("use-fake-ui-for-media-stream", true), chromedp.Flag("mute-audio", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(browserTime), chromedp.WindowSize(1440, 900))
	// The test's context ends before its cleanup, which closes the browser gently.
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), browserTime)
	t.Cleanup(stop)
	alloc, end := chromedp.NewExecAllocator(ctx, flags...)
	t.Cleanup(end)
	page, closePage := chromedp.NewContext(alloc)
	t.Cleanup(closePage)
	out := &tab{site: s, ctx: page, console: &console{}}
	if err := chromedp.Listen(page, out.console.listen); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(page, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	// Toasts go by themselves; a slow test would miss them.
	out.do("open the page", chromedp.Navigate(s.url), chromedp.Evaluate[chromedp.Void](`window.toasts = [];
		new MutationObserver((list) => list.forEach((m) => m.addedNodes.forEach((n) => window.toasts.push(n.textContent))))
			.observe(document.querySelector("#toasts"), { childList: true })`))
	t.Cleanup(func() {
		// Closed in order, so that nothing of it is left when the test ends.
		if err := chromedp.Cancel(page); err != nil {
			t.Logf("close the browser: %v", err)
		}
	})
	return out
}

func (b *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		html, _ := chromedp.Run(b.ctx, chromedp.OuterHTML(chromedp.CSS("body")))
		b.t.Fatalf("%s: %v\nconsole: %q\n%s", what, err, b.console.lines, html)
	}
}

// until waits until the JavaScript expression is true.
func (b *tab) until(expression string) {
	b.t.Helper()
	// Asked again at every frame. The page's policy forbids the eval that chromedp.Poll needs.
	wait := "new Promise((done) => { const look = () => { if (" + expression + ") done(); else requestAnimationFrame(look); }; look(); })"
	b.do("wait until "+expression, chromedp.Evaluate[chromedp.Void](wait, chromedp.EvalAwaitPromise))
}

// as runs the subtest with its own t.
func (b *tab) as(t *testing.T, name string, f func(*tab)) bool {
	t.Helper()
	return t.Run(name, func(t *testing.T) {
		own, s := *b, *b.site
		s.t, own.site = t, &s
		f(&own)
	})
}

// shot keeps a picture when ZEPH_SHOTS names a directory.
func (b *tab) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("ZEPH_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// clearText empties the text field.
var clearText = chromedp.Evaluate[chromedp.Void](`document.querySelector("#text").value = ""; document.querySelector("#text").dispatchEvent(new Event("input"))`)

// click waits for the element and presses it in the same instant: what the page draws anew between finding and pressing
// is no matter.
func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](fmt.Sprintf("new Promise((done) => { const look = () => { const e = document.querySelector(%q); "+
		"if (e && !e.disabled) { e.click(); done(); } else requestAnimationFrame(look); }; look(); })", selector), chromedp.EvalAwaitPromise)
}

// enter presses Enter.
func enter() chromedp.Action[chromedp.Void] { return strike("Enter", 13) }

// strike presses a key that the page takes. chromedp's own KeyEvent adds the character all the same.
func strike(key string, code int64) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
			_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, input.DispatchKeyEventParams{
				Type: kind, Key: key, Code: key, WindowsVirtualKeyCode: code, NativeVirtualKeyCode: code,
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// write types into the text field and sends with Enter.
func (b *tab) write(text string) {
	b.t.Helper()
	b.do("focus", chromedp.Evaluate[chromedp.Void](`document.querySelector("#text").focus()`))
	if _, err := chromedp.Call(b.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		b.t.Fatal(err)
	}
	b.until(fmt.Sprintf(`document.querySelector("#text").value === %q`, text))
	b.do("send", enter())
}

// shows is an expression that is true when a message of this kind has the text.
func shows(class, text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("li.message%s .text")].some((e) => e.textContent === %q)`, class, text)
}

func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return out
}

func TestBrowser(t *testing.T) {
	t.Parallel()
	chromium(t)
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
	b.console.mu.Lock()
	defer b.console.mu.Unlock()
	if len(b.console.lines) > 0 {
		t.Errorf("the page complained:\n%s", strings.Join(b.console.lines, "\n"))
	}
}

func (b *tab) emptyState() {
	b.until(`document.body.dataset.ready === "1001/1001/0" && document.querySelector("#pill").dataset.state === "running"`)
	b.until(`document.querySelector("#empty").textContent.includes("delete the temp files")`)
	b.shot("1-empty")
	// Nothing is selected, so nothing is inspected; who asks for it all the same is told so.
	b.until(`getComputedStyle(document.querySelector("#inspector")).display === "none"`)
	b.do("inspect nothing", click("#inspector-button"))
	b.until(`window.toasts.includes("The bot has not answered here yet.") && getComputedStyle(document.querySelector("#inspector")).display === "none"`)
	b.do("try", click(".tries button"))
	b.until(`document.activeElement.id === "text" && document.activeElement.value === "what files are here?"`)
	b.do("clear", clearText)
}

func (b *tab) sayAndHear() {
	b.write("hello <b>you</b>")
	b.until(shows(".mine", "hello <b>you</b>"))
	b.until(shows(".bot-made", "echo: hello <b>you</b>"))
	b.until(`document.querySelector("#live").textContent.includes("Zeph: echo: hello")`)
	b.until(`document.querySelector(".bot-made .quote").textContent.includes("Ann")`)
	if n := eval[int](b, `document.querySelectorAll("#messages .day").length`); n != 1 {
		b.t.Errorf("%d day separators, want 1", n)
	}
	// Shift+Enter is a new line, ↑ edits the last own message.
	b.do("two lines", chromedp.Focus(chromedp.CSS("#text")), chromedp.KeyEvent("a"), chromedp.KeyEvent("\r", chromedp.KeyModifiers(chromedp.ModifierShift)), chromedp.KeyEvent("b"))
	b.until(`document.querySelector("#text").value === "a\nb"`)
	b.do("clear", clearText, chromedp.Focus(chromedp.CSS("#text")), chromedp.KeyEvent(kb.ArrowUp))
	b.until(`document.querySelector("#text").value === "hello <b>you</b>" && !document.querySelector("#strip").hidden`)
	b.do("edit", chromedp.KeyEvent("!"), enter())
	b.until(shows(".mine", "hello <b>you</b>!"))
	b.until(`document.querySelector(".mine .meta").textContent.includes("edited")`)
	b.do("commands", chromedp.SendKeys(chromedp.CSS("#text"), "/h"))
	b.until(`document.querySelectorAll("#commands li").length === 1 && !document.querySelector("#commands").hidden`)
	b.do("escape", chromedp.KeyEvent(kb.Escape), clearText)
	b.until(`[...document.querySelectorAll(".mine .ticks")].every((e) => e.textContent === "✓✓")`)
	// One message can be reached by Tab, whatever is in it; the arrows walk to the others.
	b.until(`[...document.querySelectorAll("#messages li, #messages button, #messages pre")].filter((e) => e.tabIndex === 0).length === 1`)
}

// composer: a command is sent by one Enter, a long text in pieces, and a file says what becomes of it.
func (b *tab) composer() {
	b.do("command", chromedp.SendKeys(chromedp.CSS("#text"), "/h"))
	b.until(`!document.querySelector("#commands").hidden`)
	b.do("send it", enter())
	b.until(shows(".mine", "/help"))
	b.until(`document.querySelector("#text").value === "" && document.querySelector("#commands").hidden`)
	b.do("complete", chromedp.SendKeys(chromedp.CSS("#text"), "/h"), chromedp.KeyEvent(kb.Tab))
	b.until(`document.querySelector("#text").value === "/help " && document.querySelector("#commands").hidden`)
	before := eval[int](b, `document.querySelectorAll("li.mine").length`)
	b.do("paste", chromedp.Evaluate[chromedp.Void](`document.querySelector("#text").value = "word ".repeat(1000) + "\n" + "😀".repeat(2100)`), enter())
	b.until(fmt.Sprintf(`document.querySelectorAll("li.mine").length === %d`, before+3))
	sent := eval[string](b, `[...document.querySelectorAll("li.mine .text")].slice(-3).map((e) => e.textContent.length + (/[\uD800-\uDBFF]$/.test(e.textContent) ? " torn" : "")).join()`)
	if sent != "4094,4096,1010" {
		b.t.Errorf("pieces of %s characters", sent)
	}
	b.do("attach", chromedp.Evaluate[chromedp.Void](`{ const list = new DataTransfer(); list.items.add(new File(["abc"], "a.txt", { type: "text/plain" }));
		const field = document.querySelector("#file"); field.files = list.files; field.dispatchEvent(new Event("change")); }`))
	b.until(`document.querySelector("#strip").textContent.includes("a.txt · 3 B") && document.querySelector("#strip").textContent.includes("reads what it can")`)
	b.do("cancel", click("#strip-close"))
	b.until(`document.querySelector("#strip").hidden`)
	// Answers still come, and a reader at the end goes along with them: looked for until it holds.
	b.do("look back", chromedp.Evaluate[chromedp.Void](`document.querySelector("#text").blur()`))
	b.until(`(document.querySelector("#scroll").scrollTop = 0, !document.querySelector("#to-end").hidden)`)
	b.do("to the end", click("#to-end"))
	b.until(`document.querySelector("#to-end").hidden && document.activeElement.id === "text"`)
}

func (b *tab) entities() {
	b.write("formats")
	b.until(`document.querySelector("figure.pre")`)
	for selector, want := range map[string]string{
		".text strong": "bold", ".text em": "italic", ".text > code": "code", ".text .spoiler": "secret", "figure.pre pre": `fmt.Println("<b>hi</b>")`, "figure.pre .code-string": `"<b>hi</b>"`,
		"figure.pre figcaption span": "go", ".text blockquote:not(.expandable)": "quoted", ".text s": "gone", ".text u": "under", ".text a": "link",
	} {
		if got := eval[string](b, fmt.Sprintf("document.querySelector(%q)?.textContent ?? ''", selector)); got != want {
			b.t.Errorf("%s: %q, want %q", selector, got, want)
		}
	}
	if hrefs := eval[[]string](b, `[...document.querySelectorAll(".text a")].map((a) => a.href + " " + a.rel)`); len(hrefs) != 1 ||
		hrefs[0] != "https://example.org/a?b=c noopener noreferrer" {
		b.t.Errorf("links: %q", hrefs)
	}
	if n := eval[int](b, `document.querySelectorAll(".text i, .text script").length`); n != 0 {
		b.t.Errorf("text became %d elements", n)
	}
	b.do("spoiler", click(".spoiler"))
	b.until(`document.querySelector(".spoiler.shown")`)
	b.do("inspect", chromedp.Evaluate[chromedp.Void](`document.querySelector("figure.pre").closest("li").querySelector(".actions button:last-child").click()`))
	b.until(`document.querySelector(".steps") && document.querySelector(".calls .method")?.textContent === "sendMessage"`)
	b.until(`document.querySelector("#story").textContent.includes("Approved once")`)
	b.shot("2-entities")
}

func (b *tab) button() {
	b.write("ask")
	b.until(`document.querySelectorAll("button.key").length === 3`)
	if got := eval[string](b, `[...document.querySelectorAll("button.key")].map((k) => k.textContent + ":" + k.className.trim() + ":" + k.disabled).join(" ")`); got !=
		"Approve:key success:false Deny:key danger:false Later:key:true" {
		b.t.Errorf("keys: %q", got)
	}
	b.shot("3-ask")
	b.do("press", click(".key.success"))
	b.until(`window.toasts.includes("Thanks, Ann")`)
	b.until(shows(".bot-made", "✅ Approved by Ann"))
	b.until(`document.querySelectorAll("button.key").length === 0`)
	b.write("ask")
	b.do("deny", click(".key.danger"))
	b.until(`document.querySelector("#alert").open && document.querySelector("#alert-text").textContent === "Thanks, Ann"`)
	b.do("close", chromedp.Click(chromedp.CSS("#alert-ok")))
	b.until(`!document.querySelector("#alert").open`)
}

func (b *tab) draft() {
	b.write("draft")
	b.until(`document.querySelector(".draft .text")?.textContent === "half a sen"`)
	b.do("stop", click(".draft .key"))
	b.until(shows(".bot-made", "stopped"))
	b.until(`!document.querySelector(".draft")`)
}

func (b *tab) group() {
	b.do("be Ben", click(`[data-person="1002"]`))
	b.until(`document.body.dataset.ready === "1002/1002/0" && document.querySelector("#list-title").textContent === "Ben’s chats"`)
	b.do("open Deploys", click(`[data-chat="-1001/7"]`))
	b.until(`document.body.dataset.ready === "1002/-1001/7"`)
	b.write("@zephbot ship it")
	b.until(shows(".bot-made", "echo: @zephbot ship it"))
	b.until(`document.querySelector('[data-person="1001"] .badge')?.textContent === "2"`)
	b.until(`document.querySelector('.mine .mention')?.textContent === "@zephbot"`)
	b.do("be Cy with the keyboard", chromedp.Evaluate[chromedp.Void](`document.querySelector("[data-person='1002']").focus()`), chromedp.KeyEvent(kb.ArrowRight))
	b.until(`document.body.dataset.ready === "1003/-1001/7" && document.querySelector(".unseen")`)
	b.do("Ann writes elsewhere", chromedp.Evaluate[chromedp.Void](`fetch("/api/say", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ me: 1001, chat: -1001, text: "hi" }) }).then(() => {})`, chromedp.EvalAwaitPromise))
	b.until(`document.title === "(1) Zeph simulator"`)
	b.shot("4-group")
}

func (b *tab) kill() {
	pid := eval[string](b, `document.querySelector("#pill").dataset.pid`)
	b.do("kill", click(`[data-do="kill"]`))
	b.until(fmt.Sprintf(`document.querySelector("#pill").dataset.state === "running" && document.querySelector("#pill").dataset.pid !== %q`, pid))
	b.do("process", click("#pill"))
	b.until(`document.querySelector("#process").textContent.includes(document.querySelector("#pill").dataset.pid) && !document.querySelector("#controls").hidden`)
	b.do("its output", click("#output"))
	b.until(`!document.querySelector("#log").hidden && document.querySelector("#log").textContent !== ""`)
	b.do("stop", click(`[data-do="stop"]`))
	b.until(`document.querySelector("#pill").dataset.state === "stopped"`)
	b.write("@zephbot still there?")
	b.until(shows(".mine", "@zephbot still there?"))
	b.until(`[...document.querySelectorAll(".mine .ticks")].at(-1).textContent === "✓"`)
	b.do("start", click(`[data-do="start"]`))
	b.until(shows(".bot-made", "echo: @zephbot still there?"))
	b.until(`[...document.querySelectorAll(".mine .ticks")].at(-1).textContent === "✓✓"`)
}

func (b *tab) faults() {
	b.do("open", chromedp.Click(chromedp.CSS("#faults-button")), chromedp.WaitVisible(chromedp.CSS("#faults")),
		click(`[data-fault="429"]`))
	b.until(`document.querySelector("#faults-badge").textContent === "1"`)
	b.shot("5-faults")
	b.do("calm", click("#calm"))
	b.until(`document.querySelector("#faults-badge").hidden`)
	b.do("escape", chromedp.KeyEvent(kb.Escape))
	b.until(`document.querySelector("#faults").hidden && document.activeElement.id === "faults-button"`)
}

func (b *tab) prefer(colours string) {
	b.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) dark() {
	background := `getComputedStyle(document.body).backgroundColor`
	light := eval[string](b, background)
	b.prefer("dark")
	b.until(fmt.Sprintf(`%s !== %q`, background, light))
	b.do("be Ann", click(`[data-person="1001"]`), click(`[data-chat="1001/0"]`))
	b.until(`document.body.dataset.ready === "1001/1001/0"`)
	b.write("ask")
	b.until(`document.querySelectorAll("button.key").length === 3`)
	b.shot("6-dark")
	b.do("switch", chromedp.Click(chromedp.CSS("#theme")))
	b.until(fmt.Sprintf(`document.documentElement.dataset.theme === "light" && %s === %q`, background, light))
	b.do("switch", chromedp.Click(chromedp.CSS("#theme")), chromedp.Click(chromedp.CSS("#theme")))
	b.until(`document.documentElement.dataset.theme === undefined`)
	b.prefer("light")
}

func (b *tab) narrow() {
	b.do("360 px", chromedp.EmulateViewport(360, 740))
	b.until(`getComputedStyle(document.querySelector(".list")).display === "none"`)
	fits := `document.documentElement.scrollWidth <= 360 && [...document.querySelectorAll("button, textarea, .bubble")].filter((e) => e.offsetParent).every((e) => e.getBoundingClientRect().right <= 361)`
	b.until(fits)
	b.until(`document.querySelector("#text").getBoundingClientRect().bottom <= innerHeight`)
	b.shot("7-narrow-chat")
	b.do("inspect", chromedp.Click(chromedp.CSS("#inspector-button")))
	b.until(`getComputedStyle(document.querySelector("#inspector")).display === "block"`)
	b.do("close", chromedp.KeyEvent(kb.Escape))
	b.until(`getComputedStyle(document.querySelector("#inspector")).display === "none"`)
	b.do("back", chromedp.Click(chromedp.CSS("#back")))
	b.until(`getComputedStyle(document.querySelector(".chat")).display === "none" && document.activeElement.dataset.chat === "1001/0"`)
	b.until(fits)
	b.shot("8-narrow-list")
	b.do("the bot's menu", chromedp.Click(chromedp.CSS("#pill")), chromedp.WaitVisible(chromedp.CSS(`[data-do="kill"]`)), chromedp.KeyEvent(kb.Escape))
	b.do("open", click(`[data-chat="-1001/0"]`))
	b.until(`document.body.dataset.ready === "1001/-1001/0" && document.querySelector("#text").offsetParent`)
}
