package content_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools/mcp/content"
)

// ask reads a request as it comes from the wire.
func ask(t *testing.T, wire string) content.Form {
	t.Helper()
	var p mcp.ElicitParams
	if err := json.Unmarshal([]byte(wire), &p); err != nil {
		t.Fatal(err)
	}
	return content.Elicit(&p)
}

func form(t *testing.T, properties, required string) content.Form {
	t.Helper()
	return ask(t, `{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{`+properties+`},"required":[`+required+`]}}`)
}

func TestElicit(t *testing.T) {
	t.Parallel()
	got := ask(t, `{"message":"Who\u0007 are\nyou?\u202e","requestedSchema":{"type":"object","required":["z name","age"],"properties":{
		"age":{"type":"integer","minimum":0,"maximum":150,"default":18,"title":"Age\u001b[31m"},
		"z name":{"type":"string","minLength":1,"maxLength":50,"description":"Full name","default":5},
		"score":{"type":"number","default":0.5},"mail":{"type":"string","format":"email"},"odd":{"type":"string","format":"x"},
		"ok":{"type":"boolean","default":true},
		"color":{"type":"string","enum":["r","g"],"enumNames":["Red"],"default":"g"},
		"size":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}],"default":"m"},
		"tags":{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1,"maxItems":2,"default":["b"]},
		"more":{"type":"array","items":{"anyOf":[{"const":"x","title":"Ex"}]}},
		"api_token":{"type":"string"}}}}`)
	want := content.Form{
		Mode: content.ModeForm, Message: "Who are you?",
		Fields: []content.Field{
			{Name: "z name", Description: "Full name", Type: content.String, Required: true, MinLength: new(1), MaxLength: new(50)},
			{Name: "age", Title: "Age", Type: content.Integer, Required: true, Minimum: new(0.0), Maximum: new(150.0), Default: int64(18)},
			{Name: "api_token", Type: content.String, Sensitive: true},
			{Name: "color", Type: content.Enum, Options: []content.Option{{"r", "Red"}, {"g", "g"}}, Default: "g"},
			{Name: "mail", Type: content.String, Format: "email"},
			{Name: "more", Type: content.Multi, Options: []content.Option{{"x", "Ex"}}},
			{Name: "odd", Type: content.String},
			{Name: "ok", Type: content.Boolean, Default: true},
			{Name: "score", Type: content.Number, Default: 0.5},
			{Name: "size", Type: content.Enum, Options: []content.Option{{"s", "Small"}, {"l", "Large"}}},
			{Name: "tags", Type: content.Multi, Options: []content.Option{{"a", "a"}, {"b", "b"}}, MinItems: new(1), MaxItems: new(2), Default: []string{"b"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !got.Sensitive() || (content.Form{}).Sensitive() {
		t.Error("Sensitive")
	}
	if s := got.Summary(); s != "Who are you? (z name, Age, api_token, color, mail, more, odd, ok, score, size, tags)" {
		t.Errorf("%q", s)
	}
	if label := got.Fields[1].Label() + "," + (content.Field{Name: "a\nb\x1b[1m"}).Label(); label != "Age,a b" {
		t.Errorf("%q", label)
	}
}

func TestElicitOtherRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, wire, mode, url, problem string }{
		{"url", `{"mode":"url","message":"m","url":"https://auth.example/x?y=1","elicitationId":"1"}`, "url", "https://auth.example/x?y=1", ""},
		{"url without its mode", `{"message":"m","url":"http://auth.example/"}`, "url", "http://auth.example/", ""},
		{"id alone", `{"message":"m","elicitationId":"1"}`, "url", "", "no web address"},
		{"a script", `{"mode":"url","message":"m","url":"javascript:alert(1)"}`, "url", "", "no web address"},
		{"a file", `{"mode":"url","message":"m","url":"file:///etc/passwd"}`, "url", "", "no web address"},
		{"no URL", `{"mode":"url","message":"m","url":"http://[bad"}`, "url", "", "no web address"},
		{"unknown mode", `{"mode":"video","message":"m"}`, "form", "", "not known"},
		{"no fields", `{"mode":"form","message":"m"}`, "form", "", ""},
		{"fields are no object", `{"message":"m","requestedSchema":{"properties":[]}}`, "form", "", "cannot be read"},
		{"a field is no object", `{"message":"m","requestedSchema":{"properties":{"a":5}}}`, "form", "", `"a" cannot be read`},
		{"nested", `{"message":"m","requestedSchema":{"properties":{"a\u001b[1m":{"type":"object"}}}}`, "form", "", `"a" has a type that cannot be asked: object`},
		{"a list of anything", `{"message":"m","requestedSchema":{"properties":{"a":{"type":"array"}}}}`, "form", "", "list of anything"},
		{"a list of texts", `{"message":"m","requestedSchema":{"properties":{"a":{"type":"array","items":{"type":"string"}}}}}`, "form", "", "list of anything"},
		{"options are numbers", `{"message":"m","requestedSchema":{"properties":{"a":{"type":"string","enum":[1]}}}}`, "form", "", "no texts"},
		{"choices are numbers", `{"message":"m","requestedSchema":{"properties":{"a":{"type":"string","oneOf":[{"const":1}]}}}}`, "form", "", "no texts"},
		{"no type", `{"message":"m","requestedSchema":{"properties":{"a":{}}}}`, "form", "", "type"},
	} {
		got := ask(t, c.wire)
		if string(got.Mode) != c.mode || got.URL != c.url || c.problem == "" && got.Problem != "" || !strings.Contains(got.Problem, c.problem) {
			t.Errorf("%s: %+v", c.name, got)
		}
		if c.mode == "url" != strings.Contains(got.Summary(), "wants a page opened") {
			t.Errorf("%s: %s", c.name, got.Summary())
		}
	}
	if got := content.Elicit(nil); got.Problem == "" {
		t.Error("no request is no problem")
	}
	if got := content.Elicit(&mcp.ElicitParams{Message: "DAN\x00", RequestedSchema: func() {}}); got.Message != "DAN" || got.Summary() != "[sanitized]" {
		t.Errorf("%+v", got)
	}
	var fields []string
	for i := range 51 {
		fields = append(fields, fmt.Sprintf(`"f%d":{"type":"string"}`, i))
	}
	if got := form(t, strings.Join(fields, ","), ""); !strings.Contains(got.Problem, "51") {
		t.Errorf("%+v", got)
	}
	options := strings.TrimSuffix(strings.Repeat(`"o",`, 201), ",")
	if got := form(t, `"a":{"enum":[`+options+`]}`, ""); !strings.Contains(got.Problem, "200 options") {
		t.Errorf("%+v", got)
	}
	long := content.Elicit(&mcp.ElicitParams{Message: strings.Repeat("ö ", 400)})
	if n := utf8.RuneCountInString(long.Message); n != 500 || !strings.HasSuffix(long.Message, "…") || len(long.Summary()) > 700 {
		t.Errorf("%d characters", n)
	}
	if got := content.Elicit(&mcp.ElicitParams{Message: strings.Repeat("ö", 500)}); utf8.RuneCountInString(got.Message) != 500 || strings.HasSuffix(got.Message, "…") {
		t.Error("500 characters were cut")
	}
}

func TestSensitive(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"api_token": true, "password": true, "userPassword": true, "PASSWORD": true, "client-secret": true, "APIKey": true, "apikey": true, "api key": true, "auth": true,
		"x.auth.y": true, "private": true, "passphrase": true, "pass phrase": true, "pin": true, "PIN2": true, "cardPin": true, "credential": true, "credentials": true, "token2": true,
		"mysecretvalue": true, "accesstoken": true, "Your key": true,
		"shipping": false, "keyboard": false, "author": false, "monkey": false, "spin": false, "name": false, "": false, "opinion": false, "passport": false, "city": false,
	} {
		if got := content.Sensitive(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	ab := []content.Option{{"a", "Apple"}, {"b", "Berry, red"}, {"B", "Big"}}
	enum, multi := content.Field{Type: content.Enum, Options: ab}, content.Field{Type: content.Multi, Options: ab, MaxItems: new(2), MinItems: new(1)}
	boolean, integer, number, str := content.Field{Type: content.Boolean}, content.Field{Type: content.Integer}, content.Field{Type: content.Number}, content.Field{Type: content.String}
	bounded := content.Field{Type: content.Integer, Minimum: new(1.0), Maximum: new(9.0)}
	short := content.Field{Type: content.String, MinLength: new(2), MaxLength: new(3), Required: true}
	format := func(f string) content.Field { return content.Field{Type: content.String, Format: f} }
	bad := fmt.Errorf("bad")
	for _, c := range []struct {
		f    content.Field
		text string
		want any // bad = an error
	}{
		{boolean, "YES", true},
		{boolean, "1", true},
		{boolean, " no ", false},
		{boolean, "0", false},
		{boolean, "true", true},
		{boolean, "y", true},
		{boolean, "N", false},
		{boolean, "ja", true},
		{boolean, "Nein", false},
		{boolean, "SÍ", true},
		{boolean, "Да", true},
		{boolean, "н", false},
		{boolean, "maybe", bad},
		{boolean, "yy", bad},
		{integer, "3", int64(3)},
		{integer, "-9223372036854775808", int64(math.MinInt64)},
		{integer, "9223372036854775808", bad},
		{integer, "3.5", bad},
		{integer, "x", bad},
		{number, "3.5", 3.5},
		{number, "-1e3", -1000.0},
		{number, "NaN", bad},
		{number, "inf", bad},
		{number, "1e999", bad},
		{number, "1,5", bad},
		{bounded, "1", int64(1)},
		{bounded, "0", bad},
		{bounded, "10", bad},
		{enum, "2", "b"},
		{enum, "B", "B"},
		{enum, "A", "a"},
		{enum, "apple", "a"},
		{enum, "big", "B"},
		{enum, "0", bad},
		{enum, "4", bad},
		{enum, "c", bad},
		{multi, "1,3", []string{"a", "B"}},
		{multi, "berry, red", []string{"b"}},
		{multi, "a, a", []string{"a"}},
		{multi, "1,2,3", bad},
		{multi, "1,x", bad},
		{multi, ",", bad},
		{str, "  two words ", "two words"},
		{str, "a\x00", bad},
		{str, "\xff", bad},
		{short, "ö", bad},
		{short, "öö", "öö"},
		{short, "ööö", "ööö"},
		{short, "öööö", bad},
		{short, "", bad},
		{format("email"), "a@b.example", "a@b.example"},
		{format("email"), "A <a@b.example>", bad},
		{format("email"), "x", bad},
		{format("uri"), "https://x.example/y", "https://x.example/y"},
		{format("uri"), "x", bad},
		{format("uri"), "http://[", bad},
		{format("date"), "2026-01-31", "2026-01-31"},
		{format("date"), "2026-02-31", bad},
		{format("date-time"), "2026-01-31T09:30:00Z", "2026-01-31T09:30:00Z"},
		{format("date-time"), "2026-01-31", bad},
		{str, "", nil},
		{content.Field{Type: content.Integer, Required: true}, " ", bad},
		{content.Field{Type: content.String, Required: true}, "", bad},
		{content.Field{Type: content.String, Required: true, MinLength: new(0)}, "", ""},
		{content.Field{Type: content.Integer, Required: true, Default: int64(4)}, "", int64(4)},
	} {
		got, err := content.Parse(c.f, c.text)
		switch {
		case c.want == any(bad):
			if err == nil || err.Error() == "" {
				t.Errorf("%s %q: %v", c.f.Type, c.text, got)
			}
		case err != nil:
			t.Errorf("%s %q: %v", c.f.Type, c.text, err)
		default:
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s %q: %s", c.f.Type, c.text, diff)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	f := form(t, `"name":{"type":"string"},"age":{"type":"integer","maximum":99},"x":{"type":"number"},"ok":{"type":"boolean"},"c":{"type":"string","enum":["a","b"]},
		"l":{"type":"array","items":{"enum":["a","b"]},"minItems":1}`, `"name"`)
	for _, c := range []struct {
		name   string
		values map[string]any
		want   string // part of the error
	}{
		{"as parsed", map[string]any{"name": "n", "age": int64(3), "x": 1.5, "ok": true, "c": "a", "l": []string{"a"}}, ""},
		{"as decoded", map[string]any{"name": "n", "age": 3.0, "x": json.Number("2.5"), "l": []any{"a", "b"}}, ""},
		{"other numbers", map[string]any{"name": "", "age": json.Number("3"), "x": 5}, ""},
		{"required", map[string]any{"age": 3}, "name: a value is needed"},
		{"unknown", map[string]any{"name": "n", "zz": 1, "b\n": 1}, "b: the form has no such field"},
		{"text", map[string]any{"name": 5}, "name: it has to be text"},
		{"null", map[string]any{"name": nil}, "name: it has to be text"},
		{"half", map[string]any{"name": "n", "age": 3.5}, "age: it has to be a whole number"},
		{"too large", map[string]any{"name": "n", "age": 100}, "age: it may be at most 99"},
		{"not finite", map[string]any{"name": "n", "x": math.Inf(1)}, "x: it has to be a number"},
		{"a word for a boolean", map[string]any{"name": "n", "ok": "yes"}, "ok: it has to be yes or no"},
		{"no option", map[string]any{"name": "n", "c": "z"}, "c: it is none of the options"},
		{"a number for an option", map[string]any{"name": "n", "c": 1}, "c: it has to be one of the options"},
		{"a list of none", map[string]any{"name": "n", "l": []any{}}, "l: choose at least 1"},
		{"a list of others", map[string]any{"name": "n", "l": []any{"z"}}, "l: it is none of the options"},
		{"a list of numbers", map[string]any{"name": "n", "l": []any{1}}, "l: it has to be a list of options"},
	} {
		err := f.Validate(c.values)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestAttackElicitationSchema: the protocol library checks an answer against the form's schema without any limit, so
// such forms are never answered.
func TestAttackElicitationSchema(t *testing.T) {
	t.Parallel()
	var doubling strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for name, extra := range map[string]string{
		"to itself": `,"allOf":[{"$ref":"#"}]`,
		"doubling":  `,"$ref":"#/$defs/d0","$defs":{` + doubling.String() + `"d40":{}}`,
		"wide":      `,"anyOf":[` + strings.Repeat(`{"type":"object"},`, 6000) + `{}]`,
		"pattern":   `,"patternProperties":{"(?:a{1,999}){1,999}":{}}`,
	} {
		got := ask(t, `{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}`+extra+`}}`)
		if got.Problem == "" {
			t.Errorf("%s is asked", name)
		}
	}
	if got := form(t, `"a":{"type":"string","pattern":"^[a-z]+$"}`, `"a"`); got.Problem != "" {
		t.Errorf("an honest form: %s", got.Problem)
	}
}
