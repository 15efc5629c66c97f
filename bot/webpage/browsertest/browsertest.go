// Package browsertest leads Chromium over a page of the program in tests: it finds the browser and axe-core, collects
// what the page complains about, and waits for what a page shows instead of for a time.
package browsertest

import (
	"context"
	"encoding/json"
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
)

// limit bounds all that a test does in its browser; it is only there so that a broken page fails and does not hang.
const limit = 4 * time.Minute

// Wide is the width of the window of a test, in pixels.
const Wide = 1440

// Narrow is the smallest width at which a page has to be usable, in pixels.
const Narrow = 360

// height of the window, in pixels.
const height = 900

// Action is something that a browser does.
type Action = chromedp.Action[chromedp.Void]

// Need finds a browser, or skips the test. Where CI promised one (ZEPH_CI=1), its absence is a failure.
func Need(t *testing.T) string {
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

// Tab is an open page. A copy with another T reports to another test.
type Tab struct {
	T       *testing.T
	Ctx     context.Context //nolint:containedctx // chromedp carries the page in it
	console *console
}

// console collects what the page complains about.
type console struct {
	mu      sync.Mutex
	lines   []string
	refused bool // answers with a status of 4xx are part of the test
}

// Options configure Open.
type Options struct {
	URL string
	// Refusals: answers with a status of 4xx, each of which the browser reports, are part of the test.
	Refusals bool
	// Microphone: there is one that beeps, and nobody has to allow it.
	Microphone bool
	// First is done once the page is open.
	First []Action
}

// Open starts a browser and opens a page in it. The test fails at its end if the page has complained of anything.
func Open(t *testing.T, o Options) *Tab {
	t.Helper()
	flags := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(Need(t)), chromedp.UserDataDir(t.TempDir()), chromedp.NoFirstRun,
		chromedp.WSURLReadTimeout(limit), chromedp.WindowSize(Wide, height), chromedp.Flag("headless", "new"),
	}
	names := []string{
		"no-sandbox", "disable-gpu", "disable-quic", "disable-background-networking", "disable-component-update",
		"disable-sync", "disable-dev-shm-usage",
	}
	if o.Microphone {
		names = append(names, "use-fake-device-for-media-stream", "use-fake-ui-for-media-stream", "mute-audio")
	}
	for _, name := range names {
		flags = append(flags, chromedp.Flag(name, true))
	}
	// The test's context ends before its cleanup, which closes the browser gently.
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
	t.Cleanup(stop)
	alloc, end := chromedp.NewExecAllocator(ctx, flags...)
	t.Cleanup(end)
	page, closePage := chromedp.NewContext(alloc)
	t.Cleanup(closePage)
	b := &Tab{T: t, Ctx: page, console: &console{refused: o.Refusals}}
	if err := chromedp.Listen(page, b.console.listen); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(page, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	b.Do("open the page", append([]Action{chromedp.Navigate(o.URL)}, o.First...)...)
	t.Cleanup(func() {
		// Closed in order, so that nothing of it is left when the test ends.
		if err := chromedp.Cancel(page); err != nil {
			t.Logf("close the browser: %v", err)
		}
		if lines := b.console.said(); len(lines) > 0 {
			t.Errorf("the page complained:\n%s", strings.Join(lines, "\n"))
		}
	})
	return b
}

func (c *console) listen(event any) {
	line := ""
	switch ev := event.(type) {
	case *runtime.EventExceptionThrown:
		line = ev.ExceptionDetails.Text
		if e := ev.ExceptionDetails.Exception; e != nil {
			line += " " + e.Description
		}
	case *runtime.EventConsoleAPICalled:
		switch ev.Type {
		case runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeWarning, runtime.ConsoleAPICalledTypeAssert:
			line = fmt.Sprintf("console.%s", ev.Type)
			for _, a := range ev.Args {
				line += " " + a.Value.String() + a.Description
			}
		}
	case *log.EventEntryAdded:
		refusal := c.refused && strings.Contains(ev.Entry.Text, "the server responded with a status of 4")
		if !refusal && (ev.Entry.Level == log.EntryLevelError || ev.Entry.Level == log.EntryLevelWarning) {
			line = ev.Entry.Text + " " + ev.Entry.URL
		}
	}
	if line != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lines = append(c.lines, line)
	}
}

func (c *console) said() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string{}, c.lines...)
}

// Do does actions in their order; what names them in a failure, which ends the test and shows the page.
func (b *Tab) Do(what string, actions ...Action) {
	b.T.Helper()
	if err := chromedp.Do(b.Ctx, actions...); err != nil {
		html, _ := chromedp.Run(b.Ctx, chromedp.OuterHTML(chromedp.CSS("body")))
		b.T.Fatalf("%s: %v\nconsole: %q\n%s", what, err, b.console.said(), html)
	}
}

// Run evaluates a JavaScript statement, and waits for the promise that it may be.
func Run(statement string) Action {
	return chromedp.Evaluate[chromedp.Void](statement, chromedp.EvalAwaitPromise)
}

// Until waits until the JavaScript expression is true. It asks again at every frame, as the policy of the pages forbids
// the eval that chromedp.Poll needs.
func (b *Tab) Until(expression string) {
	b.T.Helper()
	b.Do("wait until "+expression, Run("new Promise((done) => { const look = () => { if ("+expression+
		") done(); else requestAnimationFrame(look); }; look(); })"))
}

// Eval returns the value of a JavaScript expression, or of the promise that it is.
func Eval[T any](b *Tab, expression string) T {
	b.T.Helper()
	out, err := chromedp.Run(b.Ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.T.Fatalf("%s: %v", expression, err)
	}
	return out
}

// Click waits for the element and presses it in the same instant: it does not matter if the page draws it again between
// finding and pressing.
func Click(selector string) Action {
	return Run(fmt.Sprintf("new Promise((done) => { const look = () => { const e = document.querySelector(%q); "+
		"if (e && !e.disabled) { e.click(); done(); } else requestAnimationFrame(look); }; look(); })", selector))
}

// Strike presses a key that the page takes. chromedp's own KeyEvent adds the character all the same.
func Strike(key string, code int64) Action {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for _, kind := range []input.DispatchKeyEventType{
			input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp,
		} {
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

// Shot keeps a picture of the page if ZEPH_SHOTS names a directory.
func (b *Tab) Shot(name string) {
	b.T.Helper()
	dir := os.Getenv("ZEPH_SHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.Ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.T.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.T.Fatal(err)
	}
}

// Picture makes a picture of the documentation anew with ZEPH_UPDATE=1, docs/NAME.png, of the page as it is.
func (b *Tab) Picture(name string) {
	b.T.Helper()
	if os.Getenv("ZEPH_UPDATE") == "" {
		return
	}
	small := chromedp.EmulateViewport(pictureWide, pictureHigh, chromedp.EmulateScale(1.25))
	b.Do("make the window smaller", small, chromedp.Evaluate[chromedp.Void](drawn, chromedp.EvalAwaitPromise))
	png, err := chromedp.Run(b.Ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.T.Fatal(err)
	}
	b.Do("make it wide again", chromedp.EmulateViewport(Wide, height))
	KeepPicture(b.T, name, png)
}

// The window of a picture, in pixels.
const pictureWide, pictureHigh = 1280, 720

// drawn waits until the page is drawn anew.
const drawn = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))).then(() => {})`

// KeepPicture writes a picture of the documentation, docs/NAME.png, made small by pngquant.
func KeepPicture(t *testing.T, name string, png []byte) {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	file := filepath.Join(dir, "docs", name+".png")
	if err := os.WriteFile(file, png, 0o600); err != nil {
		t.Fatal(err)
	}
	smaller := exec.CommandContext(
		t.Context(), "pngquant", "--force", "--skip-if-larger", "--strip", "--output", file, "160", file,
	)
	if out, err := smaller.CombinedOutput(); err != nil {
		t.Fatalf("pngquant: %v\n%s", err, out)
	}
}

// Prefer sets the colours that the system prefers: light or dark.
func (b *Tab) Prefer(colours string) {
	b.T.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}}
	params := emulation.SetEmulatedMediaParams{Features: features}
	if _, err := chromedp.Call(b.Ctx, emulation.SetEmulatedMedia, params); err != nil {
		b.T.Fatal(err)
	}
}

// AxeSource returns the code of axe-core, which .ci/run brings, or skips the test. Where CI promised it (ZEPH_CI=1),
// its absence is a failure.
func AxeSource(t *testing.T) string {
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

// Examine runs axe-core on the page as it is, and reports what it finds, whatever its impact, and whether the page is
// wider than its window. The code of AxeSource must have been run in the page.
func (b *Tab) Examine(state string) {
	b.T.Helper()
	if over := Eval[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		b.T.Errorf("%s: %d px too wide", state, over)
	}
	raw := Eval[string](b, `axe.run(document, { resultTypes: ["violations"] }).then((r) => JSON.stringify(r.violations))`)
	var found []finding
	if err := json.Unmarshal([]byte(raw), &found); err != nil {
		b.T.Fatal(err)
	}
	for _, f := range found {
		for _, n := range f.Nodes {
			b.T.Errorf("%s: %s (%s): %s\n%s\n%s %s", state, f.ID, f.Impact, f.Help, n.HTML, n.Target, n.Why)
		}
	}
}
