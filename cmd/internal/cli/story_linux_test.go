package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/zephbot/zephbot/bot/simulator"
	"github.com/zephbot/zephbot/bot/webpage/browsertest"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// storyteller is a model that sees, hears, speaks and draws: it reads the chart of the story and writes down what it
// read.
type storyteller struct {
	mu     sync.Mutex
	looked bool   // a request had the photo in it
	system string // of the newest request
	asked  string // the newest message of a person
}

type storyMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// heardNow returns the system prompt and the newest message of a person that the model was sent last.
func (m *storyteller) heardNow() (system, asked string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.system, m.asked
}

// ServeHTTP implements http.Handler with OpenAI's chat completions, and its APIs for speech and pictures.
func (m *storyteller) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if serveMedia(w, r) {
		return
	}
	var in struct {
		Messages []storyMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	system, asked, results := "", "", 0
	for i := range in.Messages {
		switch text := string(in.Messages[i].Content); in.Messages[i].Role {
		case "user":
			asked, results = text, 0
		case "tool":
			results++
		case "system", "developer":
			system = text
		}
	}
	m.mu.Lock()
	m.system, m.asked = system, asked
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	for _, delta := range m.next(asked, results) {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", delta) // the service may have been stopped
	}
	_, _ = io.WriteString(w, `data: {"choices":[],"usage":{"prompt_tokens":2140,"completion_tokens":86,"total_tokens":2226}}`+"\n\ndata: [DONE]\n\n")
}

func (m *storyteller) next(asked string, results int) []string {
	switch {
	case strings.Contains(asked, "latency.csv") && results == 0:
		return calls(call("write", map[string]any{"path": "latency.csv", "content": "hour,ms\n10,41\n11,43\n12,40\n13,44\n14,118\n15,121\n"}))
	case strings.Contains(asked, "latency.csv"):
		return say("Done: `latency.csv` has the six values of the chart.")
	case strings.Contains(asked, "offsite") && results == 0:
		return calls(call("ask_user", map[string]any{"questions": []map[string]any{
			{"question": "Which day suits the team?", "date": true},
			{"question": "What do you want to do there?", "choices": []string{"Workshop", "Hiking", "Cooking", "Nothing at all"}, "several": true},
		}}))
	case strings.Contains(asked, "offsite"):
		return say("Planned: **hiking and cooking**. I will look for a house near the lake.")
	case strings.Contains(asked, "printer") && results == 0:
		return calls(call("tickets:create", map[string]any{"title": "Printer is on fire"}))
	case strings.Contains(asked, "printer"):
		return say("Ticket 17 is open.")
	case strings.Contains(asked, "DiskFull"):
		return say("The disk of **web-1** fills up since 9:40: the log of nginx has grown by 30 GB. " +
			"Rotating it frees nearly all of that; shall I?")
	case strings.Contains(asked, "when do we meet"):
		return say("At **five**: Cy preferred that to half past four.")
	case strings.Contains(asked, "build is red"):
		return say("Let us find out together. What does the *first* red line of the log say, " +
			"and what was changed since it was green?")
	case strings.Contains(asked, "in the box"):
		return say("**Three apples.** Two of them are ripe.")
	case strings.Contains(asked, "sunset") && results == 0:
		return calls(call("generate_image", map[string]any{"prompt": "A sunset over hills", "shape": "landscape"}))
	case strings.Contains(asked, "sunset"):
		return say("Here it is.")
	case strings.Contains(asked, "call the project"):
		return say("**Heron** it is: a bird that waits, and then acts. The other names are taken.")
	case strings.Contains(asked, "logo"):
		return say("A heron in one line, dark blue on white. I can draw three variants.")
	case strings.Contains(asked, "chart"):
		m.mu.Lock()
		m.looked = m.looked || strings.Contains(asked, "data:image/png;base64,")
		m.mu.Unlock()
		return say("Latency is flat at about **42 ms** until 13:00. Since 14:00 it is **three times that**, about 120 ms.")
	}
	return say("Ask me about the chart.")
}

func say(text string) []string {
	raw, _ := json.Marshal(text) // a string always has a JSON form
	return []string{fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%s},"finish_reason":"stop"}]}`, raw)}
}

func call(name string, args map[string]any) map[string]any {
	raw, _ := json.Marshal(args)
	return map[string]any{"type": "function", "function": map[string]any{"name": name, "arguments": string(raw)}}
}

func calls(list ...map[string]any) []string {
	for i := range list {
		list[i]["index"], list[i]["id"] = i, fmt.Sprintf("call_%d", i)
	}
	raw, _ := json.Marshal(list)
	return []string{fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":%s},"finish_reason":"tool_calls"}]}`, raw)}
}

// chart is the photo of the story: six bars with their hours.
func chart(t *testing.T) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 960, 540))
	fill := func(r image.Rectangle, c color.Color) {
		draw.Draw(img, r, image.NewUniform(c), image.Point{}, draw.Src)
	}
	fill(img.Bounds(), color.RGBA{250, 250, 247, 255})
	letters, err := opentype.Parse(goregular.TTF)
	if err != nil {
		t.Fatal(err)
	}
	face, err := opentype.NewFace(letters, &opentype.FaceOptions{Size: 30, DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		t.Fatal(err)
	}
	pen := &font.Drawer{Dst: img, Src: image.NewUniform(color.RGBA{60, 66, 70, 255}), Face: face}
	text := func(x, y int, s string) {
		pen.Dot = fixed.P(x, y)
		pen.DrawString(s)
	}
	text(42, 66, "p95 latency, ms")
	for i, ms := range []int{41, 43, 40, 44, 118, 121} {
		x, bar := 66+i*147, color.RGBA{66, 133, 160, 255}
		if ms > 100 {
			bar = color.RGBA{201, 92, 66, 255}
		}
		top := 456 - ms*27/10
		fill(image.Rect(x, top, x+96, 456), bar)
		text(x+48-pen.MeasureString(fmt.Sprint(ms)).Round()/2, top-12, fmt.Sprint(ms))
		text(x+14, 504, fmt.Sprintf("%d:00", 10+i))
	}
	fill(image.Rect(42, 456, 924, 458), color.RGBA{120, 126, 130, 255})
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type storyFile struct{ path, text string }

// story is `zephbot simulate` as a process, with a model that sees.
type story struct {
	*testing.T
	heard *heard
	url   string
	model *storyteller
}

// tell begins a story; files are put beside the program first.
func tell(t *testing.T, files ...storyFile) *story {
	t.Helper()
	return tellWith(t, nil, files...)
}

// tellWith is tell with more variables.
func tellWith(t *testing.T, environment []string, files ...storyFile) *story {
	t.Helper()
	s := &story{T: t, heard: newHeard(), model: &storyteller{}}
	vendor := httptest.NewServer(s.model)
	t.Cleanup(vendor.Close)
	dir := t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(f.text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := zephbot(t, dir, append([]string{
		"ZEPH_DATA_DIR=" + filepath.Join(dir, "state"), "ZEPH_LLM_PROVIDERS_MAIN_TYPE=openai", "ZEPH_LLM_PROVIDERS_MAIN_WIRE=chat",
		"ZEPH_LLM_PROVIDERS_MAIN_MODEL=gpt-5-mini", "ZEPH_LLM_PROVIDERS_MAIN_BASE_URL=" + vendor.URL + "/v1",
		"ZEPH_QUOTAS_USER_TURNS_PER_DAY=20", "ZEPH_QUOTAS_USER_USD_PER_DAY=1", "ZEPH_QUOTAS_USER_USD_PER_MONTH=20",
	}, environment...), "simulate")
	cmd.Stdout, cmd.Stderr = s.heard, s.heard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if code := ended(t, cmd); code != 0 {
			t.Errorf("the simulator ended with %d: %s", code, s.heard)
		}
	})
	end := s.heard.await(t, "simulator: ", 0)
	s.heard.await(t, "\n", end)
	s.url, _, _ = strings.Cut(s.heard.String()[end:], "\n")
	return s
}

// ask sends a request of the page; body nil is a GET.
func (s *story) ask(path string, body, into any) {
	s.Helper()
	method, raw := http.MethodGet, []byte(nil)
	if body != nil {
		method = http.MethodPost
		var err error
		if raw, err = json.Marshal(body); err != nil {
			s.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(s.Context(), method, s.url+"/api/"+path, bytes.NewReader(raw))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err = io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.Fatalf("%s: %d %s %v", path, resp.StatusCode, raw, err)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(raw, into); err != nil {
		s.Fatal(err)
	}
}

type fields map[string]any

const storyTopic = simulator.DeploysTopic

// await waits until a person sees a message of the bot with these words in the topic of the story.
func (s *story) await(me int64, words ...string) simulator.ViewMessage {
	s.Helper()
	return s.see(me, simulator.Team, storyTopic, words...)
}

// see waits until a person sees a message of the bot with these words.
func (s *story) see(me, chat int64, topic int, words ...string) simulator.ViewMessage {
	s.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for {
		var v simulator.View
		s.ask(fmt.Sprintf("view?me=%d&chat=%d&thread=%d", me, chat, topic), nil, &v)
		for _, m := range slices.Backward(v.Messages) {
			if m.FromBot && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(m.Text, w) }) {
				return m
			}
		}
		select {
		case <-tick.C:
		case <-limit:
			s.Fatalf("%d never saw %q; printed: %s; %+v", me, words, s.heard, v.Messages)
		}
	}
}

func (s *story) say(me int64, text string, files ...fields) {
	s.Helper()
	s.ask("say", fields{"me": me, "chat": simulator.Team, "thread": storyTopic, "text": text, "files": files}, nil)
}

// press presses the button with this label.
func (s *story) press(me, chat int64, m *simulator.ViewMessage, label string) {
	s.Helper()
	for r, row := range m.Keyboard {
		for c, b := range row {
			if b.Text == label {
				s.ask("press", fields{
					"me": me, "chat": chat, "message": m.MessageID, "alone": m.Ephemeral, "row": r, "column": c, "label": label,
				}, nil)
				return
			}
		}
	}
	s.Fatalf("no button %q under %q: %v", label, m.Text, m.Keyboard)
}

// shot makes a picture of README and the guides anew with ZEPH_UPDATE=1: what a person sees in the topic of the story,
// in docs/story-NAME.png.
func (s *story) shot(me int64, name string) {
	s.Helper()
	s.shotOf(fmt.Sprintf("%d/%d/%d", me, simulator.Team, storyTopic), name)
}

// shotOf does so for a place of the page, PERSON/CHAT/TOPIC.
func (s *story) shotOf(place, name string) {
	s.Helper()
	if os.Getenv("ZEPH_UPDATE") == "" {
		return
	}
	browsertest.KeepPicture(s.T, "story-"+name, s.photograph(place, 1080, 800, 1.25))
}

// shotSmall is shotOf for a page of the documentation about one feature.
func (s *story) shotSmall(place, name string) {
	s.Helper()
	if os.Getenv("ZEPH_UPDATE") == "" {
		return
	}
	browsertest.KeepPicture(s.T, "story-"+name, s.photograph(place, 920, 660, 1))
}

// photograph returns a picture of the page with this place, PERSON/CHAT/TOPIC, when everything is drawn.
func (s *story) photograph(place string, width, height int64, scale float64) []byte {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), patience)
	defer cancel()
	flags := []chromedp.ExecAllocatorOption{
		chromedp.UserDataDir(s.TempDir()), chromedp.NoFirstRun, chromedp.Flag("headless", "new"), chromedp.Flag("no-sandbox", true),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(patience),
	}
	alloc, end := chromedp.NewExecAllocator(ctx, flags...)
	defer end()
	page, closePage := chromedp.NewContext(alloc)
	defer closePage()
	drawn := fmt.Sprintf(`new Promise((done) => { const look = () => { if (document.body.dataset.ready === %q &&
		document.querySelector("#pill").dataset.state === "running" && [...document.images].every((i) => i.complete)) requestAnimationFrame(done);
		else requestAnimationFrame(look); }; look(); }).then(() => {})`, place)
	err := chromedp.Do(page, chromedp.EmulateViewport(width, height, chromedp.EmulateScale(scale)), chromedp.Navigate(s.url+"/#"+place),
		chromedp.Evaluate[chromedp.Void](drawn, chromedp.EvalAwaitPromise))
	if err != nil {
		s.Fatal(err)
	}
	png, err := chromedp.Run(page, chromedp.CaptureScreenshot())
	if err != nil {
		s.Fatal(err)
	}
	if err := chromedp.Cancel(page); err != nil {
		s.Logf("close the browser: %v", err)
	}
	return png
}

// TestStory is the story that README tells in pictures, on the whole program: a photo is asked about in a group, an
// admin approves what the bot wants to run, the receipt says what it took, and the quota what is left. ZEPH_UPDATE=1 makes the pictures anew; that
// needs chromium and pngquant.
func TestStory(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.say(simulator.Ben, "@zephbot what does this chart say?", fields{"name": "chart.png", "as": "photo", "data": chart(t)})
	s.await(simulator.Ben, "three times that")
	s.model.mu.Lock()
	if !s.model.looked {
		t.Error("the model did not get the photo")
	}
	s.model.mu.Unlock()
	s.shot(simulator.Ben, "photo")
	s.say(simulator.Ben, "@zephbot put the numbers into latency.csv")
	card := s.await(simulator.Ann, "Creates latency.csv", "May I?")
	s.shot(simulator.Ann, "approve")
	s.press(simulator.Ann, simulator.Team, &card, "Approve once")
	s.await(simulator.Ben, "Approved", "Ann")
	done := s.await(simulator.Ben, "Done: latency.csv")
	s.press(simulator.Ben, simulator.Team, &done, "Receipt")
	receipt := s.await(simulator.Ben, "New: latency.csv", "Approved: write by Ann")
	s.shot(simulator.Ben, "receipt")
	s.say(simulator.Ben, "/quota@zephbot")
	s.await(simulator.Ben, "2 / 20", "$1")
	s.shot(simulator.Ben, "quota")
	s.press(simulator.Ben, simulator.Team, &receipt, "Undo…")
	ask := s.await(simulator.Ben, "did not exist before this answer. Delete it?")
	s.press(simulator.Ben, simulator.Team, &ask, "Delete")
	s.await(simulator.Ben, "Undone by Ben")
}

// TestAdmission is what the page is tried with first: a person and a group that are on no list, and an admin who admits
// them in the chat.
func TestAdmission(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.ask("say", fields{"me": simulator.Dora, "chat": simulator.Dora, "text": "hello"}, nil)
	s.see(simulator.Dora, simulator.Dora, 0, "I have asked an admin whether to let you in")
	card := s.see(simulator.Ann, simulator.Ann, 0, "Dora", "1004")
	s.shotOf(fmt.Sprintf("%d/%[1]d/0", simulator.Ann), "admit")
	s.press(simulator.Ann, simulator.Ann, &card, "Admit")
	s.see(simulator.Ann, simulator.Ann, 0, "Admitted: Dora")
	s.ask("say", fields{"me": simulator.Dora, "chat": simulator.Dora, "text": "hello again"}, nil)
	s.see(simulator.Dora, simulator.Dora, 0, "Ask me about the chart.")
	s.ask("say", fields{"me": simulator.Dora, "chat": simulator.Garden, "text": "@zephbot and here?"}, nil)
	card = s.see(simulator.Ann, simulator.Ann, 0, "Garden", "-1002")
	s.press(simulator.Ann, simulator.Ann, &card, "Admit")
	s.see(simulator.Ann, simulator.Ann, 0, "Garden", "Admitted")
	s.ask("say", fields{"me": simulator.Dora, "chat": simulator.Garden, "text": "@zephbot and now?"}, nil)
	s.see(simulator.Dora, simulator.Garden, 0, "Ask me about the chart.")
}

// TestAskedInTheSimulator: the page shows a question with its buttons and marks to everybody of a group, and takes answers
// from the one who is asked only.
func TestAskedInTheSimulator(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.say(simulator.Ann, "@zephbot plan our offsite")
	card := s.await(simulator.Ben, "Which day suits the team?", "Only Ann can answer", "question 1 of 2")
	s.press(simulator.Ben, simulator.Team, &card, "Tomorrow")
	s.ask("say", fields{"me": simulator.Ann, "chat": simulator.Team, "thread": storyTopic, "text": "24.12.2030", "reply_to": card.MessageID}, nil)
	card = s.await(simulator.Ann, "→ 24 Dec 2030", "What do you want to do there?")
	s.press(simulator.Ann, simulator.Team, &card, "☐ Hiking")
	for !strings.Contains(fmt.Sprint(card.Keyboard), "☑ Hiking") {
		card = s.await(simulator.Ann, "What do you want to do there?")
	}
	s.press(simulator.Ann, simulator.Team, &card, "☐ Cooking")
	for !strings.Contains(fmt.Sprint(card.Keyboard), "☑ Cooking") {
		card = s.await(simulator.Ann, "What do you want to do there?")
	}
	s.shotSmall(inTopic(simulator.Ann), "ask")
	s.press(simulator.Ann, simulator.Team, &card, "Done")
	s.await(simulator.Ben, "Planned: hiking and cooking")
	s.await(simulator.Ben, "→ Hiking, Cooking", "Answered by Ann")
}

// TestAuthor is what the guide for authors shows: an admin reads and accepts a new skill, and a tool of a new server asks
// before it changes something.
func TestAuthor(t *testing.T) {
	t.Parallel()
	tickets := httptest.NewServer(mcptest.Tickets())
	t.Cleanup(tickets.Close)
	s := tell(t, storyFile{"zephbot.toml", `[skills]
paths = ["skills"]

[[mcp.servers]]
id = "tickets"
url = "` + tickets.URL + `"
trust_level = "trusted"
`}, storyFile{"skills/release-notes/SKILL.md", `---
name: release-notes
description: Writes release notes from the commits since the last tag. Use it when somebody asks for release notes or a changelog.
---
1. Run git describe --tags --abbrev=0 to find the last tag.
2. Read git log TAG..HEAD --oneline.
3. Group by what a user notices. Leave out refactoring. One line each, in the words of users.
`})
	s.ask("say", fields{"me": simulator.Ann, "chat": simulator.Ann, "text": "/skills"}, nil)
	list := s.see(simulator.Ann, simulator.Ann, 0, "release-notes")
	s.press(simulator.Ann, simulator.Ann, &list, "1. release-notes")
	skill := s.see(simulator.Ann, simulator.Ann, 0, "git describe --tags")
	s.shotOf(fmt.Sprintf("%d/%[1]d/0", simulator.Ann), "skill")
	s.press(simulator.Ann, simulator.Ann, &skill, "Accept")
	s.see(simulator.Ann, simulator.Ann, 0, "release-notes", "✅ accepted")
	s.say(simulator.Ben, "@zephbot open a ticket: the printer is on fire")
	card := s.await(simulator.Ann, "May I", "tickets:create")
	s.shot(simulator.Ann, "tool")
	s.press(simulator.Ann, simulator.Team, &card, "Approve once")
	s.await(simulator.Ben, "Ticket 17 is open.")
}
