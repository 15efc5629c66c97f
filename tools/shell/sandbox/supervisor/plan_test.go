package supervisor_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools/shell/sandbox/supervisor"
)

func samplePlan() *supervisor.Plan {
	return &supervisor.Plan{
		Argv: []string{"/bin/bash", "-c", "echo \x00 ü"}, Dir: "/w", Env: []string{"A=b", ""}, UserSpace: true, UID: 65534, GID: -1, PIDSpace: true,
		Mounts:  []supervisor.Mount{{Kind: supervisor.MountTmpfs, Path: "/dev/shm", Size: 1 << 40}, {Kind: supervisor.MountBind, Path: "/p", Source: "/s", Write: true, Dir: true}},
		Confine: true, Keep: 1 << 63, ABI: 7, FS: 1, Net: 2, Scoped: 3, Rules: []supervisor.Rule{{Path: "/usr", Access: 13}},
		Filter: []byte{1, 0, 2}, Guard: &supervisor.Guard{Own: [][]byte{{1, 2, 3, 4}}, Servers: [][]byte{{5, 6, 7, 8}}},
		Rlimits: []supervisor.Rlimit{{What: 4, Soft: 0, Hard: 1<<64 - 1}}, Procs: 5, Memory: 6, Grace: time.Second, Linger: -1,
	}
}

func TestPlanRoundTrip(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]*supervisor.Plan{"full": samplePlan(), "empty": {Filter: []byte{}}} {
		got, err := supervisor.DecodePlan(plan.Encode())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(plan, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	raw := samplePlan().Encode()
	for cut := range len(raw) {
		if _, err := supervisor.DecodePlan(raw[:cut]); err == nil {
			t.Fatalf("a plan of %d bytes was read from its first %d", len(raw), cut)
		}
	}
	if _, err := supervisor.DecodePlan(append(raw, 0)); err == nil {
		t.Error("a plan with something behind it was read")
	}
}

func TestReportRoundTrip(t *testing.T) {
	t.Parallel()
	want := &supervisor.Report{
		Starting: true, PID: 2, Error: "e", Missing: true, Held: 3, Ended: true, Code: 255, Signal: 9, Left: 4, Stuck: true, Hit: supervisor.HitMemory,
	}
	in := bytes.NewReader(append(want.Encode(), (&supervisor.Report{}).Encode()...))
	read := func(b []byte) error {
		_, err := io.ReadFull(in, b)
		return err
	}
	for _, want := range []*supervisor.Report{want, {}} {
		got, err := supervisor.ReadReport(read)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if _, err := supervisor.ReadReport(read); err == nil {
		t.Error("a report was read from nothing")
	}
}

// FuzzDecodePlan: whatever the bytes, reading ends and takes no more memory than they are worth.
func FuzzDecodePlan(f *testing.F) {
	f.Add(samplePlan().Encode())
	f.Add(bytes.Repeat([]byte{0xff}, 200))
	f.Fuzz(func(t *testing.T, raw []byte) {
		plan, err := supervisor.DecodePlan(raw)
		if err != nil {
			return
		}
		again, err := supervisor.DecodePlan(plan.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plan, again); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
