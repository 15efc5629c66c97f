package app_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/cmd/internal/apptest"
)

// The behaviours of docs/behaviours.md, by number, as a person meets them: each plays scenarios through the whole
// service. Where a behaviour cannot be played (the budgets of five minutes, a server of its own), the test with its
// number is elsewhere, and docs/behaviours.md names what else proves it.

// behave plays scenarios, each on a service of its own.
func behave(t *testing.T, names ...string) {
	t.Helper()
	t.Parallel()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(filepath.Join("testdata", "scenario", name+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			apptest.Play(t, archive)
		})
	}
}

func TestBehaviour01AnsweredOnceAfterAKill(t *testing.T) {
	behave(t, "restart_waiting", "restart_twice")
}

func TestBehaviour02AKilledAnswerIsCompleted(t *testing.T) {
	behave(t, "placeholder_group", "restart_parked")
}

func TestBehaviour03ACutConnection(t *testing.T) { behave(t, "fault_cut_final") }

func TestBehaviour04Throttled(t *testing.T) { behave(t, "fault_429") }

func TestBehaviour06ChatsSideBySide(t *testing.T) { behave(t, "chats_side_by_side") }

func TestBehaviour07ASignOfWork(t *testing.T) { behave(t, "draft_grows") }

func TestBehaviour08LongAnswer(t *testing.T) { behave(t, "answer_long") }

func TestBehaviour09AnyText(t *testing.T) { behave(t, "answer_markdown", "fault_refused_format") }

func TestBehaviour10LongOutput(t *testing.T) { behave(t, "overflow", "folded", "approve_long_command") }

func TestBehaviour11Stop(t *testing.T) {
	behave(t, "stop_draft", "stop_group", "stop_model", "stop_tool")
}

func TestBehaviour12MessageDuringATurn(t *testing.T) { behave(t, "queue_running", "queue_sign") }

func TestBehaviour13Approval(t *testing.T) {
	behave(t, "approve", "approve_stranger", "approvers_list")
}

func TestBehaviour14ApprovalAfterARestart(t *testing.T) {
	behave(t, "restart_parked", "approve_double_press", "approve_twice")
}

func TestBehaviour15ApprovalExpires(t *testing.T) { behave(t, "approve_expires", "restart_expired") }

func TestBehaviour16OldAndForgedButtons(t *testing.T) { behave(t, "press_unknown", "approve_forged") }

func TestBehaviour17EveryPressIsAnswered(t *testing.T) { behave(t, "query_too_old", "duplicate_press") }

func TestBehaviour18GroupTriggers(t *testing.T) { behave(t, "group_triggers", "group_trigger_all") }

func TestBehaviour19QuotasOfTwo(t *testing.T) {
	behave(t, "quota_group", "group_two_users", "group_apart")
}

func TestBehaviour20Topics(t *testing.T) { behave(t, "group_topics", "fault_topic", "topic_deleted") }

func TestBehaviour21Identities(t *testing.T) { behave(t, "name_taken_over", "group_identities") }

func TestBehaviour22GroupMigrates(t *testing.T) {
	behave(t, "group_migrates_running", "quota_group_migrates", "group_migrates_files")
}

func TestBehaviour23BlockedAndForeign(t *testing.T) {
	behave(t, "blocked", "blocked_running", "forbidden_running", "group_foreign", "group_admitted")
}

func TestBehaviour24DeliveredTwice(t *testing.T) { behave(t, "duplicate", "lower_update_id") }

func TestBehaviour25UnknownUpdates(t *testing.T) { behave(t, "unknown_updates") }

func TestBehaviour27EditedQuestion(t *testing.T) {
	behave(t, "edited", "edited_waiting", "edited_running")
}

func TestBehaviour29Outage(t *testing.T) { behave(t, "model_unavailable") }

func TestBehaviour30Deploy(t *testing.T) { behave(t, "restart_drains") }
