package apptest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// hooksListen is where a scenario has hooks be called. Each process listens at a port of its own.
const hooksListen = "127.0.0.1:8444"

// hookSecret is the secret of the hooks of scenarios.
const hookSecret = "known-to-the-caller"

// hookCalls is where hooks are called, and the newest call.
type hookCalls struct {
	path, body, signature string // of the newest call

	mu        sync.Mutex
	addresses map[string]string // by process
}

type listen func(ctx context.Context, address string) (net.Listener, error)

// listening opens the listeners of a process as another function does, but for that of the hooks.
func (h *hookCalls) listening(process string, others listen) listen {
	return func(ctx context.Context, address string) (net.Listener, error) {
		switch {
		case address == hooksListen:
			address = "127.0.0.1:0"
		case others != nil:
			return others(ctx, address)
		default:
			process = ""
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err == nil && process != "" {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.addresses == nil {
				h.addresses = map[string]string{}
			}
			h.addresses[process] = l.Addr().String()
		}
		return l, err
	}
}

// callHook plays a line that calls a hook.
func (s *scene) callHook(words []string, line string) error {
	secret := hookSecret
	switch {
	case len(words) > 0 && words[0] == "forged":
		secret, words = "made-up-by-somebody", words[1:]
	case len(words) > 0 && words[0] == "told":
		secret, words = s.toldSecret(), words[1:]
	}
	if len(words) < 2 {
		return errors.New("call NAME STATUS BODY")
	}
	if words[0] != "again" {
		_, body, _ := strings.Cut(line, " "+words[1]+" ")
		s.hooks.path, s.hooks.body = "/hooks/"+words[0], body
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = io.WriteString(mac, s.hooks.body) // a hash takes everything
		s.hooks.signature = "sha256=" + hex.EncodeToString(mac.Sum(nil))
	}
	var got int
	var text string
	err := s.wait(func() (bool, error) {
		var err error
		got, text, err = s.sendCall()
		return err == nil && (got != http.StatusServiceUnavailable || words[1] == strconv.Itoa(got)), nil
	})
	if err == nil && strconv.Itoa(got) != words[1] {
		err = fmt.Errorf("the answer is %d %s", got, text)
	}
	return err
}

// madeSecret finds the secret of a hook that was made in a chat.
var madeSecret = regexp.MustCompile(`whsec_[A-Za-z0-9+/]+=*`)

// toldSecret returns the secret that ann was told last.
func (s *scene) toldSecret() (secret string) {
	for _, m := range s.fake.Chat(ann) {
		if found := madeSecret.FindString(m.Text); found != "" {
			secret = found
		}
	}
	return secret
}

// sendCall sends the newest call to a process that runs.
func (s *scene) sendCall() (status int, text string, err error) {
	s.hooks.mu.Lock()
	address := s.hooks.addresses[s.chosen().name]
	s.hooks.mu.Unlock()
	req, err := http.NewRequestWithContext(
		s.t.Context(), http.MethodPost, "http://"+address+s.hooks.path, strings.NewReader(s.hooks.body),
	)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Hub-Signature-256", s.hooks.signature)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}
