package when_test

import (
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools/schedule/when"
)

// TestDay: days and times are read by the clock of the reader's zone, past ones too.
func TestDay(t *testing.T) {
	t.Parallel()
	zone, _, err := when.Zone("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC) // the first of December there
	for text, want := range map[string]string{
		"today": "2026-12-01", " Tomorrow ": "2026-12-02", "2026-12-24": "2026-12-24", "2026-1-2": "2026-01-02",
		"24.12.2030": "2030-12-24", "24. 12.": "2026-12-24", "30.11.": "2027-11-30", "1.12.": "2026-12-01", "29.2.": "2028-02-29",
		"tomorrow 09:30": "2026-12-02 09:30", "2020-05-01T10:00": "2020-05-01 10:00", "2026-12-24T10:00Z": "2026-12-24 19:00", "+2h": "2026-12-01 07:00",
		"31.2.": "", "2026-02-30": "", "0000-01-01": "", "99.99.2026": "", "soon": "", "": "", "12/24/2026": "", "today 01:00": "",
	} {
		at, hour, err := when.Day(text, now, zone)
		got := at.In(zone).Format("2006-01-02")
		if hour {
			got = at.In(zone).Format("2006-01-02 15:04")
		}
		if err != nil {
			got = ""
		}
		if got != want {
			t.Errorf("%q: %q, want %q (%v)", text, got, want, err)
		}
	}
}
