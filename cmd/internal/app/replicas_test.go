package app_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/cmd/internal/apptest"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// fewTogether is one in how many scenarios two processes play in a plain `go test`: another part each day. With
// ZEPH_REPLICAS=full they play all, and with -short those that are about several processes.
const fewTogether = 12

// apart are the scenarios that two processes do not play, each with a line of it that is about one process alone.
var apart = map[string]struct{ line, reason string }{
	"attachments": {
		"ben sends huge:",
		"two processes need webhooks without https here, and so a Bot API server of one's own, which gives files of any size",
	},
	"deny_rule_later": {
		"restart with denying",
		"the press follows the restart at once; of two processes, the first that has the new rule withdraws the " +
			"question before the second has it",
	},
	"memory": {
		"ben: which editor do I use?",
		"the message follows at once; a process in which nothing was remembered for a person knows a second later that something is",
	},
	"model_unavailable": {
		"model asked 2",
		"a try is due by the clock of the process that looks; one whose clock is a minute ahead makes the next one at once",
	},
	"quota_set": {
		"ann: /quota unset 1002 turns/day",
		"the next message follows at once; a process that did not set a limit has it a second later",
	},
	"setup_greets": {
		"down",
		"all messages wait until the service starts; of two processes, the other one answers them before",
	},
}

// everyReplica says that two processes play all scenarios.
func everyReplica() bool { return os.Getenv("ZEPH_REPLICAS") == "full" }

// seedTogether is ZEPH_SEED, or the number of the day.
func seedTogether(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("ZEPH_SEED")
	if text == "" {
		return uint64(time.Now().Unix() / (24 * 60 * 60))
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("ZEPH_SEED: %v", err)
	}
	return seed
}

// playTogether plays a scenario on two processes, whose clocks are a minute apart.
func playTogether(t *testing.T, cluster *pgtest.Cluster, file string, seed uint64) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	apptest.PlayTogether(t, archive, apptest.Pair{
		DatabaseURL: cluster.URL(cluster.Database(t, "")), RedisURL: redistest.Run(t).URL(), Seed: seed,
		Off: []time.Duration{time.Minute, -time.Minute}[seed%2],
	})
}

// TestScenariosTogether plays the scenarios on two processes of one service: each update reaches one of them, and each
// restart is one of them's.
func TestScenariosTogether(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	files := scenarioFiles(t)
	seed := seedTogether(t)
	for i, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		_, excepted := apart[name]
		about := strings.HasPrefix(name, "replicas_") // several processes
		today := uint64(i)%fewTogether == seed%fewTogether && !testing.Short()
		if !everyReplica() && !excepted && !about && !today {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if excepted {
				t.Skip(apart[name].reason)
			}
			t.Parallel()
			playTogether(t, cluster, file, seed)
		})
	}
}

// TestApart: each scenario that two processes do not play has the line for which it is left out. That it fails on two
// processes is not tested: it depends on which of them is faster.
func TestApart(t *testing.T) {
	t.Parallel()
	for name, why := range apart {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(filepath.Join("testdata", "scenario", name+".txtar"))
			if err != nil {
				t.Fatalf("it is left out for nothing: %v", err)
			}
			chat := ""
			for _, f := range archive.Files {
				if f.Name == "chat" {
					chat = "\n" + string(f.Data)
				}
			}
			if !strings.Contains(chat, "\n"+why.line+"\n") {
				t.Errorf("it has no line %q", why.line)
			}
		})
	}
}

// TestStopElsewhere: /stop ends the commands in the background that another process runs, and counts them, whichever
// process takes it.
func TestStopElsewhere(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	for seed := range uint64(3) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			playTogether(t, cluster, filepath.Join("testdata", "scenario", "stop_background.txtar"), seed)
		})
	}
}
