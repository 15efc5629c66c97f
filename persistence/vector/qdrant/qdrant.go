// Package qdrant stores vectors in Qdrant over gRPC with its official client.
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
	callLimit = 3 * time.Second // of one call to the server, with somebody waiting
	moreTime  = 10              // times that for a change, which waits until it is durable and indexed
	// leastPause is waited even if a server that has too much to do asks for less.
	leastPause = 50 * time.Millisecond
	maxPause   = 10 * time.Second // between attempts to reach a server that is down
	maxAnswer  = 64 << 20         // bytes; a hit or a hash takes about 150
	keyHeader  = "api-key"        // of gRPC requests (Qdrant, security guide)
)

// Options of Open.
type Options struct {
	// URL is http://host[:port] or, with TLS, https://host[:port]. The default port is 6334, Qdrant's for gRPC.
	URL       string
	APIKey    string        // "" = none
	CallLimit time.Duration // of one call to the server; 0 = 3 s
	Log       zerolog.Logger
	// TLS for an https URL; nil = TLS 1.2 or newer with the system's roots.
	TLS *tls.Config
	// Dial connects to an address; nil = TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Store is a connection to Qdrant, made at first use and again after it was lost. Safe for concurrent use. The caller
// must close it.
type Store struct {
	client *client.Client
	where  address
	limit  time.Duration
}

// Open checks the options without connecting: while the server is down, each use fails. Errors begin with the
// configuration key, and never contain the API key or secrets in a URL.
func Open(o Options) (*Store, error) {
	where, err := parseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("vector.url: %w", err)
	}
	for _, c := range []byte(o.APIKey) {
		if c <= ' ' || c > '~' {
			return nil, errors.New("vector.api_key: contains a character that no key has " +
				"(a space, a line end, a letter with an accent); copy it again")
		}
	}
	if o.APIKey != "" && !where.tls && !where.isLoopback() {
		o.Log.Warn().Str("address", where.String()).
			Msg("the key of qdrant crosses the network in plain text; use an https URL")
	}
	c, err := client.NewClient(clientConfig(where, o))
	if err != nil {
		return nil, fmt.Errorf("vector.url: %w", err)
	}
	limit := o.CallLimit
	if limit <= 0 {
		limit = callLimit
	}
	return &Store{client: c, where: where, limit: limit}, nil
}

// clientConfig returns the client's configuration. Our own interceptor sends the key, because the client's would write
// a warning about plain text to the global logger.
func clientConfig(where address, o Options) *client.Config {
	options := []grpc.DialOption{
		grpc.WithDisableServiceConfig(), // no DNS queries for TXT records
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: maxPause},
			MinConnectTimeout: 20 * time.Second, // gRPC's own default
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
	}
	if o.APIKey != "" {
		options = append(options, grpc.WithChainUnaryInterceptor(func(
			ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
			invoke grpc.UnaryInvoker, options ...grpc.CallOption,
		) error {
			ctx = metadata.AppendToOutgoingContext(ctx, keyHeader, o.APIKey)
			return invoke(ctx, method, request, reply, conn, options...)
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
		// The scheme is explicit because the name of a host can be that of one of gRPC's schemes.
		Host: "dns:///" + where.host, Port: where.port,
		UseTLS: where.tls, TLSConfig: secure, GrpcOptions: options,
		SkipCompatibilityCheck: true, // it would wait for the server
		PoolSize:               1, KeepAliveTime: 30, KeepAliveTimeout: 5,
	}
}

// Collection returns a collection. It is created when the first vector is stored.
func (s *Store) Collection(name string) knn.Index { return &index{Store: s, name: name} }

// Ping checks whether the server answers and accepts the key.
func (s *Store) Ping(ctx context.Context) error {
	return s.callServer(ctx, "list collections", func(ctx context.Context) error {
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

// writingKey marks the context of a change.
type writingKey struct{}

func writeContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, writingKey{}, true)
}

// callServer limits one call to the server, during which it waits if the server asks for that, and explains its error.
// The gRPC code of the error is preserved.
func (s *Store) callServer(ctx context.Context, what string, run func(ctx context.Context) error) error {
	limit := s.limit
	if ctx.Value(writingKey{}) != nil {
		limit *= moreTime
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := run(bounded)
	for waitBusy(bounded, err) {
		err = run(bounded)
	}
	return s.explainError(ctx, what, limit, err)
}

// waitBusy waits as long as a server asks for that has too much to do, if there is time for it.
func waitBusy(ctx context.Context, err error) bool {
	limited, ok := errors.AsType[*client.QdrantResourceExhaustedError](err)
	if !ok {
		return false
	}
	pause := max(leastPause, time.Duration(limited.RetryAfterS)*time.Second)
	if end, ok := ctx.Deadline(); ok && time.Until(end) < pause {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// explainError says what an error means, and gives one without a gRPC code its code again.
func (s *Store) explainError(ctx context.Context, what string, limit time.Duration, err error) error {
	if limited, ok := errors.AsType[*client.QdrantResourceExhaustedError](err); ok {
		err = status.Error(codes.ResourceExhausted, limited.Reason)
	}
	switch code := status.Code(err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case code == codes.DeadlineExceeded:
		return fmt.Errorf("%s: qdrant at %s does not answer within %v%s: %w",
			what, s.where, limit, s.where.mistakeHint(), err)
	case code == codes.Unavailable:
		return fmt.Errorf("%s: qdrant at %s cannot be reached%s: %w", what, s.where, s.where.mistakeHint(), err)
	case code == codes.Unauthenticated || code == codes.PermissionDenied:
		return fmt.Errorf("%s: qdrant at %s rejects the key; check vector.api_key: %w", what, s.where, err)
	default:
		return fmt.Errorf("%s: qdrant at %s: %w", what, s.where, err)
	}
}
