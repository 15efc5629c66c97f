package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent/llm/wire"
)

func TestKey(t *testing.T) {
	t.Parallel()
	k := wire.Key("sk-very-secret")
	data, err := json.Marshal(map[string]any{"key": k})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(k), fmt.Sprintf("%s %v %q %x %#v %d", k, k, k, k, k, k), string(data), k.Clean("bad key sk-very-secret")} {
		if strings.Contains(text, "secret") || strings.Contains(text, "736b") {
			t.Errorf("printed: %s", text)
		}
	}
	if got := k.Clean(" a\nb\xff  c "); got != "a b\uFFFD c" {
		t.Errorf("cleaned %q", got)
	}
	if got := wire.Key("").Clean(strings.Repeat("ä", 600)); len([]rune(got)) != 501 {
		t.Errorf("%d characters", len([]rune(got)))
	}
}

func TestCap(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int64]error{3: wire.ErrTooBig, 5: wire.ErrTooBig, 6: nil} {
		data, err := io.ReadAll(wire.LimitBody(io.NopCloser(strings.NewReader("12345")), limit))
		if !errors.Is(err, want) || int64(len(data)) != min(limit, 5) {
			t.Errorf("limit %d: %q, %v", limit, data, err)
		}
	}
}

// TestCapDrains: the small rest of an answer is read, and a server that leaves its stream open is not waited for.
func TestCapDrains(t *testing.T) {
	t.Parallel()
	rest := strings.NewReader("data: [DONE]")
	body := wire.LimitBody(io.NopCloser(rest), 100)
	if _, err := io.ReadFull(body, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if err := body.Close(); err != nil || rest.Len() != 0 {
		t.Errorf("%d bytes are left, %v", rest.Len(), err)
	}
	long := strings.NewReader(strings.Repeat("x", 1<<20))
	if err := wire.LimitBody(io.NopCloser(long), 1<<20).Close(); err != nil || long.Len() < 1<<19 {
		t.Errorf("%d bytes are left of a long one, %v", long.Len(), err)
	}
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		began := time.Now()
		if err := wire.LimitBody(r, 100).Close(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took == 0 || took > 100*time.Millisecond {
			t.Errorf("waited %s", took)
		}
		if _, err := w.Write([]byte("more")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the body is still open: %v", err)
		}
	})
}
