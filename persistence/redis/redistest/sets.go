package redistest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// Sentinels are a primary, a replica, and three sentinels that monitor them under the name "mymaster". The servers have
// the given password.
type Sentinels struct {
	Primary, Replica *Process
	Addrs            []string // of the sentinels
	Password         string
}

// RunSentinels starts them and waits until each sentinel knows the replica and the other sentinels.
func RunSentinels(tb testing.TB, password string) *Sentinels {
	tb.Helper()
	// Replicate at once rather than after the usual 5 s, during which further replicas could join.
	auth := []string{"--requirepass", password, "--masterauth", password, "--repl-diskless-sync-delay", "0"}
	s := &Sentinels{Password: password, Primary: Run(tb, auth...)}
	s.Replica = Run(tb, append(auth, "--replicaof", "127.0.0.1 "+strconv.Itoa(s.Primary.Port))...)
	s.Replica.Await("a replica", func(ctx context.Context) bool {
		info, err := s.client(tb, s.Replica).Info(ctx, "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
	var all []*Process
	for range 3 {
		p := prepare(tb)
		file := filepath.Join(p.Dir, "sentinel.conf")
		text := fmt.Sprintf(
			"sentinel monitor mymaster 127.0.0.1 %d 2\nsentinel auth-pass mymaster %s\nsentinel "+
				"down-after-milliseconds mymaster 500\n"+
				"sentinel failover-timeout mymaster 3000\nrequirepass %s-too\nsentinel sentinel-pass %s-too\n",
			s.Primary.Port,
			password,
			password,
			password,
		)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
		p.args = []string{"--sentinel"}
		p.start("redis-server", file)
		s.Addrs = append(s.Addrs, p.Addr())
		all = append(all, p)
	}
	for _, p := range all {
		client := goredis.NewSentinelClient(&goredis.Options{
			Addr:       p.Addr(),
			Password:   password + "-too",
			MaxRetries: -1,
		})
		tb.Cleanup(func() { _ = client.Close() })
		p.Await("a sentinel among three", func(ctx context.Context) bool {
			m, err := client.Master(ctx, "mymaster").Result()
			return err == nil && m["num-slaves"] == "1" && m["num-other-sentinels"] == "2"
		})
	}
	return s
}

// Failover kills the primary and waits until the replica is promoted. Then it resets the counters that match a pattern
// to n, as if later changes had not reached the replica in time, because replication is asynchronous.
func (s *Sentinels) Failover(tb testing.TB, pattern string, n int) {
	tb.Helper()
	s.Primary.Kill()
	client := s.client(tb, s.Replica)
	s.Replica.Await("the primary", func(ctx context.Context) bool {
		info, err := client.Info(ctx, "replication").Result()
		return err == nil && strings.Contains(info, "role:master")
	})
	keys, err := client.Keys(tb.Context(), pattern).Result()
	if err != nil || len(keys) == 0 {
		tb.Fatalf("keys like %s: %v, %v", pattern, keys, err)
	}
	for _, key := range keys {
		if err := client.Set(tb.Context(), key, n, goredis.KeepTTL).Err(); err != nil {
			tb.Fatal(err)
		}
	}
}

func (s *Sentinels) client(tb testing.TB, p *Process) *goredis.Client {
	tb.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: p.Addr(), Password: s.Password, MaxRetries: -1, PoolSize: 1})
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// URL returns the URL of the primary through the sentinels, which have a different password.
func (s *Sentinels) URL() string {
	return fmt.Sprintf(
		"redis+sentinel://:%s@%s/mymaster/0?sentinel_password=%s-too",
		s.Password, strings.Join(s.Addrs, ","), s.Password,
	)
}

// RunCluster starts three nodes that share the slots, and returns them when each knows that the cluster is complete.
func RunCluster(tb testing.TB) []*Process {
	tb.Helper()
	const slots = 16384
	nodes, buses := make([]*Process, 3), make([]int, 3)
	for i := range nodes {
		buses[i] = port(tb)
		nodes[i] = Run(
			tb, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(buses[i]), "--cluster-node-timeout", "2000",
		)
	}
	for i, n := range nodes {
		n.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		n.Do("CLUSTER", "ADDSLOTSRANGE", i*slots/3, (i+1)*slots/3-1)
		if i > 0 {
			nodes[0].Do("CLUSTER", "MEET", "127.0.0.1", n.Port, buses[i])
		}
	}
	for _, n := range nodes {
		client := n.Client()
		n.Await("one of a whole cluster", func(ctx context.Context) bool {
			info, err := client.ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	return nodes
}

// ClusterURL returns the URL of a cluster.
func ClusterURL(nodes []*Process) string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.Addr())
	}
	return "redis+cluster://" + strings.Join(list, ",")
}
