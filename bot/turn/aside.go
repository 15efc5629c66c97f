package turn

import (
	"encoding/json"
	"time"

	"github.com/zephbot/zephbot/bot"
)

const (
	// AsideBucket holds what was spent for a turn besides the answers of its model: an Aside for each run of the turn.
	AsideBucket = "aside"
	asideFor    = 30 * 24 * time.Hour
)

// Aside is what other calls of models have cost during a turn: those of the judge, summaries, corrections, embeddings,
// transcription and sampling.
type Aside struct {
	Calls  int     `json:"calls"`
	Input  int     `json:"in,omitempty"` // tokens
	Output int     `json:"out,omitempty"`
	USD    float64 `json:"usd,omitempty"`
}

// Fact returns what is stored of a run of a turn.
func (a Aside) Fact(turn, run string, now time.Time) bot.Fact {
	raw, err := json.Marshal(a)
	if err != nil { // an amount that is no number
		raw = []byte(`{}`)
	}
	return bot.Fact{Bucket: AsideBucket, Key: turn + "/" + run, Value: string(raw), Expires: now.Add(asideFor)}
}

// SumAside adds up what is stored of the runs of a turn.
func SumAside(facts []bot.Fact) Aside {
	var sum Aside
	for i := range facts {
		var a Aside
		if json.Unmarshal([]byte(facts[i].Value), &a) != nil {
			continue // of another version
		}
		sum = Aside{sum.Calls + a.Calls, sum.Input + a.Input, sum.Output + a.Output, sum.USD + a.USD}
	}
	return sum
}
