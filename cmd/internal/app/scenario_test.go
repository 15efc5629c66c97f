package app_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/cmd/internal/apptest"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/tools/document"
)

// TestMain lets the test binary be the helper of sandboxed commands, and the process that reads documents, as the
// program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == document.Word {
		os.Exit(document.Main(os.Args[2:], os.Stdin, os.Stdout))
	}
	if code, ok := serveKind(); ok {
		os.Exit(code)
	}
	flag.Parse()
	prepareReader()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		const most = 4 // scenarios wait for timers more than they compute
		if err := parallel.Value.Set(strconv.Itoa(most * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	remove, err := installKind()
	if err != nil {
		panic(err)
	}
	code := pgtest.Main(m)
	remove()
	os.Exit(code)
}

// fewRaced is one in how many scenarios is played with the race detector (-short): others each day, all of them in so
// many days.
const fewRaced = 4

// scenarioFiles returns the files of all scenarios, sorted.
func scenarioFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/scenario/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	return files
}

// playedToday says whether the scenario with this number in scenarioFiles is played: without -short, each is.
func playedToday(i int) bool { return !testing.Short() || i%fewRaced == time.Now().YearDay()%fewRaced }

// TestScenarios plays every file of testdata/scenario through the whole service, but for those that TestBehaviour01 to
// TestBehaviour30 play. `go test -run '/^NAME$'` plays one, whichever test it is of.
func TestScenarios(t *testing.T) {
	t.Parallel()
	elsewhere := behaved()
	for i, file := range scenarioFiles(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if elsewhere[name] || !playedToday(i) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			apptest.Play(t, archive)
		})
	}
}

// hooked are the scenarios in which the way that updates come by matters: order, repetition, restarts, presses, what
// overtakes.
var hooked = []string{
	"answer_long", "approve", "approve_batch", "approve_double_press", "approve_twice", "background_restart", "chats_side_by_side", "clear_parked",
	"duplicate", "duplicate_press", "edited", "fault_429", "fault_cut_final", "fault_drop", "queue_running", "restart_down", "restart_drains",
	"restart_parked", "restart_waiting", "stop_draft", "stop_model", "stop_tool", "two_replies_parked", "unknown_updates",
}

// TestScenariosByWebhook plays those with updates that are delivered instead of polled.
func TestScenariosByWebhook(t *testing.T) {
	t.Parallel()
	for _, name := range hooked {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(filepath.Join("testdata", "scenario", name+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			apptest.PlayHooked(t, archive)
		})
	}
}

// fewScenarios is one in how many is played on PostgreSQL by a plain `go test`; with ZEPH_POSTGRES=full all are.
const fewScenarios = 12

// TestScenariosOnPostgreSQL plays them with the service's memory in PostgreSQL.
func TestScenariosOnPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	for i, file := range scenarioFiles(t) {
		if os.Getenv("ZEPH_POSTGRES") != "full" && i%fewScenarios != 0 {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			apptest.PlayOn(t, archive, cluster.URL(cluster.Database(t, "")))
		})
	}
}

// prepareReader has the services of the tests share what reads PDF, so that not each of them compiles it.
func prepareReader() {
	if os.Getenv("CACHE_DIRECTORY") != "" {
		return
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprint("zephbot-tests-", os.Getuid()))
	self, err := os.Executable()
	if err == nil {
		err = os.Setenv("CACHE_DIRECTORY", dir)
	}
	if err == nil {
		reader := document.NewReader([]string{self, document.Word}, filepath.Join(dir, "pdfium"))
		err = reader.Prepare(context.Background())
	}
	if err != nil {
		panic(err)
	}
}
