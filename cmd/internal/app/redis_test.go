package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// outage is one row of the table in docs/redis.md: how it comes about, and how it ends.
type outage struct {
	begin func(*plugged)
	end   func(*plugged) // nil: there is nothing to end
}

func outages() map[string]outage {
	heal := func(p *plugged) { p.plug.Break(redistest.None) }
	breaks := func(f redistest.Fault) func(*plugged) { return func(p *plugged) { p.plug.Break(f) } }
	return map[string]outage{
		"slow":      {breaks(redistest.Stall), heal},
		"away":      {breaks(redistest.Cut), heal},
		"read-only": {breaks(redistest.ReadOnly), heal},
		"refused": {
			func(p *plugged) { p.server.Do("ACL", "SETUSER", "zeph", "-@all") },
			func(p *plugged) { p.server.Do("ACL", "SETUSER", "zeph", "+@all") },
		},
		"flushed":     {begin: func(p *plugged) { p.server.Do("FLUSHALL") }},
		"failed over": {begin: func(p *plugged) { p.failOver() }},
		"restarted from an old snapshot": {begin: func(p *plugged) {
			p.lag(p.server)
			p.server.Do("SAVE")
			p.server.Kill()
			p.server.Again()
		}},
	}
}

// plugged is the service with a real Redis behind a proxy.
type plugged struct {
	*wired
	server *redistest.Process
	plug   *redistest.Proxy
	http   string
}

// run starts a server with the user that the service is.
func run(t *testing.T) *redistest.Process {
	t.Helper()
	return redistest.Run(t, "--user", "zeph", "on", ">s3cret", "~*", "+@all")
}

func plugIn(t *testing.T) *plugged {
	t.Helper()
	p := &plugged{server: run(t)}
	p.plug = redistest.Between(t, p.server.Addr())
	today := time.Now().UTC().Truncate(24 * time.Hour) // the server deletes the counters of days long ago
	p.wired = wireOn(t, today, "", fmt.Sprintf("[redis]\nurl = \"redis://zeph:s3cret@%s\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n[quotas]\non_redis_down = \"deny\"\n[quotas.user]\nturns_per_day = 2\n",
		p.plug.Addr()), spoken("answer 1"), spoken("answer 2"), spoken("answer 3"), spoken("answer 4"))
	p.http = <-p.opened
	return p
}

// lag sets all counters of turns back, as if the last ones had not been saved or had not reached a replica.
func (p *plugged) lag(server *redistest.Process) {
	p.t.Helper()
	keys, ok := server.Do("KEYS", "{quota}quota/turns/*").([]any)
	if !ok || len(keys) == 0 {
		p.t.Fatalf("counters: %v", keys)
	}
	for _, key := range keys {
		server.Do("SET", key, 0, "KEEPTTL")
	}
}

// failOver leads to a replica that lacks the last turn and is now the primary.
func (p *plugged) failOver() {
	p.t.Helper()
	replica := run(p.t)
	p.server.Do("CONFIG", "SET", "repl-diskless-sync-delay", "0")
	replica.Do("REPLICAOF", "127.0.0.1", p.server.Port)
	replica.Await("a replica", func(context.Context) bool {
		info, ok := replica.Do("INFO", "replication").(string)
		return ok && strings.Contains(info, "master_link_status:up")
	})
	replica.Do("REPLICAOF", "NO", "ONE")
	p.lag(replica)
	p.plug.Turn(replica.Addr())
	p.server.Kill()
}

// which waits for one of several texts, by name, and gives the name of the one that came.
func (p *plugged) which(texts map[string]string) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 90*time.Second)
	defer cancel()
	came := ""
	err := p.fake.WaitFor(ctx, func() bool {
		for _, m := range p.fake.Chat(1001) {
			for name, text := range texts {
				if m.FromBot && !p.seen[m.MessageID] && strings.Contains(m.Text, text) {
					p.seen[m.MessageID], came = true, name
					return true
				}
			}
		}
		return false
	})
	if err != nil {
		p.t.Fatalf("none of %v came: %v", texts, p.fake.Chat(1001))
	}
	return came
}

// readiness is what /readyz says.
func (p *plugged) readiness() string {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://"+p.http+"/readyz", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		p.t.Fatal(err)
	case resp.StatusCode == http.StatusOK:
		return "ready"
	}
	return fmt.Sprint(resp.StatusCode, " ", string(body))
}

// quotas begins turns until it is plain how they are limited: two are, of which one is used.
func (p *plugged) quotas() string {
	p.t.Helper()
	p.say("second")
	if p.which(map[string]string{"answered": "answer 2", "refused": "used up"}) == "refused" {
		return "refused"
	}
	p.say("third")
	return p.which(map[string]string{"open": "answer 3", "exact": "are used up"})
}

// documentedOutages reads the table: what each column says, by row.
func documentedOutages(t *testing.T) map[string]map[string]string {
	t.Helper()
	docs, err := os.ReadFile("../../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(docs), "\n| fault |")
	table, _, _ = strings.Cut("| fault |"+table, "\n\n")
	lines := strings.Split(table, "\n")
	cells := func(line string) []string {
		list := strings.Split(strings.Trim(line, "|"), "|")
		for i := range list {
			list[i] = strings.TrimSpace(list[i])
		}
		return list
	}
	rows, head := map[string]map[string]string{}, cells(lines[0])
	for _, line := range lines[2:] {
		row := cells(line)
		rows[row[0]] = map[string]string{}
		for i, cell := range row {
			rows[row[0]][head[i]] = cell
		}
	}
	return rows
}

// TestRedisTable pulls the plug of a service with each of the faults that docs/redis.md lists, and holds it to what
// stands there. Whatever it was, the service works again by itself.
func TestRedisTable(t *testing.T) {
	t.Parallel()
	rows := documentedOutages(t)
	if len(rows) != len(outages()) {
		t.Errorf("docs/redis.md has %d rows, want %d", len(rows), len(outages()))
	}
	for fault, o := range outages() {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			row := rows[fault]
			p := plugIn(t)
			p.say("first")
			p.await("answer 1")
			o.begin(p)
			if got, want := p.readiness(), row["`/readyz`"]; got != want {
				t.Errorf("/readyz: %s, want %s", got, want)
			}
			p.say("/status")
			if got, want := p.which(map[string]string{
				"ok": "Redis is available", "slow": "Redis has been too slow", "away": "Redis has been away", "read-only": "Redis has accepted no writes", "refused": "Redis has refused",
			}), row["`/status` of an admin"]; got != want {
				t.Errorf("/status: %s, want %s", got, want)
			}
			p.say("/quota")
			if got, want := p.which(map[string]string{"says so": "I cannot read the quotas", "exact": "1 / 2"}), row["`/quota`"]; got != want {
				t.Errorf("/quota: %s, want %s", got, want)
			}
			if got, want := p.quotas(), row["quotas"]; got != want {
				t.Errorf("quotas: %s, want %s", got, want)
			}
			if o.end != nil {
				o.end(p)
			}
			p.say("last")
			p.await("are used up")
		})
	}
}
