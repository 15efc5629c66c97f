//go:build unix

package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

// wire speaks the Bot API as simply as possible.
type wire struct {
	http http.Client
	base string
}

func (w *wire) call(ctx context.Context, method string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.http.Do(req)
	if err != nil {
		return err
	}
	envelope := struct {
		OK     bool `json:"ok"`
		Result any  `json:"result"`
	}{Result: result}
	err = json.NewDecoder(resp.Body).Decode(&envelope)
	if err = errors.Join(err, resp.Body.Close()); err == nil && !envelope.OK {
		err = fmt.Errorf("%s: status %d", method, resp.StatusCode)
	}
	return err
}

type update struct {
	ID      int64 `json:"update_id"`
	Message *struct {
		Text string `json:"text"`
		Chat struct {
			ID int64 `json:"id"`
		} `json:"chat"`
	} `json:"message"`
}

// echoBot is the simplest possible bot: it polls, asks the model once for each message and sends the answer.
func echoBot(ctx context.Context, _ string, w *world, model string) error {
	transport := &http.Transport{MaxIdleConnsPerHost: 512}
	defer transport.CloseIdleConnections()
	m, err := openai.New(openai.Options{Name: "main", BaseURL: model, Key: "opens-nothing", Model: "mirror", HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		return err
	}
	api := &wire{http: http.Client{Transport: transport}, base: w.url + "/bot" + w.fake.Token() + "/"}
	var wg sync.WaitGroup
	defer wg.Wait()
	var offset int64
	for ctx.Err() == nil {
		var updates []update
		err := api.call(ctx, "getUpdates", map[string]any{"offset": offset, "timeout": 45}, &updates)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, u := range updates {
			offset = u.ID + 1
			if u.Message == nil {
				continue
			}
			wg.Go(func() {
				res, err := m.Chat(ctx, &llm.Request{Messages: []llm.Message{{Role: llm.User, Text: u.Message.Text}}}, nil)
				if err == nil {
					var sent json.RawMessage
					// a failure shows as a missing answer
					_ = api.call(ctx, "sendMessage", map[string]any{"chat_id": u.Message.Chat.ID, "text": res.Text}, &sent)
				}
			})
		}
	}
	return nil
}
