//go:build linux

package crashtest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

var outageLength = flag.Duration("outage", 0, "TestOutages: how long each server is away; 0 = some seconds")

const (
	// shortOutage are an outage of a plain `go test`.
	shortOutage = 9 * time.Second
	// calmBefore is how long people write before the outage, and after it.
	calmBefore = 4 * time.Second
	// outagePace is the average time between two messages of a conversation.
	outagePace = 4 * time.Second
	// talkersOfOutage are the conversations of each set-up: fewer than those of a machine, since four run side by side.
	talkersOfOutage = 10
)

// manner is a way in which a server is away.
type manner string

const (
	there   manner = ""
	refuses manner = "connections are refused"
	hangs   manner = "connections hang"
	cuts    manner = "connections are cut" // of the requests, every second one has arrived
)

// line is the way from all processes to one server. Its port is below those that the kernel gives to clients, so that
// nobody else has it while connections are refused.
type line struct {
	addr, behind string
	working      sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	manner   manner
	changed  chan struct{} // closed by the next change
	conns    map[net.Conn]bool
	over     bool
}

// newLine leads to an address. It ends with the test.
func newLine(t *testing.T, behind string) *line {
	t.Helper()
	l := &line{behind: behind, changed: make(chan struct{}), conns: map[net.Conn]bool{}}
	var err error
	for range 50 {
		l.addr = fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		if err = l.listen(); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.mu.Lock()
		l.over = true
		if l.listener != nil {
			_ = l.listener.Close()
		}
		close(l.changed)
		l.cut()
		l.mu.Unlock()
		l.working.Wait()
	})
	return l
}

// listen accepts connections from now on. l.mu must be held, unless nobody else knows l.
func (l *line) listen() error {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", l.addr)
	if err != nil {
		return err
	}
	l.listener = listener
	l.working.Go(func() { l.accept(listener) })
	return nil
}

// cut closes all connections. l.mu must be held.
func (l *line) cut() {
	for c := range l.conns {
		_ = c.Close() // it is cut
	}
}

// be changes how the server is away. What hung is lost.
func (l *line) be(m manner) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.manner == hangs || m == refuses {
		l.cut()
	}
	l.manner = m
	close(l.changed)
	l.changed = make(chan struct{})
	switch {
	case m == refuses:
		err := l.listener.Close()
		l.listener = nil
		return err
	case l.listener == nil:
		return l.listen()
	default:
		return nil
	}
}

func (l *line) now() (manner, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.manner, l.changed
}

func (l *line) accept(from net.Listener) {
	for {
		client, err := from.Accept()
		if err != nil {
			return
		}
		l.working.Go(func() { l.serve(client) })
	}
}

// keep registers connections for cut; false if there is nobody to serve them any more.
func (l *line) keep(list ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range list {
		l.conns[c] = true
	}
	return !l.over && l.manner != refuses
}

func (l *line) drop(list ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range list {
		_ = c.Close() // both sides, whoever has ended
		delete(l.conns, c)
	}
}

func (l *line) serve(client net.Conn) {
	defer l.drop(client)
	if !l.keep(client) {
		return
	}
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", l.behind)
	if err != nil {
		return
	}
	defer l.drop(server)
	if !l.keep(server) {
		return
	}
	var answers sync.WaitGroup
	answers.Go(func() {
		defer l.drop(client, server)
		l.pump(server, client, false)
	})
	l.pump(client, server, true)
	l.drop(client, server)
	answers.Wait()
}

// pump carries what one side sends to the other, as far as the line is there.
func (l *line) pump(from, to net.Conn, asks bool) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		switch manner, changed := l.now(); {
		case manner == hangs:
			<-changed
			return
		case manner == cuts && (!asks || rand.IntN(2) == 0):
			return
		case manner == refuses:
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// distant is PostgreSQL and Redis, each at the end of a line.
type distant struct {
	*servers
	database, far *line
}

func newDistant(t *testing.T) *distant {
	t.Helper()
	s := newServers(t)
	return &distant{servers: s, database: newLine(t, hostOf(t, s.proxy.URL(s.base))), far: newLine(t, s.cache.proxy.Addr())}
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func (d *distant) config(*machine, *node) string {
	far := strings.Replace(d.proxy.URL(d.base), d.database.behind, d.database.addr, 1)
	return fmt.Sprintf("[database]\nurl = %q\n[redis]\nurl = \"redis://%s\"\n", far, d.far.addr)
}

// gaveUp tells the loss of a message, after ten minutes in which the model did not answer it.
const gaveUp = "so I gave up"

// lose notes that the loss of a message was told: it is the one that is replied to, or else the oldest that is open.
// It is called with mu held.
func (m *machine) lose(c *telegramtest.Call) {
	for _, q := range m.questions {
		if q.talker.chat == c.Chat && !q.heard && !q.excused {
			if to := c.Params["reply_parameters"]; to == "" || strings.Contains(to, fmt.Sprintf(`"message_id":%d}`, q.message)) ||
				strings.Contains(to, fmt.Sprintf(`"message_id":%d,`, q.message)) {
				q.excused, q.lost = true, true
				return
			}
		}
	}
	m.wrong = append(m.wrong, fmt.Sprintf("chat %d: a loss was told, and no message is open: %q", c.Chat, c.Params["text"]))
}

// TestOutages: each of the four servers is away for a while, as long as -outage says, while people write: its
// connections are refused, hang, and are cut, for a third of the time each. Two processes on PostgreSQL and Redis serve
// ten conversations. When it is back, every message is answered exactly once (again only with a mark) or its loss is
// told, in order; each command ran as often as its answer says; every lock has ended, nothing stays set aside, and as
// many turns are charged as there were.
//
//	go test ./cmd/internal/crashtest -run TestOutages -v -timeout 0 -outage 10m
func TestOutages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes its time")
	}
	length := *outageLength
	if length == 0 {
		length = shortOutage
	}
	for _, name := range []string{"Telegram", "model", "PostgreSQL", "Redis"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDistant(t)
			m := newMachine(t, *machineSeed+1, d, 2, false)
			m.steady, m.lossy = true, name == "model"
			telegram, model := newLine(t, hostOf(t, m.url)), newLine(t, hostOf(t, m.oracle.URL))
			m.url, m.oracle.URL = "http://"+telegram.addr, "http://"+model.addr
			m.talkers = slices.Concat(m.talkers[:talkersOfOutage-2], m.talkers[privateChats:privateChats+2])
			m.outageOf(name, map[string]*line{"Telegram": telegram, "model": model, "PostgreSQL": d.database, "Redis": d.far}[name], d.servers, length)
		})
	}
}

// outageOf takes a server away and returns the verdict.
func (m *machine) outageOf(name string, l *line, s *servers, length time.Duration) {
	t := m.t
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var processes, people sync.WaitGroup
	for _, n := range m.nodes {
		processes.Go(func() { n.run(ctx) })
	}
	talking, silence := context.WithCancel(ctx)
	for _, p := range m.talkers {
		people.Go(func() { p.write(talking) })
	}
	pause(ctx, calmBefore)
	var err error
	s.sicken(true)
	for _, how := range []manner{refuses, hangs, cuts} {
		m.hit(name + ": " + string(how))
		err = errors.Join(err, l.be(how))
		pause(ctx, length/3)
		t.Log(m.summary())
	}
	err = errors.Join(err, l.be(there))
	s.sicken(false)
	back := time.Now()
	if err != nil {
		m.fail("%v", err)
	}
	pause(ctx, calmBefore)
	silence()
	people.Wait()
	if err := m.settle(ctx); err != nil {
		m.fail("%v", err)
	}
	settled := time.Since(back)
	cancel()
	processes.Wait()
	close(m.over)
	m.pressing.Wait()
	m.judge()
	m.leftOver(s)
	lost := 0
	for _, q := range m.questions {
		if q.lost {
			lost++
		}
	}
	t.Logf("%s was away for %s: everything was done %.1f s after its return; %d losses told\n%s", name, length, settled.Seconds(), lost, m.table())
	if len(m.wrong) > 0 {
		t.Errorf("%d promises not kept\n  %s", len(m.wrong), strings.Join(m.wrong, "\n  "))
		m.keep()
	}
}

// sicken says that a server is away, or back: a process may end because of it, if it says so.
func (s *servers) sicken(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.healed = time.Now(); away {
		s.sick++
	} else {
		s.sick--
	}
}

// write asks until ctx ends.
func (p *talker) write(ctx context.Context) {
	most := mostOpen
	if p.chat < 0 {
		most = 1
	}
	for ctx.Err() == nil {
		pause(ctx, time.Duration(float64(outagePace)*min(p.random.ExpFloat64(), 3)))
		if ctx.Err() == nil && p.m.open(p) < most {
			p.ask()
		}
	}
}

// leftOver checks what is left in the database: no lock, nothing set aside, no process, and one charge for each message.
func (m *machine) leftOver(s *servers) {
	for _, c := range []struct {
		what, query string
		want        int
	}{
		{"locks", `SELECT count(*) FROM fact WHERE bucket = '` + bot.LeaderBucket + `'`, 0},
		{"set aside", `SELECT count(*) FROM hold`, 0},
		{"processes", `SELECT count(*) FROM process`, 0},
		{"turns charged", `SELECT COALESCE(SUM(n), 0)::bigint FROM charge WHERE unit = 'turns' AND scope LIKE 'bot/%'`, len(m.questions)},
	} {
		if got, err := s.cluster.Numbers(m.t.Context(), s.base, c.query); err != nil || !slices.Equal(got, []int64{int64(c.want)}) {
			m.fail("%s: %v, want %d; %v", c.what, got, c.want, err)
		}
	}
}

// TestLine: a line that is away behaves as its manner says, and is there again afterwards.
func TestLine(t *testing.T) {
	t.Parallel()
	fake := telegramtest.New(telegramtest.Options{})
	t.Cleanup(fake.Close)
	address, err := fake.Start()
	if err != nil {
		t.Fatal(err)
	}
	l := newLine(t, hostOf(t, address))
	try := func() error {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.addr)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if err := conn.SetDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
			return err
		}
		if _, err := conn.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 1))
		return err
	}
	for _, c := range []struct {
		manner manner
		says   string // of the error; "" = none
	}{{there, ""}, {refuses, "refused"}, {there, ""}, {hangs, "timeout"}, {cuts, "EOF"}, {refuses, "refused"}, {hangs, "timeout"}, {there, ""}} {
		if err := l.be(c.manner); err != nil {
			t.Fatal(err)
		}
		err := try()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.manner, err, c.says)
		}
	}
}
