package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/choice"
	"github.com/zephbot/zephbot/bot/memory"
	"github.com/zephbot/zephbot/bot/news"
	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/recap"
	"github.com/zephbot/zephbot/bot/schedule"
	"github.com/zephbot/zephbot/bot/zone"
	"github.com/zephbot/zephbot/tools/overflow"
)

// PersonalStore is a store from which people are erased.
type PersonalStore interface {
	bot.Store
	blob.Store
	overflow.Store
	privacy.Tables
}

// Canary is in everything that Personal stores about a person and that has to be gone once they are erased.
const Canary = "CANARY-7Q"

// the person, somebody else, and the id of a third person that contains the first one's
const (
	personID  = "4242424242"
	otherID   = "77"
	similarID = "14242424242"
	pseudonym = "erased-"
)

var (
	privatePlace = bot.Place{Channel: channel, Bot: botID, Surface: bot.SurfaceBot, Chat: personID}
	groupPlace   = bot.Place{Channel: channel, Bot: botID, Surface: bot.SurfaceBot, Chat: "-500", Group: true}
	ownSession   = privatePlace.SessionKey(personID)
	ownInGroup   = groupPlace.SessionKey(personID)
	together     = groupPlace.SessionKey("")
	similar      = groupPlace.SessionKey(similarID)
)

// Now is the clock of the stores that Personal opens.
func Now() time.Time { return start }

// Personal checks that a person is erased from every table, wherever the process dies, and that others are not.
func Personal(t *testing.T, open func(t *testing.T) PersonalStore) {
	t.Helper()
	t.Run("every table has a rule", func(t *testing.T) {
		t.Parallel()
		names, err := open(t).TableNames(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !slices.Contains(privacy.TableNames(), name) {
				t.Errorf("bot/privacy does not know the table %s: say there whom it is about, and what bounds it", name)
			}
		}
	})
	t.Run("erased", func(t *testing.T) {
		t.Parallel()
		store := open(t)
		furnishPerson(t, store)
		before := spentBy(t, store)
		office := officeOf(store, nil)
		look, err := privacy.Look(t.Context(), store, person(), false, personalBuckets(), start.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		r, err := office.Erase(t.Context(), privacy.NewJob(person(), start.Add(time.Hour)))
		if err != nil {
			t.Fatal(err)
		}
		checkErased(t, store, r)
		if after := spentBy(t, store); after != before {
			t.Errorf("%d were spent, and %d after it", before, after)
		}
		if diff := cmp.Diff(kinds(look), kinds(r)); diff != "" {
			t.Errorf("announced and done (-announced +done):\n%s", diff)
		}
		again, err := office.Erase(t.Context(), privacy.NewJob(person(), start.Add(time.Hour)))
		if err != nil || len(again.Gone) != 0 {
			t.Errorf("erased again: %+v, %v", again, err)
		}
	})
	t.Run("killed after each step", func(t *testing.T) {
		t.Parallel()
		store := open(t)
		furnishPerson(t, store)
		job := privacy.NewJob(person(), start.Add(time.Hour))
		r, kills := killed(t, store, job)
		if want := len(officeOf(store, nil).Steps()); kills != want {
			t.Errorf("%d kills, want %d", kills, want)
		}
		checkErased(t, store, r)
	})
	t.Run("charges of the month", func(t *testing.T) {
		t.Parallel()
		chargesStay(t, open(t))
	})
	t.Run("exported", func(t *testing.T) {
		t.Parallel()
		store := open(t)
		furnishPerson(t, store)
		checkExport(t, store)
	})
}

// killed erases a person with a process that dies after each step of the job.
func killed(t *testing.T, store PersonalStore, job *privacy.Job) (r *privacy.Receipt, kills int) {
	t.Helper()
	fact, err := job.Fact()
	if err == nil {
		_, err = store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{fact}})
	}
	for r == nil && err == nil && kills < 100 {
		ctx, kill := context.WithCancel(t.Context())
		office := officeOf(store, func(string) { kill() })
		if job, err = office.Begun(t.Context(), person()); err != nil || job == nil {
			t.Fatalf("the job is not known after %d kills: %v", kills, err)
		}
		if r, err = office.Erase(ctx, job); err != nil && ctx.Err() != nil {
			kills, err = kills+1, nil
		}
		kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	return r, kills
}

func person() privacy.Person { return privacy.Person{Channel: channel, ID: personID} }

func officeOf(store PersonalStore, after func(string)) *privacy.Office {
	now := start.Add(time.Hour)
	return privacy.NewOffice(privacy.Deps{
		Tables:  store,
		Store:   store,
		Buckets: personalBuckets(),
		After:   after,
		Now:     func() time.Time { return now },
		Log:     zerolog.Nop(),
	})
}

// personalBuckets are the rules of the buckets that furnishPerson fills.
func personalBuckets() []bot.BucketRule {
	return slices.Concat(
		access.Buckets(), approval.Buckets(), choice.Buckets(), memory.Buckets(), news.Buckets(), privacy.Buckets(),
		quota.Buckets(), recap.Buckets(), schedule.Buckets(), zone.Buckets(),
		[]bot.BucketRule{{Bucket: "edited", Message: true}}, // as the engine has it, which stores do not know
	)
}

// kinds are the kinds of things in a receipt, without those that no table has.
func kinds(r *privacy.Receipt) (list []string) {
	for _, c := range r.Gone {
		if slices.Contains(privacy.TableNames(), c.What) && c.What != "journal" && c.What != "lane" {
			list = append(list, fmt.Sprint(c.What, " ", c.N))
		}
	}
	return list
}

func spentBy(t *testing.T, store PersonalStore) (sum int64) {
	t.Helper()
	list, err := store.Charges(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		sum += c.N
	}
	return sum
}

// checkErased looks for the person in every column of every table.
func checkErased(t *testing.T, store PersonalStore, r *privacy.Receipt) {
	t.Helper()
	if len(r.Problems) > 0 {
		t.Errorf("problems: %v", r.Problems)
	}
	said := map[string]int{}
	for _, s := range r.Stays {
		said[s.What] += s.N
	}
	for _, table := range privacy.Searched() {
		found, err := store.Mentions(t.Context(), &table, Canary, nil, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range found {
			t.Errorf("%s still has what the person said: %v", table.Name, row)
		}
		found, err = store.Mentions(t.Context(), &table, personID, nil, 100)
		if err != nil {
			t.Fatal(err)
		}
		found = slices.DeleteFunc(found, func(row privacy.Record) bool {
			return !strings.Contains(strings.ReplaceAll(fmt.Sprint(row), similarID, ""), personID) ||
				row["bucket"] == privacy.JobBucket
		})
		if len(found) != said[table.Name] {
			t.Errorf(
				"%s: %d rows name the person, the receipt says %d: %v", table.Name, len(found), said[table.Name], found,
			)
		}
	}
	want := []privacy.Stay{
		{What: "inbox", N: 1, Why: privacy.StaysLater},
		{What: "outbox", N: 1, Why: privacy.StaysOthers},
		{What: "fact", N: 1, Why: privacy.StaysLimit},
	}
	if diff := cmp.Diff(want, r.Stays); diff != "" {
		t.Errorf("what stays (-want +got):\n%s", diff)
	}
	othersStay(t, store)
}

// othersStay checks what must not be touched, and that a journal that others share remains one.
func othersStay(t *testing.T, store PersonalStore) {
	t.Helper()
	entries, err := store.Journal(t.Context(), together, 0)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := range entries {
		e := &entries[i]
		if int64(i)+1 != e.N {
			t.Errorf("entry %d has the number %d", i+1, e.N)
		}
		by := e.Caller
		if strings.HasPrefix(by, pseudonym) {
			by = "erased"
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s: %s", e.Kind, by, e.Text)))
	}
	want := []string{
		"user erased: [erased]",
		"answer : For all.",
		"user telegram:77: I said this.",
		"result : Output.",
		"answer : Done.",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("shared journal (-want +got):\n%s", diff)
	}
	if n := len(entries); n == 5 && (entries[4].State == nil || len(entries[4].State.By) != 2 ||
		!strings.HasPrefix(entries[4].State.By[0].Caller, pseudonym)) {
		t.Errorf("the state: %+v", entries[4].State)
	}
	othersKeep(t, store)
}

// othersKeep checks what is not in the shared journal.
func othersKeep(t *testing.T, store PersonalStore) {
	t.Helper()
	lane, err := store.Lane(t.Context(), together)
	if err != nil || lane.Last != 5 || lane.Fence < 2 {
		t.Errorf("the lane of the shared conversation: %+v, %v", lane, err)
	}
	if own, err := store.Lane(t.Context(), ownSession); err != nil || own.Last != 0 {
		t.Errorf("the person's own lane: %+v, %v", own, err)
	}
	if a, err := store.Approval(t.Context(), "q-other"); err != nil ||
		!strings.HasPrefix(a.By, pseudonym) || a.ByName != "" || a.Caller != "telegram:77" {
		t.Errorf("a question that the person decided: %+v, %v", a, err)
	}
	othersFacts(t, store)
}

func othersFacts(t *testing.T, store PersonalStore) {
	t.Helper()
	if kept, err := store.Journal(t.Context(), similar, 0); err != nil ||
		len(kept) != 1 || kept[0].Caller != "telegram:"+similarID {
		t.Errorf("the journal of somebody with a similar id: %+v, %v", kept, err)
	}
	next, err := store.Next(t.Context(), ownSession, 10)
	if err != nil || len(next) != 1 || next[0].ID != "late" {
		t.Errorf("a message after the request: %+v, %v", next, err)
	}
	if group, err := store.Fact(t.Context(), "memory", groupPlace.ChatKey()+"/g", start); err != nil ||
		!strings.Contains(group, "for all") || strings.Contains(group, personID) {
		t.Errorf("a memory of the group: %q, %v", group, err)
	}
}

// furnishPerson stores what a person leaves behind, and some things of others.
func furnishPerson(t *testing.T, store PersonalStore) {
	t.Helper()
	apply := func(change *bot.Change) *bot.Applied {
		t.Helper()
		applied, err := store.Apply(t.Context(), change)
		if err != nil {
			t.Fatal(err)
		}
		return applied
	}
	talk := func(session bot.SessionKey, place bot.Place, entries ...journal.Entry) {
		apply(&bot.Change{
			Claim: &bot.Claim{
				Session:   session,
				Place:     place,
				Workspace: bot.WorkspaceID(string(session)),
				Owner:     "p",
				Now:       start,
				Until:     start.Add(time.Minute),
			},
			Append: &bot.Append{Session: session, Entries: entries},
			Lanes:  []bot.LaneUpdate{{Session: session, Release: true}},
		})
	}
	ref, err := store.Put(t.Context(), string(ownSession), strings.NewReader("picture "+Canary))
	if err != nil {
		t.Fatal(err)
	}
	shared, err := store.Put(t.Context(), string(together), strings.NewReader("photo "+Canary))
	if err != nil {
		t.Fatal(err)
	}
	talk(ownSession, privatePlace,
		journal.Entry{
			Turn:   "t1",
			Kind:   journal.UserEntry,
			Caller: "telegram:" + personID,
			Text:   "hello " + Canary,
			At:     start,
		},
		journal.Entry{Turn: "t1", Kind: journal.AnswerEntry, Text: "You said " + Canary, At: start})
	talk(ownInGroup, groupPlace, journal.Entry{
		Turn:   "t2",
		Kind:   journal.UserEntry,
		Caller: "telegram:" + personID,
		Text:   Canary,
		At:     start,
	})
	talk(similar, groupPlace, journal.Entry{
		Turn:   "t3",
		Kind:   journal.UserEntry,
		Caller: "telegram:" + similarID,
		Text:   "mine",
		At:     start,
	})
	talk(together, groupPlace,
		journal.Entry{
			Turn:    "t4",
			Kind:    journal.UserEntry,
			Caller:  "telegram:" + personID,
			Speaker: "Ann " + Canary,
			Text:    "secret " + Canary,
			At:      start,
			Quote:   &journal.Quote{Author: "x", Text: Canary},
			Parts:   []llm.Part{{Kind: llm.ImagePart, Hash: shared.Hash, Name: Canary}},
			Heard:   []journal.Heard{{Message: "1", Arrival: Canary}},
		},
		journal.Entry{Turn: "t4", Kind: journal.AnswerEntry, Text: "For all.", At: start},
		journal.Entry{
			Turn:    "t5",
			Kind:    journal.UserEntry,
			Caller:  "telegram:77",
			Speaker: "Ben",
			Text:    "I said this.",
			At:      start,
			Talk:    []journal.Remark{{Caller: "telegram:" + personID, Name: "Ann " + Canary, Text: "to others " + Canary}},
		},
		journal.Entry{
			Turn: "t5",
			Kind: journal.ResultEntry,
			Call: "1.0",
			Tool: "read",
			Text: "Output.",
			By:   "telegram:" + personID,
			At:   start,
		},
		journal.Entry{
			Turn: "t5", Kind: journal.AnswerEntry, Text: "Done.", At: start,
			State: &journal.ConversationState{
				N:  5,
				By: []journal.Count{{Caller: "telegram:" + personID, Calls: 1}, {Caller: "telegram:77"}},
			},
		})
	furnishMessages(t, apply, ref)
	furnishFacts(apply)
	err = store.Save(t.Context(), overflow.Item{
		ID:      "0f8fad5b-d9cb-469f-a165-70867728950e",
		Session: string(ownSession),
		Turn:    "t1",
		Call:    "1",
		Tool:    "bash",
		Text:    "long " + Canary,
		Created: start,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// update is an update of Telegram, of a message of the person.
func update(id, text string) []byte {
	return fmt.Appendf(
		nil,
		`{"update_id":%s,"message":{"message_id":5,"from":{"id":%s,"first_name":"A"},"chat":{"id":-500},"text":%q}}`,
		id, personID, text,
	)
}

func furnishMessages(t *testing.T, apply func(*bot.Change) *bot.Applied, ref blob.Ref) {
	t.Helper()
	arrive := func(id string, session bot.SessionKey, raw []byte, at time.Time) int64 {
		return apply(&bot.Change{
			Arrive: []bot.Arrival{{Channel: channel, Bot: botID, ID: id, Session: session, Raw: raw, At: at}},
		}).Seqs[0]
	}
	done := []int64{
		arrive("1", ownSession, update("1", Canary), start), arrive("2", together, update("2", Canary), start),
		arrive("3", together, []byte(`{"message":{"from":{"id":77},"reply_to_message":{"from":{"id":`+
			personID+`},"text":"`+Canary+`"}}}`), start),
	}
	apply(&bot.Change{Done: done})
	dead := arrive("4", ownSession, update("4", Canary), start)
	apply(&bot.Change{Dead: []bot.DeadLetter{{Seq: dead, Problem: "of " + personID}}})
	arrive("5", ownSession, update("5", Canary), start)
	arrive("late", ownSession, update("6", "later"), start.Add(2*time.Hour))
	row := func(session bot.SessionKey, place bot.Place, content bot.Content) bot.Row {
		return bot.Row{Session: session, Place: place, Purpose: bot.Final, Content: content, Created: start}
	}
	sent := apply(&bot.Change{Send: []bot.Row{
		row(ownSession, privatePlace, bot.Content{
			Text: Canary,
			File: &bot.File{Name: "x", Hash: ref.Hash, Size: ref.Size},
		}),
		row(together, privatePlace, bot.Content{Text: "for the approver " + Canary}),
		row(together, groupPlace, bot.Content{Text: "only you " + Canary, Only: personID}),
		row(together, groupPlace, bot.Content{Text: "to all, about telegram:" + personID}),
	}}).Rows
	for _, id := range sent {
		apply(&bot.Change{
			Rows: []bot.RowUpdate{{ID: id, From: []bot.RowState{bot.Pending}, To: bot.Sent, Message: "9"}},
		})
	}
	question := func(id string, session bot.SessionKey, place bot.Place, caller, by string) {
		body, err := json.Marshal(map[string]string{"text": "run", "caller": caller})
		if err != nil {
			t.Fatal(err)
		}
		if caller == "telegram:"+personID {
			body = []byte(`{"text":"` + Canary + `"}`)
		}
		apply(&bot.Change{Ask: []bot.Approval{{
			ID:      id,
			Session: session,
			Turn:    "t1",
			Call:    id,
			Place:   place,
			Caller:  caller,
			Tool:    "bash",
			Body:    body,
			Created: start,
			Expires: start.Add(time.Hour),
		}}})
		apply(&bot.Change{Decide: []bot.Decision{{
			ID:     id,
			State:  bot.Approved,
			Scope:  bot.Once,
			By:     by,
			ByName: "N " + Canary,
			At:     start,
		}}})
	}
	question("q-own", ownSession, privatePlace, "telegram:"+personID, "telegram:"+personID)
	question("q-group", together, groupPlace, "telegram:"+personID, "telegram:"+personID)
	question("q-other", together, groupPlace, "telegram:77", "telegram:"+personID)
}

func furnishFacts(apply func(*bot.Change) *bot.Applied) {
	caller := "telegram:" + personID
	value := func(of string) string {
		return `{"by":"` + of + `","by_name":"Ann ` + Canary + `","text":"` + Canary + `"}`
	}
	facts := []bot.Fact{
		{Bucket: "person", Key: channel + "/" + botID + "/" + personID, Value: value("telegram:77")},
		{
			Bucket: "person",
			Key:    channel + "/" + botID + "/" + otherID,
			Value:  `{"name":"Ben","by":"` + caller + `","by_name":"Ann ` + Canary + `"}`,
		},
		{Bucket: "stranger", Key: channel + "/" + botID + "/" + personID, Value: value("")},
		{Bucket: "memory", Key: caller + "/a", Value: value(caller)},
		{
			Bucket: "memory",
			Key:    groupPlace.ChatKey() + "/g",
			Value:  `{"text":"for all","by":"` + caller + `","name":"` + Canary + `"}`,
		},
		{Bucket: "memory_scope", Key: caller, Value: "1"},
		{Bucket: "timezone", Key: caller, Value: "Europe/Berlin"},
		{Bucket: "grant", Key: groupPlace.ChatKey() + "/1", Value: value(caller)},
		{
			Bucket: "schedule",
			Key:    string(together) + "/s1",
			Value:  `{"name":"` + Canary + `","owner":{"caller":"` + caller + `","person":"` + personID + `"}}`,
		},
		{Bucket: "quota", Key: "user/" + caller + "/turns/day", Value: `{"n":5,"by":"telegram:77"}`},
		{Bucket: "reset", Key: string(ownSession), Value: "2026-01-01T00:00:00Z"},
		{Bucket: "judge", Key: string(ownInGroup) + "/1", Value: Canary},
		{Bucket: "news", Key: string(ownSession) + "/1", Value: Canary},
		{Bucket: "edited", Key: privatePlace.ChatKey() + "/5", Value: "1"},
		{
			Bucket: "model",
			Key:    groupPlace.ChatKey(),
			Value:  `{"model":"m","by":"` + caller + `","name":"` + Canary + `"}`,
		},
		{Bucket: "recap_job", Key: "8", Value: `{"message":{"caller":"` + caller + `","text":"` + Canary + `"}}`},
	}
	apply(&bot.Change{Facts: facts, Charges: []bot.Charge{
		{Key: "telegram-1-5/turns/user/" + caller, Scope: "user/" + caller, Unit: "turns", Day: "2026-03-01", N: 3},
		{Key: "c2", Scope: "user/telegram:77", Unit: "turns", Day: "2026-03-01", N: 4},
		{Key: "c3", Scope: "user/telegram:" + similarID, Unit: "turns", Day: "2026-03-01", N: 5},
	}})
}
