package upgradetest_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/persistence/upgradetest"
)

func TestForbidden(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "",
		"-- DROP TABLE x;\nCREATE TABLE n (a int NOT NULL); CREATE UNIQUE INDEX i ON n (a);": "",
		"ALTER TABLE x ADD COLUMN a text NOT NULL DEFAULT '';":                               "",
		"ALTER TABLE x ADD COLUMN a text;":                                                   "",
		"DROP INDEX i; CREATE INDEX i ON x (a, b); UPDATE x SET a = 1;":                      "",
		"CREATE TABLE n (a int); ALTER TABLE n ALTER COLUMN a SET NOT NULL;":                 "",
		"ALTER TABLE x ALTER COLUMN a SET STORAGE EXTERNAL;":                                 "",
		"CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN DROP TABLE x; END $$;": "",
		"drop table x;":                                                                 "removes",
		"ALTER TABLE x DROP COLUMN a;":                                                  "removes",
		"ALTER TABLE x RENAME COLUMN a TO b;":                                           "renames",
		"ALTER TABLE x RENAME TO y;":                                                    "renames",
		"ALTER TABLE x ALTER a TYPE bigint;":                                            "changes a type",
		"ALTER TABLE x ALTER COLUMN a\nSET DATA TYPE bigint;":                           "changes a type",
		"ALTER TABLE x ALTER COLUMN a SET NOT NULL;":                                    "refuses rows",
		"ALTER TABLE x ADD COLUMN a text NOT NULL;":                                     "has no default",
		"ALTER TABLE x ADD CONSTRAINT c CHECK (a > 0);":                                 "may refuse",
		"CREATE UNIQUE INDEX i\n ON x (a);":                                             "may refuse",
		"CREATE OR REPLACE FUNCTION must() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$;": "what the version before calls",
		"DELETE FROM x;":                                                                "deletes",
		"CREATE TRIGGER t BEFORE INSERT ON x EXECUTE FUNCTION f();":                     "changes what the version before writes",
	} {
		got := upgradetest.Forbidden(text)
		if (len(got) == 0) != (want == "") || !strings.Contains(strings.Join(got, "; "), want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestPromised(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"":                              false,
		"-- Old writers: none\nCREATE;": false,
		"CREATE; -- Old writers: are written by hand":       false,
		"-- Why.\n-- Old writers: leave the table empty.\n": true,
	} {
		if got := upgradetest.Promised(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
