// Package qdranttest is an in-memory Qdrant for tests: the generated gRPC services over an in-process pipe. It
// implements the methods that our client uses; everything else returns Unimplemented.
package qdranttest

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"

	"github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

// maxRequest is Qdrant's limit of one request in bytes (service.max_request_size_mb).
const maxRequest = 32 << 20

// Options of Start.
type Options struct {
	APIKey string      // required in requests; "" = not required
	TLS    *tls.Config // with a certificate; nil = plain text
	// Strict refuses filters by fields without an index, as Qdrant's cloud does (strict mode).
	Strict bool
	// RetryAfter is said with the code ResourceExhausted, in seconds; "" = nothing is said.
	RetryAfter string
}

// Server is a Qdrant that lives as long as its test. Safe for concurrent use.
type Server struct {
	options Options

	mu          sync.Mutex
	listener    *bufconn.Listener // nil = the server is down
	grpc        *grpc.Server
	serving     sync.WaitGroup
	collections map[string]*collection
	before      func(method string) error
	calls       map[string]int
}

// Start starts an empty Server.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{options: o, collections: map[string]*collection{}, calls: map[string]int{}}
	s.Begin()
	t.Cleanup(s.End)
	return s
}

// Begin restarts a server that was ended. Its data is still there.
func (s *Server) Begin() {
	options := []grpc.ServerOption{
		grpc.UnaryInterceptor(s.intercept),
		grpc.MaxRecvMsgSize(maxRequest),
		grpc.MaxSendMsgSize(1 << 30),
	}
	if s.options.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(s.options.TLS)))
	}
	server, listener := grpc.NewServer(options...), bufconn.Listen(1<<20)
	qdrant.RegisterCollectionsServer(server, collections{Server: s})
	qdrant.RegisterPointsServer(server, points{Server: s})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener, s.grpc = listener, server
	s.serving.Go(func() { _ = server.Serve(listener) }) // it returns an error when it is ended
}

// End closes all connections; the server is down from now on.
func (s *Server) End() {
	s.mu.Lock()
	server := s.grpc
	s.listener, s.grpc = nil, nil
	s.mu.Unlock()
	if server != nil {
		server.Stop()
	}
	s.serving.Wait()
}

// Dial connects to the server, whatever the address. It is for the client's options.
func (s *Server) Dial(ctx context.Context, address string) (net.Conn, error) {
	s.mu.Lock()
	listener := s.listener
	s.mu.Unlock()
	if listener == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.AddrError{Err: "connection refused", Addr: address}}
	}
	return listener.DialContext(ctx)
}

// Before calls look before each call, with a name such as "Upsert" or "CreateCollection"; its error is the answer. It
// may block. nil = none.
func (s *Server) Before(look func(method string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = look
}

// Calls returns how often a method was called.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

func (s *Server) intercept(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (any, error) {
	name := method(info.FullMethod)
	s.mu.Lock()
	s.calls[name]++
	before := s.before
	s.mu.Unlock()
	if s.options.APIKey != "" {
		md, _ := metadata.FromIncomingContext(ctx)
		if keys := md.Get("api-key"); len(keys) != 1 || keys[0] != s.options.APIKey {
			return nil, status.Error(codes.Unauthenticated, "Must provide an API key or an Authorization bearer token")
		}
	}
	if before != nil {
		if err := before(name); err != nil {
			if status.Code(err) == codes.ResourceExhausted && s.options.RetryAfter != "" {
				// it fails only outside of a call
				_ = grpc.SetTrailer(ctx, metadata.Pairs("retry-after", s.options.RetryAfter))
			}
			return nil, err
		}
	}
	return handle(ctx, request)
}

// method returns a short name: that of the method for points, with the word Collection for collections.
func method(full string) string {
	switch full {
	case qdrant.Collections_Get_FullMethodName:
		return "GetCollection"
	case qdrant.Collections_List_FullMethodName:
		return "ListCollections"
	case qdrant.Collections_Create_FullMethodName:
		return "CreateCollection"
	case qdrant.Collections_Delete_FullMethodName:
		return "DeleteCollection"
	case qdrant.Points_Upsert_FullMethodName:
		return "Upsert"
	case qdrant.Points_Delete_FullMethodName:
		return "Delete"
	case qdrant.Points_Scroll_FullMethodName:
		return "Scroll"
	case qdrant.Points_Query_FullMethodName:
		return "Query"
	case qdrant.Points_Facet_FullMethodName:
		return "Facet"
	case qdrant.Points_OverwritePayload_FullMethodName:
		return "OverwritePayload"
	case qdrant.Points_CreateFieldIndex_FullMethodName:
		return "CreateFieldIndex"
	}
	return full
}
