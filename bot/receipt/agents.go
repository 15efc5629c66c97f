package receipt

import (
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot/texts"
)

// agentsOf returns the sub-agents of a turn, in the order in which its model began them, and where each is in the list,
// by the call that began it.
func agentsOf(entries []journal.Entry) (list []texts.ReceiptAgent, at map[string]int) {
	names := map[string]string{}
	for i := range entries {
		if e := &entries[i]; e.Child != "" && e.Kind == journal.UserEntry {
			names[e.Child] = e.Speaker
		}
	}
	at = map[string]int{}
	for i := range entries {
		for _, u := range entries[i].Uses {
			if name, ok := names[u.Call]; ok {
				at[u.Call] = len(list)
				list = append(list, texts.ReceiptAgent{Name: name})
			}
		}
	}
	return list, at
}

// agentCosts returns what the sub-agent of an entry took so far, and adds what its model took for the entry;
// nil = the entry belongs to none.
func agentCosts(r *texts.Receipt, at map[string]int, e *journal.Entry) *texts.ReceiptAgent {
	i, ok := at[e.Child]
	if !ok {
		return nil
	}
	a := &r.Agents[i]
	if e.Model != "" || e.Usage.Total() > 0 {
		a.Models++
	}
	a.Input, a.Output, a.USD = a.Input+e.Usage.Input, a.Output+e.Usage.Output, a.USD+e.USD
	return a
}
