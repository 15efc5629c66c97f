package deliver

import (
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
)

const (
	// slower is how long a message grows until the time between two edits has doubled, and longer the length of its
	// text in UTF-16 units: the more there is to read, the less it matters when the rest comes.
	slower = 20 * time.Second
	longer = 2000
	// slowest limits by how much the interval grows.
	slowest = 2.5
	// mostTight limits by how many halves the interval grows because the budget is low.
	mostTight = 4
	// mostPoll is the longest delay before an edit is tried again that the budget did not admit.
	mostPoll = 2 * time.Second
)

// pace adapts the time between two edits to the budget of the chat, which other turns use too: an edit that the budget
// did not admit slows down the next ones, so that several growing messages share it instead of one of them using it up
// and standing still afterwards.
type pace struct {
	refused int // times that the budget did not admit the next edit
	tight   int // of the budget, 0 to mostTight
}

// wait returns when to try again after the budget did not admit an edit.
func (p *pace) wait() time.Duration {
	p.refused++
	return min(budgetPoll<<min(p.refused-1, 8), mostPoll)
}

// after returns the time from an edit to the next one. begun is when the turn began.
func (p *pace) after(interval time.Duration, shown *bot.Content, begun, now time.Time) time.Duration {
	switch {
	case p.refused > 0:
		p.tight = min(p.tight+1, mostTight)
	case p.tight > 0:
		p.tight--
	}
	p.refused = 0
	grown := 1 + max(now.Sub(begun).Seconds()/slower.Seconds(), float64(render.Length(shown.Text))/longer)
	return time.Duration(float64(interval) * min(grown, slowest) * (1 + float64(p.tight)/2))
}
