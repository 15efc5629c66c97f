package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Address identifies where a server is: its URL, or the words of its command line and the directory where it runs.
// Whoever approved a tool of the server approved it at this address. It is a hash, since addresses may hold
// credentials. "" = there is no such server.
func (m *Manager) Address(id string) string {
	s, err := m.lookup(id)
	if err != nil {
		return ""
	}
	h := sha256.New()
	for _, part := range append([]string{s.cfg.transport(), s.cfg.URL, s.cfg.Dir, s.cfg.Command}, s.cfg.Args...) {
		fmt.Fprintf(h, "%d:%s", len(part), part) // with its length, so that no two addresses read the same
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
