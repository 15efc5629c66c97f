//go:build linux

package crashtest_test

import (
	"context"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/persistence/redis/redistest"
)

// Faults of Redis. None of them changes what is charged.
const (
	faultRedisCut   = "Redis: away"
	faultRedisStall = "Redis: no answers"
	faultRedisRead  = "Redis: cannot write"
	faultRedisFlush = "Redis: flushed"
	faultRedisKill  = "Redis: killed and started empty"
	faultRedisOld   = "Redis: started from an old copy"
	faultRedisPause = "Redis: stopped by SIGSTOP"
)

// cache is a Redis behind a proxy.
type cache struct {
	server *redistest.Process
	proxy  *redistest.Proxy
	one    sync.Mutex // held by a fault that lasts
}

// newCache starts a Redis; nil if the machine has none.
func newCache(t *testing.T) *cache {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Logf("no Redis to break: %v", err)
		return nil
	}
	c := &cache{server: redistest.Run(t)}
	c.proxy = redistest.Between(t, c.server.Addr())
	c.server.Save()
	return c
}

func (c *cache) config() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("[redis]\nurl = \"redis://%s\"\n", c.proxy.Addr())
}

func (c *cache) kinds() []weighted {
	if c == nil {
		return nil
	}
	return []weighted{
		{faultRedisCut, 2, time.Second / 20, 5 * time.Second},
		{faultRedisStall, 2, time.Second / 20, 4 * time.Second},
		{faultRedisRead, 1, time.Second / 20, 4 * time.Second},
		{faultRedisFlush, 4, 0, 0},
		{faultRedisKill, 2, time.Second / 20, 3 * time.Second},
		{faultRedisOld, 3, time.Second / 20, time.Second},
		{faultRedisPause, 2, time.Second / 20, 5 * time.Second},
	}
}

// apply causes a fault of Redis; ill is called when it begins, and what it returns when it ends. Two that last do not
// overlap.
func (c *cache) apply(ctx context.Context, m *machine, f fault, ill func() func()) {
	if !c.one.TryLock() {
		return
	}
	m.hit(f.Kind)
	end := func() {}
	switch f.Kind {
	case faultRedisFlush:
		c.server.Do("FLUSHALL")
		c.one.Unlock()
		return
	case faultRedisCut, faultRedisStall, faultRedisRead:
		c.proxy.Break(map[string]redistest.Fault{faultRedisCut: redistest.Cut, faultRedisStall: redistest.Stall, faultRedisRead: redistest.ReadOnly}[f.Kind])
		end = func() { c.proxy.Break(redistest.None) }
	case faultRedisKill:
		c.server.Kill()
		end = c.server.Again
	case faultRedisOld:
		c.server.Kill()
		end = func() {
			c.server.Restore()
			if f.Dice%2 == 0 { // otherwise the copy grows older
				c.server.Save()
			}
		}
	case faultRedisPause:
		c.server.Pause(true)
		end = func() { c.server.Pause(false) }
	}
	healthy := ill()
	m.working.Go(func() {
		defer c.one.Unlock()
		pause(ctx, f.Length)
		end()
		healthy()
	})
}
