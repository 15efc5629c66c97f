package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/agent/llm"
)

// snapshot is the response object as a whole.
type snapshot struct {
	Status     string            `json:"status"`
	Model      string            `json:"model"`
	Error      json.RawMessage   `json:"error"`
	Output     []json.RawMessage `json:"output"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		Input   float64 `json:"input_tokens"`
		Output  float64 `json:"output_tokens"`
		Details *struct {
			Cached float64 `json:"cached_tokens"`
		} `json:"input_tokens_details"`
	} `json:"usage"`
}

// takeSnapshot handles the response object: at the beginning for its model, at the end for everything.
func (r *report) takeSnapshot(s *snapshot) error {
	r.model = cmp.Or(s.Model, r.model)
	switch s.Status {
	case "queued", "in_progress", "created":
		return nil
	case "completed", "incomplete":
	default: // failed, cancelled
		f := reportedFailure(s.Error)
		if f.complaint.Text() == "" {
			return endedError("the server ended the answer with status " + s.Status)
		}
		return f
	}
	r.status = s.Status
	if s.Incomplete != nil {
		r.reason = s.Incomplete.Reason
	}
	if u := s.Usage; u != nil {
		r.usage = llm.Usage{Input: toTokens(u.Input), Output: toTokens(u.Output)}
		if u.Details != nil {
			r.usage.CachedInput = toTokens(u.Details.Cached)
		}
	}
	return r.takeOutput(s.Output)
}

// takeOutput handles the final list of items. If there is one, it decides which calls there are and in which order,
// because events may have been lost.
func (r *report) takeOutput(list []json.RawMessage) error {
	var final []*item
	for n, raw := range list {
		var o outputItem
		if err := json.Unmarshal(raw, &o); err != nil {
			return r.garbledError(err)
		}
		if o.Type != messageItem && o.Type != callItem && o.Type != reasoningItem {
			continue
		}
		i := r.knownItem(&o, n, final)
		if i == nil {
			i = &item{kind: o.Type}
		}
		i.index = n
		r.fillItem(i, &o, raw, true)
		final = append(final, i)
	}
	if len(final) > maxItems {
		return &llm.Error{Kind: llm.Invalid, Err: fmt.Errorf("answer has more than %d items", maxItems)}
	}
	if slices.ContainsFunc(final, func(i *item) bool { return i.kind == callItem }) {
		r.items = final
		return nil
	}
	// Some servers omit calls, or everything, from the list.
	for _, i := range final {
		if !slices.Contains(r.items, i) {
			r.items = append(r.items, i)
		}
	}
	slices.SortStableFunc(r.items, func(a, b *item) int { return cmp.Compare(a.index, b.index) })
	return nil
}

// knownItem finds the item of the list among those of the events: by id, by call id, by position.
func (r *report) knownItem(o *outputItem, place int, used []*item) *item {
	matches := []func(i *item) bool{
		func(i *item) bool { return o.ID != "" && i.id == o.ID },
		func(i *item) bool { return o.CallID != "" && i.callID == o.CallID },
		func(i *item) bool { return i.index == place && (o.CallID == "" || i.callID == "") },
	}
	for _, match := range matches {
		for _, i := range r.items {
			if i.kind == o.Type && match(i) && !slices.Contains(used, i) {
				return i
			}
		}
	}
	return nil
}
