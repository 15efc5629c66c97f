package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Address returns a hash of where a server is: its URL, or its command line and working directory. An approval of one
// of its tools holds for this address only. It is a hash because addresses may contain credentials. The result is ""
// when there is no such server.
func (m *Manager) Address(id string) string {
	s, err := m.lookupServer(id)
	if err != nil {
		return ""
	}
	h := sha256.New()
	for _, part := range append([]string{s.cfg.transportName(), s.cfg.URL, s.cfg.Dir, s.cfg.Command}, s.cfg.Args...) {
		fmt.Fprintf(h, "%d:%s", len(part), part) // prefixed by its length, so that no two addresses collide
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
