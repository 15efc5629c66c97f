package config

import "reflect"

// NewProvider returns a provider of a type with the defaults of that.
func NewProvider(name, kind string) *Provider {
	p, _ := reflect.TypeAssert[Provider](newEntry(schema{}, reflect.TypeFor[Provider]()))
	p.Name, p.Type = name, kind
	if base, other := baseURLs()[kind]; other {
		p.BaseURL = base
	}
	return &p
}
