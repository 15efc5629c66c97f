package vector_test

import (
	"bytes"
	"context"
	"fmt"
	neturl "net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/storetest"
)

// lines is a log.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), text)
}

// logged opens a database of PostgreSQL with a log.
func logged(t *testing.T, url string) (*postgres.Store, *lines) {
	t.Helper()
	log := &lines{}
	store, err := postgres.Open(t.Context(), postgres.Options{URL: url, Log: zerolog.New(log)})
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	return store, log
}

// ask runs a query with one number, or none as 0.
func ask(t *testing.T, url, query string, args ...any) int64 {
	t.Helper()
	numbers, err := pgtest.Numbers(t.Context(), url, query, args...)
	check(t, err)
	return append(numbers, 0)[0]
}

func do(t *testing.T, url string, statements ...string) {
	t.Helper()
	check(t, pgtest.Exec(context.WithoutCancel(t.Context()), url, statements...)) // it is called in Cleanup too
}

// These tests share a database if ZEPH_TEST_PGVECTOR names one, so that they are not parallel.

func TestSpacesWithPgvector(t *testing.T) {
	url := pgtest.Pgvector(t)
	db, log := logged(t, url)
	t.Run("suite", func(t *testing.T) {
		storetest.Spaces(t, func(t *testing.T) knn.Spaces { return spaces(t, db.Entries(), 0) })
	})
	if log.count("compared by the server, with pgvector") != 1 {
		t.Errorf("the log says:\n%s", log.all.String())
	}
}

const far = `SELECT count(*) FROM vector_entry WHERE near IS NULL AND kind = $1`

// line returns points on a line: the higher the number of a key, the less similar to (1, 0).
func line(scope string, n int) []knn.Point {
	points := make([]knn.Point, n)
	for i := range points {
		points[i] = knn.Point{Scope: scope, Key: fmt.Sprintf("%05d", i), Hash: "h", Vector: []float32{1, float32(i) / 10}}
	}
	return points
}

func newKind(t *testing.T, size int) knn.Kind {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		if r < 'A' || r > 'z' {
			return '-'
		}
		return r
	}, t.Name())
	return knn.Kind{Name: name, Model: "m", Size: size}
}

// first requires the most similar keys of scope a.
func first(t *testing.T, in knn.Space, want ...string) {
	t.Helper()
	hits, err := in.Search(t.Context(), knn.Filter{Scopes: []string{"a"}}, []float32{1, 0}, len(want))
	check(t, err)
	var got []string
	for _, h := range hits {
		got = append(got, h.Key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

// in opens the Space of a kind, which is empty at the end of the test.
func in(t *testing.T, db *postgres.Store, kind knn.Kind) knn.Space {
	t.Helper()
	all := spaces(t, db.Entries(), 0)
	space, err := all.Space(kind)
	check(t, err)
	t.Cleanup(func() { check(t, all.Drop(context.WithoutCancel(t.Context()), kind)) })
	return space
}

// TestVectorsMoveToPgvectorAndBack: what was stored without the extension is found before, while and after it is repeated
// in the extension's type, and after the extension is gone.
func TestVectorsMoveToPgvectorAndBack(t *testing.T) {
	url, kind := pgtest.Pgvector(t), newKind(t, 2)
	db, log := logged(t, url)
	space := in(t, db, kind)
	check(t, space.Upsert(t.Context(), line("a", 2500)))
	first(t, space, "00000", "00001")
	if n := ask(t, url, far, kind.String()); n != 0 {
		t.Errorf("%d of the vectors are not in the extension's type", n)
	}
	do(t, url, `UPDATE vector_entry SET near = NULL`) // as if they had been stored before
	for _, left := range []int64{452, 0, 0} {
		first(t, space, "00000", "00001", "00002")
		if n := ask(t, url, far, kind.String()); n != left {
			t.Errorf("%d vectors are left, want %d", n, left)
		}
	}
	do(t, url, `DROP EXTENSION vector CASCADE`)
	first(t, space, "00000", "00001")
	check(t, space.Upsert(t.Context(), []knn.Point{{Scope: "a", Key: "new", Hash: "h", Vector: []float32{1, 0.01}}}))
	first(t, space, "00000", "new", "00001")
	if n := log.count("compared by this process"); n != 1 {
		t.Errorf("the loss was told %d times:\n%s", n, log.all.String())
	}

	again, _ := logged(t, url) // the extension is set up again
	other := in(t, again, kind)
	for range 3 {
		first(t, other, "00000", "new", "00001")
	}
	if n := ask(t, url, far, kind.String()); n != 0 {
		t.Errorf("%d vectors are left", n)
	}
}

// TestAWriteMayBeTheFirstToMissPgvector: the extension was removed, and no search noticed.
func TestAWriteMayBeTheFirstToMissPgvector(t *testing.T) {
	url, kind := pgtest.Pgvector(t), newKind(t, 2)
	db, _ := logged(t, url)
	space := in(t, db, kind)
	check(t, space.Upsert(t.Context(), line("a", 3)))
	do(t, url, `DROP EXTENSION vector CASCADE`)
	check(t, space.Upsert(t.Context(), []knn.Point{{Scope: "a", Key: "new", Vector: []float32{1, 0.01}}}))
	first(t, space, "00000", "new", "00001", "00002")
}

// TestAProgramWithoutPgvectorWritesToo: one of the version before knows only the numbers.
func TestAProgramWithoutPgvectorWritesToo(t *testing.T) {
	url, kind := pgtest.Pgvector(t), newKind(t, 2)
	db, _ := logged(t, url)
	space := in(t, db, kind)
	check(t, space.Upsert(t.Context(), line("a", 3)))
	first(t, space, "00000", "00001", "00002")
	for key, vector := range map[string][]float32{"00000": {0, 1}, "old": {1, 0}} {
		ask(t, url, `INSERT INTO vector_entry (kind, scope, key, hash, payload, vector) VALUES ($1, 'a', $2, 'h', '', $3)
ON CONFLICT (kind, scope, key) DO UPDATE SET hash = excluded.hash, payload = excluded.payload, vector = excluded.vector RETURNING id`,
			kind.String(), key, knn.EncodeVector(vector))
	}
	if n := ask(t, url, far, kind.String()); n != 2 {
		t.Errorf("%d vectors count as missing in the extension's type, want 2", n)
	}
	first(t, space, "old", "00001", "00002", "00000")
	check(t, space.Upsert(t.Context(), []knn.Point{{Scope: "a", Key: "00000", Hash: "other"}})) // says something else of it
	first(t, space, "old", "00001", "00002", "00000")
	if n := ask(t, url, far, kind.String()); n != 0 {
		t.Errorf("%d vectors are left", n)
	}
}

func TestVectorsTooLongForPgvector(t *testing.T) {
	url, kind := pgtest.Pgvector(t), newKind(t, 16_001)
	db, _ := logged(t, url)
	space := in(t, db, kind)
	vector := make([]float32, kind.Size)
	vector[16_000] = 1
	check(t, space.Upsert(t.Context(), []knn.Point{{Scope: "a", Key: "1", Vector: vector}}))
	hits, err := space.Search(t.Context(), knn.Filter{Scopes: []string{"a"}}, vector, 1)
	if check(t, err); len(hits) != 1 || hits[0].Score != 1 {
		t.Errorf("found %v", hits)
	}
}

// TestAUserWhoMayNotSetUpPgvector: everything works without it, and the log says once what to do.
func TestAUserWhoMayNotSetUpPgvector(t *testing.T) {
	url, kind := pgtest.Pgvector(t), newKind(t, 2)
	owner, _ := logged(t, url)
	in(t, owner, kind)
	do(t, url, `DROP EXTENSION IF EXISTS vector CASCADE`, `DROP ROLE IF EXISTS plain`, `CREATE ROLE plain LOGIN`,
		`GRANT ALL ON ALL TABLES IN SCHEMA public TO plain`, `GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO plain`)
	address, err := neturl.Parse(url)
	check(t, err)
	address.User = neturl.UserPassword("plain", "postgres")
	plain := address.String()
	t.Cleanup(func() { do(t, url, `RESET ROLE`, `DROP OWNED BY plain`, `DROP ROLE plain`) })
	if ask(t, plain, `SELECT 1 WHERE current_user = 'plain'`) == 0 {
		do(t, url, `SET ROLE plain`) // this server has one session for all connections
	}
	db, log := logged(t, plain)
	space, err := spaces(t, db.Entries(), 0).Space(kind)
	check(t, err)
	check(t, space.Upsert(t.Context(), line("a", 3)))
	first(t, space, "00000", "00001", "00002")
	first(t, space, "00000", "00001", "00002")
	if n := log.count("CREATE EXTENSION vector"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.all.String())
	}
}

// TestProcessesSetUpPgvectorAtOnce: one of them does it, none fails.
func TestProcessesSetUpPgvectorAtOnce(t *testing.T) {
	url, kind := pgtest.Pgvector(t), newKind(t, 2)
	one, _ := logged(t, url)
	two, log := logged(t, url)
	do(t, url, `DROP EXTENSION IF EXISTS vector CASCADE`)
	var wg sync.WaitGroup
	for i, db := range []*postgres.Store{one, two} {
		space := in(t, db, kind)
		wg.Go(func() {
			if err := space.Upsert(t.Context(), []knn.Point{{Scope: "a", Key: fmt.Sprint(i), Vector: []float32{1, float32(i)}}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	first(t, in(t, two, kind), "0", "1")
	if n := ask(t, url, far, kind.String()); n != 0 || log.count("with pgvector") != 1 {
		t.Errorf("%d vectors are not in the extension's type; the log says:\n%s", n, log.all.String())
	}
}
