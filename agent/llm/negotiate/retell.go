package negotiate

import (
	"context"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/history"
	"github.com/zephbot/zephbot/policy/lazyregexp"
)

// ofHistory recognises words about messages in a refusal whose status says that something else is wrong.
var ofHistory = lazyregexp.New(
	`(?i)\b(messages?|roles?|conversation|history|template|jinja|assistant|tool[ _-]?(calls?|use|results?|call_id)|` +
		`thinking|reasoning|signature|arguments)\b`,
)

// retellHistory is the last resort against a refusal of the history: this one request goes out with what was said
// before as plain text. Whoever asked keeps it so (llm.Response.Retold), because the reason for the refusal stays in
// the conversation. err is what everything else has led to; it is returned if there is nothing to retell, or if the
// server does not take plain text either.
func (t *talk) retellHistory(ctx context.Context, refusal *Refusal, err error) (*llm.Response, error) {
	c := refusal.Complaint
	if err != t.first || ctx.Err() != nil || t.steps >= Steps || c.Kind() != llm.Invalid && !ofHistory().MatchString(c.Message) { //nolint:errorlint // the very same
		return nil, err
	}
	plain := history.PlainText(t.req)
	if plain == nil {
		return nil, err
	}
	t.steps++
	t.req, t.lessons = plain, nil
	res, _, failed := t.sendOnce(ctx, t.n.Form())
	if failed != nil {
		return nil, err
	}
	res = t.addCharges(res)
	res.Retold = true
	t.n.o.Log.Warn().Str("provider", t.n.o.Provider).Str("model", t.n.o.Model).Str("refusal", t.n.o.Clean(c.Text())).
		Msg("the model's server refuses a conversation; it goes on as plain text")
	return res, nil
}
