package texts_test

import "github.com/zephbot/zephbot/agent/journal"

// edits says everything about messages that were changed or overtaken.
func edits(l string, m map[string][]string) {
	for _, said := range []string{"", "Half"} {
		m["Ended"] = append(m["Ended"], w.Ended(l, journal.ReasonOvertaken, said, journal.Stats{}, "7f3a"))
	}
	m["EditedLate"], m["AgainButton"], m["AgainRuns"] = []string{w.EditedLate(l)}, []string{w.AgainButton(l)}, []string{w.AgainRuns(l)}
	m["AgainNone"] = []string{w.AgainNone(l)}
	m["AgainNotYours"], m["AgainLost"], m["AgainAlready"] = []string{w.AgainNotYours(l)}, []string{w.AgainLost(l)}, []string{w.AgainAlready(l)}
	m["StartUnknown"] = []string{w.StartUnknown(l)}
}
