package metrics

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Health answers health probes.
type Health struct {
	// Alive returns once the process has shown that it makes progress. If it does not return, the probe times out and
	// the process should be restarted.
	Alive func()
	// Ready returns why the process cannot do its job; nil = it can.
	Ready func(ctx context.Context) error
}

// Mount is a handler that shares the listener with the metrics.
type Mount struct {
	Pattern string // of http.ServeMux, such as "GET /debug/"
	Handler http.Handler
}

// Handler serves /metrics, /healthz (the process makes progress), /readyz (it can do its job, or 503 with the reason
// why not), and what is mounted. It panics if a mount has the pattern of another one. Names are those under which the
// listener is reached (hosts, or URLs) besides addresses and names of private networks; under another one only probes
// are answered, without a reason.
func (m *Metrics) Handler(health Health, names []string, mounts ...Mount) http.Handler {
	hosts := newHosts(names...)
	rest := http.NewServeMux()
	for _, mount := range mounts {
		rest.Handle(mount.Pattern, mount.Handler)
	}
	rest.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/", hosts.guard(rest))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		health.Alive()
		_, _ = w.Write([]byte("ok\n")) // the prober has gone: the error concerns nobody
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
		defer cancel()
		if err := health.Ready(ctx); err != nil {
			text := "not ready"
			if hosts.known(r.Host) {
				text += ": " + err.Error()
			}
			http.Error(w, text, http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n")) // as above
	})
	return mux
}
