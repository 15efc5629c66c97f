package texts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/texts"
)

// TestNumbersAreWrittenAsReadersDo: money, numbers, sizes and days in the forms of the reader's language and region.
func TestNumbersAreWrittenAsReadersDo(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 30, 14, 2, 0, 0, time.UTC)
	place := func(name string) *time.Location {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		return zone
	}
	const nbsp = "\u00a0"
	for _, tt := range []struct {
		language, zone                 string
		money, small, tokens, size, at string
	}{
		{"en", "", "$0.12", "<$0.0001", "12,345 tokens", "1.5 MB", "30 Nov 2026, 14:02 UTC"},
		{"en-US", "", "$0.12", "<$0.0001", "12,345 tokens", "1.5 MB", "Nov 30, 2026, 2:02 PM UTC"},
		{"en-GB", "", "$0.12", "<$0.0001", "12,345 tokens", "1.5 MB", "30 Nov 2026, 14:02 UTC"},
		{"en", "Europe/Berlin", "$0.12", "<$0.0001", "12,345 tokens", "1.5 MB", "30 Nov 2026, 15:02"},
		{"de", "", "0,12" + nbsp + "$", "unter 0,0001" + nbsp + "$", "12.345 Tokens", "1,5 MB", "30. Nov. 2026, 14:02 UTC"},
		{"es-ES", "", "0,12" + nbsp + "$", "menos de 0,0001" + nbsp + "$", "12.345 tokens", "1,5 MB", "30 nov 2026, 14:02 UTC"},
		{"es-MX", "", "$0.12", "menos de $0.0001", "12.345 tokens", "1.5 MB", "30 nov 2026, 2:02 p. m. UTC"},
		{"ru", "", "0,12" + nbsp + "$", "меньше 0,0001" + nbsp + "$", "12" + nbsp + "345 токенов", "1,5 МБ", "30 нояб. 2026, 14:02 UTC"},
		{"xx", "", "$0.12", "<$0.0001", "12,345 tokens", "1.5 MB", "30 Nov 2026, 14:02 UTC"},
	} {
		w := texts.Words{}
		if tt.zone != "" {
			w.Zone = place(tt.zone)
		}
		used := texts.Usage{Scope: texts.User, Unit: texts.Tokens, Window: texts.Day, Limit: 12_345}
		for want, got := range map[string]string{
			tt.money: w.Money(tt.language, 0.12), tt.small: w.Money(tt.language, 0.00001),
			tt.size: w.Bytes(tt.language, 1_500_000), tt.at: w.Moment(tt.language, day),
		} {
			if got != want {
				t.Errorf("%s %s: %q, want %q", tt.language, tt.zone, got, want)
			}
		}
		if got := w.UsedUp(tt.language, used); !strings.Contains(got, tt.tokens) {
			t.Errorf("%s: %q lacks %q", tt.language, got, tt.tokens)
		}
	}
}
