package texts

import (
	"slices"
	"testing"
)

// TestForms: each number has the form that its language demands, and files must have exactly these forms.
func TestForms(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		language string
		n        int
		want     string
	}{
		{"", 1, "one"},
		{"", 0, "other"},
		{"", 2, "other"},
		{"en", 1, "one"},
		{"de", 21, "other"},
		{"es", 1, "one"},
		{"es", 1_000_000, "other"},
		{"ru", 1, "one"},
		{"ru", 21, "one"},
		{"ru", 11, "many"},
		{"ru", 2, "few"},
		{"ru", 34, "few"},
		{"ru", 12, "many"},
		{"ru", 0, "many"},
		{"ru", 5, "many"},
		{"ru", -2, "few"},
		{"ru", 1_000_000_001, "one"},
	} {
		if got := formNames[formOf(tt.language, tt.n)]; got != tt.want {
			t.Errorf("%s %d: %s, want %s", tt.language, tt.n, got, tt.want)
		}
	}
	for language, want := range map[string][]int{
		"en": {oneForm, otherForm}, "es": {oneForm, otherForm}, "ru": {oneForm, fewForm, manyForm}, "ja": {otherForm}, "pl": {oneForm, fewForm, manyForm},
	} {
		if got := formsOf(language); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", language, got, want)
		}
	}
	if got := in("ru").Card.Steps.say(22); got != "22 шага" {
		t.Error(got)
	}
}
