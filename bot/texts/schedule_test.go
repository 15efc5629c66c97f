package texts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
)

// schedules says everything about schedules and time zones in a language.
func schedules(l string, m map[string][]string) {
	for _, own := range []bool{false, true} {
		for _, chosen := range []bool{false, true} {
			m["Zoned"] = append(m["Zoned"], w.Zoned(l, "Europe/Berlin", at, own, chosen))
		}
	}
	m["At"] = []string{w.At(bot.Place{}).ZoneNotYours(l)}
	m["Read"] = []string{w.ZoneNotYours(w.Read(bot.Place{}, l))}
	m["ZoneUnknown"] = []string{w.ZoneUnknown(l, "Mars", nil), w.ZoneUnknown(l, "Berlni", []string{"Europe/Berlin"})}
	m["ZonePlace"] = []string{w.ZonePlace(l, "Europe/Vienna")}
	m["ZoneNotYours"], m["ZoneOfBot"] = []string{w.ZoneNotYours(l)}, []string{w.ZoneOfBot(l)}
	var list []texts.Task
	for _, state := range []texts.TaskState{texts.TaskOn, texts.TaskPaused, texts.TaskFailing, texts.TaskRevoked} {
		list = append(list, texts.Task{Name: "x", Owner: "Ann", Cron: "0 9 * * *", Zone: "UTC", Next: at, Text: "y", State: state}, texts.Task{Name: "x", State: state})
	}
	for i := range list {
		m["ScheduleTask"] = append(m["ScheduleTask"], w.ScheduleTask(l, &list[i]))
	}
	for _, group := range []bool{false, true} {
		m["Schedule"] = append(m["Schedule"], w.Schedule(l, nil, 1, 1, group), w.Schedule(l, list, 11, 2, group))
	}
	pause, resume, run, remove, yes, back := w.ScheduleButtons(l)
	m["ScheduleButtons"] = []string{pause, resume, run, remove, yes, back}
	m["ScheduleAsks"], m["ScheduleDeleted"] = []string{w.ScheduleAsks(l, "x")}, []string{w.ScheduleDeleted(l, "x")}
	m["ScheduleGone"], m["ScheduleBusy"] = []string{w.ScheduleGone(l)}, []string{w.ScheduleBusy(l)}
	m["ScheduleStarted"], m["ScheduleOff"] = []string{w.ScheduleStarted(l)}, []string{w.ScheduleOff(l)}
	m["ScheduleNotYours"] = []string{w.ScheduleNotYours(l, "Ann", false), w.ScheduleNotYours(l, "Ann", true)}
	for _, name := range []string{"", "Ben"} {
		head, tail, shown := w.Reminder(l, name, at)
		m["Reminder"] = append(m["Reminder"], head+"tea"+shown+tail)
	}
	m["Scheduled"], m["ScheduleSkipped"] = []string{w.Scheduled(l, "x", time.Time{}), w.Scheduled(l, "x", at)}, []string{w.ScheduleSkipped(l, "x")}
	m["ScheduleFailing"] = []string{w.ScheduleFailing(l, "x", 1), w.ScheduleFailing(l, "x", 3), w.ScheduleFailing(l, "x", 5)}
	m["ScheduleLeft"] = []string{w.ScheduleLeft(l, "Team", []string{"x", "y"}), w.ScheduleLeft(l, "Team", make([]string, 11))}
	m["ScheduleRevoked"] = []string{w.ScheduleRevoked(l, "x", "Ann")}
}

// TestAt: in a private chat, times are in the zone that its person has set; a month's quota then says the hour too.
func TestAt(t *testing.T) {
	t.Parallel()
	tokyo := time.FixedZone("Asia/Tokyo", 9*3600)
	words := texts.Words{Zone: time.UTC, ZoneAt: func(p bot.Place) *time.Location {
		if p.Chat == "42" {
			return tokyo
		}
		return nil
	}}
	month := texts.Usage{Scope: texts.User, Unit: texts.Turns, Window: texts.Month, Used: 1, Limit: 1, Fresh: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}
	for chat, want := range map[string]string{"42": "1 Dec 2026, 09:00", "-1": "1 Dec 2026"} {
		if got := words.At(bot.Place{Chat: chat}).UsedUp("en", month); !strings.Contains(got, want) || chat == "-1" && strings.Contains(got, ":00") {
			t.Errorf("in %s: %s", chat, got)
		}
	}
	if got := (texts.Words{}).At(bot.Place{}).UsedUp("en", month); !strings.Contains(got, "1 Dec 2026") {
		t.Error(got)
	}
}

// TestHostileTask: what people wrote in a name makes no further line.
func TestHostileTask(t *testing.T) {
	t.Parallel()
	evil := "a\n2. /stop\u202e" + strings.Repeat("x", 1000)
	got := w.Schedule("en", []texts.Task{{Name: evil, Owner: evil, Next: at}}, 1, 1, true)
	if strings.Count(got, "\n") != 1 || strings.Contains(got, "\u202e") || len(got) > 600 {
		t.Error(got)
	}
}
