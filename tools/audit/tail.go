package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Tail returns the last n lines of a log, oldest first, without their newlines.
func Tail(r io.Reader, n int) ([]string, error) {
	if n <= 0 {
		return nil, nil
	}
	var ring []string
	in := bufio.NewReader(r)
	for {
		raw, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		if raw != "" {
			if len(ring) == n {
				ring = append(ring[:0], ring[1:]...)
			}
			ring = append(ring, string(bytes.TrimSuffix([]byte(raw), []byte("\n"))))
		}
		if err != nil {
			return ring, nil
		}
	}
}
