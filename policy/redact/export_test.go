package redact

import "slices"

// Thorough is r without the first look for a sign of assignment, for tests.
func (r *Redactor) Thorough() *Redactor {
	slow := *r
	slow.index.entries = map[uint16][]entry{}
	for key, list := range r.index.entries {
		list = slices.Clone(list)
		for i := range list {
			if list[i].rule != nil {
				whole := *list[i].rule
				whole.assign = false
				list[i].rule = &whole
			}
		}
		slow.index.entries[key] = list
	}
	return &slow
}
