package oauth_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools/mcp/oauth"
)

func sample(id string) oauth.Token {
	return oauth.Token{
		Server: id, URL: "https://mcp.example.com", ConfiguredID: "ours", Issuer: "https://login.example.com", ClientID: "c", ClientSecret: "sss-1",
		TokenURL: "https://login.example.com/token", AuthStyle: 1, Resource: "https://mcp.example.com", AccessToken: "sss-2", RefreshToken: "sss-3",
		Expiry: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Scopes: []string{"read", "write"},
	}
}

func TestStores(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]oauth.Store{"memory": &oauth.Memory{}, "files": oauth.NewFiles(filepath.Join(t.TempDir(), "a", "b"))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			if got, err := s.Load(ctx, "docs"); got != nil || err != nil {
				t.Errorf("nothing is there: %v, %v", got, err)
			}
			if err := s.Delete(ctx, "docs"); err != nil {
				t.Error(err)
			}
			for _, id := range []string{"docs", "..", "docs.json.tmp"} {
				old, want := sample(id), sample(id)
				old.AccessToken = "sss-old"
				for _, tok := range []oauth.Token{old, want} {
					if err := s.Save(ctx, tok); err != nil {
						t.Fatal(err)
					}
				}
				got, err := s.Load(ctx, id)
				if err != nil || got == nil || !cmp.Equal(*got, want) {
					t.Errorf("%s: %v", id, err)
				}
			}
			if err := s.Delete(ctx, "docs"); err != nil {
				t.Error(err)
			}
			if got, err := s.Load(ctx, "docs"); got != nil || err != nil {
				t.Errorf("deleted: %v, %v", got, err)
			}
			if got, err := s.Load(ctx, ".."); got == nil || err != nil {
				t.Errorf("another one: %v", err)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no permissions here")
	}
	ctx := t.Context()
	dir := filepath.Join(t.TempDir(), "mcp-tokens")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := oauth.NewFiles(dir)
	path := filepath.Join(dir, "docs.json")
	if err := os.WriteFile(path+".tmp", []byte("left by a crash"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(ctx, sample("docs")); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]os.FileMode{dir: 0o700, path: 0o600} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", p, info.Mode(), err)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("files: %v, %v", list, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(ctx, "docs"); !errors.Is(err, oauth.ErrDamaged) {
		t.Errorf("readable for others: %v", err)
	}
	if err := s.Save(ctx, sample("docs")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(ctx, "docs"); err != nil {
		t.Errorf("saved again: %v", err)
	}
	for name, data := range map[string]string{
		"empty": "", "cut": `{"version":1,"access_token":"sss-9`, "of a later version": `{"version":2,"server":"docs","url":"u","issuer":"i"}`,
		"of nobody": `{"version":1,"access_token":"sss-9"}`, "huge": `{"x":"` + strings.Repeat("sss-9", 1<<17) + `"}`,
	} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(ctx, "docs"); !errors.Is(err, oauth.ErrDamaged) || strings.Contains(err.Error(), "sss") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(t.TempDir(), "x"), path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(ctx, "docs"); !errors.Is(err, oauth.ErrDamaged) {
		t.Errorf("a link: %v", err)
	}
	for _, id := range []string{"", "../docs", "a/b"} {
		if _, err := s.Load(ctx, id); err == nil {
			t.Errorf("load %q", id)
		}
		if err := s.Save(ctx, sample(id)); err == nil {
			t.Errorf("save %q", id)
		}
		if err := s.Delete(ctx, id); err == nil {
			t.Errorf("delete %q", id)
		}
	}
}

func TestNothingIsPrinted(t *testing.T) {
	t.Parallel()
	tok := sample("docs")
	server := oauth.Server{ID: "docs", ClientSecret: "sss-4"}
	var out strings.Builder
	for _, v := range []any{tok, &tok, []oauth.Token{tok}, server, &server, tok.AccessToken, map[string]any{"t": tok}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		if _, isServer := v.(oauth.Server); !isServer {
			data, err := json.Marshal(v)
			if err != nil {
				t.Error(err)
			}
			out.Write(data)
		}
		log := zerolog.New(&out)
		log.Info().Interface("v", v).Any("w", v).Msg("x")
	}
	text := out.String()
	if !strings.Contains(text, "[redacted]") {
		t.Error("nothing is redacted")
	}
	for _, s := range []string{"sss", fmt.Sprintf("%x", "sss"), "115 115"} {
		if strings.Contains(text, s) {
			t.Errorf("%q is printed", s)
		}
	}
	data, err := tok.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := oauth.Decode(data); err != nil || !cmp.Equal(got, tok) {
		t.Errorf("encoded and decoded: %v, %v", got, err)
	}
}

// TestFilesOfProcesses: processes that store at the same time in one directory never leave a token that is half one's
// and half another's.
func TestFilesOfProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var work sync.WaitGroup
	for i := range 4 {
		f := oauth.NewFiles(dir)
		work.Go(func() {
			for range 50 {
				text := strings.Repeat(strconv.Itoa(i), 1000+i*997)
				token := oauth.Token{Server: "docs", URL: "https://mcp.example.com", Issuer: "https://login.example.com", AccessToken: oauth.Secret(text)}
				if err := f.Save(t.Context(), token); err != nil {
					t.Errorf("save: %v", err)
					return
				}
				got, err := f.Load(t.Context(), "docs")
				if err != nil || got == nil || strings.Trim(string(got.AccessToken), string(got.AccessToken[:1])) != "" {
					t.Errorf("load: %v", err)
					return
				}
			}
		})
	}
	work.Wait()
	left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
