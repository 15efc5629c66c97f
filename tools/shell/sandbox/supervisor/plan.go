// Package supervisor is the parent process of a confined command: the program, started again as
// its own helper, executes a Plan.
//
// On Linux, the work is done during package initialisation, before nearly all other packages. The linker initialises
// packages in the order of their import paths, as soon as their own imports are initialised. This package imports only
// the smallest packages of the standard library, so a helper does not pay for the rest of the program (about 20 ms).
// This is also why plans and reports have a simple binary form, and why some constants of the kernel are repeated here
// instead of imported from golang.org/x/sys/unix.
package supervisor

import (
	"errors"
	"math"
	"time"
)

// Arg is the first argument of a helper. Marker is a variable that its environment must contain as well.
const (
	Arg    = "__sandbox"
	Marker = "ZEPHBOT_SANDBOX_HELPER"
)

// Modes of a helper: its second argument.
const (
	ModeRun   = "run"   // execute the plan in file FDPlan
	ModeProbe = "probe" // the same, but check the confinement instead of starting a command
)

// File descriptors that a helper inherits.
const (
	fdPlan    = 3
	fdControl = 4 // its end is the request to end the run
	fdReport  = 5
)

// Plan is everything that a helper does. All paths are absolute and free of links.
type Plan struct {
	Argv []string
	Dir  string
	Env  []string

	UserSpace bool // the helper has its own user namespace, in which it keeps this user and group
	UID, GID  int
	PIDSpace  bool    // the helper is the first process of a PID namespace
	Mounts    []Mount // of the new root, in order; none = the file system is unchanged

	Confine bool   // drop privileges and capabilities, and apply the fields below
	Keep    uint64 // capabilities that are kept
	ABI     int    // version of Landlock; 0 = none
	FS      uint64 // handled rights
	Net     uint64
	Scoped  uint64
	Rules   []Rule
	Filter  []byte // the seccomp program, an array of struct sock_filter; none = no filter
	Guard   *Guard // checks addresses for the filter; nil = the filter does not ask about them
	// Watched are the calls that the filter tells the helper. The filter asks for either these or the Guard.
	Watched []WatchedCall

	Rlimits []Rlimit
	Procs   int    // processes at one time; 0 = unlimited
	Memory  uint64 // bytes of all processes together; 0 = unlimited

	Grace  time.Duration
	Linger time.Duration
}

// MountKind is a kind of Mount.
type MountKind int

// Kinds of mounts.
const (
	MountBind  MountKind = iota // mount Source at Path, with everything mounted below it
	MountLink                   // create a symbolic link at Path with the target Source
	MountDir                    // create an empty directory
	MountTmpfs                  // mount an empty file system of at most Size bytes
	MountProc                   // mount the processes of the PID namespace, read-only unless Write
	MountHide                   // cover Path with something that cannot be opened; skipped if Path no longer exists
	MountPin                    // mount Path over itself, so that nobody can rename it
	MountLayer                  // mount an overlay with the options in Source at Path
)

// Mount is one step in the construction of the command's root.
type Mount struct {
	Kind   MountKind
	Path   string
	Source string
	Write  bool // for a bind or the processes: writable
	Dir    bool // for a bind or a hide: Path is a directory
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

// Guard decides which addresses a command may reach.
type Guard struct {
	// None: it refuses every socket, and the last report says which were asked for. The other fields but Layer are not
	// used.
	None bool
	// Layer is a directory below an overlay at the same path. The last report says whether somebody wanted to rename a
	// directory that is there, which an overlay refuses; "" = nobody looks.
	Layer   string
	Own     [][]byte // addresses of this machine, 4 or 16 bytes each; they count as loopback
	Servers [][]byte // name servers, which may be reached on port 53 wherever they are
}

// WatchedCall is a system call that would change something. The helper notes it and lets the kernel decide, or refuses
// it always; it never decides by what it has read, because a command could change that in between.
type WatchedCall struct {
	Number int
	Verb   string // what the call would do, for Attempt
	// Dir and Path are the indexes of the arguments with the directory of the path, or with an open file if there is no
	// Path, and with the path; -1 = there is none.
	Dir, Path int
	Refuse    int // the error number with which the call ends; 0 = as the kernel decides
}

// Attempt is a watched call that a command has made.
type Attempt struct {
	Verb string
	Path string // absolute, as the command sees it; "" = unknown, or the call has none
}

// Limits that ended a run, in Report.Hit.
const (
	HitProcs  = 1 << iota // Plan.Procs
	HitMemory             // Plan.Memory
)

// Report is a message from a helper. The last one has Ended set.
type Report struct {
	Starting bool   // from now on, the command may be running
	PID      int    // process id of the command in the helper's namespace
	Error    string // why it was not started
	Missing  bool   // Error is about a missing feature of the kernel
	Held     uint64 // for a probe: what works
	Ended    bool
	Code     int
	Signal   int
	Left     int // processes that outlived the command and were ended
	Stuck    bool
	Hit      uint64
	Tried    uint64    // what Guard.None has seen
	Attempts []Attempt // the watched calls, each once, at most maxAttempts
}

// Flags of Report.Tried.
const (
	TriedInternet = 1 << iota // a socket of IPv4 or IPv6
	TriedSocket               // another one
	TriedRename               // of a directory below a layer
)

// maxAttempts limits Report.Attempts.
const maxAttempts = 16

// Flags of Report.Held.
const (
	HeldFiles = 1 << iota // Landlock
	HeldCalls             // seccomp
	HeldRoot              // mounts
	HeldPIDs              // processes
	heldGuard             // addresses
)

// Placeholders in a filter for process ids that only the helper knows.
const (
	PlaceSelf        = 0x7fff_fff1 // the helper
	PlaceParent      = 0x7fff_fff2 // its parent
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

// reader decodes values, and remembers the first error.
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

// listLength returns the length of a list whose elements have at least size bytes each.
func (r *reader) listLength(size int) int {
	n := r.uint()
	if n > math.MaxInt32 || int(n) > len(r.b)/size {
		r.b, r.err = nil, errCut
		return 0
	}
	return int(n)
}

func (r *reader) string() string {
	n := r.listLength(1)
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *reader) strings() []string {
	var list []string
	for range r.listLength(8) {
		list = append(list, r.string())
	}
	return list
}

func (r *reader) byteLists() [][]byte {
	var list [][]byte
	for range r.listLength(8) {
		list = append(list, []byte(r.string()))
	}
	return list
}

// Encode returns the binary form.
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
		w.bool(p.Guard.None)
		w.string(p.Guard.Layer)
		w.byteLists(p.Guard.Own)
		w.byteLists(p.Guard.Servers)
	}
	w.int(len(p.Watched))
	for _, c := range p.Watched {
		w.int(c.Number)
		w.string(c.Verb)
		w.int(c.Dir)
		w.int(c.Path)
		w.int(c.Refuse)
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

// DecodePlan decodes the result of Encode. It fails when data is missing or left over.
func DecodePlan(b []byte) (*Plan, error) {
	r := &reader{b: b}
	p := &Plan{
		Argv: r.strings(), Dir: r.string(), Env: r.strings(), UserSpace: r.bool(), UID: r.int(), GID: r.int(),
		PIDSpace: r.bool(),
	}
	for range r.listLength(8) {
		p.Mounts = append(p.Mounts, Mount{
			Kind: MountKind(r.int()), Path: r.string(), Source: r.string(),
			Write: r.bool(), Dir: r.bool(), Size: int64(r.int()),
		})
	}
	p.Confine, p.Keep, p.ABI, p.FS, p.Net, p.Scoped = r.bool(), r.uint(), r.int(), r.uint(), r.uint(), r.uint()
	for range r.listLength(8) {
		p.Rules = append(p.Rules, Rule{Path: r.string(), Access: r.uint()})
	}
	p.Filter = []byte(r.string())
	if r.bool() {
		p.Guard = &Guard{None: r.bool(), Layer: r.string(), Own: r.byteLists(), Servers: r.byteLists()}
	}
	for range r.listLength(8) {
		p.Watched = append(p.Watched, WatchedCall{
			Number: r.int(), Verb: r.string(), Dir: r.int(), Path: r.int(), Refuse: r.int(),
		})
	}
	for range r.listLength(8) {
		p.Rlimits = append(p.Rlimits, Rlimit{What: r.int(), Soft: r.uint(), Hard: r.uint()})
	}
	p.Procs, p.Memory, p.Grace, p.Linger = r.int(), r.uint(), time.Duration(r.int()), time.Duration(r.int())
	if r.err == nil && len(r.b) > 0 {
		r.err = errors.New("there is more than a plan")
	}
	return p, r.err
}

// Encode returns the binary form, preceded by its length.
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
	w.uint(p.Tried)
	w.int(len(p.Attempts))
	for _, a := range p.Attempts {
		w.string(a.Verb)
		w.string(a.Path)
	}
	head := &writer{}
	head.int(len(w.b))
	return append(head.b, w.b...)
}

// maxReport limits a report, in bytes.
const maxReport = 1 << 20

// ReadReport reads one report. read must fill its argument or fail, like io.ReadFull.
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
		Tried: r.uint(),
	}
	for range r.listLength(16) {
		p.Attempts = append(p.Attempts, Attempt{Verb: r.string(), Path: r.string()})
	}
	return p, r.err
}
