package schema_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/zephbot/zephbot/tools/schema"
)

func value(t *testing.T, text string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// doubling returns a schema in which each definition applies the next one twice, in the given form: a few kilobytes
// that take 2^n steps.
func doubling(n int, form, leaf string) string {
	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range n {
		next := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		fmt.Fprintf(&b, `"d%d":%s,`, i, strings.ReplaceAll(form, "NEXT", next))
	}
	fmt.Fprintf(&b, `"d%d":%s}}`, n, leaf)
	return b.String()
}

// TestAttackExponentialSchema: no combination of keywords makes one check exceed its limit, for any value.
func TestAttackExponentialSchema(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]string{
		"anyOf":      `{"anyOf":[NEXT,NEXT]}`,
		"allOf":      `{"allOf":[NEXT,NEXT]}`,
		"oneOf":      `{"oneOf":[NEXT,NEXT]}`,
		"not":        `{"not":{"anyOf":[NEXT,{"not":NEXT}]}}`,
		"if":         `{"if":NEXT,"then":NEXT,"else":NEXT}`,
		"properties": `{"properties":{"x":{"anyOf":[NEXT,NEXT]}},"anyOf":[NEXT,NEXT]}`,
		"dependent":  `{"not":{"dependentSchemas":{"x":NEXT,"y":NEXT}}}`,
		"old":        `{"dependencies":{"x":NEXT,"y":NEXT}}`,
		"items":      `{"items":{"anyOf":[NEXT,NEXT]},"anyOf":[NEXT,NEXT]}`,
		"evaluated":  `{"anyOf":[NEXT,NEXT],"unevaluatedProperties":false}`,
	} {
		for _, leaf := range []string{`{"type":"string"}`, `{}`, `false`, `{"required":["zz"]}`} {
			for _, draft := range []string{"", "http://json-schema.org/draft-07/schema#"} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, leaf, draft), func(t *testing.T) {
					t.Parallel()
					raw := doubling(11, form, leaf) // small enough to be admitted
					deep := doubling(60, form, leaf)
					if draft != "" {
						raw, deep = `{"$schema":"`+draft+`",`+raw[1:], `{"$schema":"`+draft+`",`+deep[1:]
					}
					if _, problem := schema.Measure(json.RawMessage(deep)); problem == "" || schema.Compile(json.RawMessage(deep)) != nil {
						t.Errorf("2^60 steps are admitted")
					}
					s := schema.Compile(json.RawMessage(raw))
					if s == nil {
						return
					}
					args := `{"a":` + strings.Repeat(`{"x":`, 50) + `[]` + strings.Repeat(`,"y":1}`, 50) + `}`
					if err := s.Validate(t.Context(), value(t, args)); err != nil && !fits(err) && !errors.Is(err, schema.ErrTooCostly) {
						t.Error(err)
					}
				})
			}
		}
	}
}

func fits(err error) bool {
	_, ok := errors.AsType[*jsonschema.ValidationError](err)
	return ok
}

// TestAttackRecursiveSchema: a schema that is small by every measure, and a value for which it applies itself twice at
// every level.
func TestAttackRecursiveSchema(t *testing.T) {
	t.Parallel()
	s := schema.Compile(json.RawMessage(`{"$defs":{"n":{"anyOf":[{"properties":{"x":{"$ref":"#/$defs/n"}},"required":["y"]},{"properties":{"x":{"$ref":"#/$defs/n"}},"required":["z"]}]}},"$ref":"#/$defs/n"}`))
	if s == nil {
		t.Fatal("an honest schema that is recursive is not compiled")
	}
	err := s.Validate(t.Context(), value(t, strings.Repeat(`{"x":`, 60)+`{}`+strings.Repeat(`}`, 60)))
	if !errors.Is(err, schema.ErrTooCostly) {
		t.Errorf("%v", err)
	}
	if err := s.Validate(t.Context(), value(t, `{"x":{"y":1},"z":1}`)); err != nil {
		t.Errorf("after one that was broken off: %v", err)
	}
}

// TestAttackStopEndsValidation: a check hears that it is not wanted any more.
func TestAttackStopEndsValidation(t *testing.T) {
	t.Parallel()
	gone := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := schema.Compile(json.RawMessage(`{"$defs":{"n":{"anyOf":[{"$ref":"#/$defs/m"},{"$ref":"#/$defs/m"}]},"m":{"items":{"$ref":"#/$defs/n"},"type":"array"}},"$ref":"#/$defs/n"}`))
	cancel(gone)
	if err := s.Validate(ctx, value(t, `[]`)); !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}

// TestAttackPatterns: nested repetitions would take gigabytes to compile, and a large expression seconds to match.
func TestAttackPatterns(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, `"p%d":{"type":"string","pattern":"(?:a{1,999}){1,999}|%d"},`, i, i)
	}
	raw := json.RawMessage(`{"properties":{` + b.String() + `"q":{"pattern":"(?=look)ahead"},"r":{"pattern":"^[a-z]+$"}}}`)
	size, problem := schema.Measure(raw)
	if problem != "" || len(size.Patterns) != 301 {
		t.Errorf("%q, %d patterns cannot be checked", problem, len(size.Patterns))
	}
	s := schema.Compile(raw)
	if s == nil {
		t.Fatal("one pattern that cannot be checked takes all checks away")
	}
	if err := s.Validate(t.Context(), value(t, `{"p1":"x","q":"anything"}`)); err != nil {
		t.Error(err)
	}
	if err := s.Validate(t.Context(), value(t, `{"r":"UPPER"}`)); err == nil {
		t.Error("the pattern that can be checked is not")
	}
	slow := schema.Compile(json.RawMessage(`{"properties":{"a":{"items":{"pattern":"^(?:[a-q][^u-z]{1,13}x){1,40}$"}}}}`))
	long := `"` + strings.Repeat("abcdefghijklm", 20_000) + `"`
	err := slow.Validate(t.Context(), value(t, `{"a":[`+strings.Repeat(long+`,`, 200)+`1]}`))
	if !errors.Is(err, schema.ErrTooCostly) {
		t.Errorf("%v", err)
	}
}

// TestAttackNumbers: a number of a few characters can represent one of a million digits.
func TestAttackNumbers(t *testing.T) {
	t.Parallel()
	s := schema.Compile(json.RawMessage(`{"items":{"minimum":0,"multipleOf":3}}`))
	for _, v := range []string{`[1e999999]`, `[1e99999999999]`, `[1E-999999]`, `[` + strings.Repeat("9", 1000) + `]`} {
		if err := s.Validate(t.Context(), value(t, v)); !errors.Is(err, schema.ErrTooCostly) {
			t.Errorf("%.20s: %v", v, err)
		}
	}
	for _, raw := range []string{`{"maximum":1e999999}`, `{"enum":[1e999999]}`, `{"const":-1e-999999}`} {
		if schema.Compile(json.RawMessage(raw)) != nil {
			t.Errorf("%s is compiled", raw)
		}
	}
}

// TestAttackLists: comparing every element with every other, and large values with many.
func TestAttackLists(t *testing.T) {
	t.Parallel()
	s := schema.Compile(json.RawMessage(`{"items":{"uniqueItems":true,"items":{"uniqueItems":true,"items":{"uniqueItems":true}}}}`))
	inner := `[` + strings.Repeat(`{"a":[1,2,3]},`, 5000) + `1]`
	if err := s.Validate(t.Context(), value(t, `[`+strings.Repeat(`[`+inner+`],`, 10)+`1]`)); !errors.Is(err, schema.ErrTooCostly) {
		t.Errorf("%v", err)
	}
}

// TestCheapSchemas has what real servers offer: it has to be admitted and checked.
func TestCheapSchemas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, raw, good, bad string }{
		{"plain", `{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer","minimum":1}},"required":["path"]}`, `{"path":"a","n":2}`, `{"n":0}`},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"p":{"type":"string","pattern":"^a"}},"properties":{"x":{"$ref":"#/definitions/p"}}}`, `{"x":"ab"}`, `{"x":"b"}`},
		{"union", `{"properties":{"v":{"anyOf":[{"type":"string"},{"type":"null"},{"type":"array","items":{"type":"number"}}]}}}`, `{"v":[1,2.5]}`, `{"v":{}}`},
		{"tree", `{"$defs":{"n":{"type":"object","properties":{"c":{"type":"array","items":{"$ref":"#/$defs/n"}}},"additionalProperties":false}},"$ref":"#/$defs/n"}`, `{"c":[{"c":[{}]}]}`, `{"c":[{"d":1}]}`},
		{"format", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"m":{"type":"string","format":"email"}}}`, `{"m":"a@b.example"}`, `{"m":"no"}`},
		{"tuple", `{"prefixItems":[{"type":"string"},{"const":5}],"items":false}`, `["a",5]`, `["a",5,6]`},
	} {
		if _, problem := schema.Measure(json.RawMessage(c.raw)); problem != "" {
			t.Errorf("%s: %s", c.name, problem)
		}
		s := schema.Compile(json.RawMessage(c.raw))
		if s == nil {
			t.Errorf("%s is not compiled", c.name)
			continue
		}
		if err := s.Validate(t.Context(), value(t, c.good)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := s.Validate(t.Context(), value(t, c.bad)); !fits(err) {
			t.Errorf("%s admits %s: %v", c.name, c.bad, err)
		}
	}
	wide := `{"items":{"properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]}}`
	rows := `[` + strings.TrimSuffix(strings.Repeat(`{"a":"x","b":1},`, 20_000), ",") + `]`
	if err := schema.Compile(json.RawMessage(wide)).Validate(t.Context(), value(t, rows)); err != nil {
		t.Errorf("20 000 rows: %v", err)
	}
}

// TestMeasure bounds what is looked at before anything is compiled; the price of measuring is linear.
func TestMeasure(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string]string{
		"deep":  strings.Repeat(`{"items":`, 300) + `{}` + strings.Repeat(`}`, 300),
		"wide":  doubling(20, `{"anyOf":[NEXT,NEXT]}`, `{}`),
		"large": `{"description":"` + strings.Repeat("x", schema.MaxBytes) + `"}`,
		"chain": doubling(400, `{"allOf":[NEXT]}`, `{}`),
		"text":  `{"a":`,
	} {
		if _, problem := schema.Measure(json.RawMessage(raw)); problem == "" {
			t.Errorf("%s is admitted", name)
		}
	}
	var refs strings.Builder // every reference has another name for the same large part
	refs.WriteString(`{"$defs":{"big":[` + strings.Repeat(`{},`, 20_000) + `{}]},"allOf":[`)
	for i := range 5000 {
		fmt.Fprintf(&refs, `{"$ref":"#/allOf/%d"},`, i+1)
	}
	refs.WriteString(`{"$ref":"#/$defs/big"}]}`)
	if _, problem := schema.Measure(json.RawMessage(refs.String())); problem == "" {
		t.Error("5000 references in a chain are admitted")
	}
	size, problem := schema.Measure(json.RawMessage(`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"},"c":{"$anchor":"n"}},"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#n"},{"$ref":"#"}]}`))
	if problem != "" || size.Nodes == 0 {
		t.Errorf("%q %+v", problem, size)
	}
}

// FuzzValidate: whatever a schema and a value are, a check ends and no panic leaves it.
func FuzzValidate(f *testing.F) {
	f.Add(doubling(3, `{"anyOf":[NEXT,NEXT]}`, `{"type":"string"}`), `{"a":{"x":1}}`)
	f.Add(`{"pattern":"(a{9}){9}","minimum":1e3,"uniqueItems":true,"enum":[1,"a",[]]}`, `[1,1e5,"a"]`)
	f.Add(`{"patternProperties":{"^a":{"$ref":"#"}},"additionalProperties":{"not":{}}}`, `{"ab":{"a":{}}}`)
	f.Fuzz(func(t *testing.T, raw, text string) {
		s := schema.Compile(json.RawMessage(raw))
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if s == nil || err != nil {
			return
		}
		if err := s.Validate(t.Context(), v); err != nil && !fits(err) && !errors.Is(err, schema.ErrTooCostly) {
			t.Error(err)
		}
	})
}

// TestNullable: null is valid where a schema says so in OpenAPI's way, at any depth, and nowhere else.
func TestNullable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schema, value string
		valid         bool
	}{
		{`{"properties":{"a":{"type":"string","nullable":true}},"required":["a"]}`, `{"a":null}`, true},
		{`{"properties":{"a":{"type":"string","nullable":true}}}`, `{"a":1}`, false},
		{`{"properties":{"a":{"type":"string","nullable":false}}}`, `{"a":null}`, false},
		{`{"properties":{"a":{"type":["string","integer"],"nullable":true}}}`, `{"a":null}`, true},
		{`{"properties":{"a":{"type":"string","enum":["x"],"nullable":true}}}`, `{"a":null}`, true},
		{`{"properties":{"a":{"type":"string","enum":["x"],"nullable":true}}}`, `{"a":"y"}`, false},
		{`{"properties":{"a":{"const":"x","nullable":true}}}`, `{"a":null}`, true},
		{`{"properties":{"a":{"const":"x","nullable":true}}}`, `{"a":"x"}`, true},
		{`{"properties":{"a":{"const":"x","nullable":true}}}`, `{"a":"y"}`, false},
		{`{"properties":{"a":{"const":"x","enum":["x","y"],"nullable":true}}}`, `{"a":"y"}`, false},
		{`{"properties":{"a":{"const":"z","enum":["x"],"nullable":true}}}`, `{"a":"x"}`, false},
		{`{"properties":{"a":{"const":"z","enum":["x"],"nullable":true}}}`, `{"a":null}`, true},
		{`{"properties":{"a":{"type":"array","items":{"type":"integer","nullable":true}}}}`, `{"a":[1,null]}`, true},
		{`{"properties":{"a":{"$ref":"#/components/schemas/A"}},"components":{"schemas":{"A":{"type":"object","nullable":true}}}}`, `{"a":null}`, true},
		{`{"properties":{"a":{"anyOf":[{"type":"string","nullable":true},{"type":"integer"}]}}}`, `{"a":null}`, true},
		{`{"properties":{"nullable":true,"type":{"type":"string"},"enum":{"type":"string"}}}`, `{"type":null}`, false},
		{`{"properties":{"enum":{"type":"string","nullable":true},"default":{"type":"string","nullable":true}}}`, `{"enum":null,"default":null}`, true},
		{`{"properties":{"a":{"enum":[{"type":"string","nullable":true}]}}}`, `{"a":{"type":"string","nullable":true}}`, true},
	} {
		s := schema.Compile(json.RawMessage(c.schema))
		if s == nil {
			t.Errorf("%s is not compiled", c.schema)
			continue
		}
		if err := s.Validate(t.Context(), value(t, c.value)); (err == nil) != c.valid {
			t.Errorf("%s takes %s: %v, want %v", c.schema, c.value, err == nil, c.valid)
		}
	}
}
