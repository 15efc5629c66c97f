//go:build unix

package bench_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// program builds zephbot once for the process benchmarks.
func program(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "zephbot")
	build := exec.CommandContext(tb.Context(), "go", "build", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", path, "github.com/zephbot/zephbot/cmd/zephbot")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// process is a running zephbot.
type process struct {
	cmd    *exec.Cmd
	exited chan error
}

// launch starts the program on a world, with additional variables for this process only.
func launch(tb testing.TB, path, dir, model string, w *world, further ...string) (*process, error) {
	tb.Helper()
	p := &process{cmd: exec.CommandContext(context.WithoutCancel(tb.Context()), path, "serve"), exited: make(chan error, 1)}
	p.cmd.Dir, p.cmd.Stderr = dir, os.Stderr
	// the last of several equal ones counts
	p.cmd.Env = append(append(environment(dir, w, model), childVariable+"=1"), further...)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.exited <- p.cmd.Wait() }()
	return p, nil
}

// end stops the program as a deployment does.
func (p *process) end(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.exited:
		return err
	case <-ctx.Done():
		return errors.Join(errors.New("it does not end"), p.cmd.Process.Kill())
	}
}

// memory returns a line of the process's status, in MB: VmRSS or, for the peak, VmHWM. It is an error if there is no
// /proc.
func (p *process) memory(name string) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	m := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+) kB$`).FindSubmatch(raw)
	if m == nil {
		return 0, fmt.Errorf("the process has no %s", name)
	}
	kB, err := strconv.ParseFloat(string(m[1]), 64)
	return kB / 1024, err
}

// cpu returns the processor time of the process so far; 0 if there is no /proc.
func (p *process) cpu() (time.Duration, error) { return cpuOf(p.cmd.Process.Pid) }

// start starts the program and returns how long it took until its first poll.
func start(ctx context.Context, tb testing.TB, path, dir, model string, w *world) (*process, time.Duration, error) {
	tb.Helper()
	began := time.Now()
	p, err := launch(tb, path, dir, model, w)
	if err != nil {
		return nil, 0, err
	}
	select {
	case at := <-w.polled:
		return p, at.Sub(began), nil
	case err := <-p.exited:
		return nil, 0, fmt.Errorf("the program ended: %w", errors.Join(err, errors.New("before its first poll")))
	case <-ctx.Done():
		return nil, 0, errors.Join(errors.New("the program does not poll"), p.end(ctx))
	}
}

// memory measures the memory of the program just after the start, and after some people have talked with it.
func memory(ctx context.Context, tb testing.TB, path string, people int) (idle, talked float64, err error) {
	tb.Helper()
	w := newWorld(tb, people)
	p, _, err := start(ctx, tb, path, tb.TempDir(), mirror(tb, 0), w)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, p.end(ctx)) }()
	menuSet := func() bool { return w.fake.Polling() && len(w.fake.Commands()) > 1 }
	if err := w.fake.WaitFor(ctx, menuSet); err != nil {
		return 0, 0, err
	}
	if idle, err = p.memory("VmRSS"); err != nil {
		return 0, 0, err
	}
	for i := range people {
		if err := w.say(person(i), "hello"); err != nil {
			return 0, 0, err
		}
	}
	for range people {
		if _, err := w.next(ctx); err != nil {
			return 0, 0, err
		}
	}
	talked, err = p.memory("VmRSS")
	return idle, talked, err
}

// peak is the maximum memory of the program while a crowd talked with it.
func peak(ctx context.Context, tb testing.TB, path string, people, rounds int, think time.Duration) (most float64, err error) {
	tb.Helper()
	w := newWorld(tb, people)
	p, _, err := start(ctx, tb, path, tb.TempDir(), mirror(tb, think), w)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.end(ctx)) }()
	if _, err := crowd(ctx, w, people, rounds); err != nil {
		return 0, err
	}
	return p.memory("VmHWM")
}

// BenchmarkStart measures the time from the start of the process to its first poll: in an empty directory, and with an
// existing database.
func BenchmarkStart(b *testing.B) {
	path, model := program(b), mirror(b, 0)
	for _, fresh := range []bool{true, false} {
		b.Run(map[bool]string{true: "first", false: "again"}[fresh], func(b *testing.B) {
			ctx, dir := b.Context(), b.TempDir()
			sum, n := 0.0, 0.0
			for b.Loop() {
				if fresh {
					dir = b.TempDir()
				}
				p, took, err := start(ctx, b, path, dir, model, newWorld(b, 1))
				if err != nil {
					b.Fatal(err)
				}
				if err := p.end(ctx); err != nil {
					b.Fatal(err)
				}
				sum, n = sum+millis(took), n+1
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(sum/n, "ms")
		})
	}
}

// BenchmarkMemory measures the resident memory of the process: idle, after 1000 sessions have talked, and its peak with
// a crowd.
func BenchmarkMemory(b *testing.B) {
	path := program(b)
	var idle, talked, most, n float64
	for b.Loop() {
		i, t, err := memory(b.Context(), b, path, 1000)
		if err != nil {
			b.Fatal(err)
		}
		m, err := peak(b.Context(), b, path, people, rounds, think)
		if err != nil {
			b.Fatal(err)
		}
		idle, talked, most, n = idle+i, talked+t, most+m, n+1
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(idle/n, "idle-MB")
	b.ReportMetric(talked/n, "sessions-1000-MB")
	b.ReportMetric(most/n, "peak-MB")
}

// BenchmarkIdleSession measures what a session more costs that is remembered but idle: the growth of the resident memory
// between two numbers of people who have talked, a process each.
func BenchmarkIdleSession(b *testing.B) {
	const few, many = 1000, 4000
	path := program(b)
	var each, n float64
	for b.Loop() {
		_, small, err := memory(b.Context(), b, path, few)
		if err != nil {
			b.Fatal(err)
		}
		_, large, err := memory(b.Context(), b, path, many)
		if err != nil {
			b.Fatal(err)
		}
		each, n = each+(large-small)*1024/(many-few), n+1
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(each/n, "KB/session")
}
