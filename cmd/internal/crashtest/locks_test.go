//go:build unix

package crashtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// kindServer is the name under which the test binary is an MCP server that behaves well.
const kindServer = "kindserver"

// serveKind is that server; ok is false where the process is something else.
func serveKind() (code int, ok bool) {
	if filepath.Base(os.Args[0]) != kindServer {
		return 0, false
	}
	for name, value := range (mcptest.Options{Behaviour: mcptest.Plain}).Env() {
		if err := os.Setenv(name, value); err != nil {
			return exitFailed, true
		}
	}
	return mcptest.Main()
}

// canary is in what Ann says before she is erased.
const canary = "CANARY-7Q"

// Texts of the stories of jobs.
const (
	noted1    = "Noted " + canary
	recapText = "Recap of this conversation"
	connected = "kind: connected, 1 tool."
	removed   = "kind: removed, with "
	signedIn  = "guarded: connected, 1 tool."
	exported  = "This is what I store about you."
	erased    = "✅ Erased."
)

const jobScript = `
on "The conversation:": say It was about a note.
on "please note": say ` + noted1

// lockStories are the jobs that a lock, or a claim of a process, keeps for one process, as people see them.
func lockStories() map[string]story {
	return map[string]story{
		"erase":  {script: jobScript, step: (*run).stepErase, promise: (*run).promiseErase, from: "erase_job"},
		"export": {script: jobScript, step: (*run).stepExport, promise: (*run).promiseExport, from: "export_job"},
		"recap":  {script: jobScript, step: (*run).stepRecap, promise: (*run).promiseRecap, from: "recap_job"},
		"mcp":    {script: jobScript, step: (*run).stepServers, promise: (*run).promiseServers, from: "mcp_job", prepare: (*run).installKind},
		"signin": {script: jobScript, step: (*run).stepSignIn, promise: (*run).promiseSignIn, from: "mcp_job", prepare: (*run).guard},
	}
}

// TestCrashLocks kills the process at every point of every job that holds a lock, and starts it again: nobody waits for
// a dead process, the job is finished or begun again, its result is told once, and nothing of it is left.
func TestCrashLocks(t *testing.T) {
	for name, s := range lockStories() {
		t.Run(name, func(t *testing.T) { crash(t, s, 4) })
	}
}

// TestCrashLocksOnPostgreSQL plays the same with PostgreSQL and Redis, where locks are shared with other processes.
func TestCrashLocksOnPostgreSQL(t *testing.T) {
	for name, s := range lockStories() {
		t.Run(name, func(t *testing.T) {
			s.cluster, s.shared = pgtest.Shared(t), true
			crash(t, s, 2)
		})
	}
}

// share has the run's processes share their database and Redis with others, of which there are none.
func (r *run) share() {
	r.more = append(r.more, "ZEPH_WORKSPACES_SHARED=true", "ZEPH_WORKSPACES_DIR="+filepath.Join(r.dir, "workspaces"), "ZEPH_REDIS_URL="+redistest.Start(r.t).URL)
}

// listens reports whether the newest process listens.
func (r *run) listens() bool { return r.requests("getUpdates") != r.polls }

// pressNewest presses a button of the newest message that has it, once a life.
func (r *run) pressNewest(label string) error {
	if r.pressedIn == r.lives {
		return nil
	}
	id := 0
	for _, m := range r.fake.Chat(ann) {
		for _, row := range m.Keyboard {
			if slices.ContainsFunc(row, func(b telegramtest.Button) bool { return b.Text == label }) {
				id = m.MessageID
			}
		}
	}
	if id == 0 {
		return nil
	}
	r.pressedIn = r.lives
	_, err := r.fake.PressButton(ann, ann, id, label)
	return err
}

// empty reports whether nothing is kept in some buckets.
func (r *run) empty(ctx context.Context, buckets ...string) (empty bool, err error) {
	empty = true
	return empty, r.read(ctx, func(db persistence.Reader) error {
		for _, bucket := range buckets {
			list, err := db.FactsOf(ctx, bucket, "", time.Now())
			if err != nil {
				return err
			}
			empty = empty && len(list) == 0
		}
		return nil
	})
}

// over reports whether a job is done: its result was shown, nothing is in progress, and its facts are gone.
func (r *run) over(ctx context.Context, shown bool, buckets ...string) (bool, error) {
	if !shown {
		return false, nil
	}
	for {
		empty, err := r.empty(ctx, buckets...)
		if err != nil || !empty {
			// What was delivered is removed by the next look of the service, which reports nothing.
			timer := time.NewTimer(50 * time.Millisecond)
			select {
			case <-timer.C:
				if err == nil {
					continue
				}
			case <-ctx.Done():
			case <-r.child.exited:
			}
			timer.Stop()
			return false, err
		}
		return r.still(ctx)
	}
}

// told: so many times; once more only if the process was killed while sending, and then the copy says so.
func (r *run) told(text string, want int) error {
	plain, marked := 0, 0
	for _, m := range r.fake.Chat(ann) {
		switch {
		case !m.FromBot || !strings.Contains(m.Text, text):
		case strings.Contains(m.Text, resent()):
			marked++
		default:
			plain++
		}
	}
	stranded := r.dead != nil && slices.ContainsFunc(r.dead.Sending, func(s string) bool { return strings.Contains(s, text) })
	if plain > want || plain+marked < want || marked > 1 || (marked == 1) != stranded {
		return fmt.Errorf("%q is there %d times plain and %d times marked, want %d; being sent when the kill fell: %v", text, plain, marked, want, stranded)
	}
	return nil
}

// locksLeft lists the locks that are held when the service has ended, besides the one of who polls.
func (r *run) locksLeft(ctx context.Context) error {
	return r.read(ctx, func(db persistence.Reader) error {
		list, err := db.FactsOf(ctx, bot.LeaderBucket, "", time.Now())
		list = slices.DeleteFunc(list, func(f bot.Fact) bool { return strings.HasPrefix(f.Key, "poll") })
		if len(list) > 0 {
			err = errors.Join(err, fmt.Errorf("locks are left: %v", list))
		}
		return err
	})
}

func (r *run) stepErase(ctx context.Context) (bool, error) {
	shown := r.fake.Chat(ann)
	switch {
	case !r.listens():
		return false, nil
	case r.said == 0:
		return false, r.say("please note " + canary)
	case count(shown, noted1) == 0:
		return false, nil
	case r.said == 1:
		return false, r.say("/forget")
	case count(shown, erased) == 0:
		return false, r.pressNewest("Erase everything")
	}
	return r.over(ctx, true, "erase_job")
}

// promiseErase: the person is gone from the store and the files, and has one receipt.
func (r *run) promiseErase(ctx context.Context) error {
	errs := []error{r.told(erased, 1), r.locksLeft(ctx)}
	errs = append(errs, r.read(ctx, func(db persistence.Reader) error {
		entries, err := db.Journal(ctx, session(r.fake.BotID()), 0)
		if len(entries) > 0 {
			err = errors.Join(err, fmt.Errorf("the conversation has %d entries", len(entries)))
		}
		return err
	}))
	return errors.Join(append(errs, filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(raw), canary) {
			return fmt.Errorf("%s still has what Ann said", path)
		}
		return err
	}))...)
}

func (r *run) stepExport(ctx context.Context) (bool, error) {
	return r.ordered(ctx, "/export", exported, "export_job")
}

// promiseExport: the file came once, and is not kept.
func (r *run) promiseExport(ctx context.Context) error {
	return errors.Join(r.told(exported, 1), r.locksLeft(ctx))
}

func (r *run) stepRecap(ctx context.Context) (bool, error) {
	return r.ordered(ctx, "/recap", recapText, "recap_job")
}

// ordered is a story in which Ann writes something, and then a command that begins a job, which ends with a reply.
func (r *run) ordered(ctx context.Context, command, reply, job string) (bool, error) {
	shown := r.fake.Chat(ann)
	switch {
	case !r.listens():
		return false, nil
	case r.said == 0:
		return false, r.say("please note " + canary)
	case count(shown, noted1) == 0:
		return false, nil
	case r.said == 1:
		return false, r.say(command)
	}
	return r.over(ctx, count(shown, reply) > 0, job)
}

func (r *run) promiseRecap(ctx context.Context) error {
	return errors.Join(r.told(recapText, 1), r.locksLeft(ctx))
}

// installKind puts the server of the story about servers on the path of the service, which may start it.
func (r *run) installKind() {
	dir := r.t.TempDir()
	self, err := os.Executable()
	if err == nil { // no symbolic link: the bot itself is out of reach of a server
		err = os.Link(self, filepath.Join(dir, kindServer))
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.more = append(r.more, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"),
		"ZEPH_MCP_ALLOWED_COMMANDS="+kindServer, "ZEPH_MCP_CHAT_COMMANDS=true", "ZEPH_TOOLS_SHELL_SANDBOX=off",
		fmt.Sprintf("ZEPH_TELEGRAM_ADMINS=%d", ann))
}

func (r *run) stepServers(ctx context.Context) (bool, error) {
	switch {
	case !r.listens():
		return false, nil
	case r.said == 0:
		return false, r.say("/mcp add kind " + kindServer)
	case count(r.fake.Chat(ann), connected) == 0:
		return false, r.pressNewest(approve)
	}
	// a command is over when its job is, which is stored with the first answer to it
	commands := []struct{ text, answer string }{{"/mcp restart kind", connected}, {"/mcp remove kind", "Connecting to kind"}, {"", removed}}
	next := commands[r.said-1]
	done, err := r.over(ctx, count(r.fake.Chat(ann), next.answer) > 0, "mcp_job", "audit_due")
	if !done || err != nil || next.text == "" {
		return done, err
	}
	return false, r.say(next.text)
}

// promiseServers: each command was carried out and answered once.
func (r *run) promiseServers(ctx context.Context) error {
	errs := []error{r.told(connected, 2), r.told(removed, 1), r.locksLeft(ctx)}
	var raw []byte
	err := filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(e.Name(), "audit") || filepath.Ext(path) != ".jsonl" {
			return err
		}
		log, err := os.ReadFile(path) // processes that share a database have one each
		raw = append(raw, log...)
		return err
	})
	for _, verb := range []string{"add", "restart", "remove"} {
		if n := strings.Count(string(raw), `"tool":"/mcp `+verb+`"`); n != 1 {
			errs = append(errs, fmt.Errorf("the audit log has %d lines of /mcp %s", n, verb))
		}
	}
	return errors.Join(append(errs, err)...)
}

// guard has a server that wants a sign-in, and its authorization server, which says yes to everybody; its first token
// is valid for a second, so that it is renewed at once.
func (r *run) guard() {
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	r.t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	var mu sync.Mutex
	problems := 0
	reply := func(rw http.ResponseWriter, v any) {
		rw.Header().Set("Content-Type", "application/json")
		if json.NewEncoder(rw).Encode(v) != nil { // the client was killed
			mu.Lock()
			problems++
			mu.Unlock()
		}
	}
	mux.HandleFunc("GET /meta", func(rw http.ResponseWriter, _ *http.Request) {
		reply(rw, map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}})
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(rw http.ResponseWriter, _ *http.Request) {
		reply(rw, map[string]any{
			"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "response_types_supported": []string{"code"},
			"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
		})
	})
	mux.HandleFunc("POST /token", func(rw http.ResponseWriter, req *http.Request) {
		if err := req.ParseForm(); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		r.request(req.Context(), "token", before)
		if req.PostForm.Get("grant_type") == "refresh_token" {
			reply(rw, map[string]any{"access_token": "good", "token_type": "Bearer", "expires_in": 3600})
		} else {
			reply(rw, map[string]any{"access_token": "short", "token_type": "Bearer", "expires_in": 1, "refresh_token": "again"})
		}
		if err := http.NewResponseController(rw).Flush(); err == nil {
			r.request(req.Context(), "token", after)
		}
	})
	mux.HandleFunc("/mcp", mcptest.Guarded(func() string { return s.URL + "/meta" }, "good", "short"))
	r.config = fmt.Sprintf("[[mcp.servers]]\nid = \"guarded\"\nurl = %q\ntrust_level = \"trusted\"\n[mcp.servers.oauth]\nenabled = true\nclient_id = \"known\"\ncallback_port = %d\n", s.URL+"/mcp", unusedPort(r.t))
	r.more = append(r.more, fmt.Sprintf("ZEPH_TELEGRAM_ADMINS=%d", ann))
}

// newestLink is the newest link to the authorization server that the bot has sent.
func (r *run) newestLink() (link string) {
	for _, m := range r.fake.Chat(ann) {
		for line := range strings.Lines(m.Text) {
			if line = strings.TrimSpace(line); m.FromBot && strings.Contains(line, "/authorize?") {
				link = line
			}
		}
	}
	return link
}

func (r *run) stepSignIn(ctx context.Context) (bool, error) {
	shown := r.fake.Chat(ann)
	switch {
	case !r.listens():
		return false, nil
	case r.said == 0:
		return false, r.say("/mcp signin guarded")
	case count(shown, signedIn) > 0:
		return r.over(ctx, true, "mcp_job")
	}
	link := r.newestLink()
	if link == "" || link == r.followed {
		return false, nil
	}
	u, err := url.Parse(link)
	if err != nil {
		return false, err
	}
	r.followed = link
	back := u.Query().Get("redirect_uri") + "?" + url.Values{"code": {"c"}, "state": {u.Query().Get("state")}}.Encode()
	return false, r.say("/mcp signin guarded " + back)
}

// promiseSignIn: it was told once, and what it brought is stored.
func (r *run) promiseSignIn(ctx context.Context) error {
	errs := []error{r.told(signedIn, 1), r.locksLeft(ctx)}
	found := 0
	err := filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "guarded.json" {
			found++
		}
		return err
	})
	if found != 1 {
		errs = append(errs, fmt.Errorf("%d tokens are stored", found))
	}
	return errors.Join(append(errs, err)...)
}

// unusedPort returns a port of this machine that nobody listens on: other runs sign in side by side.
func unusedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's listener
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}
