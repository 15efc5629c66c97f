package sql_test

import (
	"database/sql"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	zephsql "github.com/zephbot/zephbot/persistence/sql"
)

// plans names, for every query of the package, the indexes by which it finds its rows: the table, and the index
// ("rowid", "key" for the primary or a unique key). "Every" is a walk over an index from end to end: that may only be
// one that holds nothing but open work. A query that only inserts finds no rows.
var plans = map[string]string{
	"addUsage":         "",
	"aloneQuery":       "journal/journal_reset journal/key",
	"anyWaiting":       "inbox/inbox_lane",
	"approvalOfQuery":  "approval/approval_call",
	"approvalQuery":    "approval/key",
	"approvalsChat":    "approval/approval_chat",
	"approvalsFrom":    "approval/approval_call",
	"approvalsMove":    "approval/approval_call",
	"arrivalQuery":     "inbox/rowid",
	"arrivedQuery":     "inbox/key",
	"asideQuery":       "journal/key",
	"askedQuery":       "approval/approval_asked",
	"backlogQuery":     "inbox/every inbox_express inbox/every inbox_lane",
	"bucketsQuery":     "fact/key",
	"busyQuery":        "lane/key",
	"bookHolds":        "hold/hold_owner",
	"chargeSums":       "charge/charge_scope",
	"chargedQuery":     "charge/key",
	"deleteHold":       "hold/key",
	"deleteHolds":      "hold/hold_owner",
	"heldQuery":        "hold/hold_scope",
	"setHolds":         "",
	"takenQuery":       "charge/charge_scope usage/key",
	"chargesFrom":      "charge/charge_scope",
	"chargesMove":      "charge/charge_scope",
	"chargesQuery":     "charge/charge_scope",
	"countCommit":      "",
	"arrivalOfQuery":   "inbox/key",
	"countsQuery":      "inbox/every inbox_dead inbox/every inbox_express inbox/every inbox_lane lane/every lane_busy lane/lane_place outbox/every outbox_open",
	"daysQuery":        "charge/charge_scope",
	"deadFrom":         "inbox/every inbox_dead",
	"deadMove":         "inbox/every inbox_dead",
	"deadQuery":        "inbox/every inbox_dead",
	"deleteArrival":    "inbox/rowid",
	"deleteCharge":     "charge/key",
	"deleteEntry":      "journal/key",
	"deleteFact":       "fact/key",
	"deleteLane":       "lane/key",
	"deleteOutput":     "tool_overflow/key",
	"deletePoint":      "vector_point/key",
	"deleteQuestion":   "approval/rowid",
	"deleteRow":        "outbox/rowid",
	"deleteUsage":      "usage/key",
	"deliveryQuery":    "outbox/rowid",
	"dueQuery":         "outbox/outbox_open outbox/rowid",
	"entryQuery":       "journal/key",
	"expressFrom":      "inbox/every inbox_express",
	"expressMove":      "inbox/every inbox_express",
	"expressQuery":     "inbox/every inbox_express",
	"failedRowsQuery":  "outbox/outbox_failed",
	"factQuery":        "fact/key",
	"factsFrom":        "fact/key",
	"factsMove":        "fact/key",
	"factsQuery":       "fact/key",
	"forgetBody":       "inbox/rowid",
	"forgetContent":    "outbox/rowid",
	"forgetUsage":      "usage/key",
	"freeLanes":        "lane/every lane_held",
	"freeLeaders":      "fact/key",
	"grantedQuery":     "approval/approval_granted",
	"hasVersions":      "",
	"holdLane":         "lane/key",
	"insertApproval":   "approval/key",
	"insertArrival":    "inbox/key",
	"insertCharges":    "",
	"insertEntry":      "",
	"insertFirst":      "inbox/inbox_lane inbox/key",
	"insertLane":       "",
	"insertOverflow":   "",
	"insertRow":        "outbox/outbox_key",
	"journalQuery":     "journal/journal_reset journal/key",
	"keyQuery":         "outbox/outbox_key",
	"landJournal":      "journal/key",
	"laneQuery":        "lane/key",
	"lanesFrom":        "lane/key",
	"lanesQuery":       "lane/lane_place",
	"liftJournal":      "journal/key",
	"openRowsQuery":    "outbox/outbox_open",
	"lostQuery":        "outbox/outbox_open",
	"moveOverflow":     "tool_overflow/tool_overflow_call",
	"nameDatabase":     "",
	"nameOwner":        "",
	"nameQuery":        "meta/key",
	"nextQuery":        "inbox/inbox_lane",
	"nextQuestions":    "approval/rowid",
	"numbersQuery":     "meta/key",
	"oldArrivals":      "inbox/inbox_finished",
	"oldBodies":        "inbox/inbox_raw",
	"oldCharges":       "charge/charge_scope",
	"oldContents":      "outbox/outbox_content",
	"oldFactQuery":     "fact/key",
	"oldFacts":         "fact/fact_expires",
	"oldOutputs":       "tool_overflow/tool_overflow_expires",
	"oldRows":          "approval/every approval_pending outbox/outbox_edits outbox/outbox_finished",
	"oldUsage":         "usage/key",
	"openAllQuery":     "approval/every approval_pending",
	"openQuery":        "approval/approval_open",
	"overflowQuery":    "tool_overflow/key",
	"overflowSessions": "tool_overflow/tool_overflow_call",
	"placeLane":        "lane/key",
	"pointsQuery":      "vector_point/key",
	"questionQuery":    "approval/key",
	"questionsQuery":   "approval/approval_open",
	"queuedFrom":       "inbox/inbox_lane",
	"queuedMove":       "inbox/inbox_lane",
	"queuedQuery":      "inbox/inbox_lane",
	"readyQuery":       "approval/approval_open inbox/every inbox_lane lane/every lane_busy lane/key",
	"referredQuery":    "approval/approval_call inbox/inbox_lane outbox/outbox_session tool_overflow/tool_overflow_call",
	"replaceArrival":   "inbox/rowid",
	"replaceOverflow":  "tool_overflow/tool_overflow_call",
	"resetOverflow":    "tool_overflow/tool_overflow_call",
	"resetQuery":       "fact/key",
	"resetsQuery":      "journal/journal_reset journal/key",
	"rowOfQuery":       "outbox/outbox_key",
	"rowQuery":         "outbox/rowid",
	"rowsChat":         "outbox/outbox_chat",
	"rowsFrom":         "outbox/outbox_session",
	"rowsMove":         "outbox/outbox_session",
	"rowsQuery":        "outbox/outbox_session",
	"setFact":          "",
	"shortQuery":       "approval/every approval_pending",
	"stopsQuery":       "lane/lane_held",
	"strandedQuery":    "outbox/outbox_open",
	"pastQuery":        "journal/key",
	"inChatQuery":      "lane/key",
	"tailQuery":        "journal/journal_reset journal/key",
	"updateApproval":   "approval/key",
	"updateArrival":    "inbox/rowid",
	"updateLane":       "lane/key",
	"updateRow":        "outbox/rowid",
	"upsertPoint":      "",
	"usageFrom":        "usage/key",
	"usageMove":        "usage/key",
	"addFiller":        "",
	"endJournal":       "journal/key",
	"freeLane":         "lane/key",
	"freePages":        "",
	"moveSum":          "usage/key",
	"oldFiller":        "blob_piece/key",
	"putFact":          "",
	"refOfSession":     "blob_ref/key",
	"usageQuery":       "usage/key",
	"usedDaysQuery":    "usage/key",
	"usedQuery":        "charge/charge_scope usage/key",
	"versionQuery":     "",
	"addBlobBytes":     "",
	"asideRefs":        "blob_ref/key",
	"beginsQuery":      "journal/journal_reset",
	"blobBytes":        "meta/key",
	"blobQuery":        "blob/blob_hash blob_ref/key",
	"copyRefs":         "blob_ref/key",
	"deleteBlob":       "blob/rowid",
	"deletePieces":     "blob_piece/key",
	"deleteRef":        "blob_ref/key",
	"deleteRefs":       "blob_ref/key",
	"growBlob":         "blob/rowid",
	"insertBlob":       "",
	"insertPiece":      "",
	"knownBlob":        "blob/blob_hash",
	"nameBlob":         "blob/rowid",
	"oldRefs":          "blob_ref/blob_ref_used",
	"oldUploads":       "blob/blob_unfinished",
	"pieceQuery":       "blob_piece/key",
	"refOf":            "blob_ref/blob_ref_blob",
	"refSessions":      "blob_ref/key",
	"setRef":           "",
	"sizeOfBlob":       "blob/rowid",
}

// verb begins a query.
var verb = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|REPLACE)\b`)

// codePlans is the same for the database of the code index.
var codePlans = map[string]string{
	"codeFiles":    "file/key",
	"codeRoots":    "file/key",
	"dropCode":     "file/key",
	"forgetCode":   "file/key",
	"saveCodeFile": "",
	"touchCode":    "file/key",
}

// ofCode is the file with the queries of the code index.
const ofCode = "codeindex.go"

// walking is the file whose queries walk over whole tables.
const walking = "walk.go"

// statements gives the queries of the package's source by the names of their constants, of the files that are not left
// out. A query that is not a constant of the package has no name and fails the test: nobody could look at its plan.
func statements(t *testing.T, leave func(path string) bool) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	paths, err := filepath.Glob("*.go")
	check(t, err)
	paths = append(paths, "../reading/columns.go")
	exprs, inConst := map[string]ast.Expr{}, map[ast.Expr]bool{}
	var parsed []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || path == walking || leave(path) {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		check(t, err)
		parsed = append(parsed, file)
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
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
		}
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

// TestEveryQueryUsesItsIndex looks at the plan of every query in databases as they are after years, since the planner
// weighs what it knows of a table: nothing, or what ANALYZE once saw of it.
func TestEveryQueryUsesItsIndex(t *testing.T) {
	t.Parallel()
	queries := statements(t, func(path string) bool { return path == ofCode })
	for name := range plans {
		if _, ok := queries[name]; !ok {
			t.Errorf("the plan of %s is listed, and there is no such query", name)
		}
	}
	for name, prepare := range map[string]func(*testing.T, *sql.DB){
		"new": func(*testing.T, *sql.DB) {},
		"old": func(t *testing.T, db *sql.DB) { age(t, db, small) },
		"old, analyzed": func(t *testing.T, db *sql.DB) {
			age(t, db, small)
			run(t, db, "ANALYZE")
		},
		"old, analyzed while much was open": func(t *testing.T, db *sql.DB) {
			age(t, db, small)
			run(t, db, "UPDATE inbox SET state = 'waiting', finished = 0 WHERE seq % 3 = 0")
			run(t, db, "UPDATE outbox SET state = 'pending', finished = 0 WHERE id % 3 = 0")
			run(t, db, "UPDATE approval SET state = 'pending' WHERE n % 3 = 0")
			run(t, db, "UPDATE lane SET state = 'running', owner = 'x' WHERE rowid % 3 = 0")
			run(t, db, "ANALYZE")
		},
		"analyzed when it was young": func(t *testing.T, db *sql.DB) {
			age(t, db, volume{sessions: 3, entries: 9, arrivals: 9, rows: 9, charges: 9, approvals: 3})
			run(t, db, "ANALYZE")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "zephbot.db")
			check(t, open(t, zephsql.Options{Path: path}).Close())
			db := connect(t, path)
			prepare(t, db)
			for _, query := range slices.Sorted(maps.Keys(queries)) {
				got, walks := indexes(t, db, queries[query])
				for _, index := range walks {
					if !partial(t, db, index) {
						t.Errorf("%s walks over a whole table by %q", query, index)
					}
				}
				if want, ok := plans[query]; !ok || got != want {
					t.Errorf("%q: %q, want %q", query, got, want)
				}
			}
		})
	}
}

// TestCodeIndexQueries looks at the plans of the code index, whose rows are large.
func TestCodeIndexQueries(t *testing.T) {
	t.Parallel()
	queries := statements(t, func(path string) bool { return path != ofCode })
	path := filepath.Join(t.TempDir(), "code-index.db")
	check(t, openIndex(t, path).Close())
	db := connect(t, path)
	for name := range codePlans {
		if _, ok := queries[name]; !ok {
			t.Errorf("the plan of %s is listed, and there is no such query", name)
		}
	}
	for _, query := range slices.Sorted(maps.Keys(queries)) {
		got, walks := indexes(t, db, queries[query])
		if want, ok := codePlans[query]; !ok || got != want || len(walks) > 0 {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}

// access is a line of a plan that reads a table.
var access = regexp.MustCompile(`^(SCAN|SEARCH) (\w+)(?: EXISTS)?(?: USING (?:COVERING |AUTOMATIC )?(?:PARTIAL )?(?:COVERING )?(?:INDEX (\w+)|(INTEGER PRIMARY KEY)|(PRIMARY KEY)))?`)

// indexes lists by which indexes a query finds its rows, and over which of them it walks from end to end.
func indexes(t *testing.T, db *sql.DB, query string) (found string, walks []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, make([]any, strings.Count(query, "?"))...)
	if err != nil {
		t.Fatalf("%v: %s", err, query)
	}
	defer func() { check(t, rows.Close()) }()
	all := map[string]bool{}
	for rows.Next() {
		var id, parent, unused int
		var detail string
		check(t, rows.Scan(&id, &parent, &unused, &detail))
		match := access.FindStringSubmatch(detail)
		if match == nil || !slices.Contains(tables, alias(match[2])) {
			continue
		}
		index := match[3]
		switch {
		case match[4] != "":
			index = "rowid"
		case match[5] != "" || strings.HasPrefix(index, "sqlite_autoindex"):
			index = "key"
		case index == "":
			index = "all"
		}
		if match[1] == "SCAN" {
			index = "every " + index
			walks = append(walks, match[3])
		}
		all[alias(match[2])+"/"+index] = true
	}
	check(t, rows.Err())
	return strings.Join(slices.Sorted(maps.Keys(all)), " "), walks
}

var tables = []string{"inbox", "lane", "journal", "approval", "outbox", "fact", "charge", "usage", "hold", "meta", "tool_overflow", "vector_point", "blob", "blob_piece", "blob_ref", "file"}

// alias gives the table behind a name that a query made up.
func alias(name string) string {
	switch name {
	case "o", "target", "old":
		return "outbox"
	case "began":
		return "journal"
	}
	return name
}

// partial says whether an index holds some rows of its table only.
func partial(t *testing.T, db *sql.DB, index string) bool {
	t.Helper()
	var some bool
	check(t, db.QueryRowContext(t.Context(), "SELECT COALESCE(MAX(sql LIKE '% WHERE %'), 0) FROM sqlite_master WHERE type = 'index' AND name = ?", index).Scan(&some))
	return some
}
