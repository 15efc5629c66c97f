package texts_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
)

// clockTime is a time of day with what stands behind it.
var clockTime = regexp.MustCompile(`\d\d:\d\d( UTC)?`)

func day(scope texts.Scope) texts.Usage {
	return texts.Usage{Scope: scope, Unit: texts.Turns, Window: texts.Day, Used: 1, Limit: 2, Fresh: at}
}

// TestZone: every time of every sentence is in the one zone that is set, and says UTC where it is that.
func TestZone(t *testing.T) {
	t.Parallel()
	berlin := time.FixedZone("Europe/Berlin", 3600)
	for _, tt := range []struct {
		zone *time.Location
		want string
	}{{nil, "14:22 UTC"}, {time.UTC, "14:22 UTC"}, {berlin, "15:22"}, {time.FixedZone("", -11*3600), "03:22"}} {
		w := texts.Words{Zone: tt.zone}
		for _, l := range w.Languages() {
			all := strings.Join([]string{
				w.CardHint(l, texts.Card{Expires: at, Short: "akun"}), w.Decided(l, bot.Approval{State: bot.Denied, Decided: at}), w.UsedUp(l, day(texts.User)),
				w.UsedUp(l, day(texts.Chat)), w.UsedUp(l, day(texts.Bot)), w.Near(l, day(texts.User)), w.Near(l, day(texts.Chat)),
				w.Quota(l, []texts.Usage{day(texts.User)}),
				w.Rules(l, []texts.StoredRule{{By: "Ann", At: at}}, 1, 1, ""),
			}, "\n")
			times := clockTime.FindAllString(all, -1)
			for _, got := range times {
				if got != tt.want {
					t.Errorf("%v, %s: %q, want %q", tt.zone, l, got, tt.want)
				}
			}
			if len(times) != 9 {
				t.Errorf("%v, %s: %d times in\n%s", tt.zone, l, len(times), all)
			}
		}
	}
}

// TestLanguageOfTheBot is said where a reader's is not known.
func TestLanguageOfTheBot(t *testing.T) {
	t.Parallel()
	german := texts.Words{Language: "de"}
	if got := german.NoQuestion(""); !strings.HasPrefix(got, "Hier wartet") {
		t.Error(got)
	}
	if got := german.NoQuestion("en"); !strings.HasPrefix(got, "Nothing is waiting") {
		t.Error(got)
	}
}

// TestZoneOfTheMachine: "Local" is the zone of the operator's machine, and no name of one: people read what it is called
// there.
func TestZoneOfTheMachine(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	w := texts.Words{Zone: berlin}
	winter := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, language := range w.Languages() {
		for name, got := range map[string]string{
			"settings":            w.Settings(language, texts.Settings{Zone: "Local", Now: winter}),
			"settings of a group": w.Settings(language, texts.Settings{Zone: "Local", Now: winter, Group: true}),
			"timezone":            w.Zoned(language, "Local", winter.In(berlin), false, false),
		} {
			if strings.Contains(got, "Local") || !strings.Contains(got, "CET") {
				t.Errorf("%s %s: %s", language, name, got)
			}
		}
	}
}
