package policy_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/pathrule"
)

// TestGrantLiftsReading: a standing approval lets a command that only seemed to read run as it needs to; a reading
// command beside it is not carried along unless its program can do nothing else.
func TestGrantLiftsReading(t *testing.T) {
	t.Parallel()
	set := newSet(t, policy.Options{Unasked: policy.UnaskedReading})
	status := offered(t, set, inWork(set, "git status", nil), policy.OfferExact)
	build := offered(t, set, inWork(set, "touch a", nil), policy.OfferExact)
	for _, tt := range []struct {
		text    string
		grants  [][]policy.Grant
		effect  policy.Effect
		reading bool
	}{
		{"git status", nil, policy.Allow, true},
		{"git status", [][]policy.Grant{status}, policy.Allow, false},
		{"touch a && cat b | head -3", [][]policy.Grant{build}, policy.Allow, false},
		{"touch a && sed -n 3p b", [][]policy.Grant{build}, policy.Ask, false},
		{"touch a && git status", [][]policy.Grant{build, status}, policy.Allow, false},
	} {
		if d := set.Decide(with(inWork(set, tt.text, nil), tt.grants...)); d.Effect != tt.effect || d.Reading != tt.reading {
			t.Errorf("%q with %d grants: %+v", tt.text, len(tt.grants), d)
		}
	}
}

// TestReadingWhatIsNotHidden: a command whose words do not say what it reads asks where the rules forbid to read
// something and the kernel does not hide it.
func TestReadingWhatIsNotHidden(t *testing.T) {
	t.Parallel()
	files, err := pathrule.New([]string{"**/secret*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	set := newSet(t, policy.Options{Unasked: policy.UnaskedConfined, Files: files})
	for text, bared := range map[string]policy.Effect{"awk 1 a": policy.Allow, "cat a": policy.Allow} {
		r := bash(text)
		r.Confined, r.InsidePaths, r.Dir, r.Bared = true, []string{"/work"}, "/work", true
		r.Files = map[string][]string{"/work/a": {"/work/a"}}
		if d := set.Decide(r); d.Effect != bared {
			t.Errorf("%q, hidden: %+v", text, d)
		}
		r.Bared = false
		if d := set.Decide(r); (d.Effect == policy.Allow) != (text == "cat a") {
			t.Errorf("%q, not hidden: %+v", text, d)
		}
	}
}
