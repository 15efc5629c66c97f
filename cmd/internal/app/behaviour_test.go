package app_test

import (
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/cmd/internal/apptest"
)

// The behaviours of docs/behaviours.md, by number, as a person meets them: each plays scenarios through the whole
// service. Where a behaviour cannot be played (the budgets of five minutes, a server of its own), the test with its
// number is elsewhere, and docs/behaviours.md names what else proves it.

// behaviours are the scenarios of each test. TestScenarios plays the others.
var behaviours = map[string][]string{
	"TestBehaviour01AnsweredOnceAfterAKill":   {"restart_waiting", "restart_twice"},
	"TestBehaviour02AKilledAnswerIsCompleted": {"placeholder_group", "restart_parked"},
	"TestBehaviour03ACutConnection":           {"fault_cut_final"},
	"TestBehaviour04Throttled":                {"fault_429"},
	"TestBehaviour06ChatsSideBySide":          {"chats_side_by_side"},
	"TestBehaviour07ASignOfWork":              {"draft_grows"},
	"TestBehaviour08LongAnswer":               {"answer_long"},
	"TestBehaviour09AnyText":                  {"answer_markdown", "fault_refused_format"},
	"TestBehaviour10LongOutput":               {"overflow", "folded", "approve_long_command"},
	"TestBehaviour11Stop":                     {"stop_draft", "stop_group", "stop_model", "stop_tool"},
	"TestBehaviour12MessageDuringATurn":       {"queue_running", "queue_sign"},
	"TestBehaviour13Approval":                 {"approve", "approve_stranger", "approvers_list"},
	"TestBehaviour14ApprovalAfterARestart":    {"restart_parked", "approve_double_press", "approve_twice"},
	"TestBehaviour15ApprovalExpires":          {"approve_expires", "restart_expired"},
	"TestBehaviour16OldAndForgedButtons":      {"press_unknown", "approve_forged"},
	"TestBehaviour17EveryPressIsAnswered":     {"query_too_old", "duplicate_press"},
	"TestBehaviour18GroupTriggers":            {"group_triggers", "group_trigger_all"},
	"TestBehaviour19QuotasOfTwo":              {"quota_group", "group_two_users", "group_apart"},
	"TestBehaviour20Topics":                   {"group_topics", "fault_topic", "topic_deleted"},
	"TestBehaviour21Identities":               {"name_taken_over", "group_identities"},
	"TestBehaviour22GroupMigrates":            {"group_migrates_running", "quota_group_migrates", "group_migrates_files"},
	"TestBehaviour23BlockedAndForeign": {
		"blocked", "blocked_running", "forbidden_running", "group_foreign", "group_admitted",
	},
	"TestBehaviour24DeliveredTwice": {"duplicate", "lower_update_id"},
	"TestBehaviour25UnknownUpdates": {"unknown_updates"},
	"TestBehaviour27EditedQuestion": {"edited", "edited_waiting", "edited_running"},
	"TestBehaviour29Outage":         {"model_unavailable"},
	"TestBehaviour30Deploy":         {"restart_drains"},
}

// behave plays the scenarios of a behaviour, each on a service of its own; with -short, those of the day, as
// TestScenarios does.
func behave(t *testing.T) {
	t.Helper()
	t.Parallel()
	if len(behaviours[t.Name()]) == 0 {
		t.Fatal("no scenario has this behaviour")
	}
	files := scenarioFiles(t)
	for _, name := range behaviours[t.Name()] {
		file := filepath.Join("testdata", "scenario", name+".txtar")
		i, found := slices.BinarySearch(files, file)
		if !found {
			t.Errorf("no scenario %s", name)
		}
		if !playedToday(i) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			apptest.Play(t, archive)
		})
	}
}

// behaved are the scenarios that behaviours play.
func behaved() map[string]bool {
	all := map[string]bool{}
	for _, names := range behaviours {
		for _, name := range names {
			all[name] = true
		}
	}
	return all
}

func TestBehaviour01AnsweredOnceAfterAKill(t *testing.T) { behave(t) }

func TestBehaviour02AKilledAnswerIsCompleted(t *testing.T) { behave(t) }

func TestBehaviour03ACutConnection(t *testing.T) { behave(t) }

func TestBehaviour04Throttled(t *testing.T) { behave(t) }

func TestBehaviour06ChatsSideBySide(t *testing.T) { behave(t) }

func TestBehaviour07ASignOfWork(t *testing.T) { behave(t) }

func TestBehaviour08LongAnswer(t *testing.T) { behave(t) }

func TestBehaviour09AnyText(t *testing.T) { behave(t) }

func TestBehaviour10LongOutput(t *testing.T) { behave(t) }

func TestBehaviour11Stop(t *testing.T) { behave(t) }

func TestBehaviour12MessageDuringATurn(t *testing.T) { behave(t) }

func TestBehaviour13Approval(t *testing.T) { behave(t) }

func TestBehaviour14ApprovalAfterARestart(t *testing.T) { behave(t) }

func TestBehaviour15ApprovalExpires(t *testing.T) { behave(t) }

func TestBehaviour16OldAndForgedButtons(t *testing.T) { behave(t) }

func TestBehaviour17EveryPressIsAnswered(t *testing.T) { behave(t) }

func TestBehaviour18GroupTriggers(t *testing.T) { behave(t) }

func TestBehaviour19QuotasOfTwo(t *testing.T) { behave(t) }

func TestBehaviour20Topics(t *testing.T) { behave(t) }

func TestBehaviour21Identities(t *testing.T) { behave(t) }

func TestBehaviour22GroupMigrates(t *testing.T) { behave(t) }

func TestBehaviour23BlockedAndForeign(t *testing.T) { behave(t) }

func TestBehaviour24DeliveredTwice(t *testing.T) { behave(t) }

func TestBehaviour25UnknownUpdates(t *testing.T) { behave(t) }

func TestBehaviour27EditedQuestion(t *testing.T) { behave(t) }

func TestBehaviour29Outage(t *testing.T) { behave(t) }

func TestBehaviour30Deploy(t *testing.T) { behave(t) }
