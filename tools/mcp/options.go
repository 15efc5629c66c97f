package mcp

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// Scope says who shares a connection to a server.
type Scope string

// Scopes.
const (
	Shared     Scope = "shared"  // one connection for all; the default
	PerSession Scope = "session" // one per conversation
	PerCaller  Scope = "caller"  // one per person
)

// Root is a directory that a server may use. It is a grant rather than a hint: some servers use it in place of the
// directories they were configured with.
type Root struct {
	URI  string `json:"uri"` // file://…
	Name string `json:"name,omitempty"`
}

// Server is the configuration of a server: how to reach it and how far to trust it. It has either a Command or a URL.
type Server struct {
	ID      string            `json:"id"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"` // values may hold ${caller} when Scope is not shared
	Dir     string            `json:"dir,omitempty"` // working directory; "" = one of its own below Options.WorkDir
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"` // values may hold ${caller} when Scope is not shared
	// Protocol pins a protocol revision ("2025-11-25"); "" = the newest one that both sides support.
	Protocol string `json:"protocol,omitempty"`

	Timeout        time.Duration `json:"timeout,omitempty"`         // to connect, to list and for a call; 0 = 30 s
	StartupTimeout time.Duration `json:"startup_timeout,omitempty"` // to connect; 0 = Timeout

	Trust         guard.Trust `json:"trust,omitempty"` // "" = untrusted
	Allowlist     *[]string   `json:"allowlist,omitempty"`
	ExpectedTools []string    `json:"expected_tools,omitempty"`
	Roots         []Root      `json:"roots,omitempty"`
	Elicitation   *bool       `json:"elicitation,omitempty"` // nil = Options.Elicitation
	EnvIsolation  *bool       `json:"env_isolation,omitempty"`
	Scope         Scope       `json:"scope,omitempty"` // "" = shared

	Confine string `json:"confine,omitempty"` // "" or "on": the kernel confines the program; "off": it does not
	Network string `json:"network,omitempty"` // off, internet or all; "" = by Trust
	// Read are directories and files, absolute, that a confined program may read besides its own, its package and roots.
	Read []string `json:"read,omitempty"`

	Policy         guard.Policy `json:"policy,omitzero"`
	CallsPerMinute int          `json:"calls_per_minute,omitempty"` // 0 = no limit
	OAuth          bool         `json:"oauth,omitempty"`            // sign in through Options.OAuth

	// Connect returns a transport to a server inside this program. Command and URL are empty then.
	Connect func(ctx context.Context) (sdk.Transport, error) `json:"-"`
}

// transportName returns how a server is reached, in words for people.
func (s Server) transportName() string {
	switch {
	case s.Connect != nil:
		return kindInProcess
	case s.URL != "":
		return kindHTTP
	default:
		return kindStdio
	}
}

// Store keeps what has to survive a restart: what was accepted, and the servers that were added in the chat.
type Store interface {
	// Load returns the value of a key; "" when there is none.
	Load(ctx context.Context, key string) (string, error)
	// Save stores the value of a key; "" may delete it.
	Save(ctx context.Context, key, value string) error
}

// Resolver looks up the addresses of a host; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options configure a Manager. Only Registry is required.
type Options struct {
	Servers  []Server
	Registry *tools.Registry
	Store    Store // nil = nothing survives a restart

	AllowedCommands []string // programs that may be started; empty = none
	// Header adds to the headers of requests to servers of the configuration, by the context of the call; nil = nothing
	// is added.
	Header                func(ctx context.Context, header http.Header)
	ChatCommands          bool          // Add may add programs, and those that were added earlier are started
	MaxDynamicServers     int           // added with Add; 0 = 10, negative = none
	MaxDescriptionBytes   int           // for the description of a tool; 0 = 2048
	MaxInstructionsBytes  int           // for the instructions of a server; 0 = 2048
	OutputSchemaHintBytes int           // for the part of an output schema in a description; 0 = 1024
	ConnectAttempts       int           // before the circuit breaker opens; 0 = 3
	Backoff               time.Duration // before the second attempt, doubled each time; 0 = 1 s
	ToolTimeout           time.Duration // of a call; 0 = the server's Timeout
	ListTimeout           time.Duration // for the first list, short because some servers hang there; 0 = 5 s
	LockToolList          bool          // ignore changes of the tool list after the start
	EnvIsolation          bool          // start processes with an almost empty environment

	Elicitation        bool          // let servers ask people; needs Elicit
	ElicitationTimeout time.Duration // to wait for an answer; 0 = 120 s
	// Instead is what the model is told to do where the questions of servers reach nobody; "" = nothing.
	Instead          string
	ElicitationQueue int // questions that may wait at once, over all servers; 0 = 16

	MaxMessage     int           // bytes of one message from a server; 0 = 8 MiB
	MaxConnections int           // per server with a scope; 0 = 16
	IdleTimeout    time.Duration // until an unused connection of a scope is closed; 0 = 10 min
	KeepAlive      time.Duration // between pings, if the protocol has them; 0 = 30 s

	// Elicit asks the person; nil declines every question at once. It is called from several goroutines and must honour
	// ctx.
	Elicit func(ctx context.Context, e Elicitation) (Answer, error)
	// Sample asks the model on behalf of a server; nil refuses every request. It is called from several goroutines and
	// must honour ctx.
	Sample func(ctx context.Context, r SampleRequest) (SampleResult, error)
	// Notify receives what happened to servers: one call at a time, from a goroutine of Run. A slow one delays notices
	// and may lose some, but blocks nothing else.
	Notify func(Notice)
	// Redact removes secrets from what servers print; nil = nothing is redacted.
	Redact func(string) string
	// Roots returns the directories of a session, for servers with a scope; nil = the configured ones.
	Roots func(origin tools.Origin) []string
	// OAuth returns the handler that signs in to a server; nil = a server that asks for a sign-in is an auth_failure.
	OAuth func(Server) (auth.OAuthHandler, error)

	Sandbox Sandbox  // how programs are confined; its zero value confines nothing
	Environ []string // environment that processes inherit, before it is filtered
	// every process has a directory of its own below it; "" = the system's directory for temporary files
	WorkDir string
	Version string // of this program, sent to servers

	Resolver Resolver       // nil = the system's
	CAs      *x509.CertPool // nil = the system's
	// Dial opens a connection to a checked address; nil = a dialer that checks for private addresses again at the
	// socket. It is for tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	Now  func() time.Time // nil = time.Now
	Log  zerolog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Registry == nil {
		return o, errors.New("mcp: Registry is required")
	}
	ints := []struct {
		v      *int
		normal int
	}{
		{&o.MaxDynamicServers, 10},
		{&o.MaxDescriptionBytes, 2048},
		{&o.MaxInstructionsBytes, 2048},
		{&o.OutputSchemaHintBytes, 1024},
		{&o.ConnectAttempts, 3},
		{&o.ElicitationQueue, 16},
		{&o.MaxMessage, 8 << 20},
		{&o.MaxConnections, 16},
	}
	for _, i := range ints {
		if *i.v == 0 {
			*i.v = i.normal
		}
	}
	spans := []struct {
		v      *time.Duration
		normal time.Duration
	}{
		{&o.Backoff, time.Second},
		{&o.ListTimeout, 5 * time.Second},
		{&o.ElicitationTimeout, 2 * time.Minute},
		{&o.IdleTimeout, 10 * time.Minute},
		{&o.KeepAlive, 30 * time.Second},
	}
	for _, s := range spans {
		if *s.v <= 0 {
			*s.v = s.normal
		}
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	if o.Store == nil {
		o.Store = &memory{}
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	return o, nil
}

// withDefaults fills in defaults and checks what can be checked without starting anything. What else a server needs at
// run time, such as a permitted command and a public address, is checked at every connect. A wrong entry is therefore a
// broken server and not a service that does not start.
func (s Server) withDefaults() (Server, error) {
	if err := guard.ServerID(s.ID); err != nil {
		return s, err
	}
	ways := 0
	for _, has := range []bool{s.Command != "", s.URL != "", s.Connect != nil} {
		if has {
			ways++
		}
	}
	if ways != 1 {
		return s, fmt.Errorf("server %s: give a command or a url, and not both", s.ID)
	}
	trust, err := guard.ParseTrust(string(s.Trust))
	if err != nil {
		return s, fmt.Errorf("server %s: %w", s.ID, err)
	}
	s.Trust = trust
	if s.Timeout <= 0 {
		s.Timeout = 30 * time.Second
	}
	if s.StartupTimeout <= 0 {
		s.StartupTimeout = s.Timeout
	}
	if !slices.Contains([]string{"", "on", "off"}, s.Confine) {
		return s, fmt.Errorf("server %s: confine %q: want on or off", s.ID, s.Confine)
	}
	if !slices.Contains([]string{"", "off", "internet", "all"}, s.Network) {
		return s, fmt.Errorf("server %s: network %q: want off, internet or all", s.ID, s.Network)
	}
	if err := s.checkScope(); err != nil {
		return s, fmt.Errorf("server %s: %w", s.ID, err)
	}
	for _, r := range s.Roots {
		if u, err := url.Parse(r.URI); err != nil || u.Scheme != "file" || !strings.HasPrefix(u.Path, "/") {
			return s, fmt.Errorf("server %s: root %q: want a file:// address", s.ID, r.URI)
		}
	}
	return s, nil
}

func (s *Server) checkScope() error {
	switch s.Scope {
	case "":
		s.Scope = Shared
	case Shared, PerSession, PerCaller:
	default:
		return fmt.Errorf("scope %q: want %s, %s or %s", s.Scope, Shared, PerSession, PerCaller)
	}
	if err := guard.RefuseCaller(s.Command, s.Args); err != nil {
		return err
	}
	if s.Scope == Shared && (guard.UsesCaller(s.Env) || guard.UsesCaller(s.Headers)) {
		return errors.New(`${caller} needs a connection per person: set scope to "caller" or "session"`)
	}
	return nil
}
