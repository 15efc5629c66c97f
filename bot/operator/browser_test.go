package operator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/operator"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/webpage/browsertest"
)

// tab is an open page of an office.
type tab struct {
	*office
	*browsertest.Tab
}

// browse opens a page at an address of the office.
func browse(t *testing.T, o *office, path string) *tab {
	t.Helper()
	return &tab{o, browsertest.Open(t, browsertest.Options{URL: o.url + path, Refusals: true})}
}

func (b *tab) panel(name string) {
	b.t.Helper()
	b.Do("open "+name, browsertest.Click(`[data-panel="`+name+`"]`))
	b.Until(fmt.Sprintf(`document.body.dataset.ready === %q`, name))
}

func (b *tab) says(text string) {
	b.t.Helper()
	b.Until(fmt.Sprintf(`document.querySelector("#content").textContent.includes(%q)`, text))
}

func filled(t *testing.T) *office {
	t.Helper()
	browsertest.Need(t)
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
	b.Until(`document.body.dataset.ready === "sessions" && !location.href.includes("#` + code + `")`)
	b.Until(`document.querySelectorAll("#content tbody tr").length === 2 && document.querySelector("#content tbody tr .tag").textContent === "running"`)
	b.Until(`document.querySelector("#process").textContent.includes("0.10.0 · process 0f3a9c21 and 1 more")`)
	b.Shot("1-sessions")
	b.session()
	b.panel("queue")
	b.says("Messages that wait")
	b.Until(`document.querySelectorAll("#content .part")[1].querySelectorAll("tbody tr").length === 1`)
	b.Shot("3-queue")
	b.letters()
	b.panel("approvals")
	b.says("akun")
	b.says("1 of 2")
	b.approve()
	b.panel("servers")
	b.says("exit status 1: no token [redacted]")
	b.Shot("6-servers")
	b.panel("quotas")
	b.says("Turns today")
	b.says("20 of 20")
	b.says("limit set by Ann")
	b.Shot("7-quotas")
	b.limit()
	b.panel("audit")
	b.says("3 (ask find … -delete)")
	b.Do("search", chromedp.Evaluate[chromedp.Void](`document.querySelector("#filters [name=person]").value = "43"; document.querySelector("#filters").requestSubmit()`))
	b.Until(`document.querySelectorAll("#content tbody tr").length === 1 && document.querySelector("#content").textContent.includes("is not allowed [redacted]")`)
	b.Shot("8-audit")
	b.panel("costs")
	b.Until(`document.querySelectorAll("#content .chart .column").length === 30 && document.querySelector("#content [title=\"telegram:42\"]")?.textContent === "Ann"`)
	b.Shot("9-costs")
	b.roleEnds(code)
}

func (b *tab) session() {
	b.Do("look behind", browsertest.Click(`[data-session="`+string(annChat)+`"]`))
	b.Until(`document.querySelector("#story .steps") && document.activeElement.id === "inspector-close"`)
	if text := browsertest.Eval[string](b.Tab, `document.querySelector("#story").textContent`); strings.Contains(text, "temp files") || !strings.Contains(text, "3 (ask find … -delete)") || !strings.Contains(text, "byAnn") {
		b.t.Errorf("without texts: %s", text)
	}
	b.Picture("operator-page")
	b.Do("show texts", browsertest.Click(`#texts`))
	b.Until(`document.querySelector("#story").textContent.includes("delete the temp files") && document.querySelector("#story").textContent.includes("[redacted]")`)
	if log := b.logged(); !strings.Contains(log, "admin_texts") {
		b.t.Errorf("audit log:\n%s", log)
	}
	b.Shot("2-inspector")
	b.Do("close", chromedp.KeyEvent(kb.Escape))
	b.Until(`document.querySelector("#inspector").hidden && document.activeElement.dataset.session`)
}

func (b *tab) letters() {
	b.panel("letters")
	b.Until(`document.querySelectorAll('#content [data-do="retry"]').length === 4`)
	b.Shot("4-letters")
	b.Do("retry", browsertest.Click(`#content .part:first-of-type [data-do="retry"]`))
	b.Until(`document.querySelectorAll('#content [data-do="retry"]').length === 3`)
	waiting, err := b.store.Next(b.t.Context(), annChat, 0)
	if err != nil || len(waiting) != 1 || string(waiting[0].Raw) != `{"update_id":901}` {
		b.t.Errorf("after the retry: %+v %v", waiting, err)
	}
	b.Do("drop, no", browsertest.Click(`#content .part:last-of-type [data-do="drop"]`), browsertest.Click(`#ask-no`))
	b.Until(`!document.querySelector("#ask").open && document.querySelectorAll('#content [data-do="drop"]').length === 3`)
	b.Do("drop", browsertest.Click(`#content .part:last-of-type [data-do="drop"]`))
	b.Until(`document.querySelector("#ask").open`)
	b.Shot("5-drop")
	b.Do("yes", browsertest.Click(`#ask-yes`))
	b.Until(`document.querySelectorAll('#content [data-do="drop"]').length === 2`)
	lost, err := b.store.Lost(b.t.Context(), "telegram", "1")
	if err != nil || len(lost) != 0 {
		b.t.Errorf("after the drop: %+v %v", lost, err)
	}
}

// approve looks at a question and denies it; the first time it is left for later.
func (b *tab) approve() {
	for range 2 {
		b.Do("look", browsertest.Click(`#content [data-do="look"]`))
		b.Until(`document.querySelector("#question").open && document.querySelector("#question-text").textContent.includes("make deploy [redacted]")`)
		b.Shot("5b-question")
		b.Do("later", browsertest.Click("#question-no"))
		b.Until(`!document.querySelector("#question").open`)
	}
	b.Do("look", browsertest.Click(`#content [data-do="look"]`))
	b.Until(`document.querySelector("#question").open`)
	b.Do("deny", browsertest.Click("#question-deny"))
	b.says("No question waits.")
	if a, err := b.store.Approval(b.t.Context(), "q1"); err != nil || a.State != bot.Denied || a.By != "telegram:42" {
		b.t.Errorf("after the denial: %+v, %v", a, err)
	}
}

// limit sets a limit of a person.
func (b *tab) limit() {
	b.Do("change", browsertest.Click(`#content [data-limit="user/telegram:43"]`))
	b.Until(`document.querySelector("#limit").open && document.querySelector("#limit-title").textContent === "Turns of Ben, each day" && document.querySelector("#limit-value").value === "20"`)
	b.Shot("7b-limit")
	b.Do("set", chromedp.Evaluate[chromedp.Void](`document.querySelector("#limit-value").value = "25"`), browsertest.Click("#limit-set"))
	b.Until(`!document.querySelector("#limit").open && document.querySelector("#toasts").textContent.includes("25 turns")`)
	facts, err := b.store.FactsOf(b.t.Context(), quota.Bucket, "", b.clock())
	if set := quota.SetLimits(facts); err != nil || len(set) != 1 || set[0].Level != "user/telegram:43" || set[0].Limit != 25 {
		b.t.Errorf("limits: %+v, %v", set, err)
	}
}

// roleEnds: who is no admin any more sees nothing, and neither a used link nor one of somebody else helps.
func (b *tab) roleEnds(used string) {
	b.admin("telegram:42", false)
	b.Do("look again", browsertest.Click(`[data-panel="queue"]`))
	b.Until(`document.body.dataset.ready === "signed out" && document.querySelector("#welcome-text").textContent.includes("no admin") && document.querySelector("#content").textContent === ""`)
	b.admin("telegram:42", true)
	b.Do("a used link", chromedp.Evaluate[chromedp.Void](`location.hash = "#`+used+`"`))
	b.Until(`document.querySelector("#welcome-text").textContent.includes("used or has expired")`)
	b.Shot("10-signed-out")
	b.Do("a new link", chromedp.Evaluate[chromedp.Void](`location.hash = "#`+b.link("telegram:42")+`"`))
	b.Until(`document.body.dataset.ready === "sessions"`)
	b.Do("sign out", browsertest.Click("#signout"))
	b.Until(`document.querySelector("#welcome-text").textContent === "You are signed out."`)
	b.Do("load again", chromedp.Navigate(b.url+"/admin/"))
	b.Until(`document.querySelector("#welcome-text").textContent === "You are not signed in."`)
}

// TestSignedOutStays: an answer that was under way when somebody signed out does not open the page again, and after
// signing in again the panel is shown, though nothing of it has changed.
func TestSignedOutStays(t *testing.T) {
	t.Parallel()
	browsertest.Need(t)
	w := newWorld(t)
	w.fill()
	var hold atomic.Bool
	held, release := make(chan struct{}), make(chan struct{})
	o := w.open(func(d *operator.Deps) {
		processes := d.Processes
		d.Processes = func() []string {
			if hold.CompareAndSwap(true, false) {
				close(held)
				<-release
			}
			return processes()
		}
	})
	b := browse(t, o, "/admin/#"+o.link("telegram:42"))
	rows := `document.body.dataset.ready === "sessions" && document.querySelectorAll("#content tbody tr").length === 2`
	b.Until(rows)
	hold.Store(true)
	b.Do("look", browsertest.Run(`document.dispatchEvent(new Event("visibilitychange"))`)) // asks at once
	<-held
	looked := `performance.getEntriesByType("resource").filter((e) => e.name.includes("/api/me")).length`
	before := browsertest.Eval[int](b.Tab, looked)
	b.Do("sign out", browsertest.Click("#signout"))
	b.Until(`document.querySelector("#welcome-text").textContent === "You are signed out."`)
	close(release)
	b.Until(fmt.Sprintf(`%s > %d`, looked, before))
	b.Do("let the page take it", browsertest.Run(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`))
	if text := browsertest.Eval[string](b.Tab, `(document.querySelector("#panes").hidden ? "" : "open: ") + document.querySelector("#welcome-text").textContent`); text != "You are signed out." {
		t.Errorf("after the late answer: %q", text)
	}
	b.Do("a new link", browsertest.Run(`location.hash = "#`+b.link("telegram:42")+`"`))
	b.Until(rows)
}

// TestAccessible examines each panel, light and dark, wide and at 360 px, where nothing may be too wide.
func TestAccessible(t *testing.T) {
	t.Parallel()
	o := filled(t)
	axe := browsertest.AxeSource(t)
	b := browse(t, o, "/admin/#"+o.link("telegram:42"))
	b.Until(`document.body.dataset.ready === "sessions"`)
	b.Do("load axe-core", chromedp.Evaluate[chromedp.Void](axe))
	for colours, width := range map[string]int64{"light": browsertest.Wide, "dark": browsertest.Narrow} {
		b.Prefer(colours)
		b.Do("resize", chromedp.EmulateViewport(width, 800))
		for _, panel := range []string{"sessions", "queue", "letters", "approvals", "servers", "quotas", "audit", "costs"} {
			name := fmt.Sprintf("%s-%d-%s", colours, width, panel)
			b.panel(panel)
			b.Examine(name)
			b.Shot("axe-" + name)
		}
		b.panel("approvals")
		b.Do("look", browsertest.Click(`#content [data-do="look"]`))
		b.Until(`document.querySelector("#question").open`)
		b.Examine(fmt.Sprintf("%s-%d-question", colours, width))
		b.Shot(fmt.Sprintf("axe-%s-%d-question", colours, width))
		b.Do("later", browsertest.Click("#question-no"))
		b.panel("quotas")
		b.Do("change", browsertest.Click(`#content [data-limit]`))
		b.Until(`document.querySelector("#limit").open`)
		b.Examine(fmt.Sprintf("%s-%d-limit", colours, width))
		b.Shot(fmt.Sprintf("axe-%s-%d-limit", colours, width))
		b.Do("cancel", browsertest.Click("#limit-no"))
		if right := browsertest.Eval[float64](b.Tab, `document.querySelector("#signout").getBoundingClientRect().right - innerWidth`); right > 0 {
			t.Errorf("at %d px the button to sign out ends %v px outside", width, right)
		}
		b.panel("sessions")
		b.Do("look behind", browsertest.Click(`[data-session="`+string(annChat)+`"]`))
		b.Until(`document.querySelector("#story .steps")`)
		b.Examine(fmt.Sprintf("%s-%d-inspector", colours, width))
		b.Shot(fmt.Sprintf("axe-%s-%d-inspector", colours, width))
		b.Do("close", browsertest.Click("#inspector-close"))
	}
}

// TestKeyboard: every stop of Tab has a name and shows that it has the focus, and the work can be done by keys alone.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	o := filled(t)
	b := browse(t, o, "/admin/#"+o.link("telegram:42"))
	b.Until(`document.body.dataset.ready === "sessions"`)
	b.Do("to the panels", chromedp.Evaluate[chromedp.Void](`document.querySelector('[data-panel="letters"]').focus()`), chromedp.KeyEvent(kb.Enter))
	b.Until(`document.body.dataset.ready === "letters"`)
	b.Do("begin at the top", chromedp.Evaluate[chromedp.Void](`document.activeElement.blur(); document.querySelector(".bar").tabIndex = -1; document.querySelector(".bar").focus()`))
	where := `(() => { const e = document.activeElement; const s = getComputedStyle(e);
		const name = e.getAttribute("aria-label") || e.textContent.trim() || e.title;
		return JSON.stringify([e.id || e.dataset.panel || e.dataset.do || e.className || e.tagName, name || "", s.outlineStyle !== "none" && s.outlineWidth !== "0px"]); })()`
	var stops []string
	for range 60 {
		b.Do("tab", chromedp.KeyEvent(kb.Tab))
		var stop [3]any
		if err := json.Unmarshal([]byte(browsertest.Eval[string](b.Tab, where)), &stop); err != nil {
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
	b.Do("retry by a key", chromedp.Evaluate[chromedp.Void](`document.querySelector('#content .part:last-of-type [data-do="retry"]').focus()`), chromedp.KeyEvent(kb.Enter))
	b.Until(`document.querySelectorAll('#content [data-do="retry"]').length === 3`)
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
