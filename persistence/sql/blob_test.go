package sql_test

import (
	"bytes"
	databasesql "database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/persistence/storetest"
)

func TestBlobs(t *testing.T) {
	t.Parallel()
	empty := emptyDatabase(t)
	storetest.Blobs(t, func(t *testing.T, limit int64) blob.Store {
		path := filepath.Join(t.TempDir(), "zephbot.db")
		check(t, os.WriteFile(path, empty, 0o600))
		return open(t, sql.Options{Path: path, BlobBytes: limit})
	})
}

// put keeps a text as a file of a session and gives its hash.
func put(t *testing.T, store *sql.Store, session, text string) string {
	t.Helper()
	ref, err := store.Put(t.Context(), session, bytes.NewReader([]byte(text)))
	check(t, err)
	return ref.Hash
}

// rowsIn counts the rows of a table of a store that is open.
func rowsIn(t *testing.T, path, table string) (n int) {
	t.Helper()
	db := connect(t, path)
	check(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n)) //nolint:gosec // a name of ours
	return n
}

func TestFiles(t *testing.T) {
	t.Parallel()
	empty := emptyDatabase(t)
	storetest.Files(t, func(t *testing.T, now func() time.Time, limit int64) (storetest.FileStore, storetest.FileRows) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "zephbot.db")
		check(t, os.WriteFile(path, empty, 0o600))
		return open(t, sql.Options{Path: path, Now: now, BlobBytes: limit}), func(table string) int { return rowsIn(t, path, table) }
	})
}

// slowly gives its bytes one piece at a time, and calls a function before the last ones.
type slowly struct {
	left   int
	before func()
}

func (s *slowly) Read(b []byte) (int, error) {
	if s.left == 0 {
		s.before()
		return 0, io.EOF
	}
	n := min(len(b), s.left)
	for i := range b[:n] { // the same for every reader of the same length
		b[i] = byte((s.left - i) * 31 >> 3)
	}
	s.left -= n
	return n, nil
}

// TestLargeFilesTakeLittleMemory has fifty files on their way in at the same moment, and then out.
func TestLargeFilesTakeLittleMemory(t *testing.T) { //nolint:paralleltest // it measures the heap
	const files, size, most = 50, 2 << 20, 40 << 20 // the memory of one does not grow with its size
	store := open(t, sql.Options{})
	var met sync.WaitGroup
	met.Add(files)
	var wg sync.WaitGroup
	refs := make([]blob.Ref, files)
	for n := range files {
		wg.Go(func() {
			var err error
			refs[n], err = store.Put(t.Context(), fmt.Sprint("s", n), &slowly{left: size + n, before: func() { met.Done(); met.Wait() }})
			if err != nil {
				t.Error(err)
			}
		})
	}
	met.Wait() // all of them are in but for their end
	if in := heap(); in > most {
		t.Errorf("%d MB are held while %d MB come in", in>>20, files*size>>20)
	}
	wg.Wait()
	readers := make([]io.ReadCloser, files)
	for n := range readers {
		var err error
		readers[n], err = store.Open(t.Context(), fmt.Sprint("s", n), refs[n].Hash)
		check(t, err)
		_, err = io.CopyN(io.Discard, readers[n], size/2)
		check(t, err)
	}
	if out := heap(); out > most {
		t.Errorf("%d MB are held while %d MB go out", out>>20, files*size>>20)
	}
	for n, r := range readers {
		rest, err := io.Copy(io.Discard, r)
		check(t, errors.Join(err, r.Close()))
		if rest != size/2+int64(n) {
			t.Errorf("file %d: %d bytes in its second half", n, rest)
		}
	}
}

// heap is what the heap holds, in bytes.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestWhatIsLeftOfAnUploadIsSwept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	store := open(t, sql.Options{Path: path, Now: func() time.Time { return noon }, BlobBytes: 1 << 20})
	_, err := store.Put(t.Context(), "s", &slowly{left: 1 << 19, before: func() {
		check(t, store.Close()) // as a process that ends in the middle
	}})
	if !errors.Is(err, sql.ErrClosed) {
		t.Fatalf("put: %v", err)
	}
	if n := rowsIn(t, path, "blob_piece"); n != 4 {
		t.Fatalf("%d pieces are left behind, want 4", n)
	}
	store = open(t, sql.Options{Path: path, BlobBytes: 1 << 20})
	for _, step := range []struct {
		at   time.Time
		want int64
	}{{noon.Add(day - 1), 0}, {noon.Add(day), 1}} {
		swept, err := store.Sweep(t.Context(), step.at, sql.Retention{})
		if err != nil || swept.Blobs != step.want {
			t.Errorf("sweep at %v: %d (%v), want %d", step.at, swept.Blobs, err, step.want)
		}
	}
	put(t, store, "s", string(make([]byte, 1<<20)))
}

func TestADamagedFileIsNotGivenOut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	store := open(t, sql.Options{Path: path})
	hash := put(t, store, "s", "what was put")
	db, err := databasesql.Open("sqlite", "file:"+path)
	check(t, err)
	_, err = db.ExecContext(t.Context(), "UPDATE blob_piece SET data = CAST('what was pun' AS BLOB)")
	check(t, errors.Join(err, db.Close()))
	r, err := store.Open(t.Context(), "s", hash)
	check(t, err)
	if _, err := io.ReadAll(r); !errors.Is(err, blob.ErrDamaged) {
		t.Errorf("read: %v, want ErrDamaged", err)
	}
}
