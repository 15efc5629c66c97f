package schedule_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/schedule"
)

// book keeps the last task.
type book struct {
	task    schedule.Task
	entries []schedule.Entry
	closed  error
}

func (b *book) Open(context.Context, *tools.Origin) error { return b.closed }
func (b *book) Zone(*tools.Origin) *time.Location         { return time.FixedZone("Test", 2*3600) }
func (b *book) Put(_ context.Context, _ *tools.Call, t schedule.Task) (schedule.Stored, error) {
	b.task = t
	return schedule.Stored{Updated: t.Name == "old", Next: t.At}, nil
}

func (b *book) List(context.Context, *tools.Origin) ([]schedule.Entry, error) { return b.entries, nil }

func (b *book) Cancel(_ context.Context, _ *tools.Origin, name string) (bool, error) {
	return name == "old", nil
}

var now = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)

func call(t *testing.T, b *book, name, args string) (string, error) {
	t.Helper()
	list, err := schedule.New(schedule.Options{Book: b, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list {
		if tool.Definition.Name != name {
			continue
		}
		c := &tools.Call{ID: "c1", Tool: name, Args: []byte(args), Trail: &tools.Trail{}}
		if tool.Check != nil {
			if err := tool.Check(t.Context(), c); err != nil {
				return "", err
			}
		}
		res, err := tool.Run(t.Context(), c)
		if err != nil {
			return "", err
		}
		return res.Text, nil
	}
	t.Fatalf("no tool %s", name)
	return "", nil
}

func TestTools(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tool, args, want string }{
		{"schedule_deferred", `{"name":"tea","run_at":"+2m","task":"Tea"}`, `Created task "tea": it runs at Monday, 2026-11-23 12:02:00`},
		{"schedule_deferred", `{"name":"old","run_at":"tomorrow 09:30","kind":"reminder","task":"Tea"}`, `Updated reminder "old": it is sent at Tuesday, 2026-11-24 09:30:00 Test (Test). You are not asked then.`},
		{"schedule_periodic", `{"name":"tea","cron":" 0  9 * * * ","kind":"custom","config":{"task":"Tea"}}`, `runs first at Tuesday, 2026-11-24 09:00:00`},
		{"schedule_periodic", `{"name":"tea","cron":"0 9 * * *"}`, "! task is empty"},
		{"schedule_periodic", `{"name":"tea","cron":"0 9 * * *","kind":"Reminder"}`, `Created reminder "tea": it is sent first at Tuesday, 2026-11-24 09:00:00`},
		{"schedule_periodic", `{"name":" \u0000 ","cron":"0 9 * * *","task":"x"}`, "! name is empty"},
		{"schedule_periodic", `{"name":"a","cron":"` + strings.Repeat("0,", 40) + ` 9 * * *","task":"x"}`, "! allowed: 64"},
		{"schedule_deferred", `{"name":"a","run_at":"+2m","kind":"` + strings.Repeat("k", 65) + `","task":"x"}`, "! kind has 65 characters"},
		{"schedule_deferred", `{"name":"a","run_at":"+2m","kind":"health_check"}`, "! /healthz"},
		{"schedule_deferred", `{"name":"a","run_at":"TZ=UTC 10:00","task":"x"}`, "! is not a time"},
		{"cancel_task", `{"name":"old"}`, `Cancelled task "old".`},
		{"cancel_task", `{"name":"none"}`, `! task "none" not found`},
		{"list_tasks", `{}`, "No tasks are scheduled here."},
	} {
		got, err := call(t, &book{}, tt.tool, tt.args)
		if err != nil {
			if e, ok := errors.AsType[*tools.Error](err); !ok || e.Category != tools.InvalidParameters || e.Suggestion == "" {
				t.Errorf("%s %.60s: %#v", tt.tool, tt.args, err)
			}
			got = "! " + err.Error()
		}
		if refused := strings.HasPrefix(tt.want, "! "); refused != (err != nil) || !strings.Contains(got, strings.TrimPrefix(tt.want, "! ")) {
			t.Errorf("%s %.60s: %q, want %q", tt.tool, tt.args, got, tt.want)
		}
	}
}

// TestTexts: control characters are removed, and what somebody else has scheduled makes no further line of the list.
func TestTexts(t *testing.T) {
	t.Parallel()
	b := &book{}
	if _, err := call(t, b, "schedule_deferred", `{"name":"a\nb","run_at":"+2m","task":" one\n\ttwo\u0007\u001b[31m \u0085"}`); err != nil {
		t.Fatal(err)
	}
	if b.task.Name != "a b" || b.task.Text != "one\n\ttwo[31m" || b.task.Kind != schedule.Custom {
		t.Errorf("%+v", b.task)
	}
	for name, want := range map[string]string{ // 128 characters, not bytes
		strings.Repeat("ü", 128): "", strings.Repeat("ü", 129): "name has 129 characters; allowed: 128", " \n\t\u0000 ": "name is empty", "": "name is empty",
	} {
		if _, err := schedule.Checked(name, "", "x"); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.20q: %v, want %q", name, err, want)
		}
	}
	b.entries = []schedule.Entry{{Name: "x\ny | z", Kind: "custom", Owner: "Ann\nBen"}, {Name: "mine", Cron: "0 9 * * *", Next: now, Text: "do\nit"}}
	got, err := call(t, b, "list_tasks", `{}`)
	if err != nil || strings.Count(got, "\n") != 2 || !strings.Contains(got, "(not shown)") || !strings.Contains(got, "do it") {
		t.Errorf("%q, %v", got, err)
	}
	b.closed = tools.Errorf(tools.PolicyBlocked, "closed")
	if _, err := call(t, b, "schedule_deferred", `{"name":"a","run_at":"+2m","task":"x"}`); err == nil {
		t.Error("stored where nothing can be scheduled")
	}
}
