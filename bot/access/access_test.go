package access_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

func guard(store access.Store, o access.Options) *access.Guard {
	o.Channel = "telegram"
	return access.New(o, store, texts.Words{}, time.Now)
}

// from is a message of a person in private, or in a group when chat is given.
func from(person, username, chat string, kind bot.Kind) *bot.Message {
	m := &bot.Message{
		Kind: kind, Person: person, Caller: "telegram:" + person, Username: username, Name: "Somebody",
		Place: bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: person},
	}
	if chat != "" {
		m.Place.Chat, m.Place.Group = chat, true
	}
	return m
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	users := access.Options{Users: []string{"42", "@Ann"}, Admins: []string{"7"}, Chats: []string{"-100"}}
	open := access.Options{Users: []string{"*"}, Chats: []string{"*"}}
	nobody := from("42", "", "-100", bot.Text)
	nobody.Caller, nobody.Person = "", "1087968824"
	addressed := from("9", "", "-999", bot.Text)
	addressed.Addressed = true
	const stranger, unlisted = "I only talk to people on my list. Your id is 9;", "I am not set up for this group. Its id is -999;"
	tests := []struct {
		name    string
		options access.Options
		msg     *bot.Message
		want    turn.Verdict
		reply   string
	}{
		{"listed id", users, from("42", "", "", bot.Text), turn.Verdict{OK: true}, ""},
		{"listed id in a listed group", users, from("42", "", "-100", bot.Text), turn.Verdict{OK: true}, ""},
		{"listed id in another group", users, from("42", "", "-999", bot.Text), turn.Verdict{Reason: "group not in telegram.allowed_chats"}, ""},
		{"admin", users, from("7", "", "", bot.Text), turn.Verdict{OK: true, Admin: true}, ""},
		{"admin in another group", users, from("7", "", "-999", bot.Text), turn.Verdict{Reason: "group not in telegram.allowed_chats"}, ""},
		{"stranger", users, from("9", "", "", bot.Text), turn.Verdict{Once: "stranger/telegram:9", Reason: "person not in telegram.allowed_users"}, stranger},
		{"stranger in a group", users, from("9", "", "-100", bot.Text), turn.Verdict{Reason: "person not in telegram.allowed_users"}, ""},
		{"press of a stranger", users, from("9", "", "-100", bot.Press), turn.Verdict{Reason: "person not in telegram.allowed_users"}, "I only talk to people on my list."},
		{"an id that reads like a listed name", users, from("@Ann", "", "", bot.Text), turn.Verdict{Once: "stranger/telegram:@Ann", Reason: "person not in telegram.allowed_users"}, "I only talk"},
		{"somebody whose name is an id", users, from("9", "42", "", bot.Text), turn.Verdict{Once: "stranger/telegram:9", Reason: "person not in telegram.allowed_users"}, stranger},
		{"a star as name", users, from("9", "*", "", bot.Text), turn.Verdict{Once: "stranger/telegram:9", Reason: "person not in telegram.allowed_users"}, stranger},
		{"added to another group", users, from("9", "", "-999", bot.Member), turn.Verdict{Once: "unlisted/telegram/1/bot/-999", Reason: "group not in telegram.allowed_chats"}, unlisted},
		{"somebody in another group wants something", users, addressed, turn.Verdict{Once: "unlisted/telegram/1/bot/-999", Reason: "group not in telegram.allowed_chats"}, unlisted},
		{"added to a listed group", users, from("9", "", "-100", bot.Member), turn.Verdict{OK: true}, ""},
		{"a channel's identity", open, nobody, turn.Verdict{Reason: "not a person"}, ""},
		{"everyone", open, from("9", "", "-999", bot.Text), turn.Verdict{OK: true}, ""},
		{"nobody is listed", access.Options{}, from("9", "", "", bot.Text), turn.Verdict{Once: "stranger/telegram:9", Reason: "person not in telegram.allowed_users"}, stranger},
		{"no group is listed", access.Options{Users: []string{"*"}}, from("9", "", "-100", bot.Text), turn.Verdict{Reason: "group not in telegram.allowed_chats"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := guard(bottest.New(), tt.options).Admit(t.Context(), tt.msg)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(got.Reply, tt.reply) || (tt.reply == "") != (got.Reply == "") {
				t.Errorf("reply %q, want %q", got.Reply, tt.reply)
			}
			got.Reply, got.Change = "", bot.Change{}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNamesArePinned(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	g := guard(store, access.Options{Users: []string{"@Ann", "@ben"}})
	steps := []struct {
		what, person, name string
		want               bool
	}{
		{"Ann comes first", "1", "ann", true},
		{"again, in other letters", "1", "ANN", true},
		{"somebody took her name", "2", "Ann", false},
		{"Ann without a name", "1", "", true},
		{"Ann with a name of her own choice", "1", "annette", true},
		{"Ann takes the name of Ben, who has not come yet", "1", "ben", true},
		{"and Ben comes after all", "3", "Ben", true},
		{"Ann with the name of Ben", "1", "ben", true},
		{"somebody with another name", "4", "carl", false},
		{"somebody without a name", "4", "", false},
	}
	for _, s := range steps {
		v, err := g.Admit(t.Context(), from(s.person, s.name, "", bot.Text))
		if err != nil || v.OK != s.want {
			t.Errorf("%s: %+v, %v", s.what, v, err)
		}
	}
	// A name that is taken off the list opens nothing any more; the pins of another channel do not count.
	if v, err := guard(store, access.Options{Users: []string{"@ben"}}).Admit(t.Context(), from("1", "ann", "", bot.Text)); err != nil || v.OK {
		t.Errorf("off the list: %+v, %v", v, err)
	}
	other := access.New(access.Options{Channel: "tele", Users: []string{"@ann"}}, store, texts.Words{}, time.Now)
	if v, err := other.Admit(t.Context(), from("1", "", "", bot.Text)); err != nil || v.OK {
		t.Errorf("another channel: %+v, %v", v, err)
	}
}

func TestOneNameAtOnce(t *testing.T) {
	t.Parallel()
	g := guard(bottest.New(), access.Options{Users: []string{"@ann"}})
	people := []string{"1", "2", "3", "4", "5", "6"}
	ok := make([]bool, len(people))
	var wg sync.WaitGroup
	for i, p := range people {
		wg.Go(func() {
			v, err := g.Admit(t.Context(), from(p, "ann", "", bot.Text))
			if err != nil {
				t.Error(err)
			}
			ok[i] = v.OK
		})
	}
	wg.Wait()
	n := 0
	for _, v := range ok {
		if v {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d people are @ann: %v", n, ok)
	}
}

var errStore = errors.New("the store is away")

// broken is a store of which one part fails.
type broken struct {
	*bottest.Store
	facts, fact error
}

func (b broken) FactsOf(ctx context.Context, bucket, prefix string, now time.Time) ([]bot.Fact, error) {
	if b.facts != nil {
		return nil, b.facts
	}
	return b.Store.FactsOf(ctx, bucket, prefix, now)
}

func (b broken) Fact(context.Context, string, string, time.Time) (string, error) { return "", b.fact }

func TestStoreAway(t *testing.T) {
	t.Parallel()
	o := access.Options{Users: []string{"@ann", "42"}}
	noWrites := bottest.New()
	noWrites.Hooks.BeforeApply = func(*bot.Change) error { return errStore }
	taken := bottest.New()
	if _, err := guard(taken, o).Admit(t.Context(), from("1", "ann", "", bot.Text)); err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]access.Store{
		"pins": broken{Store: bottest.New(), facts: errStore}, "pin": noWrites, "owner": broken{Store: taken, fact: errStore},
	} {
		v, err := guard(store, o).Admit(t.Context(), from("2", "ann", "", bot.Text))
		if !errors.Is(err, errStore) || v.OK {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if v, err := guard(store, o).Admit(t.Context(), from("42", "", "", bot.Text)); err != nil || !v.OK {
			t.Errorf("%s: a listed id needs the store: %+v, %v", name, v, err)
		}
	}
}

func place(chat, thread string) bot.Place {
	return bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: chat, Thread: thread, Group: true}
}

func TestRules(t *testing.T) {
	t.Parallel()
	o := access.Options{
		AllowedTools: []string{"bash", "read", "grep"}, SharedSession: true,
		ByChat: map[string]access.Chat{
			"-1":   {System: "Chat", Trigger: "all", Session: "user", AllowedTools: []string{"bash", "write"}},
			"-1/7": {System: "Topic", Trigger: "mention", Session: "chat", AllowedTools: []string{"read"}},
			"-1/8": {},
			"-2/7": {System: "Only topic"},
		},
	}
	tests := []struct {
		place  bot.Place
		system string
		any    bool
		shared bool
		tools  []string
	}{
		{place("-1", ""), "Chat", true, false, []string{"bash"}},
		{place("-1", "7"), "Topic", false, true, []string{"read"}},
		{place("-1", "8"), "Chat", true, false, []string{"bash"}},
		{place("-1", "9"), "Chat", true, false, []string{"bash"}},
		{place("-2", "7"), "Only topic", false, true, []string{"bash", "read", "grep"}},
		{place("-3", ""), "", false, true, []string{"bash", "read", "grep"}},
	}
	for _, tt := range tests {
		r := guard(bottest.New(), o).Rules(tt.place)
		if r.System != tt.system || r.AnyMessage != tt.any || r.SharedSession != tt.shared {
			t.Errorf("%+v: %+v", tt.place, r)
		}
		var got []string
		for _, tool := range []string{"bash", "read", "grep", "write", "github:read"} {
			if r.Allowed(tool) {
				got = append(got, tool)
			}
		}
		if diff := cmp.Diff(tt.tools, got); diff != "" {
			t.Errorf("%+v: tools (-want +got):\n%s", tt.place, diff)
		}
	}
	r := guard(bottest.New(), access.Options{AnyMessage: true}).Rules(place("-1", ""))
	if r.Allowed != nil || !r.AnyMessage || r.SharedSession {
		t.Errorf("defaults: %+v", r)
	}
}

func TestRights(t *testing.T) {
	t.Parallel()
	o := access.Options{
		Admins: []string{"7"}, Approvers: []string{"8"}, ApprovalsRequired: 2, ApprovalByRequester: true,
		ByChat: map[string]access.Chat{
			"-1":   {Approvers: []string{"9"}, ApprovalsRequired: 3},
			"-1/7": {Approvers: []string{"10"}, ApprovalsRequired: 1},
		},
	}
	tests := []struct {
		place bot.Place
		want  approval.Rights
	}{
		{place("-2", ""), approval.Rights{Approvers: []string{"telegram:7", "telegram:8"}, Admins: []string{"telegram:7"}, Required: 2, Requester: true}},
		{place("-1", ""), approval.Rights{Approvers: []string{"telegram:7", "telegram:8", "telegram:9"}, Admins: []string{"telegram:7"}, Required: 3, Requester: true}},
		{place("-1", "7"), approval.Rights{Approvers: []string{"telegram:10", "telegram:7", "telegram:8", "telegram:9"}, Admins: []string{"telegram:7"}, Required: 1, Requester: true}},
		{place("-1", "8"), approval.Rights{Approvers: []string{"telegram:7", "telegram:8", "telegram:9"}, Admins: []string{"telegram:7"}, Required: 3, Requester: true}},
	}
	g := guard(bottest.New(), o)
	for range 2 { // asking must not change what is configured
		for _, tt := range tests {
			got, err := g.Rights(t.Context(), tt.place, "bash")
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(got.Approvers)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", tt.place, diff)
			}
		}
	}
	if got, err := guard(bottest.New(), access.Options{}).Rights(t.Context(), place("-1", ""), "bash"); err != nil || got.Required != 1 || got.Requester || len(got.Approvers) != 0 {
		t.Errorf("defaults: %+v", got)
	}
}

func TestSummaries(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]access.Options{
		"nobody, no group":                           {},
		"2 people, 1 group":                          {Users: []string{"1", "@a"}, Chats: []string{"-1"}},
		"1 person, 3 groups":                         {Users: []string{"1"}, Chats: []string{"-1", "-2", "-3"}},
		"EVERYONE (all people), ALL GROUPS":          {Users: []string{"1", "*"}, Chats: []string{"*"}},
		"1 admin, no group":                          {Admins: []string{"7"}},
		"1 person and 2 admins, no group":            {Users: []string{"1"}, Admins: []string{"7", "8"}},
		"EVERYONE (all people) and 1 admin, 1 group": {Users: []string{"*"}, Admins: []string{"7"}, Chats: []string{"-1"}},
	} {
		if got, err := guard(bottest.New(), o).Summary(t.Context()); err != nil || got != want {
			t.Errorf("summary %q, want %q: %v", got, want, err)
		}
	}
	g := guard(bottest.New(), access.Options{Admins: []string{"7", "8"}})
	if diff := cmp.Diff([]string{"7", "8"}, g.Admins()); diff != "" {
		t.Errorf("admins (-want +got):\n%s", diff)
	}
}
