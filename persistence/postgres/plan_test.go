package postgres_test

import (
	"encoding/json"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// plans names, for every query of the package that finds rows, the indexes by which it does in a database that is old.
// "Open" is any index that holds nothing but open work of a table; "every" is a walk over an index from end to end.
var plans = map[string]string{
	"addBlobBytes":     "all of meta",
	"aloneQuery":       "approval_call journal_pkey journal_reset lane_pkey open inbox outbox_pkey tool_overflow_call",
	"anyQueued":        "open inbox",
	"approvalOfQuery":  "approval_call",
	"approvalQuery":    "approval_id_key",
	"approvalsChat":    "approval_chat",
	"approvalsFrom":    "approval_call",
	"approvalsMove":    "approval_call",
	"arrivalOfQuery":   "inbox_channel_bot_id_key",
	"arrived":          "inbox_channel_bot_id_key",
	"asideRefs":        "blob_ref_pkey",
	"askedQuery":       "approval_asked",
	"backlogQuery":     "open inbox",
	"beat":             "all of process",
	"beginsQuery":      "journal_reset",
	"blobBytes":        "all of meta",
	"blobQuery":        "blob_hash blob_ref_pkey",
	"bucketsQuery":     "fact_pkey",
	"busyQuery":        "lane_pkey",
	"chargeSums":       "charge_scope",
	"chargeHolds":      "",
	"chargeLost":       "all of process hold_owner",
	"chargedQuery":     "charge_pkey",
	"chargesFrom":      "charge_scope",
	"chargesMove":      "charge_scope",
	"chargesQuery":     "charge_scope",
	"countsQuery":      "all of lane open inbox open lane open outbox",
	"daysQuery":        "charge_scope",
	"deadFrom":         "open inbox",
	"deadMove":         "open inbox",
	"deadQuery":        "open inbox",
	"deleteAlone":      "journal_pkey lane_pkey",
	"deleteApplied":    "applied_at applied_pkey",
	"deleteArrivals":   "inbox_finished inbox_seq",
	"deleteBlob":       "blob_pkey",
	"deleteEntries":    "journal_pkey",
	"deleteFact":       "fact_pkey",
	"deleteFacts":      "fact_expires fact_pkey",
	"deleteLane":       "lane_pkey",
	"deleteOutputs":    "tool_overflow_expires tool_overflow_id_key",
	"deletePieces":     "blob_piece_pkey",
	"deletePoints":     "vector_point_pkey",
	"deleteProcess":    "all of process",
	"deleteQuestions":  "approval_n",
	"deleteRef":        "blob_ref_pkey",
	"deleteRows":       "open approval open outbox outbox_finished outbox_id",
	"deleteSums":       "usage_pkey",
	"deleteUsage":      "usage_pkey",
	"dueOwn":           "open outbox outbox_id",
	"dueQuery":         "open outbox outbox_id",
	"endArrival":       "inbox_seq",
	"entryQuery":       "journal_pkey",
	"expressFrom":      "open inbox",
	"expressMove":      "open inbox",
	"expressQuery":     "open inbox",
	"failedRowsQuery":  "outbox_failed",
	"factQuery":        "fact_pkey",
	"factsFrom":        "fact_pkey",
	"factsMove":        "fact_pkey",
	"factsQuery":       "fact_pkey",
	"finishArrival":    "inbox_seq",
	"forgetBodies":     "inbox_raw inbox_seq",
	"forgetContents":   "outbox_content outbox_id",
	"freeLanes":        "all of process open lane",
	"freeLanesOf":      "open lane",
	"freeLeader":       "fact_pkey",
	"freeLeaders":      "all of process fact_pkey",
	"grantedQuery":     "approval_granted",
	"giveRows":         "open outbox",
	"growBlob":         "blob_pkey",
	"heirQuery":        "all of process",
	"journalQuery":     "journal_pkey journal_reset",
	"keepLane":         "lane_pkey",
	"keyed":            "outbox_key",
	"knownBlob":        "blob_hash",
	"landJournal":      "journal_pkey",
	"laneQuery":        "lane_pkey",
	"lanesFrom":        "lane_pkey",
	"lanesQuery":       "lane_place",
	"liftJournal":      "journal_pkey",
	"livingQuery":      "all of process",
	"lockAsked":        "approval_id_key",
	"lockBlob":         "blob_pkey",
	"lockFacts":        "fact_pkey",
	"lockLanes":        "lane_pkey",
	"lockOpen":         "open approval",
	"lockRows":         "outbox_id",
	"lockSeqs":         "inbox_seq",
	"moveArrival":      "inbox_seq",
	"moveOverflow":     "tool_overflow_call",
	"moveQuestion":     "approval_id_key",
	"moveRefs":         "blob_ref_pkey",
	"moveRow":          "outbox_id",
	"nameBlob":         "blob_pkey",
	"named":            "open approval",
	"nextQuery":        "open inbox",
	"nextQuestions":    "approval_n fact_pkey lane_pkey",
	"noHeir":           "all of process",
	"noLane":           "lane_pkey",
	"noneArrived":      "inbox_channel_bot_id_key",
	"noneAsked":        "approval_id_key",
	"noneKeyed":        "outbox_key",
	"noneNamed":        "open approval",
	"noneOpen":         "open approval",
	"noneSends":        "open outbox",
	"noneWaiting":      "open inbox",
	"oldRefs":          "blob_ref_used",
	"oldUploads":       "blob_unfinished",
	"openAllQuery":     "open approval",
	"openQuery":        "open approval",
	"outputsFrom":      "tool_overflow_call",
	"overflowQuery":    "tool_overflow_id_key",
	"olderQuery":       "all of process",
	"overQuery":        "all of process",
	"pieceQuery":       "blob_piece_pkey",
	"pointsQuery":      "vector_point_pkey",
	"queuedFrom":       "open inbox",
	"queuedMove":       "open inbox",
	"queuedQuery":      "open inbox",
	"readyQuery":       "lane_pkey open approval open inbox open lane",
	"refOf":            "blob_ref_blob",
	"refsFrom":         "blob_ref_pkey",
	"replaceOverflow":  "tool_overflow_call",
	"replaceArrival":   "inbox_seq",
	"resetOverflow":    "tool_overflow_call",
	"resetsQuery":      "journal_pkey journal_reset",
	"rowOfQuery":       "outbox_key",
	"rowQuery":         "outbox_id",
	"rowsChat":         "outbox_chat",
	"rowsFrom":         "outbox_pkey",
	"rowsMade":         "outbox_pkey",
	"rowsMove":         "outbox_pkey",
	"openRowsQuery":    "open outbox",
	"rowsQuery":        "outbox_pkey",
	"standing":         "all of process",
	"sendersQuery":     "all of process open outbox",
	"sendingOwn":       "open outbox",
	"stateQuery":       "open outbox",
	"stillLives":       "all of process",
	"stillWaiting":     "inbox_seq",
	"sumCharges":       "charge_pkey charge_scope",
	"stopsQuery":       "open lane",
	"pastQuery":        "journal_pkey",
	"inChatQuery":      "lane_pkey",
	"tailQuery":        "journal_pkey journal_reset",
	"takeRows":         "all of process open outbox",
	"updateLane":       "lane_pkey",
	"usageFrom":        "usage_pkey",
	"usageMove":        "usage_pkey",
	"endJournal":       "journal_pkey",
	"freeLane":         "lane_pkey",
	"moveSum":          "usage_pkey",
	"putFact":          "",
	"usageQuery":       "all of usage",
	"usedDaysQuery":    "usage_pkey",
	"usedQuery":        "charge_scope usage_pkey",
	"versionQuery":     "all of goose_db_version",
	"vitalsQuery":      "all of meta",
	"wasMade":          "applied_pkey",
	"withdrawAll":      "open approval",
	"dropEntries":      "vector_entry_key",
	"farQuery":         "vector_entry_far",
	"holdOwner":        "vector_owner_pkey",
	"nearEntry":        "vector_entry_pkey",
	"nearQuery":        "pg_attribute_relid_attnam_index",
	"nearestQuery":     "vector_entry_far vector_entry_scope",
	"dropOwners":       "vector_owner_pkey",
	"entriesQuery":     "vector_entry_scope",
	"entryHashesQuery": "vector_entry_scope",
	"forgetEntries":    "vector_entry_scope",
	"kindsQuery":       "vector_owner_pkey",
	"leaveOwner":       "vector_entry_scope vector_owner_pkey",
	"lockOwner":        "vector_owner_pkey",
	"namedQuery":       "vector_entry_scope",
	"ownerQuery":       "vector_owner_pkey",
	"ownersQuery":      "vector_owner_pkey",
	"removeEntries":    "vector_entry_key",
	"restateEntry":     "vector_entry_key",
	"someQuery":        "vector_entry_pkey",
}

// walked are the indexes that hold open work only, or what is about to be deleted.
var walked = []string{"inbox_lane", "inbox_express", "inbox_dead", "lane_busy", "lane_held", "approval_pending", "approval_open", "approval_card", "outbox_open", "outbox_owner", "outbox_busy", "outbox_edits"}

// whole are the tables that a query may walk over: one of a few rows, and those of queries that want a great part of
// them.
var whole = map[string]string{
	"countsQuery": "lane", "usageQuery": "usage", "addBlobBytes": "meta", "blobBytes": "meta", "beat": "process", "chargeLost": "process", "deleteProcess": "process",
	"freeLanes": "process", "freeLeaders": "process", "livingQuery": "process", "olderQuery": "process", "overQuery": "process", "standing": "process", "heirQuery": "process", "noHeir": "process",
	"sendersQuery": "process", "stillLives": "process", "takeRows": "process", "versionQuery": "goose_db_version",
	"vitalsQuery": "meta",
}

// byEither are the queries for one session and one file: an index by either finds the row.
var byEither = []string{"blobQuery", "deleteRef"}

// withNear are the queries for a server that compares vectors, which others cannot plan.
var withNear = []string{"nearestQuery", "farQuery", "nearEntry", "upsertNear"}

// verb begins a query that has a plan.
var verb = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b`)

// walking is the file whose queries walk over whole tables.
const walking = "walk.go"

// statements gives the queries of the package's source by the names of their constants. A query without a name fails
// the test.
func statements(t *testing.T) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	paths, err := filepath.Glob("*.go")
	check(t, err)
	paths = append(paths, "../reading/columns.go")
	exprs, inConst := map[string]ast.Expr{}, map[ast.Expr]bool{}
	var parsed []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || path == walking {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		check(t, err)
		parsed = append(parsed, file)
		ast.Inspect(file, func(n ast.Node) bool {
			group, ok := n.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				return true
			}
			for _, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				for i := range value.Values {
					exprs[value.Names[i].Name] = value.Values[i]
					ast.Inspect(value.Values[i], func(n ast.Node) bool {
						if e, ok := n.(ast.Expr); ok {
							inConst[e] = true
						}
						return true
					})
				}
			}
			return true
		})
	}
	for _, file := range parsed {
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && !inConst[lit] && verb.MatchString(constant.StringVal(literal(lit))) {
				t.Errorf("%s: a query without a name", files.Position(lit.Pos()))
			}
			return true
		})
	}
	queries := map[string]string{}
	for name, expr := range exprs {
		if value := evaluate(exprs, expr); value.Kind() == constant.String && verb.MatchString(constant.StringVal(value)) {
			queries[name] = constant.StringVal(value)
		}
	}
	return queries
}

func literal(lit *ast.BasicLit) constant.Value {
	return constant.MakeFromLiteral(lit.Value, lit.Kind, 0)
}

// evaluate is the value of a constant expression of texts; unknown for others.
func evaluate(exprs map[string]ast.Expr, expr ast.Expr) constant.Value {
	switch e := expr.(type) {
	case *ast.BasicLit:
		return literal(e)
	case *ast.Ident:
		if named, ok := exprs[e.Name]; ok {
			return evaluate(exprs, named)
		}
	case *ast.SelectorExpr:
		return evaluate(exprs, e.Sel) // of package reading
	case *ast.BinaryExpr:
		x, y := evaluate(exprs, e.X), evaluate(exprs, e.Y)
		if x.Kind() == constant.String && y.Kind() == constant.String {
			return constant.BinaryOp(x, e.Op, y)
		}
	}
	return constant.MakeUnknown()
}

// aging fills a database as years do: much that is finished, little that is open.
var aging = []string{
	`INSERT INTO inbox (session, channel, bot, id, express, raw, at, state, finished)
	SELECT 'telegram/1/bot/' || n % 500 || '/0/7', 'telegram', '1', n, false, CASE WHEN n % 2 = 0 THEN '{}'::bytea END, 1,
	CASE WHEN n % 1000 = 0 THEN 'waiting' WHEN n % 1001 = 0 THEN 'dead' ELSE 'done' END, CASE WHEN n % 1000 = 0 THEN 0 ELSE n END FROM generate_series(1, 20000) n`,
	`INSERT INTO lane SELECT 'telegram/1/bot/' || n || '/0/7', 'telegram', '1', 'bot', n, '0', false, CASE WHEN n % 500 = 0 THEN 'running' ELSE 'idle' END, 1,
	CASE WHEN n % 500 = 0 THEN 'me' ELSE '' END, 0, CASE WHEN n % 500 = 0 THEN 't' ELSE '' END, 0, 0, 0, 0, '', 0, 0, '', '', 1, '' FROM generate_series(1, 20000) n`,
	`INSERT INTO journal SELECT 'telegram/1/bot/' || n / 50 || '/0/7', n, n % 50 = 0, '{}' FROM generate_series(1, 20000) n`,
	`INSERT INTO approval (session, id, short, turn, call, channel, bot, surface, chat, thread, grp, caller, tool, hash, state, scope, decider, name, needed,
	created, expires, decided, card) SELECT 'telegram/1/bot/' || n % 500 || '/0/7', n, 'a' || n, 't', n, 'telegram', '1', 'bot', n % 500, '0', false, 'u', 'bash', n,
	CASE WHEN n % 1000 = 0 THEN 'pending' ELSE 'approved' END, CASE WHEN n % 10 = 0 THEN 'session' ELSE 'once' END, '', '', 1, n, 0, 0, n FROM generate_series(1, 20000) n`,
	`INSERT INTO outbox (session, turn, channel, bot, surface, chat, thread, grp, purpose, content, reply_to, edit, edit_row, query, alert, key, state, message,
	attempts, resent, not_before, created, problem, finished) SELECT 'telegram/1/bot/' || n % 500 || '/0/7', 't', 'telegram', '1', 'bot', n % 500, '0', false, 'final',
	CASE WHEN n % 2 = 0 THEN '{}'::bytea END, '', '', CASE WHEN n % 7 = 0 THEN n - 1 ELSE 0 END, '', false, n,
	CASE n % 3000 WHEN 0 THEN 'pending' WHEN 1 THEN 'sending' WHEN 2 THEN 'unknown' ELSE 'sent' END, n, 0, 0, 0, n, '',
	CASE WHEN n % 3000 < 3 THEN 0 ELSE n END FROM generate_series(1, 20000) n`,
	`INSERT INTO fact SELECT 'b' || n % 5, 'telegram/1/bot/' || n, 'v', CASE WHEN n % 2 = 0 THEN n ELSE 0 END FROM generate_series(1, 20000) n`,
	`INSERT INTO charge SELECT n, 'chat/telegram/1/bot/' || n % 500, 'turns', '2026-03-' || 1 + n % 4, 1 FROM generate_series(1, 20000) n`,
	`INSERT INTO usage SELECT '2026-02-' || 10 + n % 15, 'chat/telegram/1/bot/' || n, 'turns', 1 FROM generate_series(1, 20000) n`,
	`INSERT INTO tool_overflow SELECT 'telegram/1/bot/' || n % 500 || '/0/7', n, 't', n, 'bash', '', 1, 1, n, 'x' FROM generate_series(1, 20000) n`,
	`INSERT INTO vector_point SELECT 'c' || n % 20, n, 'h', '', 'x' FROM generate_series(1, 20000) n`,
	`INSERT INTO vector_owner SELECT 'k' || n % 20, n, n FROM generate_series(1, 20000) n`,
	`INSERT INTO vector_entry (kind, scope, key, hash, payload, vector) SELECT 'k' || n % 20, n % 50, n, 'h', '', 'x' FROM generate_series(1, 20000) n`,
	`INSERT INTO hold SELECT n, 'chat/telegram/1/bot/' || n % 500, 'turns', '2026-03-01', 1, 'p' || n % 4, n FROM generate_series(1, 20000) n`,
	`INSERT INTO applied SELECT n, true, n FROM generate_series(1, 20000) n`,
	`INSERT INTO blob (hash, size, begun) SELECT CASE WHEN n % 3000 = 0 THEN '' ELSE 'h' || n END, 1, n FROM generate_series(1, 20000) n`,
	`INSERT INTO blob_piece SELECT n, 0, 'x' FROM generate_series(1, 20000) n`,
	`INSERT INTO blob_ref SELECT 'telegram/1/bot/' || n % 500 || '/0/7', n, n FROM generate_series(1, 20000) n`,
	`ANALYZE`,
}

// TestEveryQueryUsesItsIndex looks at the plan that the server makes without knowing the parameters.
func TestEveryQueryUsesItsIndex(t *testing.T) {
	t.Parallel()
	queries := statements(t)
	cluster := pgtest.Shared(t)
	name := cluster.Database(t, "")
	store := open(t, postgres.Options{URL: cluster.URL(name)})
	_, err := store.Entries().Nearest(t.Context(), knn.Kind{Name: "code", Model: "m", Size: 1}, "a", []float32{1}, 1, nil)
	check(t, err) // sets up pgvector, if the server has it
	check(t, store.Close())
	check(t, cluster.Exec(t.Context(), name, aging...))
	conn, err := pgx.Connect(t.Context(), cluster.URL(name))
	check(t, err)
	defer func() { check(t, conn.Close(t.Context())) }()
	near, err := cluster.Numbers(t.Context(), name, "SELECT 1 FROM pg_attribute WHERE attrelid = 'vector_entry'::regclass AND attname = 'near'")
	check(t, err)
	_, err = conn.Exec(t.Context(), "SET plan_cache_mode = force_generic_plan")
	check(t, err)
	for name := range plans {
		if _, ok := queries[name]; !ok {
			t.Errorf("the plan of %s is listed, and there is no such query", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(queries)) {
		if len(near) == 0 && slices.Contains(withNear, name) {
			continue
		}
		got, walks := indexes(t, conn, name, queries[name])
		for _, index := range walks {
			if whole[name] != index {
				t.Errorf("%s walks over the whole of %q", name, index)
			}
		}
		if slices.Contains(byEither, name) {
			got = strings.ReplaceAll(got, "blob_ref_blob", "blob_ref_pkey")
		}
		if want := plans[name]; got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// parameter is a parameter of a query.
var parameter = regexp.MustCompile(`\$(\d+)`)

// node is a part of a plan.
type node struct {
	Index string `json:"Index Name"`
	Cond  string `json:"Index Cond"`
	Table string `json:"Relation Name"`
	Type  string `json:"Node Type"`
	Parts []node `json:"Plans"`
}

// indexes lists by which indexes a query finds its rows, and what it walks over from end to end.
func indexes(t *testing.T, conn *pgx.Conn, name, query string) (found string, walks []string) {
	t.Helper()
	most := 0
	for _, match := range parameter.FindAllStringSubmatch(query, -1) {
		n, err := strconv.Atoi(match[1])
		check(t, err)
		most = max(most, n)
	}
	args := strings.TrimSuffix(strings.Repeat("NULL, ", most), ", ")
	if args != "" {
		args = "(" + args + ")"
	}
	_, err := conn.Exec(t.Context(), "PREPARE "+name+" AS "+query)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var raw []byte
	check(t, conn.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) EXECUTE "+name+args, pgx.QueryExecModeSimpleProtocol).Scan(&raw))
	var plan []struct{ Plan node }
	check(t, json.Unmarshal(raw, &plan))
	all := map[string]bool{}
	plan[0].Plan.visit(func(n node) {
		switch {
		case slices.Contains(walked, n.Index): // which of these is taken is a matter of taste
			table, _, _ := strings.Cut(n.Index, "_")
			all["open "+table] = true
		case n.Type == "Seq Scan":
			walks = append(walks, n.Table)
			all["all of "+n.Table] = true
		case n.Index != "" && n.Cond == "":
			walks = append(walks, n.Index)
			all["every "+n.Index] = true
		case n.Index != "":
			all[n.Index] = true
		}
	})
	return strings.Join(slices.Sorted(maps.Keys(all)), " "), walks
}

func (n node) visit(see func(node)) {
	see(n)
	for _, part := range n.Parts {
		part.visit(see)
	}
}
