package redis_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/persistence/redis"
)

func TestURLs(t *testing.T) {
	t.Parallel()
	tests := []struct{ url, want string }{
		{"redis://h:6379/1", ""},
		{"rediss://u:hunter2@h:6380", ""},
		{"unix:///run/redis.sock", ""},
		{"redis+cluster://u:hunter2@h1:1,h2:2", ""},
		{"rediss-cluster://h1:1", ""},
		{"redis+cluster://h1", ""},
		{"redis+sentinel://u:hunter2@h1:26379,h2:26379/mymaster", ""},
		{"rediss+sentinel://u:hunter2@h1,h2/mymaster/3?sentinel_username=s&sentinel_password=hunter2", ""},
		{"redis+sentinel://h1:26379,h2:26379", "names its master"},
		{"redis+sentinel://h1/mymaster/x", "is a number"},
		{"redis+sentinel://h1/mymaster?password=hunter2", `unknown setting "password"`},
		{"redis+cluster://h1/1", "ends with its hosts"},
		{"redis+cluster://h1?db=hunter2", "ends with its hosts"},
		{"redis+magic://h", `unknown scheme "redis+magic"`},
		{"unix+cluster://h", `unknown scheme "unix+cluster"`},
		{"http://:hunter2@h", "want redis://"},
		{"redis://h/abc:hunter2", "want redis://"},
		{"rediss://:hunter2@h?skip_verify=true", "want redis://"},
		{"redis://:hunter2@/1", "no host"},
		{"localhost:6379", "no host"},
		{"redis://:hunter2@h:port:\x7f", "not a URL"},
		{"redis+cluster://", "no host"},
	}
	for _, tt := range tests {
		t.Run(tt.url, func(t *testing.T) {
			t.Parallel()
			opened(t, redis.Options{URL: tt.url}, tt.want)
		})
	}
}

// opened opens a store and closes it, or requires an error that contains want and never the password.
func opened(t *testing.T, opts redis.Options, want string) {
	t.Helper()
	s, err := redis.Open(opts)
	if checked := redis.Check(opts); (err == nil) != (checked == nil) || err != nil && err.Error() != checked.Error() {
		t.Errorf("open says %v, check %v", err, checked)
	}
	if (err == nil) != (want == "") {
		t.Fatalf("err = %v, want %q", err, want)
	}
	if err != nil {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("err = %v, want %q", err, want)
		}
		return
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// TestCertificateFiles: an error in them is reported at the start, with the key.
func TestCertificateFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := newAuthority(t, dir)
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	const url = "rediss://:hunter2@h"
	for name, tt := range map[string]struct {
		opts redis.Options
		want string
	}{
		"own authority":      {redis.Options{URL: url, CAFile: a.file, CertFile: a.cert, KeyFile: a.key}, ""},
		"cluster":            {redis.Options{URL: "rediss+cluster://h", CAFile: a.file}, ""},
		"no file":            {redis.Options{URL: url, CAFile: filepath.Join(dir, "none")}, "redis.ca_file: open "},
		"no certificate":     {redis.Options{URL: url, CAFile: empty}, "has no certificate"},
		"no key":             {redis.Options{URL: url, CertFile: a.cert}, "a certificate needs its key"},
		"key of another":     {redis.Options{URL: url, CertFile: a.cert, KeyFile: newAuthority(t, t.TempDir()).key}, "redis.cert_file: tls"},
		"without TLS":        {redis.Options{URL: "redis://:hunter2@h", CAFile: a.file}, "redis.ca_file: is for TLS"},
		"key, without TLS":   {redis.Options{URL: "redis+sentinel://h/m", KeyFile: a.key}, "redis.key_file: is for TLS"},
		"nothing, embedded":  {redis.Options{}, ""},
		"files and embedded": {redis.Options{CAFile: a.file}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opened(t, tt.opts, tt.want)
		})
	}
}
