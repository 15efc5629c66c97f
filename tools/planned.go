package tools

// A plan is what a model shows of a longer task: the steps in the arguments of its calls (act.Plans).

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a plan: its entries, and the characters of each.
const (
	MostPlanned    = 20
	LongestPlanned = 200
)

// PlanStatus says how far an entry of a plan is.
type PlanStatus string

// The statuses.
const (
	PlanPending    PlanStatus = "pending"
	PlanInProgress PlanStatus = "in_progress"
	PlanCompleted  PlanStatus = "completed"
)

// PlanEntry is a step of a plan.
type PlanEntry struct {
	Text   string     `json:"text"`
	Status PlanStatus `json:"status,omitempty"` // "" = pending
}

// Plan is the arguments of a call that shows a plan.
type Plan struct {
	Entries []PlanEntry `json:"entries"`
}

// Checked returns the entries, each of them one line. The error says what is wrong.
func (in Plan) Checked() ([]PlanEntry, error) {
	if len(in.Entries) > MostPlanned {
		return nil, Errorf(InvalidParameters, "entries: at most %d; sum up what belongs together", MostPlanned)
	}
	list := make([]PlanEntry, len(in.Entries))
	for i, e := range in.Entries {
		list[i] = PlanEntry{Text: strings.Join(strings.Fields(e.Text), " "), Status: cmp.Or(e.Status, PlanPending)}
		switch {
		case list[i].Text == "":
			return nil, Errorf(InvalidParameters, "entries[%d].text is empty", i)
		case utf8.RuneCountInString(list[i].Text) > LongestPlanned:
			return nil, Errorf(
				InvalidParameters, "entries[%d].text has more than %d characters; write a few words", i, LongestPlanned,
			)
		case !slices.Contains([]PlanStatus{PlanPending, PlanInProgress, PlanCompleted}, list[i].Status):
			return nil, Errorf(InvalidParameters, "entries[%d].status is %q", i, e.Status)
		}
	}
	return list, nil
}

// ReadPlan returns the plan in the arguments of a call. The error says why they are none.
func ReadPlan(raw json.RawMessage) ([]PlanEntry, error) {
	var in Plan
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	return in.Checked()
}

// sign returns what is before an entry.
func (s PlanStatus) sign() string {
	switch s {
	case PlanCompleted:
		return "☑"
	case PlanInProgress:
		return "▶"
	case PlanPending:
	}
	return "☐"
}

// Checklist returns a plan as at most so many lines (3 or more). Of a longer one, those around the step in progress are
// shown; what was completed before them and what is left after them is counted.
func Checklist(list []PlanEntry, most int) []string {
	first, end := shownPart(list, max(most, 3))
	var lines []string
	if first > 0 {
		lines = append(lines, fmt.Sprintf("%s +%d", PlanCompleted.sign(), first))
	}
	for _, e := range list[first:end] {
		lines = append(lines, e.Status.sign()+" "+e.Text)
	}
	if rest := len(list) - end; rest > 0 {
		lines = append(lines, fmt.Sprintf("%s +%d", PlanPending.sign(), rest))
	}
	return lines
}

// shownPart returns which part of a plan fits: as much as possible, with the first step that is not completed, and the
// one before it if there is room. A line that counts stands for two steps and more.
func shownPart(list []PlanEntry, most int) (first, end int) {
	all := len(list)
	at := slices.IndexFunc(list, func(e PlanEntry) bool { return e.Status != PlanCompleted })
	if at < 0 {
		at = max(0, all-1)
	}
	for size := all; size > 0; size-- {
		for back := range size {
			first = max(0, at-(back+1)%size)
			end = min(all, first+size)
			lines := end - first
			if first > 0 {
				lines++
			}
			if end < all {
				lines++
			}
			if lines <= most && first != 1 && all-end != 1 {
				return first, end
			}
		}
	}
	return 0, all
}
