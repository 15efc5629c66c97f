package command_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/zephbot/zephbot/policy/command"
)

// TestReader: what is read again and again stays, however much else is read; the rest is forgotten.
func TestReader(t *testing.T) {
	t.Parallel()
	r := command.NewReader()
	often := r.Read("git status")
	for i := range 2000 {
		r.Read(fmt.Sprint("echo ", i))
		if i%50 == 0 && r.Read("git status") != often {
			t.Fatalf("forgotten after %d texts", i)
		}
	}
	if got := r.Parsed(); got != 2001 {
		t.Errorf("%d texts parsed", got)
	}
	if r.Read("echo 1"); r.Parsed() != 2002 {
		t.Error("an old text is still remembered")
	}
	long := "echo " + strings.Repeat("x", command.MaxText-5)
	for i := range 4 {
		r.Read(fmt.Sprint(i) + long[1:])
	}
	if r.Read("git status") == often {
		t.Error("four of the longest texts leave room for others")
	}
}

// TestNoReader: nil reads each time.
func TestNoReader(t *testing.T) {
	t.Parallel()
	var r *command.Reader
	a, b := r.Read("cat a"), r.Read("cat a")
	if a == b || a.Text != "cat a" || len(a.Files().List) != 1 {
		t.Errorf("%+v", a)
	}
}

// TestReaderAtOnce: many goroutines that ask for one text get one reading in the end.
func TestReaderAtOnce(t *testing.T) {
	t.Parallel()
	r := command.NewReader()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				if got := r.Read(fmt.Sprint("rm ", i%7)); got.Commands[0].Name != "rm" || len(got.Files().List) != 1 {
					t.Errorf("%+v", got)
				}
			}
		})
	}
	wg.Wait()
}
