package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	profileFor = 30 * time.Second // what is recorded if the request does not say how long
	mostFor    = 5 * time.Minute
	writeFor   = 30 * time.Second // to send a profile
)

// Profiles serves the profiles of this program as go tool pprof reads them. It does not use net/http/pprof, whose
// import adds them to http.DefaultServeMux, and which also serves the command line.
func Profiles() Mount {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/{$}", listProfiles)
	mux.HandleFunc("GET /debug/pprof/profile", recorded(pprof.StartCPUProfile, pprof.StopCPUProfile))
	mux.HandleFunc("GET /debug/pprof/trace", recorded(trace.Start, trace.Stop))
	mux.HandleFunc("GET /debug/pprof/{name}", writeProfile)
	return Mount{Pattern: "GET /debug/pprof/", Handler: mux}
}

func listProfiles(w http.ResponseWriter, _ *http.Request) {
	names := []string{"profile", "trace"}
	for _, p := range pprof.Profiles() {
		names = append(names, p.Name())
	}
	slices.Sort(names)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintln(w, strings.Join(names, "\n")) // the reader has gone: the error concerns nobody
}

// writeProfile writes what the program is doing or has allocated. ?debug=1 makes it readable.
func writeProfile(w http.ResponseWriter, r *http.Request) {
	p := pprof.Lookup(r.PathValue("name"))
	if p == nil {
		http.Error(w, "there is no such profile; /debug/pprof/ lists them", http.StatusNotFound)
		return
	}
	debug, _ := strconv.Atoi(r.FormValue("debug")) // else as a file
	if w.Header().Set("Content-Type", "application/octet-stream"); debug > 0 {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	_ = p.WriteTo(w, debug) // as above
}

// recorded serves what is recorded for ?seconds. Only one can be recorded at a time.
func recorded(start func(w io.Writer) error, stop func()) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		wait, err := duringOf(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// a server without deadlines needs none extended
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + writeFor))
		w.Header().Set("Content-Type", "application/octet-stream")
		if err := start(w); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		defer stop()
		ctx, cancel := context.WithTimeout(r.Context(), wait)
		defer cancel()
		<-ctx.Done()
	}
}

// duringOf returns how long a request wants to record.
func duringOf(r *http.Request) (time.Duration, error) {
	text := r.FormValue("seconds")
	if text == "" {
		return profileFor, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || seconds <= 0 || seconds > mostFor.Seconds() {
		return 0, errors.New("seconds must be a number from 0 to 300")
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
