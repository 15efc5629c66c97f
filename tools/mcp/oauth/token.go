package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/oauth2"
)

// Secret is a text that is never printed.
type Secret string

const redacted = "[redacted]"

// Format implements fmt.Formatter, for every verb.
func (s Secret) Format(f fmt.State, _ rune) {
	if s != "" {
		_, _ = f.Write([]byte(redacted)) // a failed write has nowhere to go
	}
}

// MarshalText implements encoding.TextMarshaler: for JSON, and so for logs.
func (s Secret) MarshalText() ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	return []byte(redacted), nil
}

// Token is the result of a sign-in together with what it is valid for. Printing it, including as JSON, shows no
// secrets; Encode includes them.
type Token struct {
	Server       string // id
	URL          string // of the MCP server: the token is sent to no other
	ConfiguredID string // Server.ClientID at the time
	Issuer       string // the authorization server

	ClientID     string
	ClientSecret Secret // of a client that was registered automatically
	TokenURL     string // where the token is renewed
	AuthStyle    int    // how the client authenticates there (oauth2.AuthStyle)
	Resource     string // the resource indicator (RFC 8707)

	AccessToken  Secret // "" = no longer valid; the rest is kept, so that a client stays bound to its issuer
	RefreshToken Secret // "" = the token cannot be renewed
	Expiry       time.Time
	Scopes       []string
}

// stored is the stored form of Token.
type stored struct {
	Version      int       `json:"version"`
	Server       string    `json:"server"`
	URL          string    `json:"url"`
	ConfiguredID string    `json:"configured_id,omitempty"`
	Issuer       string    `json:"issuer"`
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret,omitempty"`
	TokenURL     string    `json:"token_url"`
	AuthStyle    int       `json:"auth_style"`
	Resource     string    `json:"resource,omitempty"`
	AccessToken  string    `json:"access_token,omitempty"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Expiry       time.Time `json:"expiry,omitzero"`
	Scopes       []string  `json:"scopes,omitempty"`
}

const storedVersion = 1

// ErrDamaged means that a stored token cannot be read. A new sign-in replaces it.
var ErrDamaged = errors.New("the stored sign-in is damaged")

// Encode returns the token with its secrets, for a store.
func (t Token) Encode() ([]byte, error) {
	return json.Marshal(stored{
		Version: storedVersion, Server: t.Server, URL: t.URL, ConfiguredID: t.ConfiguredID, Issuer: t.Issuer,
		ClientID: t.ClientID, ClientSecret: string(t.ClientSecret), TokenURL: t.TokenURL, AuthStyle: t.AuthStyle,
		Resource:    t.Resource,
		AccessToken: string(t.AccessToken), RefreshToken: string(t.RefreshToken), Expiry: t.Expiry, Scopes: t.Scopes,
	})
}

// Decode decodes the result of Encode. Its only error is ErrDamaged, which contains nothing of the data.
func Decode(data []byte) (Token, error) {
	var s stored
	if err := json.Unmarshal(data, &s); err != nil || s.Version != storedVersion || s.Server == "" || s.URL == "" ||
		s.Issuer == "" {
		return Token{}, ErrDamaged
	}
	return Token{
		Server: s.Server, URL: s.URL, ConfiguredID: s.ConfiguredID, Issuer: s.Issuer,
		ClientID: s.ClientID, ClientSecret: Secret(s.ClientSecret), TokenURL: s.TokenURL, AuthStyle: s.AuthStyle,
		Resource:    s.Resource,
		AccessToken: Secret(s.AccessToken), RefreshToken: Secret(s.RefreshToken), Expiry: s.Expiry, Scopes: s.Scopes,
	}, nil
}

// early is how long before its expiry a token is renewed: requests take time, and clocks differ.
const early = 10 * time.Second

// fresh reports whether the access token can still be used.
func (t Token) fresh(now time.Time) bool {
	return t.AccessToken != "" && (t.Expiry.IsZero() || now.Add(early).Before(t.Expiry))
}

// spent returns the token without its credentials.
func (t Token) spent() Token {
	t.AccessToken, t.RefreshToken, t.Expiry, t.Scopes = "", "", time.Time{}, nil
	return t
}

// bound returns "" if the token belongs to this configuration, or else the reason why not.
func (t Token) bound(s Server) string {
	switch {
	case t.Server != s.ID:
		return "it belongs to another server"
	case t.URL != s.URL:
		return "the address of the server has changed"
	case t.ConfiguredID != s.ClientID:
		return "client_id has changed"
	default:
		return ""
	}
}

// config returns the OAuth configuration for renewing the token.
func (t Token) config(s Server) *oauth2.Config {
	secret := t.ClientSecret
	if s.ClientID != "" && t.ClientID == s.ClientID {
		secret = s.ClientSecret // the configured secret is not stored, because it may have been changed
	}
	return &oauth2.Config{
		ClientID: t.ClientID, ClientSecret: string(secret),
		Endpoint: oauth2.Endpoint{TokenURL: t.TokenURL, AuthStyle: oauth2.AuthStyle(t.AuthStyle)},
	}
}
