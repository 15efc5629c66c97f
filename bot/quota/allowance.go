package quota

import (
	"encoding/json"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// Allowance returns the fact that sets a limit, as /quota set does: of a person by id, or of the chat of a place
// ("chat"). what is turns or tokens a day or month, such as turns/day. ok is false for anything else. A Meter learns of
// it by Follow.
func Allowance(place bot.Place, who, what, limit, by, name string, at time.Time) (f bot.Fact, ok bool) {
	s := setting{stored: stored{By: by, Name: name, At: at.UTC().Truncate(time.Second)}}
	if s.level, ok = levelOf(place, who); !ok {
		return f, false
	}
	if s.of, ok = of(what); !ok || s.of.Unit == USD { // money needs prices, which /quota set checks
		return f, false
	}
	if s.Limit, ok = amount(limit, s.of.Unit); !ok || s.Limit == 0 {
		return f, false
	}
	raw, err := json.Marshal(s.stored)
	return bot.Fact{Bucket: Bucket, Key: s.key(), Value: string(raw)}, err == nil
}
