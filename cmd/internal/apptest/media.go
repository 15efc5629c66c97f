package apptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/agent/llm/vendortest"
)

// mediaPart is the part that says which vendor hears, speaks and draws, and below it the keys of its provider.
const mediaPart = "media"

// openMedia starts the server that hears, speaks and draws, if the scenario wants one, and adds it to the configuration.
func (s *scene) openMedia() {
	text, ok := s.parts[mediaPart]
	if !ok {
		return
	}
	vendor, keys, _ := strings.Cut(text, "\n")
	server, err := vendortest.New(vendortest.Options{Vendor: "media/" + strings.TrimSpace(vendor)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(server.Close)
	s.media = server
	s.mediaConfig = fmt.Sprintf(
		"\n[[llm.providers]]\nname = \"main\"\nbase_url = %q\nmodel = \"none\"\napi_key = %q\n%s\n",
		server.URL(), server.Key(), keys,
	)
}

// turnMedia lets the next requests to the server fail, or all of them wait until they are answered again.
func (s *scene) turnMedia(words []string) error {
	switch {
	case s.media == nil:
		return fmt.Errorf("this scenario has no part %q", mediaPart)
	case words[0] == "fails":
		return s.media.Fail(words[1:]...)
	case words[0] == "waits":
		s.answerMedia = s.media.Hold()
	case words[0] == "answers" && s.answerMedia != nil:
		s.answerMedia()
	default:
		return errors.New("media fails KIND, media waits, media answers")
	}
	return nil
}

// produced waits until a server has made something of a text that matches: a recording or a picture.
func (s *scene) produced(field, want string) error {
	if s.media == nil {
		return fmt.Errorf("this scenario has no part %q", mediaPart)
	}
	var texts []string
	err := s.wait(func() (bool, error) {
		texts = s.askedMedia(field)
		if n := number(want); n > 0 || want == "0" {
			return len(texts) == n, nil
		}
		if len(texts) == 0 {
			return false, nil
		}
		return matches(texts[len(texts)-1], want)
	})
	if err != nil {
		return fmt.Errorf("%w; the server was given %q", err, texts)
	}
	return nil
}

// askedMedia returns the field of all requests that were answered, in their order.
func (s *scene) askedMedia(field string) []string {
	var list []string
	for _, e := range s.media.Exchanges() {
		var body map[string]any
		if e.Status >= 300 || json.Unmarshal(e.Body, &body) != nil {
			continue
		}
		if text, ok := body[field].(string); ok {
			list = append(list, text)
		}
	}
	return list
}
