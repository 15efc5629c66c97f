package when_test

import (
	"archive/zip"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools/schedule/when"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, _, err := when.Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	stamp, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return stamp
}

// TestChanges: what each expression does on the days on which clocks change.
func TestChanges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, cron, zone, from string
		want                   []string
	}{
		{"a time that does not exist: once, right after the gap", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{
			"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00",
		}},
		{"two times in one gap: once", "15,45 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{
			"2026-03-29T03:00:00+02:00", "2026-03-30T02:15:00+02:00",
		}},
		{"a time that exists twice: the first", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{
			"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00",
		}},
		{"asked between the two: not again", "30 2 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", []string{"2026-10-26T02:30:00+01:00"}},
		{"the same time of day on both sides", "0 9 * * *", "Europe/Berlin", "2026-03-28T07:00:00Z", []string{
			"2026-03-28T09:00:00+01:00", "2026-03-29T09:00:00+02:00",
		}},
		{"every half hour keeps its distance: forward", "*/30 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", []string{
			"2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00",
		}},
		{"every half hour keeps its distance: back", "*/30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", []string{
			"2026-10-25T02:30:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:00:00+01:00",
		}},
		{"a gap at midnight", "0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", []string{"2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"}},
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", []string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		{"with seconds", "30 0 9 * * 1", "Asia/Kolkata", "2026-11-23T00:00:00Z", []string{"2026-11-23T09:00:30+05:30", "2026-11-30T09:00:30+05:30"}},
		{"either of two days", "0 12 13 * 5", "UTC", "2026-11-07T00:00:00Z", []string{"2026-11-13T12:00:00Z", "2026-11-20T12:00:00Z"}},
		{"the last day of the month", "0 12 L * *", "UTC", "2026-02-01T00:00:00Z", []string{"2026-02-28T12:00:00Z", "2026-03-31T12:00:00Z"}},
		{"the last Friday", "0 9 * * 5L", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-27T09:00:00Z", "2026-12-25T09:00:00Z"}},
		{"the last Friday by name", "0 9 * * friL", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-27T09:00:00Z", "2026-12-25T09:00:00Z"}},
		{"the last Friday with a sign", "0 9 * * FRI#L", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-27T09:00:00Z", "2026-12-25T09:00:00Z"}},
		{"the last Sunday as 7", "0 9 * * 7L", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-29T09:00:00Z", "2026-12-27T09:00:00Z"}},
		{"Mondays and the last Friday", "0 9 * * 1,5L", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-02T09:00:00Z", "2026-11-09T09:00:00Z", "2026-11-16T09:00:00Z", "2026-11-23T09:00:00Z", "2026-11-27T09:00:00Z", "2026-11-30T09:00:00Z"}},
		{"the second Friday", "0 9 ? * 5#2", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-13T09:00:00Z", "2026-12-11T09:00:00Z"}},
		{"the second Friday by name", "0 9 * * fri#2", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-13T09:00:00Z", "2026-12-11T09:00:00Z"}},
		{"the last working day", "0 9 LW * ?", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-30T09:00:00Z", "2026-12-31T09:00:00Z"}},
		{"nearest to the 15th", "0 9 15W * *", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-16T09:00:00Z", "2026-12-15T09:00:00Z"}},
		{"three days before the last", "0 9 L-3 * *", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-27T09:00:00Z", "2026-12-28T09:00:00Z"}},
		{"names in any case", "0 9 * nov-DEC Mon", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-02T09:00:00Z", "2026-11-09T09:00:00Z"}},
		{"a leap day", "0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := when.ParseCron(tt.cron)
			if err != nil {
				t.Fatal(err)
			}
			z, now := zone(t, tt.zone), at(t, tt.from)
			for _, want := range tt.want {
				if now = c.Next(now, z); now.In(z).Format(time.RFC3339) != want {
					t.Fatalf("next is %s, want %s", now.In(z).Format(time.RFC3339), want)
				}
			}
		})
	}
}

// TestYears: over years with both changes, a daily time comes once on each day, and one in every hour once an hour.
func TestYears(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Europe/Berlin", "America/New_York", "America/Santiago", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kolkata", "Pacific/Apia"} {
		z := zone(t, name)
		for _, spec := range []string{"30 2 * * *", "0 0 * * *", "59 23 * * *"} {
			c, err := when.ParseCron(spec)
			if err != nil {
				t.Fatal(err)
			}
			now := at(t, "2025-12-31T23:30:00Z")
			days := map[string]int{}
			for range 3 * 365 {
				now = c.Next(now, z)
				days[now.In(z).Format(time.DateOnly)]++
			}
			if len(days) != 3*365 {
				t.Errorf("%s in %s: %d days with a run of %d", spec, name, len(days), 3*365)
			}
		}
		c, err := when.ParseCron("7 * * * *")
		if err != nil {
			t.Fatal(err)
		}
		now := c.Next(at(t, "2026-01-01T00:00:00Z"), z)
		for range 365 * 24 {
			next := c.Next(now, z)
			if gap := next.Sub(now); gap != time.Hour && gap != 30*time.Minute && gap != 90*time.Minute {
				t.Fatalf("in %s: %s after %s", name, next, now)
			}
			now = next
		}
	}
}

func TestCronRefused(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"":                            "not 0",
		"not_a_cron":                  `no "_"`,
		"@daily":                      `no "@"`,
		"TZ=UTC 0 9 * * *":            `no "="`,
		"CRON_TZ=../../etc 0 9 * * *": `no "_"`,
		"0 9 * *":                     "not 4",
		"0 0 0 9 * * 2026":            "not 7",
		"60 9 * * *":                  `the minute "60" of the cron expression is not possible: it may be 0 to 59; lists`,
		"0 25 * * *":                  `the hour "25"`,
		"0 0 30 2 *":                  "never comes",
		"0 0 31 2,4,6,9,11 *":         "never comes",
		"* * * * * *":                 "more often than once a minute",
		"*/30 * * * * *":              "more often than once a minute",
		"0,30 0 9 * * *":              "more often than once a minute",
		"0 9 * * \x00":                "no ",
		"0 9 * * é":                   "no ",
		"9999999999999999999 9 * * *": `the minute "9999999999999999999"`,
		strings.Repeat("*/1,", 500):   "not 1",
		"1-9999999999 * * * *":        `the minute "1-9999999999"`,
		"5-1/0 * * * *":               `the minute "5-1/0"`,
		"70 0 9 * * *":                `the second "70"`,
		"0 9 32 * *":                  `the day of month "32" of the cron expression is not possible: it may be 1 to 31, L (the last day)`,
		"0 9 32W * *":                 `the day of month "32W"`,
		"0 9 WL * *":                  `the day of month "WL"`,
		"0 9 * 13 *":                  `the month "13"`,
		"0 9 * JANUARY *":             `the month "JANUARY"`,
		"0 9 * * 8L":                  `the day of week "8L" of the cron expression is not possible: it may be 0 to 7 (0 and 7 are Sunday) or SUN to SAT, 5#2 (the second Friday) or 5L`,
		"0 9 * * 5#6":                 `the day of week "5#6"`,
		"0 9 * * L5":                  `the day of week "L5"`,
		"0 9 * * 5LL":                 `the day of week "5LL"`,
		"0 9 * * funday":              `the day of week "funday"`,
		"0 9 # * *":                   `the day of month "#"`,
		"0 9 L-99 2 *":                "",
	} {
		_, err := when.ParseCron(spec)
		if err != nil && (strings.Contains(err.Error(), "strconv") || strings.Contains(err.Error(), "parse") || strings.Contains(err.Error(), "option")) {
			t.Errorf("%q: these are a programmer's words: %v", spec, err)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", spec, err, want)
		}
	}
}

func TestPoint(t *testing.T) {
	t.Parallel()
	now := at(t, "2026-11-23T11:00:30Z") // 12:00:30 in Berlin
	for text, want := range map[string]string{
		"+2m":                       "2026-11-23T11:02:30Z",
		"+1h30m":                    "2026-11-23T12:30:30Z",
		"+ 1d 2h":                   "2026-11-24T13:00:30Z",
		"in 5 minutes":              "2026-11-23T11:05:30Z",
		"In an hour":                "2026-11-23T12:00:30Z",
		"in 2 weeks":                "2026-12-07T11:00:30Z",
		"today 14:00":               "2026-11-23T13:00:00Z",
		"tomorrow 09:30":            "2026-11-24T08:30:00Z",
		"tomorrow at 9:30":          "2026-11-24T08:30:00Z",
		"3pm":                       "2026-11-23T14:00:00Z",
		"at 3:30 p.m.":              "2026-11-23T14:30:00Z",
		"Tomorrow 9:05:10 AM":       "2026-11-24T08:05:10Z",
		"12am":                      "2026-11-23T23:00:00Z",
		"12:00 pm":                  "2026-11-24T11:00:00Z", // noon is over
		"12:01 pm":                  "2026-11-23T11:01:00Z",
		"15h":                       "2026-11-23T14:00:00Z",
		"tomorrow 15h30":            "2026-11-24T14:30:00Z",
		"15:30 h":                   "2026-11-23T14:30:00Z",
		"15 Uhr":                    "2026-11-23T14:00:00Z",
		"15 uhr 30":                 "2026-11-23T14:30:00Z",
		"11:00":                     "2026-11-24T10:00:00Z", // is over: tomorrow
		"2026-12-24 3pm":            "2026-12-24T14:00:00Z",
		"2026-12-24 at 15h":         "2026-12-24T14:00:00Z",
		"2026-11-24T09:00:00Z":      "2026-11-24T09:00:00Z",
		"2026-11-24T09:00":          "2026-11-24T08:00:00Z",
		"2026-11-24 09:00:10.5":     "2026-11-24T08:00:10Z",
		"2026-11-24T09:00:00+05:30": "2026-11-24T03:30:00Z",
		"2026-11-24T09:00-0300":     "2026-11-24T12:00:00Z",
		"2026-11-24T09:00+02":       "2026-11-24T07:00:00Z",
		"2027-03-28T02:30":          "2027-03-28T01:00:00Z", // does not exist: right after the gap
		"2027-10-31T02:30":          "2027-10-31T00:30:00Z", // exists twice: the first
		"  2026-11-24T09:00:00z  ":  "2026-11-24T09:00:00Z",
		"2028-02-29T09:00:00+00:00": "2028-02-29T09:00:00Z",
	} {
		got, err := when.Point(text, now, zone(t, "Europe/Berlin"))
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q: %s, %v; want %s", text, got.UTC().Format(time.RFC3339), err, want)
		}
	}
	for text, want := range map[string]string{
		"":                       "no time is given",
		"soon":                   "is not a time",
		"TZ=UTC tomorrow 09:00":  "is not a time",
		"2026-02-30T10:00":       "no such date",
		"2027-02-29T10:00":       "no such date",
		"2027-02-31T10:00Z":      "no such date",
		"2027-04-31 10:00":       "no such date",
		"2026-12-24T23:59:60Z":   "no such time of day",
		"TZ=:/etc/passwd +2m":    "is not a time",
		"+2m\u202e":              "is not a time",
		"2026-13-01T10:00":       "no such date",
		"2026-00-10T10:00":       "no such date",
		"2026-12-00T10:00":       "no such date",
		"2026-12-24T25:00":       "no such time of day",
		"today 24:00":            "no such time of day",
		"tomorrow 9:60":          "no such time of day",
		"13pm":                   "am and pm go from 1 to 12",
		"0am":                    "am and pm go from 1 to 12",
		"3":                      "is not a time",
		"tomorrow 3":             "is not a time",
		"24:00":                  "no such time of day",
		"2026-02-30 3pm":         "no such date",
		"today 3am":              "is in the past",
		"2026-12-24T10:00+25":    "no offset",
		"2026-12-24":             "is not a time",
		"+0m":                    "is in the past",
		"+2x":                    "is not a time",
		"-5m":                    "is not a time",
		"+999999w":               "ten years",
		"in 999999 weeks":        "ten years",
		"9999-01-01T00:00":       "ten years",
		"today 09:00":            "is in the past",
		"2020-01-01T00:00:00Z":   "is in the past",
		strings.Repeat("1", 9e3): "is not a time",
	} {
		_, err := when.Point(text, now, zone(t, "Europe/Berlin"))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 400 {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
		if errors.Is(err, when.ErrPast) != (want == "is in the past") {
			t.Errorf("%.40q: ErrPast: %v", text, err)
		}
	}
}

func TestZone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Europe/Berlin": "Europe/Berlin", "europe/berlin": "Europe/Berlin", " Berlin ": "Europe/Berlin", "new york": "America/New_York",
		"America/New York": "America/New_York", "utc": "UTC", "Etc/UTC": "Etc/UTC",
	} {
		if _, name, err := when.Zone(text); err != nil || name != want {
			t.Errorf("%q: %q, %v; want %q", text, name, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "Local", "local", "TZ=Europe/Berlin", ":Europe/Berlin", "../../etc/passwd", "/usr/share/zoneinfo/Europe/Berlin", "Europe/../Europe/Berlin",
		"Europe", "Europe/", "/Berlin", "Mars", "+02:00", "CEST", "\x00", "UTC\x00", strings.Repeat("a", 1e5),
	} {
		if z, _, err := when.Zone(text); !errors.Is(err, when.ErrZone) || z != nil || len(err.Error()) > 200 {
			t.Errorf("%.40q: %v, %v", text, z, err)
		}
	}
	for text, want := range map[string][]string{
		"Europe/Berlinn": {"Europe/Berlin"}, "Berlni": {"Europe/Berlin"}, "Buenos Aires": {"America/Argentina/Buenos_Aires", "America/Buenos_Aires"}, "xyzzy/qqq": nil,
	} {
		if got := when.Near(text); len(got) < len(want) || !slices.Equal(got[:len(want)], want) || want == nil && got != nil {
			t.Errorf("near %q: %q", text, got)
		}
	}
	if got := when.Near(strings.Repeat("Berlin", 10000)); got != nil {
		t.Errorf("near a long text: %q", got)
	}
}

// TestZones: every name of the list is in the zone database of Go, so that it works on every machine.
func TestZones(t *testing.T) {
	t.Parallel()
	archive, err := zip.OpenReader(filepath.Join(runtime.GOROOT(), "lib", "time", "zoneinfo.zip")) //nolint:staticcheck // of the toolchain that runs the test
	if err != nil {
		t.Skip("the zone database of the toolchain is not there:", err)
	}
	defer func() { _ = archive.Close() }()
	known := map[string]bool{}
	for _, f := range archive.File {
		known[f.Name] = true
	}
	if de, us, none, unknown := when.Country("Europe/Berlin"), when.Country("America/Indianapolis"), when.Country("UTC"), when.Country("Mars"); de != "DE" || us != "US" || none != "" || unknown != "" {
		t.Errorf("countries: %q, %q, %q, %q", de, us, none, unknown)
	}
	names := when.Names()
	if len(names) < 400 || !slices.IsSorted(names) {
		t.Errorf("%d names, sorted: %t", len(names), slices.IsSorted(names))
	}
	for _, name := range names {
		if !known[name] {
			t.Errorf("%s is not in the database", name)
		}
	}
}

func FuzzCron(f *testing.F) {
	for _, s := range []string{"0 9 * * *", "*/5 * * * *", "0 0 1 1 *", "0 12 L-3 * 5", "0 12 15W * MON#2", "TZ=UTC 0 9 * * *", "0 0 30 2 *", "1-5/2,7 ? * * ?"} {
		f.Add(s, int64(1767225600))
	}
	z := zone(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, spec string, sec int64) {
		c, err := when.ParseCron(spec)
		if err != nil {
			return
		}
		now := time.Unix(sec%(1<<33), 0)
		for range 3 {
			next := c.Next(now, z)
			if next.IsZero() {
				return
			}
			if !next.After(now) {
				t.Fatalf("%q: %s is not after %s", spec, next, now)
			}
			now = next
		}
	})
}

func FuzzPoint(f *testing.F) {
	for _, s := range []string{"+2m", "in 5 minutes", "today 14:00", "3pm", "tomorrow at 15h30", "2026-12-24T18:00", "2026-02-30T10:00Z", "+99999999999h", "next friday at 9", "morgen um 9 Uhr", "в пятницу в 15:00", "5 de diciembre, 9:30"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 23, 11, 0, 0, 0, time.UTC)
	z := zone(f, "America/Santiago")
	f.Fuzz(func(t *testing.T, text string) {
		at, err := when.Point(text, now, z)
		if (err == nil) != at.After(now.Add(-time.Second)) {
			t.Fatalf("%q: %s, %v", text, at, err)
		}
	})
}
