package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
)

// maxTranscript limits the answer of a transcription, in bytes: several hours of speech.
const maxTranscript = 1 << 20

// Transcribe writes down what is said in a recording (POST /audio/transcriptions of OpenAI's API, which most compatible
// servers have). Its name tells the server its format by its ending. The recording is sent while it is read; size is
// its length in bytes, 0 = unknown. length is how long it lasts, for the price, if the
// server does not tell it; 0 = unknown. usd is what it cost at the
// configured price, also when the answer could not be read. Errors are *llm.Error or those of ctx.
func (p *Provider) Transcribe(
	ctx context.Context, name string, recording io.Reader, size int64, length time.Duration,
) (text string, usd float64, err error) {
	if p.o.TranscriptionModel == "" {
		return "", 0, &llm.Error{
			Kind:     llm.Invalid,
			Provider: p.o.Name,
			Err:      errors.New("no transcription_model is configured"),
		}
	}
	body, contentType, total, err := p.recordingBody(name, recording, size)
	if err != nil {
		return "", 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.o.BaseURL+"/audio/transcriptions", body)
	if err != nil {
		return "", 0, p.garbledError("nothing: the request cannot be made")
	}
	req.ContentLength = total
	req.Header.Set("Content-Type", contentType)
	if p.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+string(p.o.Key))
	}
	x := p.newExchange()
	x.limit = maxTranscript
	answer, heard, err := p.readTranscript(x, req)
	if ctxErr := ctx.Err(); err != nil && ctxErr != nil {
		return "", 0, fmt.Errorf("model %s: %w", p.o.Name, ctxErr)
	}
	if x.status == http.StatusOK {
		if heard > 0 { // what the sender of a recording says of its length may be wrong
			length = heard
		}
		usd = length.Minutes() * p.o.TranscriptionUSDPerMinute
	}
	if err != nil {
		err = p.classifyError(x, err)
		if x.complaint != nil || llm.KindOf(err) == llm.WrongAddress { // nothing was written down
			usd = 0
		}
		return "", usd, err
	}
	return answer, usd, nil
}

// recordingBody makes the form around a recording. total is its length, -1 = unknown.
func (p *Provider) recordingBody(
	name string, recording io.Reader, size int64,
) (body io.Reader, contentType string, total int64, err error) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	err = errors.Join(w.WriteField("model", p.o.TranscriptionModel), w.WriteField("response_format", "json"))
	if err == nil {
		_, err = w.CreateFormFile("file", name)
	}
	if err != nil {
		return nil, "", 0, p.garbledError("nothing: the form cannot be made")
	}
	head := bytes.Clone(form.Bytes())
	form.Reset()
	if err := w.Close(); err != nil {
		return nil, "", 0, p.garbledError("nothing: the form cannot be made")
	}
	tail := form.Bytes()
	if total = -1; size > 0 {
		total = int64(len(head)+len(tail)) + size
		recording = io.LimitReader(recording, size)
	}
	return io.MultiReader(bytes.NewReader(head), recording, bytes.NewReader(tail)), w.FormDataContentType(), total, nil
}

// readTranscript makes the request and reads the answer. heard is the length that is
// charged; 0 = the server does not say.
func (p *Provider) readTranscript(x *exchange, req *http.Request) (text string, heard time.Duration, err error) {
	resp, err := x.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = resp.Body.Close() }() // it is read to its end
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", 0, fmt.Errorf("read a transcript: %w", err)
	}
	var answer struct {
		Text  *string `json:"text"`
		Usage struct {
			Seconds float64 `json:"seconds"`
		} `json:"usage"`
	}
	err = json.Unmarshal(raw, &answer)
	if answer.Text == nil && !bytes.Contains(x.head.Bytes(), []byte(`"text"`)) {
		if other := p.strayError(x, x.head.Bytes(), true); other != nil {
			return "", 0, other
		}
	}
	if err != nil {
		return "", 0, fmt.Errorf("read a transcript: %w", err)
	}
	if s := answer.Usage.Seconds; s > 0 && s < 1e6 {
		heard = time.Duration(s * float64(time.Second))
	}
	if answer.Text == nil {
		return "", heard, p.garbledError("a transcription without text")
	}
	return *answer.Text, heard, nil
}
