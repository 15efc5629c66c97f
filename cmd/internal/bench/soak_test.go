//go:build unix

package bench_test

import (
	"cmp"
	"context"
	"database/sql" //nolint:depguard // the test counts the rows of the service's tables
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// soaking is the size and duration of a soak test. In each round everybody writes something, for which every tenth
// person needs a tool, and begins a new conversation; four days pass between two rounds. In the first rounds the
// process is repeatedly ended or killed, then it keeps running.
type soaking struct {
	people    int
	restarted int // rounds with restarts
	rounds    int
	sweep     time.Duration // between two sweeps of retention
	rest      time.Duration // maximum wait after the last round until idle connections are closed; 0 = no wait
}

// settled is the first round by which everything that is kept for some days has accumulated: the longest period is 16
// days, four rounds.
const settled = 6

// soak is a service in a soak test.
type soak struct {
	soaking
	tb      testing.TB
	world   *world
	dir     string
	path    string
	model   *httptest.Server
	metrics string // address
	probed  string // address of soakProbe
	servers string // directory with the process numbers of its servers
	process *process
	strides int
	heard   hearing
	seen    []sample
}

// sample is what was counted after a round.
type sample struct {
	life   int
	counts map[string]float64
}

// hearing waits until each chat has received a text.
type hearing struct {
	mu   sync.Mutex
	want map[int64]string
	half chan struct{} // closed when half of them have it
	all  chan struct{} // closed when all have it
	of   int
}

// expect begins to wait.
func (h *hearing) expect(want map[int64]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.want, h.of, h.half, h.all = want, len(want), make(chan struct{}), make(chan struct{})
}

// missing returns what was expected and did not arrive.
func (h *hearing) missing() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Values(h.want))
}

func (h *hearing) call(c telegramtest.Call) {
	if c.Phase != "after" || c.Method != "sendMessage" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	want, ok := h.want[c.Chat]
	if !ok || !strings.Contains(c.Params["text"], want) { // a repeated answer is marked
		return
	}
	delete(h.want, c.Chat)
	if len(h.want) == h.of/2 {
		close(h.half)
	}
	if len(h.want) == 0 {
		close(h.all)
	}
}

// config gives the service two servers: one that is killed from outside, and one that dies in each call.
func (s *soak) config() error {
	bin := filepath.Join(s.dir, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o700), os.Symlink(s.path, filepath.Join(bin, "soakserver"))); err != nil {
		return err
	}
	text := "[mcp]\nallowed_commands = [\"soakserver\"]\n"
	for id, behaviour := range map[string]mcptest.Behaviour{"kind": mcptest.Plain, "frail": mcptest.DieInCall} {
		text += fmt.Sprintf("[[mcp.servers]]\nid = %q\ncommand = \"soakserver\"\ntrust_level = \"trusted\"\nconfine = \"off\"\n[mcp.servers.env]\n", id)
		for name, value := range (mcptest.Options{Behaviour: behaviour, Pids: s.servers}).Env() {
			text += fmt.Sprintf("%s = %q\n", name, value)
		}
	}
	people := make([]string, s.people)
	for i := range people {
		people[i] = strconv.FormatInt(person(i), 10)
	}
	s.world.environment = append(
		s.world.environment, "ZEPH_TELEGRAM_ALLOWED_USERS="+strings.Join(people, ","), "PATH="+bin+":"+os.Getenv("PATH"), "ZEPH_SECURITY_AUTONOMY_LEVEL=full", "ZEPH_METRICS_LISTEN="+s.metrics,
		"ZEPH_RETENTION_JOURNAL=2", "ZEPH_RETENTION_OUTBOX=2", "ZEPH_RETENTION_BLOBS=2",
	)
	return os.WriteFile(filepath.Join(s.dir, "zephbot.toml"), []byte(text), 0o600)
}

// start starts the service with the clock of the soak test.
func (s *soak) start(ctx context.Context) (err error) {
	s.process, err = launch(s.tb, s.path, s.dir, s.model.URL, s.world, fmt.Sprintf("%s=%d %d", soakVariable, s.strides, s.sweep), soakProbeVariable+"="+s.probed)
	if err != nil {
		return err
	}
	process := s.process.cmd.Process
	s.tb.Cleanup(func() { _ = process.Kill() }) // it has ended, unless the test failed
	listening := make(chan error, 1)
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { listening <- s.world.listening(waiting) }()
	select {
	case err := <-listening:
		return err
	case err := <-s.process.exited:
		return fmt.Errorf("the service has ended: %w", errors.Join(err, errors.New("before it listened")))
	}
}

// kill ends the service at once.
func (s *soak) kill(ctx context.Context) error {
	if err := s.process.cmd.Process.Kill(); err != nil {
		return err
	}
	if err := <-s.process.exited; err == nil {
		return errors.New("the service ended by itself before it was killed")
	}
	return s.start(ctx)
}

// say makes everybody write, and waits until each has received the expected text.
func (s *soak) say(text func(i int) string, answer func(text string) string) error {
	want := map[int64]string{}
	for i := range s.people {
		want[person(i)] = answer(text(i))
	}
	s.heard.expect(want)
	for i := range s.people {
		if err := s.world.say(person(i), text(i)); err != nil {
			return err
		}
	}
	return nil
}

// round is a round of the soak test. If the process is to be killed, that happens as soon as half of the people have
// their answers.
func (s *soak) round(ctx context.Context, n int, killed bool) error {
	err := s.say(func(i int) string {
		text := fmt.Sprintf("message %d of %d", n, person(i))
		switch {
		case usesTool(i) && i%20 == 0:
			text += " with kind__echo"
		case usesTool(i):
			text += " with frail__echo"
		}
		return text
	}, mirrored)
	if err != nil {
		return err
	}
	if err := await(ctx, s.heard.half); err != nil {
		return err
	}
	if killed {
		if err := s.kill(ctx); err != nil {
			return err
		}
	}
	if err := s.endServers(); err != nil {
		return err
	}
	if err := await(ctx, s.heard.all); err != nil {
		return fmt.Errorf("round %d: %w: %v", n, err, s.heard.missing())
	}
	if err := s.say(func(int) string { return "/new" }, func(string) string { return texts.Words{}.Fresh("en") }); err != nil {
		return err
	}
	if err := await(ctx, s.heard.all); err != nil {
		return fmt.Errorf("new conversations of round %d: %w", n, err)
	}
	return nil
}

// endServers kills the processes of the servers.
func (s *soak) endServers() error {
	list, err := os.ReadDir(s.servers)
	if err != nil {
		return err
	}
	for _, entry := range list {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			return err
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended already
		if err := os.Remove(filepath.Join(s.servers, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// pass lets days pass: at a restart, or while the process runs.
func (s *soak) pass(ctx context.Context, restart bool) error {
	s.strides++
	if !restart {
		return s.process.cmd.Process.Signal(syscall.SIGUSR1)
	}
	if err := s.process.end(ctx); err != nil {
		return err
	}
	return s.start(ctx)
}

// count adds a sample, once the service has deleted what it has to.
func (s *soak) count(ctx context.Context, life int) error {
	const sweeps = `zephbot_retention_sweeps_total{outcome="ok"}`
	for from := -1.0; ; {
		got, err := scrape(ctx, s.metrics)
		if err != nil {
			return err
		}
		if from < 0 {
			from = got[sweeps]
		}
		if got[sweeps] >= from+2 { // the second one began after the round
			break
		}
		if got[`zephbot_retention_sweeps_total{outcome="error"}`] > 0 {
			return errors.New("a sweep failed")
		}
		if wait(ctx, s.sweep/4); ctx.Err() != nil {
			return errors.New("nothing is swept")
		}
	}
	counts := map[string]float64{}
	if err := s.look(ctx, counts); err != nil {
		return err
	}
	if err := countRows(ctx, filepath.Join(s.dir, "zephbot.db"), counts); err != nil {
		return err
	}
	err := filepath.WalkDir(s.dir, func(path string, _ fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted in this moment
			err = nil
		case filepath.Dir(path) == filepath.Join(s.dir, "workspaces"):
			counts[workspaces]++
		default:
			counts["files"]++
		}
		return err
	})
	s.seen = append(s.seen, sample{life, counts})
	return err
}

// countRows counts the rows of each table.
func countRows(ctx context.Context, path string, counts map[string]float64) (err error) {
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close(), rows.Err()) }()
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		tables = append(tables, name)
	}
	for _, table := range tables {
		var n float64
		if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
			return err
		}
		counts["rows of "+table] = n
	}
	var pages float64
	if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM dbstat WHERE name NOT LIKE '%usage%'").Scan(&pages); err != nil {
		return err
	}
	counts["pages without usage"] = pages
	return nil
}

// play soaks the service.
func (s *soak) play(ctx context.Context) error {
	if err := s.config(); err != nil {
		return err
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	life := 0
	for n := range s.rounds {
		restarts := n < s.restarted
		killed := restarts && n%2 == 1
		if err := s.round(ctx, n, killed); err != nil {
			return err
		}
		if killed {
			life++
		}
		if err := s.count(ctx, life); err != nil {
			return err
		}
		if n+1 == s.rounds {
			break
		}
		if err := s.pass(ctx, restarts); err != nil {
			return err
		}
		if restarts {
			life++
		}
	}
	if err := s.quiet(ctx); err != nil {
		return err
	}
	return s.process.end(ctx)
}

// workspaces are counted by this name.
const workspaces = "workspaces"

// usesTool reports whether a person's messages use a tool.
func usesTool(i int) bool { return i%10 == 0 }

// grows is what may grow, and how far: a sum for each day, person and unit is kept for 400 days, and everybody has one
// workspace from the first call of a tool that worked.
func (s *soak) grows() map[string]float64 {
	users := 0
	for i := range s.people {
		if usesTool(i) {
			users++
		}
	}
	// A round is on one day, or on two if midnight passes; there is also a sum for all people. The charges of a day become
	// its sums at some time after it, and a turn has two.
	return map[string]float64{
		"rows of usage": float64(2 * s.rounds * (s.people + 1)), "rows of charge": float64(4 * (s.people + 1)), workspaces: float64(users),
	}
}

// slack is by how much a fitted line may rise over the rounds to which it is fitted: a share of the median plus a
// constant. A leak occurs with each message, each call or each reconnection, of which a round has thousands, a hundred
// and a few: a goroutine or a descriptor for each of the latter is 40 over the fitted rounds.
var slack = map[string]struct{ share, few float64 }{
	// Pages of the heap that are in use for one object cannot be returned; which ones these are settles over some
	// rounds. The heap itself is measured after a collection.
	"MB": {0.10, 4}, "MB of the heap": {0.05, 1},
	// connections to Telegram; 64 are kept
	httpClients: {0.15, 6},
	// a server may be starting or away at that moment
	"goroutines besides": {0.02, 4}, "descriptors besides": {0.02, 4},
	// a file next to the database comes and goes
	"files": {0, 2},
	// pages are split and filled depending on the order of rows
	"pages without usage": {0.05, 40},
	// How often a person is told that a server went away and came back varies.
	"rows of fact": {0.1, 10}, "rows of outbox": {0.1, 10}, "rows of journal": {0.05, 10},
}

// ofProcess is what one process holds: it starts again with the next one.
var ofProcess = []string{"MB", "MB of the heap", httpClients, "goroutines besides", "descriptors besides"}

// check lists what grows, and returns a table of everything.
func (s *soak) check() (table string, wrong []string) {
	var names []string
	for name := range s.seen[0].counts {
		names = append(names, name)
	}
	slices.Sort(names)
	last := s.seen[len(s.seen)-1].life
	table = "| what | after a third of the rounds | at the end | rise over the rounds that are fitted |\n|---|---|---|---|\n"
	for _, name := range names {
		var values []float64
		for n, seen := range s.seen {
			// of one process only, after its warm-up
			process := slices.Contains(ofProcess, name)
			if n >= settled && (!process || seen.life == last && n > s.restarted+1) {
				values = append(values, seen.counts[name])
			}
		}
		rise := fit(values) * float64(len(values)-1)
		table += fmt.Sprintf("| %s | %.0f | %.0f | %+.1f |\n", name, s.seen[len(s.seen)/3].counts[name], s.seen[len(s.seen)-1].counts[name], rise)
		allowed, ok := slack[name]
		if !ok {
			allowed = struct{ share, few float64 }{0.02, 3}
		}
		if most, ok := s.grows()[name]; ok {
			if got := slices.Max(values); got > most {
				wrong = append(wrong, fmt.Sprintf("%s: %.0f, more than %.0f", name, got, most))
			}
			continue
		}
		if most := allowed.share*median(values) + allowed.few; rise > most {
			wrong = append(wrong, fmt.Sprintf("%s rises by %.1f over %d rounds, more than %.1f: %.4g", name, rise, len(values), most, values))
		}
	}
	return table, wrong
}

// TestSoakSees shows that the check can fail: it finds steady growth of everything that is counted, and does not
// mistake variation for growth.
func TestSoakSees(t *testing.T) {
	t.Parallel()
	values := map[string]float64{
		"MB": 75, "MB of the heap": 12, httpClients: 66, "goroutines besides": 34, "descriptors besides": 54, "files": 12,
		"pages without usage": 1600, "rows of fact": 1081, "rows of journal": 3900, "rows of outbox": 2077, "rows of inbox": 8000, "rows of usage": 12012, workspaces: 90,
	}
	// growth per round, which must be found after the 22 fitted rounds
	leaks := map[string]float64{
		"MB": 0.8, "MB of the heap": 0.1, httpClients: 1, "goroutines besides": 0.5, "descriptors besides": 0.5, "files": 0.5,
		"pages without usage": 10, "rows of fact": 10, "rows of journal": 20, "rows of outbox": 20, "rows of inbox": 20, "rows of usage": 3000, workspaces: 5,
	}
	seen := func(leak string) []string {
		s := &soak{soaking: soaking{people: 1000, restarted: 12, rounds: 36}}
		for n := range s.rounds {
			counts := maps.Clone(values)
			counts["descriptors besides"] -= []float64{0, 0, 17, 0, 1}[n%5] // a server is away
			if leak != "" {
				counts[leak] += leaks[leak] * float64(n)
			}
			s.seen = append(s.seen, sample{min(n, s.restarted), counts})
		}
		_, wrong := s.check()
		return wrong
	}
	if wrong := seen(""); len(wrong) > 0 {
		t.Errorf("nothing grows, and it says %q", wrong)
	}
	for name := range values {
		if wrong := seen(name); len(wrong) != 1 || !strings.HasPrefix(wrong[0], name) {
			t.Errorf("%s grows by %v a round, and it says %q", name, leaks[name], wrong)
		}
	}
}

// fit returns the slope of the line through values of which up to a quarter may be outliers (Theil and Sen: the median
// of the slopes between all pairs).
func fit(values []float64) float64 {
	var slopes []float64
	for i := range values {
		for j := range i {
			slopes = append(slopes, (values[i]-values[j])/float64(i-j))
		}
	}
	return median(slopes)
}

// median of values; 0 if there are none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func TestFit(t *testing.T) {
	t.Parallel()
	for want, values := range map[float64][]float64{0: {5, 5, 90, 5, 5, 5}, 2: {0, 2, 4, -70, 8, 10, 12}, -1: {3, 2, 1}} {
		if got := fit(values); cmp.Compare(got, want) != 0 {
			t.Errorf("fit(%v) = %v, want %v", values, got, want)
		}
	}
}

// TestSoak runs a service for months within minutes, while its servers die and it is killed: neither its resource usage
// nor its stored data grows. With ZEPH_SOAK=full (.ci/run soak) a thousand people talk with it.
func TestSoak(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("descriptors and memory are read from /proc, which this system does not have")
	}
	size, limit := soaking{people: 20, restarted: 4, rounds: 22, sweep: 100 * time.Millisecond}, 4*time.Minute
	if os.Getenv("ZEPH_SOAK") == "full" {
		size, limit = soaking{people: 1000, restarted: 12, rounds: 36, sweep: time.Second, rest: 3 * time.Minute}, 40*time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &soak{
		soaking: size, tb: t, world: newWorld(t, size.people), dir: t.TempDir(), path: path, model: soakModel(t), servers: t.TempDir(),
	}
	for _, address := range []*string{&s.metrics, &s.probed} {
		if *address, err = freeAddress(ctx); err != nil {
			t.Fatal(err)
		}
	}
	s.world.watch = s.heard.call
	// Counters in the process expire by the machine's clock, which does not advance, so they would be kept for all the
	// months.
	// Other work on the machine may keep Redis from answering for a moment; nobody may be refused for that.
	s.world.environment = append(s.world.environment, "ZEPH_REDIS_URL="+redistest.Start(t).URL, "ZEPH_QUOTAS_ON_REDIS_DOWN=allow")
	if err := s.play(ctx); err != nil {
		t.Fatal(err)
	}
	table, wrong := s.check()
	for _, what := range wrong {
		t.Error(what)
	}
	t.Logf("%d people, %d rounds\n%s", size.people, size.rounds, table)
}
