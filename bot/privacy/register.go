package privacy

import (
	"maps"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/privacy/table"
)

// A rule says what becomes of the rows of a table that mention a person. The register below has one for every table of
// both databases; a test compares it with their schemas.
type rule struct {
	Table Table
	// erase returns what is done with a row; nil = it stays, and the receipt says so.
	erase func(e *eraser, row Record) []Alteration
	// mine reports whether a row is about the person alone, and goes into their export.
	mine func(s *Subject, row Record) bool
	// Bound says what keeps the table from growing for ever, for docs/personal-data.md.
	Bound string
}

func textColumns(names ...string) []Column { return columns(table.Text, names) }
func intColumns(names ...string) []Column  { return columns(table.Int, names) }
func byteColumns(names ...string) []Column { return columns(table.Bytes, names) }

func columns(kind tableKind, names []string) (list []Column) {
	for _, name := range names {
		list = append(list, Column{Name: name, Kind: kind})
	}
	return list
}

func joinColumns(parts ...[]Column) (all []Column) {
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

// Names of tables.
const (
	laneTable     = "lane"
	journalTable  = "journal"
	inboxTable    = "inbox"
	approvalTable = "approval"
	outboxTable   = "outbox"
	factTable     = "fact"
	chargeTable   = "charge"
	holdTable     = "hold"
	usageTable    = "usage"
	overflowTable = "tool_overflow"
	refTable      = "blob_ref"
	blobTable     = "blob"
)

// blobHashes finds contents by their hash.
func blobHashes() *Table {
	return &Table{Name: blobTable, Key: intColumns("id"), More: textColumns("hash")}
}

// tableRules is the register, in the order in which a person is erased: their conversations end first.
func tableRules() []rule {
	return []rule{
		{
			Table: Table{
				Name: laneTable,
				Key:  textColumns("session"),
				More: joinColumns(textColumns(
					"channel", "chat", "workspace", "state", "turn", "owner", "caller", "notice",
				), intColumns("last")),
			},
			erase: (*eraser).eraseLane,
			mine:  ownSession,
			Bound: "one for each conversation; retention.journal days after an empty one was cleared",
		},
		{
			Table: Table{
				Name: inboxTable,
				Key:  intColumns("seq"),
				More: joinColumns(textColumns(
					"session", "channel", "bot", "id", "state", "problem", "source",
				), byteColumns("raw"), intColumns("at", "finished")),
			},
			erase: (*eraser).eraseArrival,
			mine:  (*Subject).sent,
			Bound: "content 8 days, key 16 days after it was handled",
		},
		{
			Table: Table{
				Name: outboxTable,
				Key:  intColumns("id"),
				More: joinColumns(textColumns(
					"session", "channel", "chat", "purpose", "state", "key", "turn", "problem",
				), byteColumns("content"), intColumns("created", "finished")),
			},
			erase: (*eraser).eraseOutboxRow,
			mine:  (*Subject).toldRow,
			Bound: "content 30 days, rows retention.outbox days after they were sent",
		},
		{
			Table: Table{Name: overflowTable, Key: textColumns("id"), More: joinColumns(
				textColumns("session", "turn", "tool", "source"), byteColumns("text"), intColumns("created"),
			)},
			erase: ownRow, mine: ownSession, Bound: "tools.overflow.retention_days and max_entries",
		},
		{
			Table: Table{
				Name: refTable,
				Key:  joinColumns(textColumns("session"), intColumns("blob")),
				More: intColumns("used"),
			},
			erase: (*eraser).eraseBlobRef, mine: ownSession, Bound: "retention.blobs days, retention.max_blob_bytes",
		},
		{
			Table: Table{
				Name: approvalTable,
				Key:  intColumns("n"),
				More: joinColumns(textColumns(
					"session", "turn", "call", "channel", "chat", "caller", "tool", "state", "scope", "decider", "name",
				), byteColumns("votes", "body"), intColumns("created", "decided", "card")),
			},
			erase: (*eraser).eraseQuestion,
			mine:  (*Subject).asked,
			Bound: "retention.journal days after they were decided",
		},
		{
			Table: Table{
				Name: journalTable,
				Key:  joinColumns(textColumns("session"), intColumns("n")),
				More: byteColumns("body"),
			},
			erase: (*eraser).eraseEntry,
			mine:  (*Subject).spoke,
			Bound: "retention.journal days after the conversation was left",
		},
		{
			Table: Table{Name: factTable, Key: textColumns("bucket", "key"), More: byteColumns("value")},
			erase: (*eraser).eraseFact, mine: (*Subject).aboutFact, Bound: "by bucket",
		},
		{
			Table: Table{
				Name: chargeTable,
				Key:  textColumns("key"),
				More: joinColumns(textColumns("scope", "unit", "day"), intColumns("n")),
			},
			erase: (*eraser).eraseCharge, mine: (*Subject).spent, Bound: "3 days, then they are added up in usage",
		},
		{
			Table: Table{Name: usageTable, Key: textColumns("day", "scope", "unit"), More: intColumns("n")},
			erase: (*eraser).eraseCharge, mine: (*Subject).spent, Bound: "400 days",
		},
		{
			Table: Table{Name: holdTable, Key: textColumns("holder", "scope", "unit", "day"), More: intColumns("n")},
			erase: (*eraser).eraseCharge, mine: (*Subject).spent, Bound: "until the turn that spends it ends",
		},
	}
}

// impersonalTables says of the other tables why nobody is in them, and what bounds them.
func impersonalTables() map[string][2]string {
	return map[string][2]string{
		"blob": {
			"contents by number; whose they are is in blob_ref", "deleted with the last row of blob_ref",
		},
		"blob_piece":       {"pieces of contents", "deleted with their row of blob"},
		"vector_point":     {"vectors of tools", "as many as there are tools"},
		"meta":             {"what the database is", "some rows"},
		"goose_db_version": {"its schema", "one row for each migration"},
		"applied":          {"numbers of Changes (PostgreSQL)", "an hour"},
		"process":          {"processes of the service (PostgreSQL)", "as many as run"},
		"vector_entry": {
			"vectors of code and memories (PostgreSQL); the place vectors erases them by their owner",
			"as what they are derived from",
		},
		"vector_owner": {"owners of these vectors", "as what they are derived from"},
	}
}

// ownSession reports whether the session of a row is the person's own.
func ownSession(s *Subject, row Record) bool { return s.Owns(bot.SessionKey(row["session"])) }

// ownRow deletes a row of one of the person's own conversations.
func ownRow(e *eraser, row Record) []Alteration {
	if ownSession(&e.Subject, row) {
		return []Alteration{{Row: row}}
	}
	return nil
}

// sent reports whether an arrival was sent by the person.
func (s *Subject) sent(row Record) bool {
	return ownSession(s, row) || row["channel"] == s.Channel && s.sender(row["raw"])
}

// toldRow reports whether a row was written for the person alone.
func (s *Subject) toldRow(row Record) bool {
	return ownSession(s, row) || s.private(row["channel"], row["chat"]) || s.only(row)
}

// only reports whether a row is shown to the person alone in a group.
func (s *Subject) only(row Record) bool {
	value, _ := decodeJSON(row["content"])
	object, _ := value.(map[string]any)
	return row["channel"] == s.Channel && object["only"] == s.ID
}

// asked reports whether the person asked a question, or decided it.
func (s *Subject) asked(row Record) bool {
	return ownSession(s, row) || row["caller"] == s.Caller() || row["decider"] == s.Caller() || s.mentions(row["votes"])
}

// spoke reports whether an entry is of one of the person's conversations, or has what they said in others.
func (s *Subject) spoke(row Record) bool {
	if ownSession(s, row) {
		return true
	}
	value, _ := decodeJSON(row["body"])
	object, _ := value.(map[string]any)
	return object["kind"] == "user" && (object["caller"] == s.Caller() || len(s.ownTalk(object["talk"])) > 0)
}

// spoken is an entry that goes into the person's export, without what others said in their group. Of one with the
// message of somebody else, that is all that is left.
func (s *Subject) spoken(row Record) Record {
	value, _ := decodeJSON(row["body"])
	object, _ := value.(map[string]any)
	if object["talk"] == nil {
		return row
	}
	own := s.ownTalk(object["talk"])
	delete(object, "talk")
	if !ownSession(s, row) && object["caller"] != s.Caller() {
		object = map[string]any{"kind": object["kind"], "at": object["at"]}
	}
	if len(own) > 0 {
		object["talk"] = own
	}
	body, _ := encodeJSON(object)
	out := maps.Clone(row)
	out["body"] = body
	return out
}

// spent reports whether a charge is the person's, or that of their private chat.
func (s *Subject) spent(row Record) bool { return s.inKey(row["scope"]) }

// sender reports whether an update, as its channel sent it or as the service stored it, comes from the person.
func (s *Subject) sender(raw string) bool {
	value, ok := decodeJSON(raw)
	return ok && s.wrote(value)
}

// wrote looks for the sender of an update: the member "from" of the objects right below it, or "caller" in a message
// that the service made. Who is quoted or replied to is deeper.
func (s *Subject) wrote(value any) bool {
	top, _ := value.(map[string]any)
	if top["caller"] == s.Caller() {
		return true
	}
	for name, part := range top {
		object, _ := part.(map[string]any)
		if object == nil {
			continue
		}
		if object["caller"] == s.Caller() {
			return true
		}
		for _, member := range []string{"from", "user", "actor_chat", "sender_chat"} {
			by, _ := object[member].(map[string]any)
			if by != nil && s.numbered(by["id"]) && !strings.HasPrefix(name, "reply_to") {
				return true
			}
		}
	}
	return false
}

// numbered reports whether a value is the person's id, as a number or as text.
func (s *Subject) numbered(value any) bool {
	switch v := value.(type) {
	case string:
		return v == s.ID
	case interface{ String() string }:
		return v.String() == s.ID
	}
	return false
}

// TableNames lists all tables that are known here: those in which there are people, and those in which there are none.
func TableNames() (names []string) {
	for _, r := range tableRules() {
		names = append(names, r.Table.Name)
	}
	for name := range impersonalTables() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Searched lists the tables in which people are looked for.
func Searched() (list []Table) {
	for _, r := range tableRules() {
		list = append(list, r.Table)
	}
	return list
}

// tableBounds says of every table what keeps it from growing for ever.
func tableBounds() map[string]string {
	bounds := map[string]string{}
	for _, r := range tableRules() {
		bounds[r.Table.Name] = r.Bound
	}
	for name, why := range impersonalTables() {
		bounds[name] = why[1]
	}
	return bounds
}
