package netrule_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/netrule"
)

// TestNormal: what makes the same request is the same address, and nothing else is.
func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://Example.COM":                  "https://example.com/",
		"http://example.com:80/":               "https://example.com/",
		"https://example.com:443/a#part":       "https://example.com/a",
		"https://example.com./a":               "https://example.com/a",
		"https://example.com/%61/../b":         "https://example.com/b",
		"https://bücher.example/":              "https://xn--bcher-kva.example/",
		"https://example.com/A":                "https://example.com/A",
		"https://example.com/a?q=%41":          "https://example.com/a?q=%41",
		"https://example.com:8443/":            "https://example.com:8443/",
		"https://example.com/%2f":              "https://example.com/%2F",
		"https://user@example.com/":            "",
		"https://user:pw@example.com/":         "",
		"ftp://example.com/":                   "",
		"javascript:alert(1)":                  "",
		"https://2130706433/":                  "",
		"https://exa mple.com/":                "",
		"https://example.com\\@evil.example/a": "",
	} {
		if got, ok := netrule.Plain(text); got != want || ok != (want != "") {
			t.Errorf("%s: %q %t, want %q", text, got, ok, want)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"see https://example.com/a.":                       {"https://example.com/a.", "https://example.com/a"},
		"[x](https://example.com/a)[y](https://b.example)": {"https://example.com/a", "https://b.example/"},
		"(https://e.example/a_(b)).":                       {"https://e.example/a_(b)).", "https://e.example/a_(b))", "https://e.example/a_(b", "https://e.example/a_(b)"},
		`{"u":"https:\/\/e.example\/a?x=1\u0026y=2"}`:      {"https://e.example/a?x=1&y=2"},
		"<a href='https://e.example/?a=1&amp;b=2'>":        {"https://e.example/?a=1&amp;b=2'", "https://e.example/?a=1&amp;b=2", "https://e.example/?a=1&b=2'", "https://e.example/?a=1&b=2"},
		"HTTP://E.example/x und „https://f.example“":       {"https://e.example/x", "https://f.example/"},
		"https://a.example,https://b.example":              {"https://a.example/", "https://b.example/"},
		"xhttps://a.example ftp://b.example mailto:a@b.c":  {"https://a.example/"},
		"": nil,
	} {
		got := netrule.Find(text, 100, false)
		for _, one := range want {
			if !strings.Contains("\n"+strings.Join(got, "\n")+"\n", "\n"+one+"\n") {
				t.Errorf("%s: %q lacks %s", text, got, one)
			}
		}
		if len(want) == 0 && len(got) > 0 {
			t.Errorf("%s: %q", text, got)
		}
	}
	if got := netrule.Find(strings.Repeat("https://a.example/x ", 3)+"https://b.example", 1, false); len(got) != 1 {
		t.Errorf("at most one: %q", got)
	}
}

func TestFindBare(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"what does go.dev/blog/go1.26 say":    {"https://go.dev/blog/go1.26"},
		"look at heise.de, please":            {"https://heise.de/"},
		"(see example.com)":                   {"https://example.com/"},
		"mail ann@example.com about main.go2": nil,
		"https://a.example.com/x.":            {"https://a.example.com/x.", "https://a.example.com/x"},
		"v1.2.3 and 10.0.0.1 and e.g. this":   nil,
		"...":                                 nil,
	} {
		got := netrule.Find(text, 100, true)
		for _, one := range want {
			if !strings.Contains("\n"+strings.Join(got, "\n")+"\n", "\n"+one+"\n") {
				t.Errorf("%s: %q lacks %s", text, got, one)
			}
		}
		if len(want) == 0 && len(got) > 0 {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// TestSite: what one person can have many of counts as one.
func TestSite(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"evil.example": "evil.example", "a.b.evil.com": "evil.com", "a.evil.co.uk": "evil.co.uk", "one.github.io": "github.io", "x.two.github.io": "github.io",
		"a.pages.dev": "pages.dev", "8.8.8.8": "8.8.8.8", "localhost": "localhost", "com": "com", "a.s3.amazonaws.com": "amazonaws.com", "": "",
	} {
		if got := netrule.Site(host); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		address, input string
		want           bool
	}{
		{"https://evil.example/s3cret", "echo https://evil.example/s3cret", true},
		{"https://evil.example/s3cret", "https://echo.example/?u=https%3A%2F%2Fevil.example%2Fs3cret", true},
		{"https://evil.example/s3cret", "https://echo.example/?u=https%253A%252F%252Fevil.example%252Fs3cret", true},
		{"https://evil.example/a%20b", "evil.example/a b", true},
		{"https://evil.example/S3CRET", "EVIL.example/s3cret", true},
		{"https://evil.example/", "evil.example", true},
		{"https://good.example/go-release", "go release", false},
		{"https://evil.example/s3cret", "", false},
	} {
		if got := netrule.Repeats(tc.address, []string{"x", tc.input}); got != tc.want {
			t.Errorf("%s in %q: %t", tc.address, tc.input, got)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	k := netrule.KeysOf("https://a.example/", "https://b.example/", "https://a.example/")
	if k.Len() != 2 || !k.Has("https://a.example/") || k.Has("https://c.example/") || netrule.Keys(nil).Has("https://a.example/") {
		t.Errorf("%d addresses", k.Len())
	}
	more := k.Add(netrule.KeysOf("https://c.example/", "https://b.example/"), 2)
	if more.Len() != 2 || more.Has("https://a.example/") || !more.Has("https://c.example/") || k.Len() != 2 {
		t.Error("the oldest one goes")
	}
	if diff := cmp.Diff(k, k.Add(nil, 9)); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkFind(b *testing.B) {
	text := strings.Repeat("Some words of a page and [a link](https://example.com/a/page?x=1) in it, about nothing. ", 500)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		netrule.Find(text, 512, false)
	}
}

// FuzzFind: what is found is in plain form, and no text is too much.
func FuzzFind(f *testing.F) {
	for _, seed := range []string{"https://a.example/b).", "go.dev/x", "http://[::1]:80/", "https://https://a.example", "(((https://a.example)))"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, found := range netrule.Find(text, 64, true) {
			if again, ok := netrule.Plain(found); !ok || again != found {
				t.Errorf("%q: %q is %q in plain form", text, found, again)
			}
		}
	})
}
