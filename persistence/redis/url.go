package redis

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	dialTimeout = 2 * time.Second
	ioTimeout   = 1500 * time.Millisecond // of one attempt; patience limits all of them
	defaultPort = "6379"
	sentinels   = "26379"
)

// parseURLs parses the URLs of Options:
//
//	redis://[user[:password]@]host[:port][/database]            one server
//	unix://[user[:password]@]/path/to/socket[?db=n]             one server on a socket
//	redis+cluster://[user[:password]@]host[:port],…             a cluster, by some of its nodes
//	redis+sentinel://[user[:password]@]host[:port],…/name[/database][?sentinel_username=…&sentinel_password=…]
//
// rediss, rediss+cluster and rediss+sentinel are the same over TLS; "-" is accepted for "+". User and password are
// those of the data nodes. Unknown settings are an error. Errors never contain the password.
func parseURLs(opts Options) (*goredis.UniversalOptions, error) {
	u, err := url.Parse(opts.URL)
	if err != nil {
		return nil, errors.New("redis.url is not a URL")
	}
	if u.Host == "" && u.Scheme != "unix" {
		return nil, fmt.Errorf("redis.url: scheme %q and no host: want something like redis://host:6379/0", u.Scheme)
	}
	scheme, mode, _ := strings.Cut(strings.ReplaceAll(u.Scheme, "-", "+"), "+")
	var o *goredis.UniversalOptions
	switch {
	case mode == "":
		o, err = parseSingle(u, opts.URL)
	case scheme != "redis" && scheme != "rediss":
		err = unknownScheme(u)
	case mode == "cluster":
		o, err = parseCluster(u)
	case mode == "sentinel":
		o, err = parseSentinel(u)
	default:
		err = unknownScheme(u)
	}
	if err != nil {
		return nil, err
	}
	if o.TLSConfig, err = configureTLS(opts, scheme == "rediss"); err != nil {
		return nil, err
	}
	return limitOptions(o), nil
}

func unknownScheme(u *url.URL) error {
	return fmt.Errorf(
		"redis.url: unknown scheme %q: want redis, rediss, unix, redis+cluster, rediss+cluster, redis+sentinel or "+
			"rediss+sentinel",
		u.Scheme)
}

// parseSingle parses the URL of one server with go-redis.
func parseSingle(u *url.URL, raw string) (*goredis.UniversalOptions, error) {
	o, err := goredis.ParseURL(raw)
	if err != nil || (o.TLSConfig != nil && o.TLSConfig.InsecureSkipVerify) {
		return nil, fmt.Errorf(
			"redis.url (scheme %q, host %q) is not understood: want redis://host:6379/0, rediss://… or "+
				"unix:///path/to/socket",
			u.Scheme, u.Host)
	}
	return &goredis.UniversalOptions{Addrs: []string{o.Addr}, Username: o.Username, Password: o.Password, DB: o.DB}, nil
}

func parseCluster(u *url.URL) (*goredis.UniversalOptions, error) {
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, errors.New(
			"redis.url: a cluster URL ends with its hosts: a cluster has one database and no settings here",
		)
	}
	o := &goredis.UniversalOptions{
		Addrs:         splitHosts(u.Host, defaultPort),
		Username:      u.User.Username(),
		IsClusterMode: true,
	}
	o.Password, _ = u.User.Password()
	return o, nil
}

func parseSentinel(u *url.URL) (*goredis.UniversalOptions, error) {
	name, database, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if name == "" {
		return nil, errors.New(
			"redis.url: a sentinel URL names its master: redis+sentinel://host:26379,host2:26379/mymaster",
		)
	}
	o := &goredis.UniversalOptions{Addrs: splitHosts(u.Host, sentinels), Username: u.User.Username(), MasterName: name}
	o.Password, _ = u.User.Password()
	if database != "" {
		n, err := strconv.ParseUint(database, 10, 16)
		if err != nil {
			return nil, errors.New(
				"redis.url: the database of a sentinel URL is a number: redis+sentinel://host:26379/mymaster/1",
			)
		}
		o.DB = int(n)
	}
	query := u.Query()
	for key := range query {
		if key != "sentinel_username" && key != "sentinel_password" {
			return nil, fmt.Errorf(
				"redis.url: unknown setting %q: a sentinel URL has sentinel_username and sentinel_password", key,
			)
		}
	}
	o.SentinelUsername, o.SentinelPassword = query.Get("sentinel_username"), query.Get("sentinel_password")
	return o, nil
}

// splitHosts returns the addresses of a list, with port where an address has none.
func splitHosts(list, port string) []string {
	addresses := strings.Split(list, ",")
	for i, address := range addresses {
		if _, _, err := net.SplitHostPort(address); err != nil {
			addresses[i] = net.JoinHostPort(strings.Trim(address, "[]"), port)
		}
	}
	return addresses
}

// configureTLS returns the TLS configuration, or nil without TLS. The name in the server's certificate must
// be the host of the connection.
func configureTLS(opts Options, on bool) (*tls.Config, error) {
	if !on {
		files := map[string]string{"ca_file": opts.CAFile, "cert_file": opts.CertFile, "key_file": opts.KeyFile}
		for key, file := range files {
			if file != "" {
				return nil, fmt.Errorf("redis.%s: is for TLS, and redis.url is without: write rediss:// there", key)
			}
		}
		return nil, nil //nolint:nilnil // no TLS
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if opts.CAFile != "" {
		pem, err := os.ReadFile(opts.CAFile)
		if err != nil {
			return nil, fmt.Errorf("redis.ca_file: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("redis.ca_file: %s has no certificate (want PEM)", opts.CAFile)
		}
	}
	if (opts.CertFile == "") != (opts.KeyFile == "") {
		return nil, errors.New("redis.cert_file: a certificate needs its key, and a key its certificate: " +
			"set redis.cert_file and redis.key_file")
	}
	if opts.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(opts.CertFile, opts.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("redis.cert_file: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// limitOptions sets the options common to all connections.
func limitOptions(o *goredis.UniversalOptions) *goredis.UniversalOptions {
	// Both require Redis 7.0 or newer, and would cause errors on every connect to an older one.
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.DisableIdentity = true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = dialTimeout, ioTimeout, ioTimeout
	// One retry covers a connection that was cut and a primary that became a replica. Every write can be repeated
	// safely.
	o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, 1, 1
	return o
}
