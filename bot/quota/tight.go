package quota

import (
	"fmt"

	"github.com/zephbot/zephbot/agent/spend"
)

// TooTight says why a limit lets no turn begin with the models on offer, and after "; " what to do about it; "" = it
// does not. limit is in the unit, USD in millionths.
func TooTight(of Of, limit int64, offers spend.Offers) string {
	usd, tokens := offers.LongestAnswers()
	switch {
	case limit <= 0:
		return ""
	case of.Unit == USD && usd != nil && Micro(usd.USD) > limit:
		how, cure := "", "raise it, or lower max_tokens of that model"
		if usd.Unlimited {
			how = ", whose server takes no limit of it,"
			cure = "raise it, or choose a model whose answers can be limited"
		}
		return fmt.Sprintf("$%.4g a %s is less than the $%.4g that one answer of %s%s may cost (%d tokens), "+
			"which are set aside before each call, so every turn is refused; %s",
			float64(limit)/1e6, of.Window, usd.USD, usd.Model, how, usd.Tokens, cure)
	case of.Unit == Tokens && tokens != nil && int64(tokens.Tokens) > limit:
		return fmt.Sprintf("%d tokens a %s are fewer than the %d that one answer of %s may have, "+
			"which are set aside before each call, so every turn is refused; raise it, or lower max_tokens "+
			"of that model",
			limit, of.Window, tokens.Tokens, tokens.Model)
	default:
		return ""
	}
}
