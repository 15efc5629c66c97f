package web

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"strings"
)

// slack is how much larger a compressed body may be than the text in it, in bytes. Without a limit on the wire, an
// endless stream of empty gzip members would be read until the timeout.
const slack = 64 << 10

// errWire ends a body that is too large in compressed form.
var errWire = errors.New("too much compressed data")

// readBody reads at most limit bytes, counted after decompression. more reports that there were more.
func readBody(r io.Reader, encoding string, limit int) (body []byte, more bool, err error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(&bounded{r: r, left: int64(limit) + slack})
		if errors.Is(err, io.EOF) {
			return nil, false, nil // no body, as with 204
		}
		if err != nil {
			return nil, false, damaged(err)
		}
		r = z
	default:
		return nil, false, failed(nil, "The server sent the page in a compression that was not asked for.",
			"Use another page.")
	}
	body, err = io.ReadAll(io.LimitReader(r, int64(limit)+1))
	switch {
	case len(body) > limit:
		return body[:limit], true, nil
	case err == nil, errors.Is(err, gzip.ErrHeader) && len(body) > 0: // data after a complete stream is padding
		return body, false, nil
	case errors.Is(err, errWire):
		return body, true, nil
	default:
		return nil, false, damaged(err)
	}
}

// damaged converts errors about invalid compressed data for the model, and returns other errors unchanged.
func damaged(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		return failed(err, "The server sent damaged data.", "Use another page.")
	}
	return err
}

// bounded fails with errWire after a number of bytes.
type bounded struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errWire
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	return n, err
}
