package redis_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/quota/quotatest"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
	"github.com/zephbot/zephbot/tools/cache"
	"github.com/zephbot/zephbot/tools/cache/cachetest"
)

// since lists every command that a client sends or a script calls, with the first version of Redis that has it
// according to https://redis.io/docs/latest/commands. Options that came later: KEEPTTL of SET 6.0, several fields of
// HSET 4.0.
var since = map[string]string{
	// Connecting. CLUSTER SLOTS only in a cluster, SENTINEL and PUBSUB with sentinels.
	"AUTH": "1.0", "HELLO": "6.0", "INFO": "1.0", "PING": "1.0", "SELECT": "1.0",
	"EVAL": "2.6", "EVALSHA": "2.6", "MGET": "1.0", "SET": "1.0",
	// In scripts.
	"DECRBY": "1.0", "DEL": "1.0", "EXISTS": "1.0", "EXPIREAT": "1.2", "GET": "1.0", "HDEL": "2.0", "HGET": "2.0", "HINCRBY": "2.0", "HSET": "2.0",
	"HGETALL": "2.0", "HSTRLEN": "3.2", "INCRBY": "1.0", "PEXPIRE": "2.6", "PTTL": "2.6", "TIME": "2.6", "ZADD": "1.2", "ZCARD": "1.2", "ZRANGE": "1.2", "ZRANGEBYSCORE": "1.0", "ZREM": "1.2",
	"ZREMRANGEBYSCORE": "1.2", "ZSCORE": "1.2",
}

// inScripts returns every command that a script calls.
func inScripts(t *testing.T) map[string]bool {
	t.Helper()
	called := regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)
	all := map[string]bool{}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				return true
			}
			value, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			calls := called.FindAllStringSubmatch(value, -1)
			if n := strings.Count(value, "redis.call") + strings.Count(value, "redis.pcall"); n != len(calls) {
				t.Errorf("%s: %d calls, %d of them name their command", f.Name(), n, len(calls))
			}
			for _, m := range calls {
				all[m[1]] = true
			}
			return true
		})
	}
	return all
}

// TestCommands: nothing newer than Redis 7.0 is used, and a user with rights to exactly these commands and keys passes
// every suite.
func TestCommands(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t)
	server.Do(documented(t)...)
	for name, version := range since {
		if !slices.ContainsFunc([]string{"1.", "2.", "3.", "4.", "5.", "6."}, func(old string) bool { return strings.HasPrefix(version, old) }) {
			t.Errorf("%s is of Redis %s", name, version)
		}
	}
	plug := redistest.Between(t, server.Addr())
	d := &database{url: "redis://zephbot:password@" + plug.Addr()}
	t.Run("suites", func(t *testing.T) {
		quotatest.Suite(t, func(t *testing.T) quota.Counter { return d.open(t) })
		cachetest.Suite(t, func(t *testing.T) cache.Store { return scoped{open(t, d.url).Cache(), t.Name()} })
		works(t, open(t, d.url))
		paces(t, open(t, d.url))
	})
	all := inScripts(t)
	for _, name := range plug.Commands() {
		all[name] = true
	}
	for name := range all {
		if since[name] == "" {
			t.Errorf("%s is used and not in the list", name)
		}
	}
	for name := range since {
		if !all[name] && name != "AUTH" && name != "PING" { // for an older HELLO, and what an operator tries first
			t.Errorf("%s is in the list and not used", name)
		}
	}
}

// documented returns the command in docs/redis.md that creates a user.
func documented(t *testing.T) []any {
	t.Helper()
	docs, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	var words []any
	for word := range strings.FieldsSeq(regexp.MustCompile(`(?m)^ACL SETUSER .*$`).FindString(string(docs))) {
		words = append(words, word)
	}
	if len(words) == 0 {
		t.Fatal("docs/redis.md creates no user")
	}
	for name := range since {
		if !slices.Contains(words, any("+"+strings.ToLower(name))) {
			t.Errorf("docs/redis.md gives the user no right to %s", name)
		}
	}
	return words
}

// TestUnnamedServer: if the user may not query the server's id, everything works, and missing counters are detected by
// their marker.
func TestUnnamedServer(t *testing.T) {
	t.Parallel()
	server := redistest.Run(t)
	server.Do("ACL", "SETUSER", "zeph", "on", ">s3cret", "~*", "+@all", "-info")
	s := open(t, "redis://zeph:s3cret@"+server.Addr())
	works(t, s)
	d := newDesk(s, 2)
	d.admit(t)
	server.Do("FLUSHALL")
	if d.admit(t) || !d.admit(t) {
		t.Error("not two turns of two")
	}
	if n := s.Renewals(); n != 1 { // many connections are not many new servers
		t.Errorf("%d renewals, want 1", n)
	}
}
