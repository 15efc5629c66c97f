package agent

import (
	"crypto/sha256"
	"fmt"
	"regexp"

	"github.com/zephbot/zephbot/agent/journal"
)

// volatile matches the part of a result that differs between equal results: the id under which a long output was
// stored.
var volatile = regexp.MustCompile(`overflow:[0-9a-fA-F-]{36}`)

// repeatedSteps reports whether the last n steps of the turn were the same, call by call and result by result (seed 003:
// doom loop), and returns their output as a person sees it.
func repeatedSteps(entries []journal.Entry, n int) (text string, ok bool) {
	if n <= 0 {
		return "", false
	}
	var sums []string
	var last string
	for i, e := range entries {
		if e.Kind != journal.AssistantEntry {
			continue
		}
		h := sha256.New()
		results := resultsOf(&entries[i], entries[i+1:])
		for _, u := range e.Uses {
			fmt.Fprintf(h, "use %q %s\n", u.Name, u.Args)
		}
		for _, u := range e.Uses {
			fmt.Fprintf(h, "result %q\n", volatile.ReplaceAllString(withoutReflection(results[u.Call]), "overflow:"))
			last = shownResult(results[u.Call])
		}
		sums = append(sums, string(h.Sum(nil)))
	}
	if len(sums) < n {
		return "", false
	}
	for _, sum := range sums[len(sums)-n:] {
		if sum != sums[len(sums)-1] {
			return "", false
		}
	}
	return last, true
}
