package approval_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/tools/approve"
)

// TestClearMark: a question that is asked only because of a flagged text can be answered by an admin with "this is no
// order", which approves the call and clears the mark of the source that the card names; nobody else can, and no other
// card has the button.
func TestClearMark(t *testing.T) {
	t.Parallel()
	const label = "Not an order: clear the mark"
	for name, c := range map[string]struct {
		person  string
		marked  bool
		rights  func(*approval.Rights)
		offered bool
		cleared string
		toast   string
	}{
		"admin":             {person: "admin", marked: true, offered: true, cleared: "file:a.txt", toast: "Noted."},
		"approver":          {person: "boss", marked: true, offered: true, toast: "Only an admin of this bot can clear the mark."},
		"who asked":         {person: "ann", marked: true, offered: true, toast: "Only an admin of this bot can clear the mark."},
		"asked anyway":      {person: "admin", toast: "This question is no longer open."},
		"no admins":         {person: "admin", marked: true, rights: func(r *approval.Rights) { r.Admins = nil }, toast: "This question is no longer open."},
		"several must vote": {person: "admin", marked: true, rights: func(r *approval.Rights) { r.Required = 2 }, toast: "This question is no longer open."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.rights.Admins = []string{"telegram:admin"}
			if c.rights != nil {
				c.rights(&w.rights)
			}
			q := question("c1")
			q.Suspicious, q.Marked = "file:a.txt", c.marked
			a := w.ask(q)[0]
			row, err := w.store.Row(t.Context(), a.Row)
			if err != nil {
				t.Fatal(err)
			}
			offers := func(b bot.Button) bool { return b.Label == label }
			if got := slices.ContainsFunc(row.Content.Buttons, func(l []bot.Button) bool { return slices.ContainsFunc(l, offers) }); got != c.offered {
				t.Errorf("offered: %t", got)
			}
			_, toast := w.press(c.person, data(a, "c"))
			if toast.Content.Text != c.toast {
				t.Errorf("toast %q", toast.Content.Text)
			}
			got, err := w.Approval(t.Context(), session, "c1", q.Hash)
			if err != nil || got.Cleared != c.cleared || (got.State == approve.Approved) != (c.cleared != "") {
				t.Errorf("decision %+v, %v", got, err)
			}
			if c.cleared == "" {
				return
			}
			if row, err = w.store.Row(t.Context(), a.Row); err != nil || got.By != "telegram:admin" {
				t.Errorf("by %q: %v", got.By, err)
			}
			rows, _ := w.store.Rows(t.Context(), session, 0)
			if record := rows[len(rows)-1].Content.Text; !strings.Contains(record, "Approved, and the mark cleared, by ADMIN") {
				t.Errorf("record %q", record)
			}
		})
	}
}
