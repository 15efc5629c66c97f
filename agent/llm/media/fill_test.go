package media_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/media"
)

// post is a request with a body.
func post(t *testing.T, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// sent is the content that is sent in place of a mark.
func sent(t *testing.T, c *media.Contents, mark string) string {
	t.Helper()
	req := post(t, mark)
	if err := c.Fill(req); err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil || int64(len(body)) != req.ContentLength {
		t.Errorf("%d bytes were announced, %d came; %v", req.ContentLength, len(body), err)
	}
	data, err := base64.StdEncoding.DecodeString(string(body))
	if err != nil {
		return string(body)
	}
	return string(data)
}

// TestFill: contents of any size take the places of their marks, in any order and as often as these occur, and once more
// when the request is sent again.
func TestFill(t *testing.T) {
	t.Parallel()
	rules := &media.Rules{Accepts: llm.Accepts{Image: true}, Types: []string{"image/png"}, Image: 1 << 20, Other: 1, Total: 4 << 20}
	contents := map[string]string{}
	var parts []llm.Part
	for i, n := range []int{0, 1, 2, 3, 12<<10 - 8, 12 << 10, 100_001} { // around the pieces in which it is encoded
		name := fmt.Sprint("p", i)
		contents[name] = png + strings.Repeat("x", n)
		parts = append(parts, picture(name, int64(len(contents[name]))))
	}
	c, err := media.Read(t.Context(), asking(contents, parts...), rules)
	if err != nil {
		t.Fatal(err)
	}
	body, want := "{", "{"
	for i := range parts {
		p := parts[(i*3)%len(parts)]
		content, _, ok := c.Of(&p)
		if !ok || content.Size != len(contents[p.Hash]) {
			t.Fatalf("%s: %+v, %v", p.Hash, content, ok)
		}
		body += `"` + content.URL() + `","` + content.Data + `",`
		encoded := base64.StdEncoding.EncodeToString([]byte(contents[p.Hash]))
		want += `"data:image/png;base64,` + encoded + `","` + encoded + `",`
	}
	req := post(t, body+"}")
	if err := c.Fill(req); err != nil {
		t.Fatal(err)
	}
	again, err := req.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []io.ReadCloser{req.Body, again} {
		got, err := io.ReadAll(iotest.OneByteReader(body))
		if err = errors.Join(err, body.Close()); err != nil || string(got) != want+"}" || req.ContentLength != int64(len(got)) {
			t.Errorf("%d bytes, %d announced, want %d; %v", len(got), req.ContentLength, len(want)+1, err)
		}
		if _, err := body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("after its end: %v", err)
		}
	}
	plain := post(t, "x")
	before := plain.Body
	if err := (*media.Contents)(nil).Fill(plain); err != nil || plain.Body != before {
		t.Errorf("a request without contents was changed: %v", err)
	}
}

// TestFillFails: a content that is gone, breaks off or has another length when it is sent fails the request, and what
// was opened is closed.
func TestFillFails(t *testing.T) {
	t.Parallel()
	whole := png + strings.Repeat("x", 50)
	for name, second := range map[string]func() (io.Reader, error){
		"gone": func() (io.Reader, error) { return nil, errors.New("swept") },
		"breaks off": func() (io.Reader, error) {
			return io.MultiReader(strings.NewReader(whole[:20]), iotest.ErrReader(io.ErrNoProgress)), nil
		},
		"shorter": func() (io.Reader, error) { return strings.NewReader(whole[:20]), nil },
		"longer":  func() (io.Reader, error) { return strings.NewReader(whole + "x"), nil },
	} {
		opened, closed := 0, 0
		req := asking(nil, picture("a", int64(len(whole))))
		req.Open = func(context.Context, string) (io.ReadCloser, error) {
			opened++
			r, err := io.Reader(strings.NewReader(whole)), error(nil)
			if opened > 1 {
				r, err = second()
			}
			if err != nil {
				closed++
				return nil, err
			}
			return closing{r, func() { closed++ }}, nil
		}
		c, err := media.Read(t.Context(), req, sees)
		if err != nil {
			t.Fatal(err)
		}
		content, _, _ := c.Of(&req.Messages[0].Parts[0])
		out := post(t, "before "+content.Data+" after")
		if err := c.Fill(out); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(out.Body); err == nil {
			t.Errorf("%s: sent %q", name, got)
		}
		if err := out.Body.Close(); err != nil || opened != 2 || closed != 2 {
			t.Errorf("%s: opened %d, closed %d; %v", name, opened, closed, err)
		}
	}
}

type closing struct {
	io.Reader
	done func()
}

func (c closing) Close() error {
	c.done()
	return nil
}

// TestFillHoldsNothing: what a request with a large picture allocates does not depend on the size of the picture.
func TestFillHoldsNothing(t *testing.T) { //nolint:paralleltest // it counts bytes
	const size, most = 9 << 20, 1 << 20
	rules := &media.Rules{Accepts: llm.Accepts{Image: true}, Types: []string{"image/png"}, Image: size, Other: 1, Total: size}
	data := append([]byte(png), make([]byte, size-len(png))...)
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			req := asking(nil, picture("a", size))
			req.Open = func(context.Context, string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
			c, err := media.Read(b.Context(), req, rules)
			if err != nil {
				b.Fatal(err)
			}
			content, _, _ := c.Of(&req.Messages[0].Parts[0])
			out := post(t, content.URL())
			if err := c.Fill(out); err != nil {
				b.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, out.Body); err != nil || n != out.ContentLength {
				b.Fatal(n, err)
			}
		}
	})
	if got := result.AllocedBytesPerOp(); got > most {
		t.Errorf("%d KB are allocated for a picture of %d KB", got>>10, size>>10)
	}
}
