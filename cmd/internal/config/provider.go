package config

import (
	"reflect"
	"slices"

	"github.com/zephbot/zephbot/agent/llm/dialect"
)

// Keys returns the keys of a provider in the order in which they are asked; a single empty one if there is none.
func (p *Provider) Keys() []Secret {
	var keys []Secret
	for _, key := range append([]Secret{p.APIKey}, p.APIKeys...) {
		if key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return []Secret{""}
	}
	return keys
}

// NewPreset returns a provider of a preset with the defaults of that; false if there is no such preset.
func NewPreset(name, preset string) (*Provider, bool) {
	d, known := dialect.Named(preset)
	kind := "openai"
	if d.Wire == "anthropic" {
		kind = "anthropic"
	}
	p := NewProvider(name, kind)
	p.Preset, p.BaseURL = preset, d.BaseURL
	return p, known
}

// NewProvider returns a provider of a type with the defaults of that.
func NewProvider(name, kind string) *Provider {
	p, _ := reflect.TypeAssert[Provider](newEntry(reflect.TypeFor[Provider]()))
	p.Name, p.Type = name, kind
	if base, other := baseURLs()[kind]; other {
		p.BaseURL = base
	}
	return &p
}
