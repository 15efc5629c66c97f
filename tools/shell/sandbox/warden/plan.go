// Package warden is the parent of a confined command: the program, started again as its own helper, carries out a Plan
// that its caller made.
//
// On Linux the work happens while the packages of the program are being initialised, before nearly all others: the
// linker initialises packages in the order of their import paths as soon as what they import is initialised. This
// package imports only the smallest packages of the standard library, so a helper never pays for the rest of the
// program (about 20 ms). That is also why plans and reports have a plain binary form, and why some numbers of the
// kernel are repeated here instead of taken from golang.org/x/sys/unix.
package warden

import (
	"errors"
	"math"
	"time"
)

// Arg is the first argument of a helper, and Marker the variable that its environment holds besides.
const (
	Arg    = "__sandbox"
	Marker = "ZEPHBOT_SANDBOX_HELPER"
)

// What a helper is started for: the second argument.
const (
	ModeRun   = "run"   // carry out the plan of file FDPlan
	ModeProbe = "probe" // the same, but instead of starting a command look whether it holds
)

// Files that a helper inherits.
const (
	FDPlan    = 3
	FDControl = 4 // its end is the word to end the run
	FDReport  = 5
)

// Plan is everything a helper does. All paths are absolute and free of links.
type Plan struct {
	Argv []string
	Dir  string
	Env  []string

	UserSpace bool // the helper is in a user namespace of its own, in which it keeps this user and group
	UID, GID  int
	PIDSpace  bool    // the helper is the first process of a PID namespace
	Mounts    []Mount // the new root, in order; none = the file system stays as it is

	Confine bool   // give up new privileges and capabilities, apply what follows
	Keep    uint64 // capabilities that are kept
	ABI     int    // Landlock; 0 = none
	FS      uint64 // handled rights
	Net     uint64
	Scoped  uint64
	Rules   []Rule
	Filter  []byte // the seccomp program as an array of struct sock_filter; none = no filter
	Guard   *Guard // judges addresses; the filter asks it; nil = the filter does not ask

	Rlimits []Rlimit
	Procs   int    // processes at one time; 0 = any number
	Memory  uint64 // bytes of all processes together; 0 = any number

	Grace  time.Duration
	Linger time.Duration
}

// MountKind is what a Mount does.
type MountKind int

// Kinds of mounts.
const (
	MountBind  MountKind = iota // Source at Path, with everything mounted below it
	MountLink                   // a symbolic link at Path that says Source
	MountDir                    // an empty directory
	MountTmpfs                  // an empty file system of at most Size bytes
	MountProc                   // the processes of the PID namespace
	MountHide                   // something that nobody can open over Path; what is no longer there is passed over
	MountPin                    // Path over itself, so that nobody can rename it
)

// Mount is one step in the making of the root that the command sees.
type Mount struct {
	Kind   MountKind
	Path   string
	Source string
	Write  bool // of a bind: what is in it may be changed
	Dir    bool // of a bind or a hide: Path is a directory
	Size   int64
}

// Rule grants rights below a path.
type Rule struct {
	Path   string
	Access uint64
}

// Rlimit is a resource limit of the command.
type Rlimit struct {
	What       int
	Soft, Hard uint64
}

// Guard judges the addresses that a command wants to reach.
type Guard struct {
	Own     [][]byte // addresses of this machine, 4 or 16 bytes each, which count as loopback
	Servers [][]byte // name servers, which may be reached on port 53 wherever they are
}

// Limits that ended a run, in Report.Hit.
const (
	HitProcs  = 1 << iota // Plan.Procs
	HitMemory             // Plan.Memory
)

// Report is what a helper says on its way. The last one has Ended set.
type Report struct {
	Starting bool   // from here on the command may run
	PID      int    // of the command, in the namespace of the helper
	Error    string // it was not started
	Missing  bool   // Error is about something that the kernel does not have
	Held     uint64 // of a probe: what holds
	Ended    bool
	Code     int
	Signal   int
	Left     int // processes that outlived the command and were ended
	Stuck    bool
	Hit      uint64
}

// What holds, in Report.Held.
const (
	HeldFiles = 1 << iota // Landlock
	HeldCalls             // seccomp
	HeldRoot              // mounts
	HeldPIDs              // processes
	HeldGuard             // addresses
)

// Numbers that a filter holds in place of process ids that only the helper knows.
const (
	PlaceSelf        = 0x7fff_fff1 // the helper
	PlaceParent      = 0x7fff_fff2 // who started it
	PlaceSelfGroup   = 0x7fff_fff3 // their process groups
	PlaceParentGroup = 0x7fff_fff4
)

var errCut = errors.New("the plan is cut off")

// writer appends values in their binary form.
type writer struct{ b []byte }

func (w *writer) uint(v uint64) {
	for range 8 {
		w.b = append(w.b, byte(v))
		v >>= 8
	}
}

func (w *writer) int(v int) { w.uint(uint64(v)) } //nolint:gosec // two's complement comes back the same

func (w *writer) bool(v bool) {
	if v {
		w.uint(1)
		return
	}
	w.uint(0)
}

func (w *writer) string(s string) {
	w.int(len(s))
	w.b = append(w.b, s...)
}

func (w *writer) strings(list []string) {
	w.int(len(list))
	for _, s := range list {
		w.string(s)
	}
}

func (w *writer) byteLists(list [][]byte) {
	w.int(len(list))
	for _, b := range list {
		w.string(string(b))
	}
}

// reader takes values off, and remembers the first that is not there.
type reader struct {
	b   []byte
	err error
}

func (r *reader) uint() uint64 {
	if len(r.b) < 8 {
		r.b, r.err = nil, errCut
		return 0
	}
	var v uint64
	for i := range 8 {
		v |= uint64(r.b[i]) << (8 * i)
	}
	r.b = r.b[8:]
	return v
}

func (r *reader) int() int   { return int(r.uint()) } //nolint:gosec // two's complement
func (r *reader) bool() bool { return r.uint() != 0 }

// count is the length of what follows, of which every element takes at least size bytes.
func (r *reader) count(size int) int {
	n := r.uint()
	if n > math.MaxInt32 || int(n) > len(r.b)/size {
		r.b, r.err = nil, errCut
		return 0
	}
	return int(n)
}

func (r *reader) string() string {
	n := r.count(1)
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *reader) strings() []string {
	var list []string
	for range r.count(8) {
		list = append(list, r.string())
	}
	return list
}

func (r *reader) byteLists() [][]byte {
	var list [][]byte
	for range r.count(8) {
		list = append(list, []byte(r.string()))
	}
	return list
}

// Encode gives the binary form.
func (p *Plan) Encode() []byte {
	w := &writer{}
	w.strings(p.Argv)
	w.string(p.Dir)
	w.strings(p.Env)
	w.bool(p.UserSpace)
	w.int(p.UID)
	w.int(p.GID)
	w.bool(p.PIDSpace)
	w.int(len(p.Mounts))
	for _, m := range p.Mounts {
		w.int(int(m.Kind))
		w.string(m.Path)
		w.string(m.Source)
		w.bool(m.Write)
		w.bool(m.Dir)
		w.int(int(m.Size))
	}
	w.bool(p.Confine)
	w.uint(p.Keep)
	w.int(p.ABI)
	w.uint(p.FS)
	w.uint(p.Net)
	w.uint(p.Scoped)
	w.int(len(p.Rules))
	for _, r := range p.Rules {
		w.string(r.Path)
		w.uint(r.Access)
	}
	w.string(string(p.Filter))
	w.bool(p.Guard != nil)
	if p.Guard != nil {
		w.byteLists(p.Guard.Own)
		w.byteLists(p.Guard.Servers)
	}
	w.int(len(p.Rlimits))
	for _, l := range p.Rlimits {
		w.int(l.What)
		w.uint(l.Soft)
		w.uint(l.Hard)
	}
	w.int(p.Procs)
	w.uint(p.Memory)
	w.int(int(p.Grace))
	w.int(int(p.Linger))
	return w.b
}

// DecodePlan reads what Encode wrote. The error says that something is missing or too much.
func DecodePlan(b []byte) (*Plan, error) {
	r := &reader{b: b}
	p := &Plan{
		Argv: r.strings(), Dir: r.string(), Env: r.strings(), UserSpace: r.bool(), UID: r.int(), GID: r.int(),
		PIDSpace: r.bool(),
	}
	for range r.count(8) {
		p.Mounts = append(p.Mounts, Mount{
			Kind: MountKind(r.int()), Path: r.string(), Source: r.string(),
			Write: r.bool(), Dir: r.bool(), Size: int64(r.int()),
		})
	}
	p.Confine, p.Keep, p.ABI, p.FS, p.Net, p.Scoped = r.bool(), r.uint(), r.int(), r.uint(), r.uint(), r.uint()
	for range r.count(8) {
		p.Rules = append(p.Rules, Rule{Path: r.string(), Access: r.uint()})
	}
	p.Filter = []byte(r.string())
	if r.bool() {
		p.Guard = &Guard{Own: r.byteLists(), Servers: r.byteLists()}
	}
	for range r.count(8) {
		p.Rlimits = append(p.Rlimits, Rlimit{What: r.int(), Soft: r.uint(), Hard: r.uint()})
	}
	p.Procs, p.Memory, p.Grace, p.Linger = r.int(), r.uint(), time.Duration(r.int()), time.Duration(r.int())
	if r.err == nil && len(r.b) > 0 {
		r.err = errors.New("there is more than a plan")
	}
	return p, r.err
}

// Encode gives the binary form, with its length before it.
func (p *Report) Encode() []byte {
	w := &writer{}
	w.bool(p.Starting)
	w.int(p.PID)
	w.string(p.Error)
	w.bool(p.Missing)
	w.uint(p.Held)
	w.bool(p.Ended)
	w.int(p.Code)
	w.int(p.Signal)
	w.int(p.Left)
	w.bool(p.Stuck)
	w.uint(p.Hit)
	head := &writer{}
	head.int(len(w.b))
	return append(head.b, w.b...)
}

// maxReport bounds a report in bytes.
const maxReport = 1 << 20

// ReadReport reads one report; read fills its argument or fails, as io.ReadFull does.
func ReadReport(read func([]byte) error) (*Report, error) {
	head := make([]byte, 8)
	if err := read(head); err != nil {
		return nil, err
	}
	n := (&reader{b: head}).uint()
	if n > maxReport {
		return nil, errCut
	}
	body := make([]byte, n)
	if err := read(body); err != nil {
		return nil, err
	}
	r := &reader{b: body}
	p := &Report{
		Starting: r.bool(), PID: r.int(), Error: r.string(), Missing: r.bool(), Held: r.uint(), Ended: r.bool(),
		Code: r.int(), Signal: r.int(), Left: r.int(), Stuck: r.bool(), Hit: r.uint(),
	}
	return p, r.err
}
