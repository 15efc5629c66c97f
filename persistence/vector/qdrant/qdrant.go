// Package qdrant keeps vectors in Qdrant, over gRPC with its official client.
package qdrant

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	client "github.com/qdrant/go-client/qdrant"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/zephbot/zephbot/agent/knn"
)

const (
	callLimit = 3 * time.Second  // of one call to the server
	maxPause  = 10 * time.Second // between tries to reach a server that is away
	maxAnswer = 64 << 20         // bytes; a hit or a hash takes about 150
	keyHeader = "api-key"        // of gRPC requests (Qdrant, security guide)
)

// Options of Open.
type Options struct {
	// http://host[:port] or, with TLS, https://host[:port]; without a port it is 6334, Qdrant's for gRPC
	URL       string
	APIKey    string        // "" = none
	CallLimit time.Duration // of one call to the server; 0 = 3 s
	Log       zerolog.Logger
	// TLS for an https URL; nil = TLS 1.2 or newer with the system's roots.
	TLS *tls.Config
	// Dial connects to an address; nil = TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Store is a connection to Qdrant, made when it is first needed and again whenever it was lost. Safe for concurrent
// use. Close it.
type Store struct {
	client *client.Client
	where  address
	limit  time.Duration
}

// Open checks the options. It does not connect: a server that is away is an error of each use, until it is back. Errors
// begin with the key of the configuration and show neither the key nor what a URL may hide.
func Open(o Options) (*Store, error) {
	where, err := parse(o.URL)
	if err != nil {
		return nil, fmt.Errorf("vector.url: %w", err)
	}
	for _, c := range []byte(o.APIKey) {
		if c <= ' ' || c > '~' {
			return nil, errors.New("vector.api_key: holds a character that no key has (a space, a line end, a letter with an accent); copy it anew")
		}
	}
	if o.APIKey != "" && !where.tls && !where.loopback() {
		o.Log.Warn().Str("address", where.String()).Msg("the key of qdrant crosses the network in plain text; use an https URL")
	}
	c, err := client.NewClient(config(where, o))
	if err != nil {
		return nil, fmt.Errorf("vector.url: %w", err)
	}
	limit := o.CallLimit
	if limit <= 0 {
		limit = callLimit
	}
	return &Store{client: c, where: where, limit: limit}, nil
}

// config of the client. The key is sent by an interceptor of our own: the client's would complain to the global logger
// about plain text.
func config(where address, o Options) *client.Config {
	options := []grpc.DialOption{
		grpc.WithDisableServiceConfig(), // no look-ups of TXT records
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxPause},
			MinConnectTimeout: 20 * time.Second, // gRPC's own default
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
	}
	if o.APIKey != "" {
		options = append(options, grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
			invoke grpc.UnaryInvoker, options ...grpc.CallOption,
		) error {
			return invoke(metadata.AppendToOutgoingContext(ctx, keyHeader, o.APIKey), method, request, reply, conn, options...)
		}))
	}
	if o.Dial != nil {
		options = append(options, grpc.WithContextDialer(o.Dial))
	}
	secure := o.TLS
	if secure == nil {
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &client.Config{
		Host: "dns:///" + where.host, Port: where.port, // with its scheme, for a host may be called as one of gRPC's
		UseTLS: where.tls, TLSConfig: secure, GrpcOptions: options,
		SkipCompatibilityCheck: true, // it would wait for the server
		PoolSize:               1, KeepAliveTime: 30, KeepAliveTimeout: 5,
	}
}

// Collection gives a collection; it is made with the first vector that is stored.
func (s *Store) Collection(name string) knn.Index { return &index{Store: s, name: name} }

// Ping says whether the server answers and takes the key.
func (s *Store) Ping(ctx context.Context) error {
	return s.call(ctx, "list collections", func(ctx context.Context) error {
		_, err := s.client.ListCollections(ctx)
		return err
	})
}

// Close ends the connection.
func (s *Store) Close() error {
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("close the connection to qdrant: %w", err)
	}
	return nil
}

// call bounds one call to the server and says in words what went wrong. The code of its error is that of the server.
func (s *Store) call(ctx context.Context, what string, run func(ctx context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	err := run(bounded)
	switch code := status.Code(err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case code == codes.DeadlineExceeded:
		return fmt.Errorf("%s: qdrant at %s does not answer within %v%s: %w", what, s.where, s.limit, s.where.hint(), err)
	case code == codes.Unavailable:
		return fmt.Errorf("%s: qdrant at %s cannot be reached%s: %w", what, s.where, s.where.hint(), err)
	case code == codes.Unauthenticated || code == codes.PermissionDenied:
		return fmt.Errorf("%s: qdrant at %s refuses the key; check vector.api_key: %w", what, s.where, err)
	default:
		return fmt.Errorf("%s: qdrant at %s: %w", what, s.where, err)
	}
}
