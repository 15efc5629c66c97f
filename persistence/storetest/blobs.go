package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/zephbot/zephbot/agent/blob"
)

// Blobs runs the suite of blob.Store. open returns an empty store that lives as long as its test and stores at most
// limit bytes, 0 = no limit.
func Blobs(t *testing.T, open func(t *testing.T, limit int64) blob.Store) {
	t.Helper()
	for name, test := range map[string]struct {
		limit int64
		run   func(*files)
	}{
		"a file is given back whole":         {0, aFileIsGivenBackWhole},
		"only who put a file opens it":       {0, onlyWhoPutAFileOpensIt},
		"a file that is cut off is not kept": {0, aFileThatIsCutOffIsNotKept},
		"there is room for so much":          {3 << 20, thereIsRoomForSoMuch},
		"files are put from many sides":      {0, filesArePutFromManySides},
		"a context that has ended":           {0, aContextThatHasEndedPutsNothing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.run(&files{T: t, Store: open(t, test.limit)})
		})
	}
}

// files is one test with its store.
type files struct {
	*testing.T
	blob.Store
}

// content returns n bytes that depend on seed.
func content(seed byte, n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i>>8) ^ byte(i*7) ^ seed
	}
	return data
}

func (f *files) put(session string, data []byte) string {
	f.Helper()
	ref, err := f.Put(f.Context(), session, bytes.NewReader(data))
	if err != nil {
		f.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if want := (blob.Ref{Hash: hex.EncodeToString(sum[:]), Size: int64(len(data))}); ref != want {
		f.Errorf("put %+v, want %+v", ref, want)
	}
	return ref.Hash
}

// has checks that the session can read the data.
func (f *files) has(session, hash string, want []byte) {
	f.Helper()
	r, err := f.Open(f.Context(), session, hash)
	if err != nil {
		f.Errorf("open %.8s: %v", hash, err)
		return
	}
	got, err := io.ReadAll(iotest.HalfReader(r))
	if err != nil || !bytes.Equal(got, want) {
		f.Errorf("%.8s: %d bytes, %v; want the %d that were put", hash, len(got), err, len(want))
	}
	if err := r.Close(); err != nil {
		f.Error(err)
	}
}

func (f *files) lacks(session, hash string) {
	f.Helper()
	if r, err := f.Open(f.Context(), session, hash); !errors.Is(err, blob.ErrNotFound) || r != nil {
		f.Errorf("open %.8s for %q: %v, want ErrNotFound", hash, session, err)
	}
}

func aFileIsGivenBackWhole(f *files) {
	for seed, n := range []int{0, 1, 100, 128<<10 - 1, 128 << 10, 128<<10 + 1, 1 << 20, 5_000_001} {
		data := content(byte(seed), n)
		hash := f.put(session, data)
		f.has(session, hash, data)
		if again := f.put(session, data); again != hash {
			f.Errorf("the same %d bytes are %s and %s", n, hash, again)
		}
		f.has(session, hash, data)
	}
}

func onlyWhoPutAFileOpensIt(f *files) {
	for _, n := range []int{10, 1 << 20} {
		data := content(1, n)
		hash := f.put(session, data)
		f.lacks(another, hash)
		f.lacks("", hash)
		f.lacks(session, hash[1:])
		f.lacks(session, "")
		f.lacks(session, "' OR 1=1 --")
		f.put(another, data)
		f.has(another, hash, data)
		f.has(session, hash, data)
	}
	if _, err := f.Put(f.Context(), "", bytes.NewReader(nil)); err == nil {
		f.Error("a file without a session was stored")
	}
}

func aFileThatIsCutOffIsNotKept(f *files) {
	for _, n := range []int{10, 1 << 20} {
		data := content(2, n)
		broken := errors.New("the line is dead")
		if _, err := f.Put(
			f.Context(), session, io.MultiReader(bytes.NewReader(data), iotest.ErrReader(broken)),
		); !errors.Is(err, broken) {
			f.Errorf("put: %v, want the reader's error", err)
		}
		sum := sha256.Sum256(data)
		f.lacks(session, hex.EncodeToString(sum[:]))
	}
}

func thereIsRoomForSoMuch(f *files) {
	first, second, third := content(1, 2<<20), content(2, 1<<20), content(3, 1<<19)
	kept := f.put(session, first)
	for range 3 { // a refused file leaves nothing behind that takes space
		if _, err := f.Put(f.Context(), session, bytes.NewReader(content(9, 1<<20+1))); !errors.Is(err, blob.ErrFull) {
			f.Fatalf("put: %v, want ErrFull", err)
		}
	}
	last := f.put(session, second)
	if _, err := f.Put(f.Context(), session, bytes.NewReader(third)); !errors.Is(err, blob.ErrFull) {
		f.Errorf("put: %v, want ErrFull", err)
	}
	f.has(session, kept, first)
	f.has(session, last, second)
}

func filesArePutFromManySides(f *files) {
	const sides = 16
	shared := content(255, 700_000)
	var wg sync.WaitGroup
	for n := range sides {
		wg.Go(func() {
			own, mine := content(byte(n), 300_000+n), fmt.Sprint(session, n)
			for _, data := range [][]byte{own, shared} {
				ref, err := f.Put(f.Context(), mine, bytes.NewReader(data))
				if err != nil {
					f.Error(err)
				}
				f.has(mine, ref.Hash, data)
			}
		})
	}
	wg.Wait()
}

func aContextThatHasEndedPutsNothing(f *files) {
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	if _, err := f.Put(ctx, session, bytes.NewReader([]byte("x"))); !errors.Is(err, context.Canceled) {
		f.Errorf("put: %v", err)
	}
	hash := f.put(session, []byte("x"))
	if r, err := f.Open(ctx, session, hash); err == nil {
		if _, err = io.ReadAll(r); !errors.Is(err, context.Canceled) {
			f.Errorf("read: %v", err)
		}
	} else if !errors.Is(err, context.Canceled) {
		f.Errorf("open: %v", err)
	}
}
