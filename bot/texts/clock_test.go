package texts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
)

// TestClock: times are on the clock of a reader's language and region, of the country of their zone where the language
// does not say it, or on the one that they have chosen.
func TestClock(t *testing.T) {
	t.Parallel()
	load := func(name string) *time.Location {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		return zone
	}
	for _, tt := range []struct {
		language, zone string
		clock          texts.Clock
		want           string
	}{
		{"en-US", "UTC", "", "2:22 PM UTC"},
		{"en-us", "Europe/Berlin", "", "3:22 PM"},
		{"en-GB", "Europe/London", "", "14:22"},
		{"en-GB", "America/New_York", "", "09:22"}, // the tag says it
		{"en-AU", "Australia/Sydney", "", "1:22 AM"},
		{"en", "UTC", "", "14:22 UTC"}, // nobody knows where
		{"en", "Europe/Berlin", "", "15:22"},
		{"en", "Europe/London", "", "14:22"},
		{"en", "America/New_York", "", "9:22 AM"},
		{"en", "US/Eastern", "", "09:22"}, // no zone that people can choose
		{"en", "America/Indianapolis", "", "9:22 AM"},
		{"en", "Asia/Kolkata", "", "7:52 PM"},
		{"", "America/New_York", "", "09:22"},
		{"es", "Europe/Madrid", "", "15:22"},
		{"es", "America/Bogota", "", "9:22 a. m."},
		{"es-MX", "UTC", "", "2:22 p. m. UTC"},
		{"es-419", "UTC", "", "2:22 p. m. UTC"},
		{"de", "America/New_York", "", "09:22"}, // German has one clock
		{"de-CH", "Europe/Zurich", "", "15:22"},
		{"ru", "Europe/Moscow", "", "17:22"},
		{"fr-CA", "America/Toronto", "", "09:22"},
		{"pt-br", "UTC", "", "14:22 UTC"},
		{"zh-hans", "UTC", "", "14:22 UTC"},
		{"hi", "Asia/Kolkata", "", "7:52 PM"},
		{"../x", "UTC", "", "14:22 UTC"},
		{"de", "Europe/Berlin", texts.ClockTwelve, "3:22 PM"},
		{"en-US", "America/New_York", texts.ClockFull, "09:22"},
	} {
		w := texts.Words{Zone: load(tt.zone), Clock: tt.clock}
		if got := w.CardHint(tt.language, texts.Card{Expires: at, Short: "akun"}); !strings.Contains(got, " "+tt.want+" ") {
			t.Errorf("%q in %s, clock %q: %q, want %s", tt.language, tt.zone, tt.clock, got, tt.want)
		}
	}
	w := texts.Words{Zone: load("America/New_York")}
	midnight := time.Date(2026, 11, 24, 5, 0, 0, 0, time.UTC)
	for want, got := range map[string]string{
		"12:00 AM":               w.UsedUp("en-US", texts.Usage{Scope: texts.User, Unit: texts.Turns, Window: texts.Day, Used: 1, Limit: 1, Fresh: midnight}),
		"Nov 24, 2026, 12:00 PM": w.ScheduleTask("en-US", &texts.Task{Name: "tea", Next: midnight.Add(12 * time.Hour)}),
		"11:59 AM":               w.Decided("en-US", bot.Approval{State: bot.Denied, Decided: midnight.Add(12*time.Hour - time.Second)}),
		"Nov 24, 2026, 12:05 AM": w.Zoned("en-US", "America/New_York", midnight.Add(5*time.Minute).In(w.Zone), true, false),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q, want %s", got, want)
		}
	}
	if w := (texts.Words{Language: "en-US"}); !strings.Contains(w.CardHint("", texts.Card{Expires: at}), "2:22 PM") {
		t.Error("the language of the bot says its clock, where that of a reader is not known")
	}
}
