//go:build unix

package bench_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// soakProbeVariable is the address at which the service lets the test examine it.
const soakProbeVariable = "BENCH_SOAK_PROBE"

// soakProbe serves, until the process ends, what only a test needs: POST /settle collects garbage and returns free
// memory to the system, so that resident memory is memory in use and not memory that the collector has not freed yet.
// GET /profile/NAME returns a profile, with ?debug=1 as text.
func soakProbe(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /settle", func(http.ResponseWriter, *http.Request) { debug.FreeOSMemory() })
	mux.HandleFunc("GET /profile/{name}", func(w http.ResponseWriter, r *http.Request) {
		profile := pprof.Lookup(r.PathValue("name"))
		if profile == nil {
			http.NotFound(w, r)
			return
		}
		form := 0
		if r.FormValue("debug") != "" {
			form = 1
		}
		_ = profile.WriteTo(w, form) // no answer is needed if the client has gone
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	server.SetKeepAlivesEnabled(false)         // a connection that is kept would be counted
	go func() { _ = server.Serve(listener) }() // it ends with the process
	return nil
}

// probe sends a request to the service's probe.
func (s *soak) probe(ctx context.Context, method, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.probed+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // read only
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	return body, err
}

// stack begins a group of goroutines with the same stack in a text profile: their number.
var stack = regexp.MustCompile(`(?m)^(\d+) @ `)

// clients returns how many HTTP connections to servers a process keeps open, in use or idle, according to its goroutine
// profile: each has a goroutine that reads.
func clients(profile string) (n int, err error) {
	for group := range strings.SplitSeq(profile, "\n\n") {
		if !strings.Contains(group, "net/http.(*persistConn).readLoop+") {
			continue
		}
		found := stack.FindStringSubmatch(group)
		if found == nil {
			return 0, errors.New("a group of goroutines has no number")
		}
		of, err := strconv.Atoi(found[1])
		if err != nil {
			return 0, err
		}
		n += of
	}
	return n, nil
}

// httpClients is the name of what clients counts.
const httpClients = "connections over HTTP"

// look adds what the process holds at this moment, while nobody talks. An HTTP connection to a server is a descriptor
// and two goroutines, with their buffers and stacks. The service keeps as many to the model as there were concurrent
// requests in the last minute and a half, which depends on how busy the machine was. These are therefore closed first,
// from the model's side, and the others (at most 64 to Telegram) are counted separately.
//
// A connected MCP server has pipes and goroutines, and one that has died is connected again after a pause. It is waited
// for, so that all rounds are alike.
func (s *soak) look(ctx context.Context, counts map[string]float64) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	s.model.CloseClientConnections()
	if _, err := s.probe(ctx, http.MethodPost, "/settle"); err != nil {
		return err
	}
	got, err := scrape(ctx, s.metrics)
	if err != nil {
		return err
	}
	profile, err := s.probe(ctx, http.MethodGet, "/profile/goroutine?debug=1")
	if err != nil {
		return err
	}
	open, err := clients(string(profile))
	if err != nil {
		return err
	}
	counts["MB"] = got["process_resident_memory_bytes"] / (1 << 20)
	counts["MB of the heap"] = got["go_memstats_heap_alloc_bytes"] / (1 << 20)
	counts[httpClients] = float64(open)
	counts["goroutines besides"] = got["go_goroutines"] - 2*float64(open)
	counts["descriptors besides"] = got["process_open_fds"] - float64(open)
	return s.keep(ctx, profile)
}

// soakServers is how many MCP servers the service has.
const soakServers = 2

// connected waits until the service is connected to its MCP servers.
func (s *soak) connected(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		got, err := scrape(ctx, s.metrics)
		n := got[`zephbot_mcp_servers{state="connected"}`]
		if err == nil && n == soakServers {
			return nil
		}
		if wait(ctx, 20*time.Millisecond); ctx.Err() != nil {
			return errors.Join(fmt.Errorf("%v of %d MCP servers are connected", n, soakServers), err)
		}
	}
}

// fewClients is how many HTTP connections the service may keep when nobody talks: the poll, and what was used for it.
const fewClients = 4

// quiet waits until the connections of the last rush are closed, since check allows their number to vary: an idle
// connection is kept for at most 90 s.
func (s *soak) quiet(ctx context.Context) error {
	if s.rest == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.rest)
	defer cancel()
	for {
		counts := map[string]float64{}
		err := s.look(ctx, counts)
		if err == nil && counts[httpClients] <= fewClients {
			s.tb.Logf("nobody talks any more: %v", counts)
			return nil
		}
		if wait(ctx, 5*time.Second); ctx.Err() != nil {
			return errors.Join(fmt.Errorf("nobody has talked for %s, and the service still holds %v", s.rest, counts), err)
		}
	}
}

// keep writes profiles of the service into the directory that ZEPH_SOAK_PROFILES names, if set: the heap, the
// goroutines and the open descriptors of each round.
func (s *soak) keep(ctx context.Context, goroutines []byte) error {
	dir := os.Getenv("ZEPH_SOAK_PROFILES")
	if dir == "" {
		return nil
	}
	heap, err := s.probe(ctx, http.MethodGet, "/profile/heap")
	if err != nil {
		return err
	}
	var open strings.Builder
	fds := fmt.Sprintf("/proc/%d/fd", s.process.cmd.Process.Pid)
	list, err := os.ReadDir(fds)
	if err != nil {
		return err
	}
	for _, fd := range list {
		if to, err := os.Readlink(filepath.Join(fds, fd.Name())); err == nil { // otherwise it has been closed meanwhile
			open.WriteString(to + "\n")
		}
	}
	name := func(kind string) string { return filepath.Join(dir, fmt.Sprintf("%02d.%s", len(s.seen), kind)) }
	return errors.Join(
		os.WriteFile(name("heap"), heap, 0o600), os.WriteFile(name("goroutines"), goroutines, 0o600), os.WriteFile(name("descriptors"), []byte(open.String()), 0o600),
	)
}
