package complaint_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm/complaint"
)

// TestPlaces: the part of a request that a server names is found in every form of the common frameworks, and so is what
// is wrong with it.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, place, says string }{
		"Rails":                 {`{"errors":{"user":["is not allowed"]}}`, "user", "is not allowed"},
		"Rails, one text":       {`{"errors":{"user":"is not allowed"}}`, "user", "is not allowed"},
		"Laravel":               {`{"message":"The given data was invalid.","errors":{"messages.0.name":["The name is prohibited."]}}`, "messages.0.name", "prohibited"},
		"ASP.NET":               {`{"type":"https://tools.ietf.org/html/rfc9110#section-15.5.1","title":"One or more validation errors occurred.","status":400,"errors":{"user":["The field user is unknown."]}}`, "user", "unknown"},
		"Django, at the top":    {`{"user":["Unexpected field."]}`, "user", "Unexpected field."},
		"Django, nested":        {`{"messages":[{"name":["Unexpected field."]}]}`, "messages[0].name", "Unexpected field."},
		"Django, in an error":   {`{"error":{"user":["Unexpected field."]}}`, "user", "Unexpected field."},
		"RFC 7807":              {`{"type":"about:blank","title":"Bad Request","invalid_params":[{"name":"user","reason":"must not be sent"}]}`, "user", "must not be sent"},
		"RFC 7807, hyphen":      {`{"title":"Bad Request","invalid-params":[{"name":"user","reason":"must not be sent"}]}`, "user", "must not be sent"},
		"RFC 9457":              {`{"title":"Bad Request","errors":[{"detail":"must not be sent","pointer":"#/user"}]}`, "user", "must not be sent"},
		"RFC 9457, deep":        {`{"title":"Bad Request","errors":[{"detail":"no","pointer":"#/messages/0/name"}]}`, "messages.0.name", "no"},
		"JSON:API":              {`{"errors":[{"status":"422","source":{"pointer":"/data/attributes/user"},"title":"Invalid","detail":"user is not permitted"}]}`, "user", "not permitted"},
		"JSON:API, a parameter": {`{"errors":[{"source":{"parameter":"user"},"detail":"is not permitted"}]}`, "user", "not permitted"},
		"Ajv":                   {`{"message":"body must NOT have additional properties","errors":[{"instancePath":"","keyword":"additionalProperties","params":{"additionalProperty":"user"},"message":"must NOT have additional properties"}]}`, "user", "additional properties"},
		"Zod":                   {`{"error":{"issues":[{"code":"unrecognized_keys","keys":["user"],"path":[],"message":"Unrecognized key(s) in object"}]}}`, "user", "Unrecognized"},
		"celebrate":             {`{"statusCode":400,"error":"Bad Request","message":"Validation failed","validation":{"body":{"source":"body","keys":["user"],"message":"\"user\" is not allowed"}}}`, "user", "not allowed"},
		"express-validator":     {`{"errors":[{"type":"field","msg":"Invalid value","path":"user","location":"body"}]}`, "user", "Invalid value"},
		"NestJS":                {`{"statusCode":400,"message":[{"property":"user","constraints":{"whitelistValidation":"property user should not exist"}}]}`, "user", ""},
		"pydantic":              {`{"detail":[{"type":"string_type","loc":["body","system"],"msg":"Input should be a valid string"}]}`, "body.system", "valid string"},
		"a path of JSON":        {`{"violations":[{"field":"$.user","message":"unknown"}]}`, "user", "unknown"},
	} {
		c := complaint.Read(422, nil, []byte(tt.body), time.Time{})
		if !slices.Contains(c.Places, tt.place) || !strings.Contains(c.Message, tt.says) {
			t.Errorf("%s: places %q, message %q", name, c.Places, c.Message)
		}
	}
	// What names nothing, or is no complaint, leaves no place.
	for _, body := range []string{`{"errors":["bad"]}`, `{"errors":{}}`, `{"non_field_errors":["bad"]}`, `{"errors":{"base":["bad"]}}`, `{"message":"bad","request_id":"x"}`} {
		if c := complaint.Read(400, nil, []byte(body), time.Time{}); len(c.Places) > 0 {
			t.Errorf("%s: %q", body, c.Places)
		}
	}
}
