package openai

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/complaint"
	"github.com/zephbot/zephbot/agent/llm/media"
	"github.com/zephbot/zephbot/agent/llm/negotiate"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

var errRefused = errors.New("server refused the request")

// exchange performs one request. The SDK loses the headers and the body of errors, and encodes messages and tools
// slowly. exchange keeps the former and inserts the latter, encoded beforehand, into the request. Not safe for
// concurrent use.
type exchange struct {
	client   *http.Client
	messages []byte // list that replaces its placeholder; nil = no replacement
	tools    []byte // likewise
	contents *media.Contents
	form     *negotiate.Form // of a conversation
	names    *wire.Names     // of the tools
	stream   bool
	limit    int64 // of the body of an answer

	sent      bool
	departure wire.Departure
	pieces    [][]byte // of the request's body, before contents are filled in
	repeated  bool     // not sent, because the same request was refused before
	url       *url.URL // of the request
	status    int
	header    http.Header
	body      []byte               // of a refused request, as far as it is read
	complaint *complaint.Complaint // what the server said instead of an answer
	refusal   bool                 // rejected because of its content
	frames    *frames              // of the stream that is read; nil = none yet
	mark      []byte               // of it: what every event contains
	head      *bytes.Buffer        // the beginning of an answer that is no stream; nil = none yet

	think func(text string)             // gets thoughts that the server keeps apart from the text
	hear  func(res *llm.Response) error // adds the words of the answer, once all have come

	listen, pause func() // start and stop counting the server's silence
}

func (p *Provider) newExchange() *exchange {
	return &exchange{client: p.client, limit: wire.MaxBody, listen: func() {}, pause: func() {}}
}

// resetForm prepares the exchange for the same conversation in another form. Only for a request that was
// rejected before it was answered.
func (x *exchange) resetForm() {
	x.sent, x.status, x.header, x.body, x.messages, x.tools, x.pieces = false, 0, nil, nil, nil, nil, nil
	x.frames = nil
	x.departure.Reset()
	x.listen()
}

// rejectedWith returns the server's message if it rejected the request as invalid.
func (x *exchange) rejectedWith(err error) (complaint.Complaint, bool) {
	if !errors.Is(err, errRefused) || (x.status != http.StatusBadRequest && x.status != http.StatusNotFound) {
		return complaint.Complaint{}, false
	}
	return complaint.Read(x.status, x.header, x.body, time.Now()), true
}

// mustRespond notes that the SDK itself refuses tools on chat completions, as the server would.
func (x *exchange) mustRespond() {
	x.complaint = &complaint.Complaint{Status: http.StatusBadRequest, Message: "use v1/responses"}
	x.pieces = [][]byte{[]byte(`{"messages":[]}`)}
}

// Do implements the SDK's HTTPDoer.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	if err := x.fillRequest(req); err != nil {
		return nil, err
	}
	if x.form != nil {
		if err := x.form.Check(x.pieces...); err != nil {
			x.repeated = true
			return nil, err //nolint:wrapcheck // for the negotiator
		}
	}
	if err := x.contents.Fill(req); err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "zephbot")
	x.sent, x.url = true, req.URL
	resp, err := x.client.Do(x.departure.Watch(req))
	if err != nil {
		return nil, err //nolint:wrapcheck // classified and cleaned of addresses by classify
	}
	x.status, x.header = resp.StatusCode, resp.Header
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		x.body = complaint.Body(resp.Body)
		_ = resp.Body.Close()
		return nil, errRefused
	}
	limited := wire.LimitBody(resp.Body, x.limit)
	resp.Body = limited
	if x.stream {
		x.frames = newFrames(limited, x.mark)
		resp.Body = x.frames
	} else {
		x.head = &bytes.Buffer{}
		resp.Body = keeping{limited, x.head}
	}
	return resp, nil
}

// keeping is a body whose beginning is kept while it is read.
type keeping struct {
	io.ReadCloser
	head *bytes.Buffer
}

// Read implements io.Reader.
func (k keeping) Read(p []byte) (int, error) {
	n, err := k.ReadCloser.Read(p)
	if room := complaint.MaxStray - k.head.Len(); room > 0 {
		k.head.Write(p[:min(n, room)])
	}
	return n, err //nolint:wrapcheck // io.EOF must stay bare
}
