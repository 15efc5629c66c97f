package policy_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/netrule"
)

// TestForeign: with text in a conversation that nobody there has written, only what keeps text for later conversations
// asks, whatever a rule or a grant allows, and no standing approval is offered for it.
func TestForeign(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{Permissions: map[string][]policy.Permission{"write": {{Pattern: "*", Action: policy.Allow}}}})
	allowing := newSet(t, policy.Options{Permissions: map[string][]policy.Permission{"memory_save": {{Pattern: "*", Action: policy.Allow}}}})
	denying := newSet(t, policy.Options{Permissions: map[string][]policy.Permission{"memory_save": {{Pattern: "*", Action: policy.Deny}}}})
	full := newSet(t, policy.Options{Level: policy.Full})
	save := policy.Request{Tool: "memory_save", Inputs: []string{"tea"}}
	tests := []struct {
		name    string
		set     *policy.Set
		request policy.Request
		source  string
		want    policy.Effect
	}{
		{"remembers", s, save, "https://page.example", policy.Ask},
		{"remembers, and a rule allows it", allowing, save, "https://page.example", policy.Ask},
		{"remembers, and a grant allows it", s, withGrant(save, "memory_save", "tea"), "https://page.example", policy.Ask},
		{"remembers what is forbidden", denying, save, "https://page.example", policy.Deny},
		{"remembers where nothing is asked", full, save, "https://page.example", policy.Allow},
		{"remembers the person's own words", s, save, "", policy.Allow},
		{"writes", s, policy.Request{Tool: "write", Inputs: []string{"/a"}}, "https://page.example", policy.Allow},
		{"fetches", s, policy.Request{Tool: "fetch"}, "https://page.example", policy.Allow},
		{"schedules", s, policy.Request{Tool: "schedule_periodic"}, "https://page.example", policy.Allow},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.request.Foreign = tt.source
			got := tt.set.Decide(tt.request)
			if got.Effect != tt.want || got.Effect == policy.Ask && !strings.Contains(got.Reason.String(), tt.source) {
				t.Errorf("got %+v, want %s", got, tt.want)
			}
			if offers := tt.set.Offers(tt.request); len(offers) > 0 {
				t.Errorf("offers %+v", offers)
			}
		})
	}
}

// TestForeignOffers: foreign text, which every output of a command is, takes a standing approval from those calls only
// that could carry it out or keep it.
func TestForeignOffers(t *testing.T) {
	t.Parallel()
	asking := newSet(t, policy.Options{AllowNetwork: true, Permissions: map[string][]policy.Permission{
		"write": {{Pattern: "*", Action: policy.Ask}}, "fetch": {{Pattern: "*", Action: policy.Ask}}, "memory_save": {{Pattern: "*", Action: policy.Ask}},
	}})
	given := policy.Address{URL: "https://a.example/", Origin: netrule.Given}
	fetch := policy.Request{Tool: "fetch", Inputs: []string{"https://a.example/"}, Addresses: []policy.Address{given}}
	elsewhere := policy.Request{Tool: "fetch", Inputs: []string{"https://a.example/?q=1"}, Addresses: []policy.Address{built("https://a.example/?q=1")}}
	for _, tt := range []struct {
		name    string
		request policy.Request
		offered bool
	}{
		{"a command", inWork(asking, "touch made.txt", nil), true},
		{"a file", policy.Request{Tool: "write", Inputs: []string{"/work/a"}, InsidePaths: []string{"/work"}}, true},
		{"an address of the person", fetch, true},
		{"another address", elsewhere, false},
		{"a network command", inWork(asking, "curl https://a.example/", nil), false},
		{"memory", policy.Request{Tool: "memory_save", Inputs: []string{"tea"}}, false},
	} {
		tt.request.Foreign = "https://page.example"
		if d, offers := asking.Decide(tt.request), asking.Offers(tt.request); d.Effect != policy.Ask || len(offers) > 0 != tt.offered {
			t.Errorf("%s: %s, offers %+v, want some: %t", tt.name, d.Effect, offers, tt.offered)
		}
		if tt.request.Suspicious = "https://page.example"; len(asking.Offers(tt.request)) > 0 {
			t.Errorf("%s: offers after flagged text", tt.name)
		}
	}
}
