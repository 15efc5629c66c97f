package operator

import (
	"bytes"
	"context"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/webpage"
)

// The page and the server speak JSON, below /admin/api/:
//
//	POST signin   {code}             the session begins; → whoami
//	POST signout  {}
//	GET  me                          whoami: who, the token of what changes something, counts
//	GET  sessions ?text&state&page
//	GET  session  ?key               turns and steps of a session, without texts
//	POST texts    {session}          the same with texts; put on record
//	GET  queue    ?after&before
//	GET  letters  ?before
//	POST letter   {kind,id,do}       retry or drop; kind arrival or row; put on record
//	POST question {question,do,seen}       show (put on record), approve or deny: as a press of the card's button
//	POST limit    {level,unit,window,limit}   as /quota set; limit "" = as configured, "off" = none
//	GET  approvals, servers, quotas, costs ?days
//	GET  audit    ?person&tool&result&since&until&next
//
// A refusal is {"error":"…"}: 401 without a session, 403 for requests of other pages, 409 for what somebody else has
// decided. POST wants Content-Type application/json and, but for signin, the token.

const maxRequest = 16 << 10

//go:embed page
var pageFiles embed.FS

// ServeHTTP serves the page below /admin. It belongs on the listener of the metrics.
func (p *Page) ServeHTTP(rw http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(rw, r) }

func (p *Page) routes() http.Handler {
	// The directory is embedded in the program: Sub cannot fail.
	files, _ := fs.Sub(pageFiles, "page")
	static := webpage.Files(files)
	mux := http.NewServeMux()
	mux.Handle("GET /admin", http.RedirectHandler("/admin/", http.StatusSeeOther))
	mux.Handle("GET /admin/{$}", http.StripPrefix("/admin", static))
	mux.Handle("GET /admin/page/", http.StripPrefix("/admin/page", webpage.NoListing(static)))
	mux.HandleFunc("POST /admin/api/signin", p.signIn)
	p.handleChange(mux, "signout", p.signOut)
	p.handleRead(mux, "me", func(ctx context.Context, v *visitor, _ *http.Request) (any, error) {
		return p.whoami(ctx, v), nil
	})
	p.handleRead(mux, "sessions", p.listSessions)
	p.handleRead(mux, "session", p.showSession)
	p.handleRead(mux, "queue", p.listQueue)
	p.handleRead(mux, "letters", p.listLetters)
	p.handleRead(mux, "approvals", p.listApprovals)
	p.handleRead(mux, "servers", p.listServers)
	p.handleRead(mux, "quotas", p.listQuotas)
	p.handleRead(mux, "costs", p.showCosts)
	p.handleRead(mux, "audit", p.searchAudit)
	handleRequest(p, mux, "texts", p.showTexts)
	handleRequest(p, mux, "letter", saying(p.decideLetter))
	handleRequest(p, mux, "question", p.handleQuestion)
	handleRequest(p, mux, "limit", saying(p.changeLimit))
	guard := webpage.Guard{
		Known: p.knownHost, Entry: "/admin/",
		Where: "this page is for people on this machine (or through ssh -L), or at metrics.public_url",
	}
	return guard.Wrap(mux)
}

// handleRead adds a handler that reads, for people who are signed in.
func (p *Page) handleRead(
	mux *http.ServeMux, name string, read func(context.Context, *visitor, *http.Request) (any, error),
) {
	mux.HandleFunc("GET /admin/api/"+name, func(rw http.ResponseWriter, r *http.Request) {
		v, ok := p.admitRequest(rw, r)
		if !ok {
			return
		}
		out, err := read(r.Context(), v, r)
		p.writeAnswer(rw, out, err)
	})
}

// handleChange adds a handler that changes something or puts something on record.
func (p *Page) handleChange(mux *http.ServeMux, name string, do func(http.ResponseWriter, *http.Request, *visitor)) {
	mux.HandleFunc("POST /admin/api/"+name, func(rw http.ResponseWriter, r *http.Request) {
		v, ok := p.admitRequest(rw, r)
		if !ok {
			return
		}
		if subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(v.csrf())) != 1 {
			webpage.Refuse(rw, http.StatusForbidden, errors.New("the page is out of date: load it again"))
			return
		}
		do(rw, r, v)
	})
}

// handleRequest adds such a handler that answers what the JSON of its request wants.
func handleRequest[In any](
	p *Page, mux *http.ServeMux, name string, do func(context.Context, *visitor, In) (any, error),
) {
	p.handleChange(mux, name, func(rw http.ResponseWriter, r *http.Request, v *visitor) {
		var in In
		if !webpage.Decode(rw, r, maxRequest, &in) {
			return
		}
		out, err := do(r.Context(), v, in)
		p.writeAnswer(rw, out, err)
	})
}

// saying makes an answer of the sentence that something returns.
func saying[In any](
	do func(context.Context, *visitor, In) (string, error),
) func(context.Context, *visitor, In) (any, error) {
	return func(ctx context.Context, v *visitor, in In) (any, error) {
		said, err := do(ctx, v, in)
		return map[string]string{"said": said}, err
	}
}

func (p *Page) admitRequest(rw http.ResponseWriter, r *http.Request) (*visitor, bool) {
	v, err := p.visitorOf(r)
	switch {
	case err == nil:
		return v, true
	case errors.Is(err, errNoAdmin):
		webpage.Refuse(rw, http.StatusUnauthorized, errNoAdmin)
	case errors.Is(err, errSignedOut):
		webpage.Refuse(rw, http.StatusUnauthorized, errSignedOut)
	default:
		p.writeFailure(rw, err, "who is signed in")
	}
	return nil, false
}

// wrong is an error about a request, for the person who made it.
type wrong struct {
	status int
	text   string
}

func (w wrong) Error() string { return w.text }

// writeAnswer writes what was read, without secrets.
func (p *Page) writeAnswer(rw http.ResponseWriter, out any, err error) {
	var w wrong
	switch {
	case errors.As(err, &w):
		webpage.Refuse(rw, w.status, errors.New(p.deps.Redact(w.text)))
		return
	case errors.Is(err, bot.ErrNotFound):
		webpage.Refuse(rw, http.StatusNotFound, errors.New("it is not there any more"))
		return
	case err != nil:
		p.writeFailure(rw, err, "read for the operator's page")
		return
	}
	clean, err := p.cleanTexts(out)
	if err == nil {
		err = webpage.Answer(rw, clean)
	}
	if err != nil {
		p.deps.Log.Debug().Err(err).Msg("answer the operator's page")
	}
}

// writeFailure answers an error of ours: its text is in the log.
func (p *Page) writeFailure(rw http.ResponseWriter, err error, what string) {
	p.deps.Log.Error().Err(err).Str("doing", what).Msg("operator's page")
	webpage.Refuse(
		rw, http.StatusInternalServerError, errors.New("this cannot be read at the moment; the log says why"),
	)
}

// cleanTexts removes secrets from every text of an answer. It works on the JSON, so that no field can be forgotten.
func (p *Page) cleanTexts(out any) (any, error) {
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode an answer: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("read an answer again: %w", err)
	}
	return p.scrubValue(v), nil
}

// ownKeys are fields with values that are random by nature, and ours.
var ownKeys = []string{"token", "next", "question", "seen"}

func (p *Page) scrubValue(v any) any {
	switch v := v.(type) {
	case string:
		return p.deps.Redact(v)
	case []any:
		for i := range v {
			v[i] = p.scrubValue(v[i])
		}
	case map[string]any:
		for key, value := range v {
			if !slices.Contains(ownKeys, key) {
				v[key] = p.scrubValue(value)
			}
		}
	}
	return v
}

// queryNumber reads a number of a query; 0 if it is absent.
func queryNumber(r *http.Request, name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, wrong{http.StatusBadRequest, fmt.Sprintf("%s=%.40q is not a number", name, text)}
	}
	return n, nil
}
