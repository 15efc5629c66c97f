package providers

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot/learnt"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// ServerHash returns the hash of what the server of a provider is known by: its address and its key;
// "" = there is no such provider.
func ServerHash(cfg *config.Config, provider string) string {
	for _, p := range cfg.LLM.Providers {
		if p.Name == provider {
			parts := []string{p.Type, Address(p)}
			for _, key := range p.Keys() {
				parts = append(parts, key.Reveal())
			}
			sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
			return hex.EncodeToString(sum[:8])
		}
	}
	return ""
}

// learnWindow keeps how many tokens a provider has shown to take.
func (m *Set) learnWindow(provider string, tokens int) {
	m.Learnt.LearnWindow(provider, m.modelOf(provider), tokens)
}

// learntWindow returns how many tokens a provider has shown to take, in this or another process; 0 = nothing is known.
func (m *Set) learntWindow(provider string) int {
	if known := m.Learnt.Recall(provider, m.modelOf(provider)); known != nil {
		return known.Window
	}
	return 0
}

// modelOf returns the model of a provider; "" = there is no such provider.
func (m *Set) modelOf(provider string) string {
	if p := m.named(provider); p != nil {
		return p.Model
	}
	return ""
}

// SetAside lists what the servers of the configured models refuse.
func (m *Set) SetAside() []texts.SetAside {
	var places [][2]string
	for _, p := range m.cfg.LLM.Providers {
		places = append(places, [2]string{p.Name, p.Model})
	}
	return m.Learnt.Aside(places)
}

// Fenced reports whether the model of a provider is sent no tools, by the configuration, by its server's dialect or by
// what was learnt, so that it writes its calls as text.
func (m *Set) Fenced(provider string) bool {
	p := m.named(provider)
	if m.opts.Provider != nil || p == nil || p.Type == "offline" {
		return false
	}
	if !p.ToolUse || slices.Contains(DialectOf(*p).Params.Omit, learnt.AllTools) {
		return true
	}
	l := m.Learnt.Recall(p.Name, p.Model)
	return l != nil && slices.Contains(l.Omit, learnt.AllTools)
}
