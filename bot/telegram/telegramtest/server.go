package telegramtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-telegram/bot/models"
)

// Server is one bot's Bot API server together with the people and chats around it.
type Server struct {
	opt     Options
	me      models.User
	methods map[string]method // by lower-case name
	started time.Time

	listener *http.Server
	wg       sync.WaitGroup // handlers in flight and webhook deliveries

	mu      sync.Mutex
	closed  bool
	closing chan struct{} // closed by Close
	version uint64
	changed chan struct{} // closed and replaced at every change
	cancels map[uint64]context.CancelFunc
	lastID  uint64 // of cancels

	world

	queue     updateQueue
	hook      webhook
	callbacks map[string]*callback
	answers   []CallbackAnswer

	// What the bot says of itself.
	commands map[string][]models.BotCommand
	about    map[string]string // name, description, short description by method and language

	// The requests of the bot, and what goes wrong with them.
	noRich    bool // rich messages are not known
	hides     bool // presses do not say in which message the button was
	calls     []Call
	callCount uint64
	inFlight  int
	faults    []*Fault
	unhang    chan struct{} // closed by ClearFaults
	budgets   budgetBook
	problems  []string // requests that the Bot API refuses, and misuse of the fake
	loggedOut bool
}

// world is the people, chats and files that there are.
type world struct {
	users     map[int64]models.User
	chats     map[int64]*chat
	files     map[string]*stored // by file id
	fileCount int
	groupIDs  int64 // last id given by Migrate
	away      away
}

// New makes a server. It listens nowhere until Start; Handler can be mounted instead. Close it in either case.
func New(opt Options) *Server {
	opt = opt.withDefaults()
	id := botID(opt.Token)
	s := &Server{
		opt: opt,
		me: models.User{
			ID: id, IsBot: true, FirstName: opt.Name, Username: opt.Username, CanJoinGroups: true,
			CanReadAllGroupMessages: opt.PrivacyOff, HasTopicsEnabled: opt.PrivateTopics,
			SupportsGuestQueries: true, CanConnectToBusiness: true,
		},
		started: opt.Now(),
		closing: make(chan struct{}),
		changed: make(chan struct{}),
		cancels: map[uint64]context.CancelFunc{},
		world: world{
			users:    map[int64]models.User{},
			chats:    map[int64]*chat{},
			files:    map[string]*stored{},
			groupIDs: -1002000000000,
			away: away{
				guests:   map[string]*guestQuery{},
				inline:   map[string]*message{},
				business: map[string]*connection{},
			},
		},
		unhang:    make(chan struct{}),
		callbacks: map[string]*callback{},
		commands:  map[string][]models.BotCommand{},
		about:     map[string]string{},
		queue:     newUpdateQueue(opt.FirstID),
	}
	s.methods = methodTable()
	s.users[anonymousAdminID] = models.User{
		ID:        anonymousAdminID,
		IsBot:     true,
		FirstName: "Group",
		Username:  "GroupAnonymousBot",
	}
	s.users[channelSenderID] = models.User{
		ID:        channelSenderID,
		IsBot:     true,
		FirstName: "Channel",
		Username:  "Channel_Bot",
	}
	return s
}

// BotID is the bot's own user id.
func (s *Server) BotID() int64 { return s.me.ID }

// Token is the accepted bot token.
func (s *Server) Token() string { return s.opt.Token }

// Start listens on a free port of 127.0.0.1 and returns "http://127.0.0.1:PORT", the value for api_url.
func (s *Server) Start() (string, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return "", fmt.Errorf("listen on loopback: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.listener != nil {
		return "", errors.Join(errors.New("start telegram server: already started or closed"), l.Close())
	}
	s.listener = &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	srv := s.listener
	s.wg.Go(func() {
		if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.misuse(fmt.Errorf("serve: %w", err))
		}
	})
	return "http://" + l.Addr().String(), nil
}

// Close ends held polls, hanging calls and webhook deliveries, cuts the connections and waits for every goroutine of
// the server. It must not be called from OnCall or Log.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.wg.Wait()
		return
	}
	s.closed = true
	close(s.closing)
	for _, cancel := range s.cancels {
		cancel()
	}
	srv := s.listener
	s.touch()
	s.mu.Unlock()
	if srv != nil {
		// The error is that of closing a listener that goes away with the process; nobody could act on it.
		_ = srv.Close()
	}
	s.wg.Wait()
}

// enter registers a unit of work Close waits for. The returned context ends with parent and with Close.
func (s *Server) enter(parent context.Context) (context.Context, func(), bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(parent)
	s.lastID++
	id := s.lastID
	s.cancels[id] = cancel
	s.wg.Add(1)
	return ctx, func() {
		cancel()
		s.mu.Lock()
		delete(s.cancels, id)
		s.mu.Unlock()
		s.wg.Done()
	}, true
}

// touch records a change. The lock is held.
func (s *Server) touch() {
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
}

// Version grows with every change: a message, a draft, a call, a confirmed update.
func (s *Server) Version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Changed returns a channel that is closed once the version is greater than after.
func (s *Server) Changed(after uint64) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version > after {
		done := make(chan struct{})
		close(done)
		return done
	}
	return s.changed
}

// WaitChange waits until the version is greater than version and returns it.
func (s *Server) WaitChange(ctx context.Context, version uint64) (uint64, error) {
	select {
	case <-s.Changed(version):
		return s.Version(), nil
	case <-ctx.Done():
		return s.Version(), fmt.Errorf("wait for a change of the telegram server: %w", context.Cause(ctx))
	}
}

// WaitFor waits until done says true, asking it again after every change. done runs outside the lock. Time alone
// changes nothing: a draft that only expires does not wake it.
func (s *Server) WaitFor(ctx context.Context, done func() bool) error {
	for {
		v := s.Version()
		if done() {
			return nil
		}
		if _, err := s.WaitChange(ctx, v); err != nil {
			return err
		}
	}
}

// Calls returns the finished calls, oldest first, at most Options.KeepCalls of them.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.keptCalls())
}

// CallsOf returns the finished calls of one method.
func (s *Server) CallsOf(method string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Call
	for _, c := range s.keptCalls() {
		if c.Method == method {
			out = append(out, c)
		}
	}
	return out
}

// InFlight is the number of calls that have no answer yet, held polls included.
func (s *Server) InFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inFlight
}

// Polling says whether a getUpdates is being held.
func (s *Server) Polling() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.held != nil
}

// Problems lists misuse of the Go side by calls that cannot return an error, such as Say in an unknown chat.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

func (s *Server) misuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, err.Error())
	s.touch()
}

// keptCalls cuts the log lazily: it may hold twice the cap, so that dropping costs nothing per call.
func (s *Server) keptCalls() []Call {
	return s.calls[max(0, len(s.calls)-s.opt.KeepCalls):]
}

func (s *Server) logCall(c Call) {
	if len(s.calls) >= 2*s.opt.KeepCalls {
		s.calls = append(make([]Call, 0, 2*s.opt.KeepCalls), s.calls[len(s.calls)-s.opt.KeepCalls:]...)
	}
	s.calls = append(s.calls, c)
	s.touch()
}

// encode encodes values this package built itself; a failure is a programming error that the caller turns into a 500.
func encode(v any) (json.RawMessage, *apiError) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, &apiError{code: http.StatusInternalServerError, text: "Internal Server Error: " + err.Error()}
	}
	return raw, nil
}
