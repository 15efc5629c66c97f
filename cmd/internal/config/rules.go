package config

import (
	"fmt"
	"math"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/policy/lazyregexp"
	"github.com/zephbot/zephbot/policy/nearest"
)

// form is the required form of a text, and its description.
type form struct {
	pattern func() *regexp.Regexp
	allowed string
}

// formOf returns the rule for a form tag; ok is false if it is not about a pattern.
func formOf(name string) (rule form, ok bool) {
	switch name {
	case "user":
		return form{userForm, `a numeric id, "@name" or "*"`}, true
	case "chat":
		return form{chatForm, `a numeric id such as -100123, or "*"`}, true
	case "chatkey":
		return form{chatKeyForm, `"-100123" for a chat, "-100123/7" for a topic`}, true
	case "persona":
		return form{personaForm, `letters, digits, spaces, "_", ".", "'" and "-", at most 32, letters or digits first`}, true
	case "name":
		return form{nameForm, `letters, digits, "_", "." and "-", at most 64`}, true
	case "server":
		return form{serverForm, `letters, digits, "_", "." and "-", at most 128`}, true
	case "domain":
		return form{domainForm, `a host name such as "example.com", or "*.example.com"`}, true
	case "command":
		return form{commandForm, "the name of a program without a path"}, true
	case "redis":
		return form{
			redisForm,
			"a URL that begins with redis:// or rediss:// (also redis+cluster://, redis+sentinel://, unix://)",
		}, true
	case "postgres":
		return form{postgresForm, "a URL that begins with postgres://"}, true
	default:
		return form{}, false
	}
}

var (
	userForm     = lazyregexp.New(`^([1-9]\d*|@[A-Za-z0-9_]{4,32}|\*)$`)
	chatForm     = lazyregexp.New(`^(-?[1-9]\d*|\*)$`)
	chatKeyForm  = lazyregexp.New(`^-?[1-9]\d*(/\d+)?$`)
	personaForm  = lazyregexp.New(`^[\p{L}\p{N}][\p{L}\p{M}\p{N} _.'-]{0,31}$`)
	nameForm     = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	serverForm   = lazyregexp.New(`^[A-Za-z0-9_.-]{1,128}$`)
	domainForm   = lazyregexp.New(`^[A-Za-z0-9*.-]+$`)
	commandForm  = lazyregexp.New(`^[^/\\]+$`)
	redisForm    = lazyregexp.New(`^(rediss?|unix)([+-](cluster|sentinel))?://\S+$`)
	postgresForm = lazyregexp.New(`^postgres(ql)?://\S+$`)
)

// checkValue returns what is wrong with the value of a leaf, or "".
func checkValue(l leaf) string {
	v := l.value
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice {
		for i := range v.Len() {
			if text := checkOne(l.field, v.Index(i)); text != "" {
				return text
			}
		}
		return ""
	}
	return checkOne(l.field, v)
}

func checkOne(f field, v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return checkText(f, v.String(), v.Type() == secretType)
	case reflect.Int, reflect.Int64:
		return checkRange(f, float64(v.Int()), formatValue(v), v.Type() == durationType)
	case reflect.Float64:
		x := v.Float()
		if !f.clamp && (math.IsNaN(x) || math.IsInf(x, 0)) {
			return formatFloat(x) + " is not allowed; allowed: a finite number"
		}
		return checkRange(f, x, formatValue(v), false)
	default:
		return ""
	}
}

func checkRange(f field, x float64, shown string, duration bool) string {
	limit := func(n float64) string {
		if duration {
			return formatDuration(time.Duration(n))
		}
		return fmt.Sprintf("%.10g", n)
	}
	switch {
	case f.clamp:
		return "" // corrected, not refused
	case x >= f.min && (f.max == 0 || x <= f.max):
		return ""
	case f.max == 0:
		return shown + " is not allowed; allowed: " + limit(f.min) + " or more"
	default:
		return shown + " is not allowed; allowed: " + limit(f.min) + " to " + limit(f.max)
	}
}

// checkText checks a text that is set; whether it may be empty is decided elsewhere.
func checkText(f field, s string, secret bool) string {
	if s == "" {
		return ""
	}
	shown := "this value"
	if !secret {
		shown = shorten(s)
	}
	if rule, ok := formOf(f.form); ok && !rule.pattern().MatchString(s) {
		return shown + " is not allowed; allowed: " + rule.allowed
	}
	switch f.form {
	case "listen":
		return checkListen(s)
	case "zone":
		return checkZone(s)
	}
	if len(f.enum) > 0 &&
		!slices.ContainsFunc(f.enum, func(w string) bool { return w == s || f.fold && strings.EqualFold(w, s) }) {
		if d, known := dialect.Meant(s); known && (f.form == "preset" || f.form == "api") {
			return shown + " is not allowed; " + hintOf(&d)
		}
		text := shown + " is not allowed; allowed: " + strings.Join(f.enum, ", ")
		if near, ok := nearest.Nearest(s, f.enum); ok {
			text += " (did you mean " + near + "?)"
		}
		return text
	}
	if len(f.urls) > 0 {
		return checkURL(f, s)
	}
	return ""
}

// hintOf says how a server is named in the configuration that somebody called by another name (dialect.Meant).
func hintOf(d *dialect.Dialect) string {
	if d.Name == "" {
		return fmt.Sprintf("%s has no preset: leave it out, and set base_url = %q", d.Title, d.BaseURL)
	}
	return fmt.Sprintf("for %s set preset to %q", d.Title, d.Name)
}

// checkURL refuses what is not a URL with an allowed scheme. A URL that may contain a password is not repeated.
func checkURL(f field, s string) string {
	shown := shorten(s)
	if strings.Contains(s, "@") {
		shown = "this URL"
	}
	allowed := " is not allowed; allowed: a URL that begins with " + strings.Join(f.urls, ":// or ") + "://"
	u, err := url.Parse(s)
	if err != nil || !slices.Contains(f.urls, u.Scheme) || u.Scheme != "file" && u.Hostname() == "" ||
		u.Scheme == "file" && u.Path == "" {
		return shown + allowed
	}
	return ""
}

// checkZone checks that this machine knows a time zone.
func checkZone(s string) string {
	if _, err := time.LoadLocation(s); err != nil {
		return shorten(s) +
			` is not allowed; allowed: a time zone that this machine knows, such as "Europe/Berlin", or "Local" for ` +
			`the machine's own`
	}
	return ""
}

func checkListen(s string) string {
	const allowed = ` is not allowed; allowed: an address and a port such as "127.0.0.1:9090" or ":8443"`
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return shorten(s) + allowed
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return shorten(s) + allowed
	}
	return ""
}
