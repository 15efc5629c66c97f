package postgres

import "github.com/zephbot/zephbot/bot"

// charges stores them in one statement.
func (w *write) charges(list []bot.Charge) {
	if len(list) == 0 {
		return
	}
	var texts [4][]string
	var ns []int64
	for _, c := range list {
		for i, text := range []string{c.Key, c.Scope, c.Unit, c.Day} {
			texts[i] = append(texts[i], text)
		}
		ns = append(ns, c.N)
	}
	w.money.do(insertCharges, texts[0], texts[1], texts[2], texts[3], ns)
}
