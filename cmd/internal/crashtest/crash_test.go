//go:build unix

package crashtest_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// TestMain lets the test binary act as the helper of sandboxed commands and as the bot itself.
func TestMain(m *testing.M) {
	if code, ok := serveKind(); ok {
		os.Exit(code)
	}
	if os.Getenv(childVariable) != "" {
		os.Exit(serve())
	}
	os.Exit(pgtest.Main(m))
}

const (
	fewPoints  = 8 // of a plain `go test`
	fewOnPg    = 4 // … on PostgreSQL
	sideBySide = 2
)

// TestCrash kills the process at every point of the story and checks that the promise is kept.
func TestCrash(t *testing.T) { crash(t, noted, fewPoints) }

// TestCrashOnPostgreSQL plays the same story with the service's data in PostgreSQL.
func TestCrashOnPostgreSQL(t *testing.T) {
	s := noted
	s.cluster = pgtest.Shared(t)
	crash(t, s, fewOnPg)
}

func crash(t *testing.T, s story, few int) {
	t.Helper()
	points := enumerate(t, s)
	all := len(points)
	variable := "ZEPH_CRASH"
	if s.cluster != nil { // CI has no time to play all of it twice
		variable = "ZEPH_POSTGRES"
	}
	if os.Getenv(variable) != "full" {
		if testing.Short() { // with the race detector, which makes each life longer
			few = (few + 1) / 2
		}
		points = pointsOfDay(points, few, time.Now().YearDay())
	}
	began := time.Now()
	places := make(chan struct{}, sideBySide)
	t.Cleanup(func() { t.Logf("%d of %d points in %.0f s", len(points), all, time.Since(began).Seconds()) })
	for _, p := range points {
		t.Run(p.String(), func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			play(t, s, p)
		})
	}
}

// enumerate plays the story without a kill and lists its points.
func enumerate(t *testing.T, s story) []point {
	t.Helper()
	r := newRun(t, s, nil)
	r.play(t)
	var points []point
	changes := strings.Split(strings.TrimSpace(r.first), "\n")
	from := s.from == ""
	for i, line := range changes {
		t.Log(line)
		if from = from || strings.Contains(line, s.from); !from {
			continue
		}
		for _, phase := range []string{before, during, after} {
			points = append(points, point{commit, i + 1, phase})
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.seen {
		if !slices.Contains(points, p) && (s.from == "" || slices.Contains(outcomes, p.What)) {
			points = append(points, p)
		}
	}
	return points
}

// outcomes are the requests that a job with a lock makes: kills at all others are those of the other stories.
var outcomes = []string{model, "token", "sendMessage", "sendRichMessage", "sendDocument"}

// pointsOfDay selects about n points at even distances: others tomorrow, so that each has its day, and a point that
// failed is played again when it is tried again.
func pointsOfDay(points []point, n, day int) (selected []point) {
	every := max(1, (len(points)+n-1)/n)
	for i := day % every; i < len(points); i += every {
		selected = append(selected, points[i])
	}
	return selected
}

// certain are the requests that occur in every run; the number of drafts depends on timing.
var certain = []string{model, "sendMessage", "answerCallbackQuery"}

func play(t *testing.T, s story, p point) {
	t.Helper()
	r := newRun(t, s, &p)
	r.play(t)
	if r.dead == nil {
		if s.fixed && slices.Contains(certain, p.What) {
			t.Errorf("%s was not reached", p)
		}
		t.Logf("%s was not reached: it depends on time", p)
	}
}

// play plays the story, ends the service and checks the promise.
func (r *run) play(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := r.tell(ctx)
	if err == nil {
		err = r.close(ctx)
	}
	if err == nil {
		err = r.story.promise(r, ctx)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, r.dump())
	}
}
