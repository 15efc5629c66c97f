package oauth

import (
	"context"
	"errors"
	"time"

	"golang.org/x/oauth2"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// renewLimit bounds a request for a new access token.
const renewLimit = 30 * time.Second

// reload returns the token that is stored by now, where that can be read, else the one that is held: another process
// may have signed in, or renewed it. The caller holds turn.
func (a *account) reload(ctx context.Context) *Token {
	t, err := a.tokens.Load(ctx, a.s.ID)
	if err != nil || t == nil || t.bound(a.s) != "" {
		return a.held()
	}
	if held := a.held(); held == nil || held.AccessToken != t.AccessToken || held.RefreshToken != t.RefreshToken {
		a.set(*t)
	}
	return a.held()
}

// renew returns a new access token in place of t: of several processes, one fetches it and the others take what that
// one has stored, since an authorization server may end a sign-in whose refresh token comes twice (RFC 9700, 4.14.2).
// The caller holds turn.
func (a *account) renew(ctx context.Context, t *Token) (*Token, error) {
	// detached from ctx: an answer that nobody waited for would mean a lost refresh token
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*renewLimit)
	defer cancel()
	release, err := a.o.Alone(ctx, a.s.ID)
	if err != nil {
		return nil, &guard.Error{
			Code: guard.Transient, Server: a.s.ID, Err: err,
			Message: "the sign-in to " + a.s.ID + " could not be renewed at the moment",
		}
	}
	defer release()
	if now := a.reload(ctx); now.AccessToken != t.AccessToken || now.RefreshToken != t.RefreshToken {
		switch {
		case now.fresh(a.o.Now()):
			return now, nil
		case now.RefreshToken == "":
			a.want("the sign-in has expired")
			return nil, nil
		}
		t = now
	}
	return a.fetch(ctx, t)
}

// fetch asks the authorization server for a new access token. A refusal ends the sign-in; other failures may be
// temporary. The caller holds turn, and is the only process that renews.
func (a *account) fetch(ctx context.Context, t *Token) (*Token, error) {
	ctx, cancel := context.WithTimeout(ctx, renewLimit)
	defer cancel()
	w := newWire(a.s)
	// oauth2 renews without the resource parameter that MCP requires. Exchange accepts it; the empty code counts as
	// left out (RFC 6749, 3.2).
	got, err := t.config(a.s).Exchange(context.WithValue(ctx, oauth2.HTTPClient, w.client()), "",
		oauth2.SetAuthURLParam("grant_type", "refresh_token"),
		oauth2.SetAuthURLParam("refresh_token", string(t.RefreshToken)),
		oauth2.SetAuthURLParam("resource", t.Resource))
	if err != nil {
		return a.notRenewed(ctx, w, t, err)
	}
	next := *t
	next.take(got, a.o.Now(), t.Scopes)
	if err := a.keep(ctx, next); err != nil {
		a.log.Error().Err(err).Msg("renewed sign-in not stored; it is lost when the program ends")
	}
	a.log.Debug().Msg("sign-in renewed")
	return a.held(), nil
}

func (a *account) notRenewed(ctx context.Context, w *wire, t *Token, err error) (*Token, error) {
	if refusal := w.refused(); refusal != nil {
		return nil, refusedAddress(a.s.ID, refusal)
	}
	answer, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || codeOf(answer) != guard.AuthFailure {
		code := guard.Transient
		if ok {
			code = codeOf(answer)
		}
		cause := errors.New(guard.Line(w.scrub(err), maxForeign))
		return nil, &guard.Error{
			Code: code, Server: a.s.ID,
			Message: "the sign-in to " + a.s.ID + " could not be renewed at the moment", Err: cause,
		}
	}
	// another program may have renewed it, which invalidates this refresh token
	if other, err := a.tokens.Load(ctx, a.s.ID); err == nil {
		if other = a.fitting(other); other != nil && other.RefreshToken != t.RefreshToken && other.fresh(a.o.Now()) {
			a.set(*other)
			return other, nil
		}
	}
	a.log.Warn().Str("error", answerOf(answer).code).Msg("sign-in not renewed")
	if err := a.keep(ctx, t.spent()); err != nil {
		a.log.Error().Err(err).Msg("refused sign-in not removed from the store")
	}
	a.want("it could not be renewed (" + answerOf(answer).code + ")")
	return nil, nil
}
