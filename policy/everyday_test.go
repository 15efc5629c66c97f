package policy_test

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
)

// everyday is what developers and operators type all day, with the decision about it before the options of programs
// were judged. It has a head line, then one command a line: the decision without rules, under the typical rules, and
// under "allow *"; which of them has become a question since, and why; the command. A question that is not announced
// there is a question too many.
//
//go:embed testdata/everyday.tsv
var everyday string

type everydayRow struct {
	line    int
	before  [3]policy.Effect
	because string // "" = nothing may become stricter
	command string
}

func everydayRows(tb testing.TB) (list []everydayRow) {
	tb.Helper()
	for i, line := range strings.Split(strings.TrimSuffix(everyday, "\n"), "\n")[1:] {
		cols := strings.Split(line, "\t")
		if len(cols) != 5 {
			tb.Fatalf("line %d has %d columns, want 5", i+2, len(cols))
		}
		list = append(list, everydayRow{
			line: i + 2, before: [3]policy.Effect{policy.Effect(cols[0]), policy.Effect(cols[1]), policy.Effect(cols[2])},
			because: cols[3], command: cols[4],
		})
	}
	return list
}

// typicalRules returns the permissions of somebody who works with these tools all day and does not want to be asked.
func typicalRules() []string {
	names := "git go gofmt npm npx yarn pnpm node cargo rustc make cmake ninja gradle ./gradlew mvn pytest python python3 pip ruff black mypy eslint prettier tsc perl ruby php bash sh " +
		"gcc g++ clang javac java docker docker-compose kubectl helm systemctl journalctl dmesg ss netstat ip lsof curl wget ping dig tar zip unzip gzip gunzip zcat zgrep " +
		"mkdir touch cp mv ln chmod rsync ssh scp xargs less more man vim tee sqlite3 psql mysql redis-cli openssl crontab watch time timeout nohup env printenv xxd jq " +
		"ls cat head tail wc stat file du df tree which type command whoami id groups uname uptime date free ps top hostname echo printf seq sleep true test [[] basename dirname realpath readlink " +
		"sort uniq cut tr paste comm join diff cmp nl tac rev column fold md5sum sha256sum od hexdump strings base64 grep egrep rg find sed awk pwd cd read split shuf bc expr"
	rules := []string{"ask rm *", "ask git push --force*", "deny *id_rsa*"}
	for name := range strings.FieldsSeq(names) {
		rules = append(rules, "allow "+name, "allow "+name+" *")
	}
	return rules
}

// everydaySets returns the three rule sets, in the order of the columns.
func everydaySets(tb testing.TB) [3]*policy.Set {
	tb.Helper()
	return [3]*policy.Set{
		newSet(tb, policy.Options{Unasked: policy.UnaskedReading}),
		newSet(tb, policy.Options{Unasked: policy.UnaskedReading, AllowNetwork: true, Permissions: perms(typicalRules()...)}),
		newSet(tb, policy.Options{Unasked: policy.UnaskedReading, AllowNetwork: true, Permissions: perms("allow *")}),
	}
}

// everydayCall returns a command in a workspace that the kernel confines.
func everydayCall(command string) policy.Request {
	r := bash(command)
	r.Confined, r.InsidePaths = true, []string{"/srv/work/repo"}
	return r
}

// stricter orders effects.
func stricter(effect, than policy.Effect) bool {
	order := []policy.Effect{policy.Allow, policy.Ask, policy.Deny}
	return slices.Index(order, effect) > slices.Index(order, than)
}

// TestEveryday: ordinary work causes no more questions than before, except where the list says why.
func TestEveryday(t *testing.T) {
	t.Parallel()
	list := everydayRows(t)
	if len(list) < 200 {
		t.Errorf("the list has %d commands, want at least 200", len(list))
	}
	for i, name := range [3]string{"no rules", "typical rules", "allow *"} {
		set := everydaySets(t)[i]
		before, after, announced := 0, 0, 0
		for _, row := range list {
			d := set.Decide(everydayCall(row.command))
			if row.before[i] != policy.Allow {
				before++
			}
			if d.Effect != policy.Allow {
				after++
			}
			if !stricter(d.Effect, row.before[i]) {
				continue
			}
			if row.because == "" {
				t.Errorf("line %d, %s: %q was %s and is %s now: %s (%s)", row.line, name, row.command, row.before[i], d.Effect, d.Reason.String(), d.Rule)
			}
			announced++
		}
		t.Logf("%s: asked or refused %d of %d before, %d of %d now; %d of them announced", name, before, len(list), after, len(list), announced)
	}
}

// TestEverydayIsOneList: a command that is listed twice, or with an invalid decision, would hide a change.
func TestEverydayIsOneList(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range everydayRows(t) {
		if seen[row.command] {
			t.Errorf("line %d: %q is listed twice", row.line, row.command)
		}
		seen[row.command] = true
		for _, effect := range row.before {
			if effect != policy.Allow && effect != policy.Ask && effect != policy.Deny {
				t.Errorf("line %d: %q is no decision", row.line, effect)
			}
		}
	}
}
