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

// TestDayInWords: people say days in words of four languages, with a time or without.
func TestDayInWords(t *testing.T) {
	t.Parallel()
	zone, _, err := when.Zone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) // a Monday
	for want, list := range map[string][]string{
		"2026-11-30":       {"today", "Heute", "hoy", "сегодня"},
		"2026-12-01":       {"tomorrow", "morgen", "Mañana", "завтра", "Tuesday", "am Dienstag"},
		"2026-12-02":       {"the day after tomorrow", "übermorgen", "pasado mañana", "послезавтра", "in two days", "in 2 Tagen", "через два дня", "dentro de 2 días"},
		"2026-11-29":       {"yesterday", "gestern", "ayer", "вчера"},
		"2026-12-04":       {"Friday", "this friday", "on Fri.", "nächsten Freitag", "am kommenden Freitag", "el viernes que viene", "el próximo viernes", "в пятницу", "в эту пятницу"},
		"2026-12-11":       {"next friday", "в следующую пятницу"},
		"2026-12-07":       {"in a week", "in einer Woche", "en una semana", "через неделю", "Monday", "next Monday", "понедельник"},
		"2026-12-14":       {"in two weeks", "in zwei Wochen", "dentro de dos semanas", "через две недели", "in 14 days"},
		"2026-12-30":       {"in a month", "in einem Monat", "dentro de un mes", "через месяц"},
		"2026-12-05":       {"Dec 5", "5 Dec", "December 5th", "Dec. 5, 2026", "the 5th of December", "5. Dezember", "am 5. Dez.", "5 de diciembre", "el 5 de diciembre de 2026", "5 декабря", "5 декабря 2026 г.", "Sat, Dec 5", "5.12", "5.12.", "5.12.2026"},
		"2027-01-02":       {"Jan 2", "2 января", "2 de enero", "2. Jan."},
		"2028-02-29":       {"Feb 29"},
		"2026-12-04 15:00": {"friday 3pm", "Friday at 15:00", "Freitag um 15 Uhr", "nächsten Freitag, 15:00", "el viernes a las 15:00", "в пятницу в 15:00", "on friday at 15"},
		"2026-12-01 09:30": {"tomorrow at 9:30", "morgen um 9:30", "mañana a las 9:30", "завтра в 9:30", "Dec 1, 9:30"},
		"":                 {"friday fish", "Dec 32", "Feb 30 2026", "5 5", "next", "the", "morgen Abend", "5 december 20", "friday 25:00", "in 5 fridays"},
	} {
		for _, text := range list {
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
			if point, err := when.Point(text, now, zone); hour && (err != nil || !point.Equal(at)) {
				t.Errorf("a reminder reads %q as %v (%v), a question as %v", text, point, err, at)
			}
		}
	}
}
