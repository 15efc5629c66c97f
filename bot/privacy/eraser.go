package privacy

import (
	"context"
	"strings"

	"github.com/zephbot/zephbot/bot"
)

// eraser decides what becomes of rows.
type eraser struct {
	Subject
	// begun is when the person asked, in nanoseconds since 1970: what came later belongs to a new conversation.
	begun int64
	had   map[string]bool // conversations with a lane when it began
	// keepsDay is the first day whose charges keep the person's id, "" = all of them lose it: a limit would
	// otherwise end with the request.
	keepsDay string
	// cards are the outbox rows of questions that are open and not the person's own: they are edited once decided.
	cards map[string]bool

	files   []file          // contents that came with erased words
	touched map[string]bool // buckets with a revision
	shared  map[string]bool // conversations of others in which something was replaced
}

// file is a content of a conversation.
type file struct{ session, hash string }

// eraseArrival empties an arrival: that it was handled stays known by its number, so that it is not handled twice.
func (e *eraser) eraseArrival(row Record) []Alteration {
	own := e.sent(row)
	waits := row["state"] == "waiting"
	switch {
	case own && waits && rowNumber(row["at"]) > e.begun:
		return nil // a message after the request
	case own:
		set := map[string]string{"session": "", "problem": "", "source": ""}
		if waits || row["state"] == "dead" {
			set["state"], set["finished"] = "done", row["at"]
		}
		return []Alteration{{Row: row, Set: set, Null: []string{"raw"}, Same: []string{"state"}}}
	case !waits && row["state"] != "dead" && e.named(row["raw"]):
		return []Alteration{{Row: row, Set: map[string]string{}, Null: []string{"raw"}, Same: []string{"state"}}}
	}
	return nil
}

// eraseOutboxRow deletes what was written for the person alone.
func (e *eraser) eraseOutboxRow(row Record) []Alteration {
	if !e.toldRow(row) || e.cards[row["id"]] || strings.HasPrefix(row["key"], rowKey) {
		return nil
	}
	if row["finished"] == "0" && rowNumber(row["created"]) > e.begun {
		return nil // an answer to a message after the request
	}
	return []Alteration{{Row: row}}
}

// eraseBlobRef deletes contents of the person's own conversations.
func (e *eraser) eraseBlobRef(row Record) []Alteration {
	if rowNumber(row["used"]) > e.begun {
		return nil
	}
	return ownRow(e, row)
}

// eraseQuestion deletes the person's own questions, and removes them from others' questions that they have decided.
func (e *eraser) eraseQuestion(row Record) []Alteration {
	if ownSession(&e.Subject, row) {
		return []Alteration{{Row: row}}
	}
	a := Alteration{Row: row, Set: map[string]string{}, Same: []string{"state", "decider", "votes"}}
	if row["caller"] == e.Caller() {
		a.Set["caller"] = e.Pseudonym
		if row["state"] != string(bot.Open) {
			a.Set["body"] = "{}"
		}
	} else if body, changed := e.scrub(row["body"]); changed {
		a.Set["body"] = body
	}
	if row["decider"] == e.Caller() {
		a.Set["decider"], a.Set["name"] = e.Pseudonym, ""
	}
	if votes, changed := e.scrub(row["votes"]); changed {
		a.Set["votes"] = votes
	}
	if len(a.Set) == 0 {
		return nil
	}
	return []Alteration{a}
}

// eraseEntry replaces what the person said in conversations that others share. The entries of their own went with the
// lanes: those that are there belong to a new conversation, unless there never was a lane.
func (e *eraser) eraseEntry(row Record) []Alteration {
	if ownSession(&e.Subject, row) {
		if e.had[row["session"]] {
			return nil
		}
		return []Alteration{{Row: row}}
	}
	body, changed, hashes := e.Subject.scrubEntry(row["body"])
	if !changed {
		return nil
	}
	for _, hash := range hashes {
		e.files = append(e.files, file{row["session"], hash})
	}
	e.shared[row["session"]] = true
	return []Alteration{{Row: row, Set: map[string]string{"body": body}}}
}

// eraseCharge gives a charge to the pseudonym, so that sums stay right.
func (e *eraser) eraseCharge(row Record) []Alteration {
	if !e.spent(row) || e.keepsDay != "" && row["day"] >= e.keepsDay {
		return nil
	}
	set := map[string]string{"scope": e.withPseudonym(row["scope"])}
	if key, ok := row["key"]; ok { // it ends with the scope
		set["key"] = e.withPseudonym(key)
	}
	return []Alteration{{Row: row, Set: set}}
}

// withPseudonym returns a key with the pseudonym in the place of the person.
func (e *eraser) withPseudonym(key string) string {
	key = strings.ReplaceAll("/"+key+"/", "/"+e.Caller()+"/", "/"+e.Pseudonym+"/")
	key = strings.ReplaceAll(key, "/"+e.ID+"/", "/"+e.Pseudonym+"/")
	return strings.TrimSuffix(strings.TrimPrefix(key, "/"), "/")
}

// eraseLane deletes the person's own conversations: the journal of each goes in the same transaction.
func (e *eraser) eraseLane(row Record) []Alteration {
	switch {
	case ownSession(&e.Subject, row):
		return []Alteration{{Row: row}}
	case row["caller"] == e.Caller() && row["turn"] == "":
		return []Alteration{{Row: row, Set: map[string]string{"caller": ""}, Same: []string{"turn", "caller"}}}
	}
	return nil
}

// eraseFact deletes what is about the person, and removes them from what is about others.
func (e *eraser) eraseFact(row Record) []Alteration {
	bucket, key := row["bucket"], row["key"]
	rule := e.buckets[bucket]
	if rule.Stays != "" && rule.StaysBelow == "" {
		return nil
	}
	if e.aboutFact(row) && (rule.Stays == "" || !strings.HasPrefix(key, rule.StaysBelow)) {
		e.touched[bucket] = true
		return []Alteration{{Row: row}}
	}
	if value, changed := e.scrub(row["value"]); changed {
		e.touched[bucket] = true
		return []Alteration{{Row: row, Set: map[string]string{"value": value}, Same: []string{"value"}}}
	}
	return nil
}

// aboutFact reports whether a fact is about the person alone: its key has them, or they are whom its value belongs to.
func (s *Subject) aboutFact(row Record) bool {
	rule := s.buckets[row["bucket"]]
	if rule.Message {
		place, _, ok := bot.CutChat(row["key"])
		return ok && s.private(place.Channel, place.Chat)
	}
	if s.inKey(row["key"]) {
		return true
	}
	switch rule.Owner {
	case "":
		return row["value"] == s.Caller() || row["value"] == s.ID
	case bot.AnyMember:
		return s.mentions(row["value"])
	default:
		return s.owner(row["value"], rule.Owner)
	}
}

// whyStays says why rows of a table that still name the person stay.
func (e *eraser) whyStays(table string, row Record) Why {
	switch table {
	case factTable:
		if why := e.buckets[row["bucket"]].Stays; why != "" {
			return Why(why)
		}
	case chargeTable, usageTable, holdTable:
		return StaysSums
	case outboxTable:
		if strings.HasPrefix(row["key"], rowKey) {
			return StaysReceipt
		}
	case inboxTable:
		if row["state"] == "waiting" {
			return StaysLater
		}
	case laneTable:
		return StaysLater
	}
	return StaysOthers
}

// rowNumber reads a number of a row; 0 if it is none.
func rowNumber(text string) int64 {
	var n int64
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0
		}
		n = n*10 + int64(text[i]-'0')
	}
	return n
}

// eraseRows erases in the rows of one table, and returns how many were changed. idle waits until nobody works in a
// conversation of several people, for a while.
func (e *eraser) eraseRows(ctx context.Context, in Tables, r *rule, idle func(context.Context, string)) (int, error) {
	n := 0
	lanes := &Table{Name: laneTable, Key: textColumns("session")}
	err := eachPage(ctx, in, &r.Table, e.ID, func(rows []Record) error {
		var list []Alteration
		e.shared = map[string]bool{}
		for _, row := range rows {
			for _, a := range r.erase(e, row) {
				a.Table = &r.Table
				list = append(list, a)
			}
		}
		if len(list) == 0 {
			return nil
		}
		for session := range e.shared { // processes remember the journal as it was
			idle(ctx, session)
			list = append(list, Alteration{Table: lanes, Row: Record{"session": session}, Set: map[string]string{}})
		}
		altered, err := in.Alter(ctx, list)
		n += max(0, altered-len(e.shared))
		return err
	})
	return n, err
}

// eraseContents deletes the contents that came with erased words.
func (e *eraser) eraseContents(ctx context.Context, in Tables) error {
	refs := &Table{Name: refTable, Key: joinColumns(textColumns("session"), intColumns("blob"))}
	for _, f := range e.files {
		found, err := in.Mentions(ctx, blobHashes(), f.hash, nil, 1)
		if err != nil {
			return err
		}
		for _, b := range found {
			gone := Alteration{Table: refs, Row: Record{"session": f.session, "blob": b["id"]}}
			if _, err := in.Alter(ctx, []Alteration{gone}); err != nil {
				return err
			}
		}
	}
	return nil
}
