package texts_test

import (
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/texts"
)

// quotas adds what is said of quotas: of each unit, window and scope.
func quotas(l string, m map[string][]string) {
	var all []texts.Usage
	for _, unit := range []string{texts.Turns, texts.Tokens, texts.USD} {
		for _, window := range []texts.Window{texts.Day, texts.Month} {
			for _, scope := range []texts.Scope{texts.User, texts.Chat, texts.Bot} {
				u := texts.Usage{Scope: scope, Unit: unit, Window: window, Used: 1_500_000, Limit: 2_000_000, Fresh: at}
				m["UsedUp"] = append(m["UsedUp"], w.UsedUp(l, u))
				m["Near"] = append(m["Near"], w.Near(l, u))
				all = append(all, u)
			}
			for _, limit := range []int64{0, 7} {
				s := texts.Setting{Level: w.Level(l, texts.User, "42", ""), Unit: unit, Window: window, Limit: limit, By: "Ann", At: at}
				m["QuotaSet"] = append(m["QuotaSet"], w.QuotaSet(l, s))
				m["QuotaUnset"] = append(m["QuotaUnset"], w.QuotaUnset(l, s))
				m["QuotaSettings"] = append(m["QuotaSettings"], w.QuotaSettings(l, []texts.Setting{s}))
			}
		}
	}
	m["Quota"] = []string{w.Quota(l, all), w.Quota(l, []texts.Usage{{Scope: texts.User, Unit: texts.Turns, Window: texts.Day, Used: 1, Fresh: at}})}
	m["QuotaSettings"] = append(m["QuotaSettings"], w.QuotaSettings(l, nil))
}

func TestQuotaSentences(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	use := func(scope texts.Scope, unit string, window texts.Window, used, limit int64) texts.Usage {
		fresh := at
		if window == texts.Month {
			fresh = first
		}
		return texts.Usage{Scope: scope, Unit: unit, Window: window, Used: used, Limit: limit, Fresh: fresh}
	}
	for _, tt := range []struct{ got, want string }{
		{
			w.UsedUp("en", use(texts.User, texts.Turns, texts.Day, 20, 20)),
			"Your 20 turns for today are used up. It starts afresh at 14:22 UTC. /quota shows the details; an admin can raise them.",
		},
		{
			w.UsedUp("en", use(texts.Chat, texts.USD, texts.Month, 20, 2_500_000)),
			"The $2.50 of this chat for this month is used up. It starts afresh on 1 Apr 2026. /quota shows the details; an admin can raise them.",
		},
		{w.UsedUp("de", use(texts.Bot, texts.Tokens, texts.Day, 1, 1)), "Meine 1 Token für heute ist verbraucht. Es beginnt um 14:22 UTC neu."},
		{
			w.UsedUp("es", use(texts.Chat, texts.USD, texts.Month, 20, 2_500_000)),
			"El límite de este chat de este mes está agotado: 2,50\u00a0$. Empieza de nuevo el 1 abr 2026. /quota muestra los detalles; un administrador puede subirlo.",
		},
		{w.UsedUp("ru", use(texts.Bot, texts.Turns, texts.Day, 3, 3)), "Мой лимит на сегодня исчерпан: 3 запроса. Счёт начнётся заново в 14:22 UTC."},
		{w.Near("ru", use(texts.User, texts.Turns, texts.Month, 18, 25)), "Вы израсходовали в этом месяце 18 / 25 запросов; счёт начнётся заново с 1 апр. 2026."},
		{w.Quota("ru", []texts.Usage{use(texts.User, texts.Turns, texts.Day, 1, 21)}), "Сегодня (счёт начнётся заново в 14:22 UTC)\nВы ▓░░░░░░░░░ 1 / 21 запрос"},
		{w.Near("en", use(texts.User, texts.USD, texts.Day, 310_000, 1_000_000)), "You have used $0.31 of $1.00 today; it starts afresh at 14:22 UTC."},
		{w.Near("de", use(texts.User, texts.Turns, texts.Month, 18, 20)), "Du hast diesen Monat 18 von 20 Anfragen verbraucht. Es beginnt am 1. Apr. 2026 neu."},
		{
			w.Quota("en", []texts.Usage{
				use(texts.User, texts.Turns, texts.Day, 18, 20), use(texts.Bot, texts.Turns, texts.Day, 3, 0), use(texts.User, texts.USD, texts.Day, 310_000, 1_000_000),
				use(texts.Chat, texts.USD, texts.Month, 4_100_000, 20_000_000),
			}),
			"Today (starts afresh at 14:22 UTC)\nYou ▓▓▓▓▓▓▓▓▓░ 18 / 20 turns\nThe bot: 3 turns, no limit\nYou ▓▓▓▓░░░░░░ $0.31 / $1.00\n" +
				"This month (starts afresh on 1 Apr 2026)\nThis chat ▓▓▓░░░░░░░ $4.10 / $20",
		},
		{
			w.QuotaSettings("en", []texts.Setting{{Level: w.Level("en", texts.User, "42", ""), Unit: texts.USD, Window: texts.Day, Limit: 2_500_000, By: "Ben", At: at}}),
			"Limits that were set in the chat:\n• person 42: $2.50 a day (Ben, 4 Mar 2026, 14:22 UTC)",
		},
	} {
		if tt.got != tt.want {
			t.Errorf("%q\nwant %q", tt.got, tt.want)
		}
	}
}
