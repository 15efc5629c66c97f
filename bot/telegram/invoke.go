package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	tg "github.com/go-telegram/bot"
)

// invokeMethod calls a method with its parameters as JSON. The library writes a form with a part for each
// parameter, which costs several times as much for the message that every answer needs. Errors are those of the
// library, so that classify treats both alike.
func (c *Client) invokeMethod(ctx context.Context, method string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return c.requestMethod(ctx, method, "application/json", body, result)
}

// requestMethod calls a method with a body of a content type. The files that ctx has are put into the body.
func (c *Client) requestMethod(ctx context.Context, method, contentType string, body []byte, result any) error {
	address := strings.TrimRight(c.opts.APIURL, "/") + "/bot" + c.opts.Token + "/" + method
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err //nolint:wrapcheck // classify removes the token from it
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // the body is read to the end below: closing cannot lose anything
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", method, err)
	}
	var answer struct {
		OK          bool            `json:"ok"`
		Result      json.RawMessage `json:"result"`
		Description string          `json:"description"`
		ErrorCode   int             `json:"error_code"`
		Parameters  struct {
			RetryAfter      int `json:"retry_after"`
			MigrateToChatID int `json:"migrate_to_chat_id"`
		} `json:"parameters"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("answer of %s: %w: %s", method, err, raw)
	}
	if !answer.OK {
		return refusedError(answer.ErrorCode, answer.Description, answer.Parameters.RetryAfter,
			answer.Parameters.MigrateToChatID)
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		return fmt.Errorf("result of %s: %w", method, err)
	}
	return nil
}

// refusedError returns the library's error for a refusal of the Bot API. retryAfter is in seconds.
func refusedError(code int, description string, retryAfter, movedTo int) error {
	kinds := map[int]error{
		http.StatusForbidden: tg.ErrorForbidden, http.StatusBadRequest: tg.ErrorBadRequest,
		http.StatusUnauthorized: tg.ErrorUnauthorized,
		http.StatusNotFound:     tg.ErrorNotFound, http.StatusConflict: tg.ErrorConflict,
	}
	kind, known := kinds[code]
	switch {
	case code == http.StatusTooManyRequests:
		return &tg.TooManyRequestsError{Message: description, RetryAfter: retryAfter}
	case code == http.StatusBadRequest && movedTo != 0:
		return &tg.MigrateError{Message: description, MigrateToChatID: movedTo}
	case known:
		return fmt.Errorf("%w, %s", kind, description)
	default:
		return fmt.Errorf("telegram answered %d: %s", code, description)
	}
}
