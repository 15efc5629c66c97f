package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/quota"
)

// browserTime bounds a browser test; it is only there so that a broken page fails and does not hang.
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

// tab is an open page.
type tab struct {
	*office
	ctx   context.Context //nolint:containedctx // chromedp carries the page in it
	mu    sync.Mutex
	lines []string // what the page complains about
}

func (b *tab) listen(ev any) {
	line := ""
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		line = ev.ExceptionDetails.Text
		if e := ev.ExceptionDetails.Exception; e != nil {
			line += " " + e.Description
		}
	case *runtime.EventConsoleAPICalled:
		if ev.Type == runtime.ConsoleAPICalledTypeError || ev.Type == runtime.ConsoleAPICalledTypeWarning {
			line = fmt.Sprintf("console.%s", ev.Type)
			for _, a := range ev.Args {
				line += " " + a.Value.String() + a.Description
			}
		}
	case *log.EventEntryAdded:
		// Refusals are part of the test; the browser reports each.
		refused := strings.Contains(ev.Entry.Text, "the server responded with a status of 4")
		if !refused && (ev.Entry.Level == log.EntryLevelError || ev.Entry.Level == log.EntryLevelWarning) {
			line = ev.Entry.Text + " " + ev.Entry.URL
		}
	}
	if line != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lines = append(b.lines, line)
	}
}

// browse opens a page at an address of the office.
func browse(t *testing.T, o *office, path string) *tab {
	t.Helper()
	flags := append([]chromedp.ExecAllocatorOption{chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.NoFirstRun},
		chromedp.Flag("headless", "new"), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(browserTime), chromedp.WindowSize(1440, 900))
	// The test's context ends before its cleanup, which closes the browser gently.
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), browserTime)
	t.Cleanup(stop)
	alloc, end := chromedp.NewExecAllocator(ctx, flags...)
	t.Cleanup(end)
	page, closePage := chromedp.NewContext(alloc)
	t.Cleanup(closePage)
	b := &tab{office: o, ctx: page}
	if err := chromedp.Listen(page, b.listen); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(page, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	b.do("open the page", chromedp.Navigate(o.url+path))
	t.Cleanup(func() {
		if err := chromedp.Cancel(page); err != nil {
			t.Logf("close the browser: %v", err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.lines) > 0 {
			t.Errorf("the page complained:\n%s", strings.Join(b.lines, "\n"))
		}
	})
	return b
}

func (b *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		html, _ := chromedp.Run(b.ctx, chromedp.OuterHTML(chromedp.CSS("body")))
		b.t.Fatalf("%s: %v\nconsole: %q\n%s", what, err, b.lines, html)
	}
}

// until waits until the JavaScript expression is true.
func (b *tab) until(expression string) {
	b.t.Helper()
	wait := "new Promise((done) => { const look = () => { if (" + expression + ") done(); else requestAnimationFrame(look); }; look(); })"
	b.do("wait until "+expression, chromedp.Evaluate[chromedp.Void](wait, chromedp.EvalAwaitPromise))
}

func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return out
}

// click waits for the element and presses it in the same instant: the page draws itself again now and then.
func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](fmt.Sprintf("new Promise((done) => { const look = () => { const e = document.querySelector(%q); "+
		"if (e && !e.disabled) { e.click(); done(); } else requestAnimationFrame(look); }; look(); })", selector), chromedp.EvalAwaitPromise)
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

func (b *tab) panel(name string) {
	b.t.Helper()
	b.do("open "+name, click(`[data-panel="`+name+`"]`))
	b.until(fmt.Sprintf(`document.body.dataset.ready === %q`, name))
}

func (b *tab) says(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.querySelector("#content").textContent.includes(%q)`, text))
}

func filled(t *testing.T) *office {
	t.Helper()
	chromium(t)
	w := newWorld(t)
	w.fill()
	return w.open(nil)
}

// TestBrowser leads an admin through the page: a link, each panel, a retry and a drop with their effects in the store.
func TestBrowser(t *testing.T) {
	t.Parallel()
	o := filled(t)
	code := o.link("telegram:42")
	b := browse(t, o, "/admin/#"+code)
	b.until(`document.body.dataset.ready === "sessions" && !location.href.includes("#` + code + `")`)
	b.until(`document.querySelectorAll("#content tbody tr").length === 2 && document.querySelector("#content tbody tr .tag").textContent === "running"`)
	b.until(`document.querySelector("#process").textContent.includes("0.10.0 · process 0f3a9c21 and 1 more")`)
	b.shot("1-sessions")
	b.session()
	b.panel("queue")
	b.says("Messages that wait")
	b.until(`document.querySelectorAll("#content .part")[1].querySelectorAll("tbody tr").length === 1`)
	b.shot("3-queue")
	b.letters()
	b.panel("approvals")
	b.says("akun")
	b.says("1 of 2")
	b.approve()
	b.panel("servers")
	b.says("exit status 1: no token [redacted]")
	b.shot("6-servers")
	b.panel("quotas")
	b.says("Turns today")
	b.says("20 of 20")
	b.says("limit set by Ann")
	b.shot("7-quotas")
	b.limit()
	b.panel("audit")
	b.says("3 (ask find … -delete)")
	b.do("search", chromedp.Evaluate[chromedp.Void](`document.querySelector("#filters [name=person]").value = "43"; document.querySelector("#filters").requestSubmit()`))
	b.until(`document.querySelectorAll("#content tbody tr").length === 1 && document.querySelector("#content").textContent.includes("is not allowed [redacted]")`)
	b.shot("8-audit")
	b.panel("costs")
	b.until(`document.querySelectorAll("#content .chart .column").length === 30 && document.querySelector("#content").textContent.includes("Ann (telegram:42)")`)
	b.shot("9-costs")
	b.roleEnds(code)
}

func (b *tab) session() {
	b.do("look behind", click(`[data-session="`+string(annChat)+`"]`))
	b.until(`document.querySelector("#story .steps") && document.activeElement.id === "inspector-close"`)
	if text := eval[string](b, `document.querySelector("#story").textContent`); strings.Contains(text, "temp files") || !strings.Contains(text, "3 (ask find … -delete)") {
		b.t.Errorf("without texts: %s", text)
	}
	b.do("show texts", click(`#texts`))
	b.until(`document.querySelector("#story").textContent.includes("delete the temp files") && document.querySelector("#story").textContent.includes("[redacted]")`)
	if log := b.logged(); !strings.Contains(log, "admin_texts") {
		b.t.Errorf("audit log:\n%s", log)
	}
	b.shot("2-inspector")
	b.do("close", chromedp.KeyEvent(kb.Escape))
	b.until(`document.querySelector("#inspector").hidden && document.activeElement.dataset.session`)
}

func (b *tab) letters() {
	b.panel("letters")
	b.until(`document.querySelectorAll('#content [data-do="retry"]').length === 4`)
	b.shot("4-letters")
	b.do("retry", click(`#content .part:first-of-type [data-do="retry"]`))
	b.until(`document.querySelectorAll('#content [data-do="retry"]').length === 3`)
	waiting, err := b.store.Next(b.t.Context(), annChat, 0)
	if err != nil || len(waiting) != 1 || string(waiting[0].Raw) != `{"update_id":901}` {
		b.t.Errorf("after the retry: %+v %v", waiting, err)
	}
	b.do("drop, no", click(`#content .part:last-of-type [data-do="drop"]`), click(`#ask-no`))
	b.until(`!document.querySelector("#ask").open && document.querySelectorAll('#content [data-do="drop"]').length === 3`)
	b.do("drop", click(`#content .part:last-of-type [data-do="drop"]`))
	b.until(`document.querySelector("#ask").open`)
	b.shot("5-drop")
	b.do("yes", click(`#ask-yes`))
	b.until(`document.querySelectorAll('#content [data-do="drop"]').length === 2`)
	lost, err := b.store.Lost(b.t.Context(), "telegram", "1")
	if err != nil || len(lost) != 0 {
		b.t.Errorf("after the drop: %+v %v", lost, err)
	}
}

// approve looks at a question and denies it; the first time it is left for later.
func (b *tab) approve() {
	for range 2 {
		b.do("look", click(`#content [data-do="look"]`))
		b.until(`document.querySelector("#question").open && document.querySelector("#question-text").textContent.includes("make deploy [redacted]")`)
		b.shot("5b-question")
		b.do("later", click("#question-no"))
		b.until(`!document.querySelector("#question").open`)
	}
	b.do("look", click(`#content [data-do="look"]`))
	b.until(`document.querySelector("#question").open`)
	b.do("deny", click("#question-deny"))
	b.says("No question waits.")
	if a, err := b.store.Approval(b.t.Context(), "q1"); err != nil || a.State != bot.Denied || a.By != "telegram:42" {
		b.t.Errorf("after the denial: %+v, %v", a, err)
	}
}

// limit sets a limit of a person.
func (b *tab) limit() {
	b.do("change", click(`#content [data-limit="user/telegram:43"]`))
	b.until(`document.querySelector("#limit").open && document.querySelector("#limit-title").textContent === "Turns of Ben, each day" && document.querySelector("#limit-value").value === "20"`)
	b.shot("7b-limit")
	b.do("set", chromedp.Evaluate[chromedp.Void](`document.querySelector("#limit-value").value = "25"`), click("#limit-set"))
	b.until(`!document.querySelector("#limit").open && document.querySelector("#toasts").textContent.includes("25 turns")`)
	facts, err := b.store.FactsOf(b.t.Context(), quota.Bucket, "", b.clock())
	if set := quota.SetLimits(facts); err != nil || len(set) != 1 || set[0].Level != "user/telegram:43" || set[0].Limit != 25 {
		b.t.Errorf("limits: %+v, %v", set, err)
	}
}

// roleEnds: who is no admin any more sees nothing, and neither a used link nor one of somebody else helps.
func (b *tab) roleEnds(used string) {
	b.admin("telegram:42", false)
	b.do("look again", click(`[data-panel="queue"]`))
	b.until(`document.body.dataset.ready === "signed out" && document.querySelector("#welcome-text").textContent.includes("no admin") && document.querySelector("#content").textContent === ""`)
	b.admin("telegram:42", true)
	b.do("a used link", chromedp.Evaluate[chromedp.Void](`location.hash = "#`+used+`"`))
	b.until(`document.querySelector("#welcome-text").textContent.includes("used or has expired")`)
	b.shot("10-signed-out")
	b.do("a new link", chromedp.Evaluate[chromedp.Void](`location.hash = "#`+b.link("telegram:42")+`"`))
	b.until(`document.body.dataset.ready === "sessions"`)
	b.do("sign out", click("#signout"))
	b.until(`document.querySelector("#welcome-text").textContent === "You are signed out."`)
	b.do("load again", chromedp.Navigate(b.url+"/admin/"))
	b.until(`document.querySelector("#welcome-text").textContent === "You are not signed in."`)
}

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

// examine runs axe-core on the page as it is, and reports what it finds, whatever its impact.
func (b *tab) examine(state string) {
	b.t.Helper()
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct {
			HTML string `json:"html"`
			Why  string `json:"failureSummary"`
		}
	}
	raw := eval[string](b, `axe.run(document, { resultTypes: ["violations"] }).then((r) => JSON.stringify(r.violations))`)
	if err := json.Unmarshal([]byte(raw), &found); err != nil {
		b.t.Fatal(err)
	}
	for _, f := range found {
		for _, n := range f.Nodes {
			b.t.Errorf("%s: %s (%s): %s\n%s\n%s", state, f.ID, f.Impact, f.Help, n.HTML, n.Why)
		}
	}
}

// TestAccessible examines each panel, light and dark, wide and at 360 px, where nothing may be too wide.
func TestAccessible(t *testing.T) {
	t.Parallel()
	o := filled(t)
	axe := axeSource(t)
	b := browse(t, o, "/admin/#"+o.link("telegram:42"))
	b.until(`document.body.dataset.ready === "sessions"`)
	b.do("load axe-core", chromedp.Evaluate[chromedp.Void](axe))
	for colours, width := range map[string]int64{"light": 1440, "dark": 360} {
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}}
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
			t.Fatal(err)
		}
		b.do("resize", chromedp.EmulateViewport(width, 800))
		for _, panel := range []string{"sessions", "queue", "letters", "approvals", "servers", "quotas", "audit", "costs"} {
			name := fmt.Sprintf("%s-%d-%s", colours, width, panel)
			b.panel(panel)
			if over := eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%s: %d px too wide", name, over)
			}
			b.examine(name)
			b.shot("axe-" + name)
		}
		b.panel("approvals")
		b.do("look", click(`#content [data-do="look"]`))
		b.until(`document.querySelector("#question").open`)
		b.examine(fmt.Sprintf("%s-%d-question", colours, width))
		b.shot(fmt.Sprintf("axe-%s-%d-question", colours, width))
		b.do("later", click("#question-no"))
		b.panel("quotas")
		b.do("change", click(`#content [data-limit]`))
		b.until(`document.querySelector("#limit").open`)
		b.examine(fmt.Sprintf("%s-%d-limit", colours, width))
		b.shot(fmt.Sprintf("axe-%s-%d-limit", colours, width))
		b.do("cancel", click("#limit-no"))
		if right := eval[float64](b, `document.querySelector("#signout").getBoundingClientRect().right - innerWidth`); right > 0 {
			t.Errorf("at %d px the button to sign out ends %v px outside", width, right)
		}
		b.panel("sessions")
		b.do("look behind", click(`[data-session="`+string(annChat)+`"]`))
		b.until(`document.querySelector("#story .steps")`)
		b.examine(fmt.Sprintf("%s-%d-inspector", colours, width))
		b.shot(fmt.Sprintf("axe-%s-%d-inspector", colours, width))
		b.do("close", click("#inspector-close"))
	}
}

// TestKeyboard: every stop of Tab has a name and shows that it has the focus, and the work can be done by keys alone.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	o := filled(t)
	b := browse(t, o, "/admin/#"+o.link("telegram:42"))
	b.until(`document.body.dataset.ready === "sessions"`)
	b.do("to the panels", chromedp.Evaluate[chromedp.Void](`document.querySelector('[data-panel="letters"]').focus()`), chromedp.KeyEvent(kb.Enter))
	b.until(`document.body.dataset.ready === "letters"`)
	b.do("begin at the top", chromedp.Evaluate[chromedp.Void](`document.activeElement.blur(); document.querySelector(".bar").tabIndex = -1; document.querySelector(".bar").focus()`))
	where := `(() => { const e = document.activeElement; const s = getComputedStyle(e);
		const name = e.getAttribute("aria-label") || e.textContent.trim() || e.title;
		return JSON.stringify([e.id || e.dataset.panel || e.dataset.do || e.className || e.tagName, name || "", s.outlineStyle !== "none" && s.outlineWidth !== "0px"]); })()`
	var stops []string
	for range 60 {
		b.do("tab", chromedp.KeyEvent(kb.Tab))
		var stop [3]any
		if err := json.Unmarshal([]byte(eval[string](b, where)), &stop); err != nil {
			t.Fatal(err)
		}
		if stop[0] == "BODY" {
			break
		}
		stops = append(stops, fmt.Sprint(stop[0]))
		if stop[1] == "" || stop[2] != true {
			t.Errorf("stop %d: %v", len(stops), stop)
		}
	}
	all := strings.Join(stops, "\n")
	for _, want := range []string{"theme", "signout", "sessions", "costs", "retry", "drop", "link"} {
		if !strings.Contains(all, want) {
			t.Errorf("Tab never reaches %q:\n%s", want, all)
		}
	}
	b.do("retry by a key", chromedp.Evaluate[chromedp.Void](`document.querySelector('#content .part:last-of-type [data-do="retry"]').focus()`), chromedp.KeyEvent(kb.Enter))
	b.until(`document.querySelectorAll('#content [data-do="retry"]').length === 3`)
	rows, err := o.store.RowsIn(t.Context(), "telegram", "1", bot.Pending, 0, 1)
	if err != nil || len(rows) != 1 || rows[0].Content.Text != "Three files are gone." {
		t.Errorf("after the retry: %+v %v", rows, err)
	}
}

// TestPageLoadsNothingFromElsewhere: no file of the page names another place or makes markup of texts.
func TestPageLoadsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	o := newWorld(t).open(nil)
	for _, path := range []string{
		"", "page/app.js", "page/api.js", "page/panels.js", "page/table.js", "page/charts.js", "page/inspector.js", "page/page.css", "page/base.css", "page/dom.js",
		"page/story.js", "page/theme.js", "page/icon.svg",
	} {
		status, raw := o.request(http.MethodGet, "/admin/"+path, nil, nil, nil)
		if status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "https://", "//cdn", "@import", "onclick=", " style="} {
			if strings.Contains(string(raw), bad) {
				t.Errorf("%s contains %q", path, bad)
			}
		}
	}
}
