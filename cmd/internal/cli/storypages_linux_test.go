package cli_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm/vendortest"
	"github.com/zephbot/zephbot/bot/simulator"
)

// The stories of the pages about one feature each. ZEPH_UPDATE=1 makes their pictures anew, as those of TestStory.

// serveMedia answers a request about speech or a picture; false = it is none.
func serveMedia(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case strings.HasSuffix(r.URL.Path, "/audio/transcriptions"):
		_, _ = io.WriteString(w, `{"text":"What is in the box?"}`) // the service may have been stopped
	case strings.HasSuffix(r.URL.Path, "/audio/speech"):
		var in struct {
			Input string `json:"input"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return true
		}
		w.Header().Set("Content-Type", "audio/ogg")
		_, _ = w.Write(vendortest.Opus(in.Input))
	case strings.HasSuffix(r.URL.Path, "/images/generations"):
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"data":[{"b64_json":%q}]}`, base64.StdEncoding.EncodeToString(sunset()))
	default:
		return false
	}
	return true
}

// sunset is a picture of a sunset over hills, in few colours.
func sunset() []byte {
	img := image.NewRGBA(image.Rect(0, 0, 768, 256))
	for x := range 768 {
		near := 200 - int(60*math.Sin(float64(x)/110)+14*math.Sin(float64(x)/31))
		far := 165 - int(40*math.Sin(float64(x)/170+2))
		for y := range 256 {
			c := color.RGBA{uint8(250 - y/16*6), uint8(190 - y/16*10), uint8(110 + y/16*4), 255}
			switch {
			case y > near:
				c = color.RGBA{52, 46, 74, 255}
			case y > far:
				c = color.RGBA{104, 72, 104, 255}
			case (x-520)*(x-520)+(y-130)*(y-130) < 70*70:
				c = color.RGBA{255, 228, 150, 255}
			}
			img.SetRGBA(x, y, c)
		}
	}
	var out bytes.Buffer
	_ = png.Encode(&out, img) // writing to memory cannot fail
	return out.Bytes()
}

// inTopic is the topic of the stories, as a person sees it.
func inTopic(me int64) string { return fmt.Sprintf("%d/%d/%d", me, simulator.Team, storyTopic) }

// alone is the private chat of a person.
func alone(me int64) string { return fmt.Sprintf("%d/%[1]d/0", me) }

// TestHookInTheSimulator: an admin makes a hook, another program calls it, and the card below /hooks shows what it
// asks.
func TestHookInTheSimulator(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.say(simulator.Ann,
		"/hooks@zephbot add grafana Why does {{.alerts.0.labels.alertname}} fire, and what is to be done?")
	s.await(simulator.Ben, "The hook grafana is made.")
	told := s.see(simulator.Ann, simulator.Ann, 0, "How the hook grafana is called")
	how := regexp.MustCompile(`Address: (\S+)\nSecret: (\S+)`).FindStringSubmatch(told.Text)
	if how == nil {
		t.Fatalf("told: %q", told.Text)
	}
	body := `{"alerts":[{"labels":{"alertname":"DiskFull"}}]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, how[1], strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+how[2])
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusAccepted {
		t.Fatalf("the call: %d", resp.StatusCode)
	}
	s.await(simulator.Ben, "Called: grafana")
	s.await(simulator.Ben, "The disk of web-1 fills up")
	s.say(simulator.Ann, "/hooks@zephbot")
	list := s.await(simulator.Ann, "Hooks of this group:", "called last")
	s.press(simulator.Ann, simulator.Team, &list, "grafana")
	s.await(simulator.Ann, "It asks: Why does")
	s.shotSmall(inTopic(simulator.Ann), "hook")
}

// TestTalkInTheSimulator: an admin switches on that the talk of a topic is kept, and who asks later need not repeat it.
func TestTalkInTheSimulator(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.say(simulator.Ann, "/settings@zephbot")
	card := s.await(simulator.Ann, "Settings of this group", "What is said here: I do not keep it")
	s.press(simulator.Ann, simulator.Team, &card, "What is said here")
	card = s.await(simulator.Ann, "Shall I keep for a while")
	s.press(simulator.Ann, simulator.Team, &card, "I keep it for a while")
	s.await(simulator.Ben, "Ann has switched on")
	s.say(simulator.Ben, "shall we meet at half past four?")
	s.say(simulator.Cy, "five is better")
	s.say(simulator.Ann, "@zephbot when do we meet?")
	s.await(simulator.Ann, "At five: Cy preferred")
	if _, asked := s.model.heardNow(); !strings.Contains(asked, "Ben: shall we meet at half past four?") {
		t.Errorf("the model read %s", asked)
	}
	s.shotSmall(inTopic(simulator.Ann), "talk")
}

// TestPersonaInTheSimulator: an admin chooses a persona for a topic, which answers there from the next message on.
func TestPersonaInTheSimulator(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.say(simulator.Ann, "/settings@zephbot")
	card := s.await(simulator.Ann, "Settings of this group", "Persona: none")
	s.press(simulator.Ann, simulator.Team, &card, "Persona")
	card = s.await(simulator.Ann, "As whom shall I answer in this topic?")
	s.press(simulator.Ann, simulator.Team, &card, "tutor")
	s.await(simulator.Ann, "Chosen by Ann")
	s.say(simulator.Ben, "@zephbot our build is red, why?")
	s.await(simulator.Ben, "Let us find out together")
	if system, _ := s.model.heardNow(); !strings.Contains(system, "You are a tutor") {
		t.Errorf("the model read %s", system)
	}
	s.shotSmall(inTopic(simulator.Ann), "persona")
}

// awaitFile waits until a person sees that the bot has sent them a file of a kind.
func (s *story) awaitFile(me int64, kind string) {
	s.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for {
		var v simulator.View
		s.ask(fmt.Sprintf("view?me=%d&chat=%[1]d&thread=0", me), nil, &v)
		for _, m := range v.Messages {
			if m.FromBot && m.Attachment != nil && m.Attachment.Kind == kind {
				return
			}
		}
		select {
		case <-tick.C:
		case <-limit:
			s.Fatalf("%d never got a %s; printed: %s; %+v", me, kind, s.heard, v.Messages)
		}
	}
}

// TestMediaInTheSimulator: a spoken question is answered by voice too, and a picture is made.
func TestMediaInTheSimulator(t *testing.T) {
	t.Parallel()
	s := tellWith(t, []string{
		"ZEPH_LLM_PROVIDERS_MAIN_TRANSCRIPTION_MODEL=whisper-1",
		"ZEPH_LLM_PROVIDERS_MAIN_TRANSCRIPTION_USD_PER_MINUTE=0.006",
		"ZEPH_LLM_PROVIDERS_MAIN_SPEECH_MODEL=tts-1", "ZEPH_LLM_PROVIDERS_MAIN_SPEECH_USD_PER_MCHAR=15",
		"ZEPH_LLM_PROVIDERS_MAIN_IMAGE_MODEL=gpt-image-1", "ZEPH_LLM_PROVIDERS_MAIN_IMAGE_USD=0.04",
	})
	voice := fields{"name": "v.ogg", "as": "voice", "data": vendortest.Opus("What is in the box?"), "duration": 2}
	s.ask("say", fields{"me": simulator.Ben, "chat": simulator.Ben, "files": []fields{voice}}, nil)
	s.see(simulator.Ben, simulator.Ben, 0, "I heard: “What is in the box?”")
	s.see(simulator.Ben, simulator.Ben, 0, "Three apples.")
	s.awaitFile(simulator.Ben, "voice")
	s.ask("say", fields{"me": simulator.Ben, "chat": simulator.Ben, "text": "draw a sunset over hills, wide"}, nil)
	s.see(simulator.Ben, simulator.Ben, 0, "Here it is.")
	s.awaitFile(simulator.Ben, "photo")
	s.shotSmall(alone(simulator.Ben), "media")
}

// TestSearchInTheSimulator: /search finds what was said before, also in a conversation that has ended.
func TestSearchInTheSimulator(t *testing.T) {
	t.Parallel()
	s := tell(t)
	s.ask("say", fields{"me": simulator.Ben, "chat": simulator.Ben, "text": "how shall we call the project?"}, nil)
	s.see(simulator.Ben, simulator.Ben, 0, "Heron it is")
	s.ask("say", fields{"me": simulator.Ben, "chat": simulator.Ben, "text": "and what about a logo?"}, nil)
	s.see(simulator.Ben, simulator.Ben, 0, "A heron in one line")
	s.ask("say", fields{"me": simulator.Ben, "chat": simulator.Ben, "text": "/search heron"}, nil)
	s.see(simulator.Ben, simulator.Ben, 0, "heron”", "Heron it is", "A heron in one line")
	s.shotSmall(alone(simulator.Ben), "search")
}
