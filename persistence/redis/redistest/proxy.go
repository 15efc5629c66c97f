package redistest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Fault is a way in which a Proxy fails.
type Fault int

// The faults.
const (
	None     Fault = iota
	Cut            // connections are cut, and new ones immediately
	Stall          // requests are accepted but not answered, until the next fault
	ReadOnly       // writes get the answer of a replica
)

// Proxy sits between clients and a server. It counts what clients write at once (a request, or several in one round
// trip), records their commands, and breaks connections. Safe for concurrent use.
type Proxy struct {
	listener net.Listener
	trips    atomic.Int64
	work     sync.WaitGroup

	mu       sync.Mutex
	behind   string
	fault    Fault
	changed  chan struct{} // closed by the next fault
	conns    map[net.Conn]bool
	commands map[string]bool
	closed   bool
}

// Between starts a proxy in front of the server at an address. It ends with the test, which waits for its goroutines.
func Between(tb testing.TB, behind string) *Proxy {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{
		listener: listener,
		behind:   behind,
		changed:  make(chan struct{}),
		conns:    map[net.Conn]bool{},
		commands: map[string]bool{},
	}
	p.work.Go(p.serve)
	tb.Cleanup(p.close)
	return p
}

// Addr returns the address for clients.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Trips returns the number of round trips so far.
func (p *Proxy) Trips() int64 { return p.trips.Load() }

// Commands returns the commands sent so far, in capitals and in order. A subcommand is included, as in "CLIENT
// SETINFO".
func (p *Proxy) Commands() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []string
	for name := range p.commands {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// Break begins a fault and ends the previous one; None ends all. Stalled requests are lost with their connections.
func (p *Proxy) Break(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == Cut || p.fault == Stall || f == Cut {
		p.cut()
	}
	p.fault = f
	close(p.changed)
	p.changed = make(chan struct{})
}

// Turn forwards to another server from now on, as after a failover: connections are cut.
func (p *Proxy) Turn(behind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behind = behind
	p.cut()
}

// cut closes all connections. p.mu must be held.
func (p *Proxy) cut() {
	for c := range p.conns {
		_ = c.Close() // it is cut
	}
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.cut()
	close(p.changed)
	p.changed = nil
	p.mu.Unlock()
	p.work.Wait()
}

// add registers a connection for cut. It returns false if the proxy has ended or cuts connections.
func (p *Proxy) add(list ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.fault == Cut {
		for _, c := range list {
			_ = c.Close()
		}
		return false
	}
	for _, c := range list {
		p.conns[c] = true
	}
	return true
}

func (p *Proxy) drop(list ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range list {
		_ = c.Close()
		delete(p.conns, c)
	}
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		behind := p.behind
		p.mu.Unlock()
		server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", behind)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.add(client, server) {
			continue
		}
		p.work.Go(func() {
			defer p.drop(client, server)
			_, _ = io.Copy(client, server) // ends when either side closes
		})
		p.work.Go(func() {
			defer p.drop(client, server)
			p.forward(client, server)
		})
	}
}

// counting counts the reads that returned data.
type counting struct {
	io.Reader
	trips *atomic.Int64
}

func (c counting) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if n > 0 {
		c.trips.Add(1)
	}
	return n, err
}

// forward forwards requests one by one.
func (p *Proxy) forward(client, server net.Conn) {
	in := bufio.NewReaderSize(counting{client, &p.trips}, 1<<16)
	for {
		raw, words, err := request(in)
		if err != nil {
			return
		}
		p.note(words)
		switch fault := p.wait(); {
		case fault == Cut:
			return
		case fault == ReadOnly && writes(words[0]):
			if _, err := io.WriteString(
				client, "-READONLY You can't write against a read only replica.\r\n",
			); err != nil {
				return
			}
		default:
			if _, err := server.Write(raw); err != nil {
				return
			}
		}
	}
}

// wait blocks while the fault is Stall and returns the next fault; the stalled request is lost.
func (p *Proxy) wait() Fault {
	p.mu.Lock()
	fault, changed := p.fault, p.changed
	p.mu.Unlock()
	if fault != Stall || changed == nil {
		return fault
	}
	<-changed
	return Cut
}

func (p *Proxy) note(words []string) {
	name := strings.ToUpper(words[0])
	if len(words) > 1 &&
		slices.Contains([]string{"CLIENT", "CLUSTER", "COMMAND", "CONFIG", "SCRIPT", "SENTINEL"}, name) {
		name += " " + strings.ToUpper(words[1])
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands[name] = true
}

// writes reports whether a command that we use can write.
func writes(command string) bool {
	return slices.Contains([]string{"SET", "EVAL", "EVALSHA"}, strings.ToUpper(command))
}

// request reads one request: an array of strings with length prefixes.
func request(in *bufio.Reader) (raw []byte, words []string, err error) {
	var out bytes.Buffer
	n, err := length(in, &out, '*')
	if err != nil {
		return nil, nil, err
	}
	for range n {
		size, err := length(in, &out, '$')
		if err != nil {
			return nil, nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, nil, err
		}
		out.Write(word)
		words = append(words, string(word[:size]))
	}
	if len(words) == 0 {
		return nil, nil, io.ErrUnexpectedEOF
	}
	return out.Bytes(), words, nil
}

// length reads a line such as "*3".
func length(in *bufio.Reader, out *bytes.Buffer, kind byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	out.WriteString(line)
	n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
	if err != nil || line[0] != kind || n < 0 || n > 1<<24 {
		return 0, fmt.Errorf("not a request: %q", line)
	}
	return n, nil
}
