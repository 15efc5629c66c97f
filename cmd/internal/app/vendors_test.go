package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/agent/llm/vendortest"
	"github.com/zephbot/zephbot/cmd/internal/apptest"
)

// core are the scenarios that are played on every vendor's server: answers, calls one by one and side by side, approvals,
// broken arguments, stops, restarts, long outputs, groups, and what is written into the history besides messages.
var core = []string{
	"always", "answer_long", "answer_markdown", "approve", "approve_batch", "approve_session", "approve_twice", "args_mended",
	"background", "busy_steer", "clear_parked", "cut_uses", "delegate", "deny", "doom_loop", "draft_grows", "edited", "edited_running",
	"files_read", "files_write", "german_card", "group_shared", "group_two_users", "hello", "max_iterations", "memory",
	"overflow", "queue_running", "quotes", "reads_parallel", "restart_history", "restart_parked", "restart_twice", "search_code",
	"send_file", "stop_model", "stop_tool", "tool_errors", "undo", "web_search",
}

// vendorsInTurn is on how many servers they are played by a plain `go test`; with ZEPH_VENDORS=full, on all, or on those
// that ZEPH_VENDORS names.
const vendorsInTurn = 2

// vendorsOfToday returns the servers to play on.
func vendorsOfToday(t *testing.T) []string {
	t.Helper()
	all := vendortest.Vendors()
	switch named := os.Getenv("ZEPH_VENDORS"); named {
	case "":
	case "full":
		return all
	default:
		return strings.Split(named, ",")
	}
	day := os.Getenv("ZEPH_SEED")
	if day == "" {
		day = time.Now().UTC().Format(time.DateOnly)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(day)) // a hash takes everything
	r := rand.New(rand.NewPCG(h.Sum64(), 0))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	t.Logf("ZEPH_SEED=%s", day)
	return all[:vendorsInTurn]
}

// modelsOfToday returns the models of a server to play on: the first one that is asked by default, and of the others the
// one whose turn it is; with ZEPH_VENDORS, all. What a server refuses depends on the model.
func modelsOfToday(t *testing.T, vendor string) []string {
	t.Helper()
	models, err := vendortest.Models(vendor)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("ZEPH_VENDORS") != "" || len(models) < 3 {
		return models
	}
	day := os.Getenv("ZEPH_SEED")
	if day == "" {
		day = time.Now().UTC().Format(time.DateOnly)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(day + vendor)) // a hash takes everything
	r := rand.New(rand.NewPCG(h.Sum64(), 0))
	return []string{models[0], models[1+r.IntN(len(models)-1)]}
}

// unplayed are scenarios about arguments that are cut or broken within a call, which a model that writes its calls as
// text does not have: the block itself is broken then, and package fenced says what becomes of it.
var unplayed = map[string][]string{"llama3.2:3b": {"args_mended", "cut_uses"}}

// TestVendors plays the core scenarios with the model behind vendors' servers. A plain run plays them with the models of
// a server by turns; the step that plays them on all servers, with the first model, and once more with the others by turns.
func TestVendors(t *testing.T) {
	t.Parallel()
	if len(core) != 40 || !slices.IsSorted(core) {
		t.Fatalf("%d core scenarios", len(core))
	}
	for _, vendor := range vendorsOfToday(t) {
		models := modelsOfToday(t, vendor)
		for i, name := range core {
			played := models[i%len(models):][:1]
			if os.Getenv("ZEPH_VENDORS") != "" { // the first model plays all, and the others share them
				played = models[:1]
				if others := models[1:]; len(others) > 0 {
					played = append(slices.Clone(played), others[i%len(others)])
				}
			}
			for _, model := range played {
				if slices.Contains(unplayed[model], name) {
					continue
				}
				t.Run(fmt.Sprintf("%s_%s_%s", name, vendor, strings.ReplaceAll(model, "/", "-")), func(t *testing.T) {
					t.Parallel()
					archive, err := txtar.ParseFile(filepath.Join("testdata", "scenario", name+".txtar"))
					if err != nil {
						t.Fatal(err)
					}
					apptest.PlayVendor(t, archive, apptest.Vendor{Name: vendor, Model: model, Preset: true})
				})
			}
		}
	}
}

// firstAnswers is what the model says to the first three messages of a person.
const firstAnswers = `on "hello": say Hello to you.
on "look around": say I look.
and call list_directory {"path":"."}
then say There is nothing here yet.
on "thank you": say You are welcome.`

// unanswered are the new installations that do not answer at once, by server and way, with the reason.
var unanswered = map[string]string{
	"azure preset=false": "nobody can know that its key is in a header of its own",
}

// learnt are the models of which their server's preset cannot know everything, with the reason: the first request is
// refused.
var learnt = map[string]string{
	"prod-gpt":                "the name of a deployment does not say which model it is",
	"mistralai/Mistral-Small": "the server is an old version of vLLM, which refuses fields that it does not know",
	"llama3.2:3b":             "Ollama does not list which models take no tools",
}

// TestFirstMessage: a new installation, in which nothing is configured but a model server, answers its first message with
// every tool offered, runs a call of the model, and goes on: with a preset, and as an unknown server at an address of
// one's own.
func TestFirstMessage(t *testing.T) {
	t.Parallel()
	vendors := append([]string{"openai", "gemini", "deepseek", "mistral", "ollama"}, vendorsOfToday(t)...)
	slices.Sort(vendors)
	for _, vendor := range slices.Compact(vendors) {
		for _, preset := range []bool{true, false} {
			if unanswered[fmt.Sprintf("%s preset=%t", vendor, preset)] != "" {
				continue
			}
			for _, model := range modelsOfToday(t, vendor) {
				t.Run(fmt.Sprintf("%s %s preset=%t", vendor, strings.ReplaceAll(model, "/", "-"), preset), func(t *testing.T) {
					t.Parallel()
					firstMessage(t, vendor, model, preset)
				})
			}
		}
	}
}

func firstMessage(t *testing.T, vendor, name string, preset bool) {
	t.Helper()
	model, err := llmtest.Parse(firstAnswers)
	if err != nil {
		t.Fatal(err)
	}
	server, err := vendortest.New(vendortest.Options{Vendor: vendor, Model: model, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(apptest.Refusals(server))
		}
	})
	w := wireWith(t, zerolog.Nop(), time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC), apptest.Provider(server, preset), "")
	for _, say := range [][2]string{{"hello", "Hello to you."}, {"look around", "There is nothing here yet."}, {"thank you", "You are welcome."}} {
		w.say(say[0])
		m := w.await("")
		if strings.Contains(m.Text, "takes no tools") { // what admins are told once of such a model
			m = w.await("")
		}
		if !strings.Contains(m.Text, say[1]) {
			t.Fatalf("%q was answered with %q", say[0], m.Text)
		}
	}
	requests := model.Requests()
	if len(requests) != 4 {
		t.Errorf("the model was asked %d times", len(requests))
	}
	for i, r := range requests {
		if len(r.Tools) < 20 || len(r.Tools) != offeredIn(t, server.Exchanges()[0].Body) {
			t.Errorf("request %d offers %d tools", i+1, len(r.Tools))
		}
	}
	refused := 0
	for _, e := range server.Exchanges() {
		if e.Refused != "" {
			refused++
		}
	}
	if preset && learnt[name] == "" && refused > 0 || refused > 12 {
		t.Errorf("%d requests were refused", refused)
	}
	for _, problem := range apptest.RefusedAgain(server) {
		t.Error(problem)
	}
}

// offeredIn counts the tools of a request.
func offeredIn(t *testing.T, body []byte) int {
	t.Helper()
	var request struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	return len(request.Tools)
}

// noter is a model that notes what it is told, and says the number of the newest message.
type noter struct{}

var numbered = regexp.MustCompile(`message number (\d+)`)

// Name implements llm.Provider.
func (noter) Name() string { return "noter" }

// Chat implements llm.Provider.
func (noter) Chat(_ context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	text := "They send long messages."
	for _, m := range slices.Backward(req.Messages) {
		if n := numbered.FindStringSubmatch(m.Text); n != nil && m.Role == llm.User {
			text = "Noted " + n[1] + "."
			break
		}
	}
	onDelta(text)
	return &llm.Response{Text: text, Stop: llm.StopEnd}, nil
}

// TestNineMessages: a person sends nine messages of 2400 tokens to a model with a window of 20 000 that it does not list. Whatever the words in
// which the server says that a request is too long, each message is answered, at most one request of a step is refused,
// and none is sent again as it was.
func TestNineMessages(t *testing.T) {
	t.Parallel()
	for _, vendor := range vendorsOfToday(t) {
		forms, err := vendortest.Overflows(vendor)
		if err != nil {
			t.Fatal(err)
		}
		// Each form is played with one model, and each model says one form at least.
		models := modelsOfToday(t, vendor)
		for i := range max(len(forms), len(models)) {
			form, model := forms[i%len(forms)], models[i%len(models)]
			t.Run(fmt.Sprintf("%s %s %s", vendor, strings.ReplaceAll(model, "/", "-"), form), func(t *testing.T) {
				t.Parallel()
				nineMessages(t, vendor, model, form)
			})
		}
	}
}

func nineMessages(t *testing.T, vendor, name, form string) {
	t.Helper()
	server, err := vendortest.New(vendortest.Options{Vendor: vendor, Model: noter{}, Name: name, Window: 20_000, Unlisted: true, Overflow: form})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(apptest.Refusals(server))
		}
	})
	w := wireWith(t, zerolog.Nop(), time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC), apptest.Provider(server, true), "")
	for n := 1; n <= 9; n++ {
		head := fmt.Sprintf("This is message number %d. ", n)
		text := head + strings.Repeat("words ", (2400*4-len(head))/6)
		for len(text) > 4000 { // what is longer than a message of Telegram comes in several, which are one message
			w.say(text[:4000])
			text = text[4000:]
		}
		w.say(text)
		m := w.await(".")
		if strings.Contains(m.Text, "takes no tools") {
			m = w.await(".")
		}
		if m.Text != fmt.Sprintf("Noted %d.", n) {
			t.Fatalf("message %d was answered with %q", n, m.Text)
		}
	}
	refused, inRow := 0, 0
	for _, e := range server.Exchanges() {
		if !strings.HasPrefix(e.Refused, "too long") {
			inRow = 0
			continue
		}
		refused++
		if inRow++; inRow > 1 {
			t.Errorf("a step was refused %d times", inRow)
		}
	}
	if refused == 0 || refused > 4 {
		t.Errorf("%d requests were refused", refused)
	}
	for _, problem := range apptest.RefusedAgain(server) {
		t.Error(problem)
	}
}
