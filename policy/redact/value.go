package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
)

// maxNesting is how deep Value follows a tree; everything deeper is masked.
const maxNesting = 64

// Value returns a copy of a JSON-like tree with credentials masked: in strings, in the names of fields, and the whole
// value of a field whose name suggests a secret. The argument is not changed. A value of another type is converted to
// its JSON form, and masked if it has none.
func (r *Redactor) Value(v any) any {
	return r.value(v, 0)
}

func (r *Redactor) value(v any, depth int) any {
	if depth > maxNesting {
		return Mask
	}
	switch v := v.(type) {
	case nil, bool, json.Number, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
		return v
	case string:
		return r.String(v)
	case []any:
		out := make([]any, len(v))
		for i, each := range v {
			out[i] = r.value(each, depth+1)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, each := range v {
			out[r.String(key)] = r.field(key, each, depth+1)
		}
		return out
	case map[string]string:
		out := make(map[string]string, len(v))
		for key, each := range v {
			if out[r.String(key)] = Mask; each == "" || !secretName(key) {
				out[r.String(key)] = r.String(each)
			}
		}
		return out
	case []string:
		out := make([]string, len(v))
		for i, each := range v {
			out[i] = r.String(each)
		}
		return out
	}
	return r.other(v, depth)
}

// other handles types other than plain JSON types by encoding the value.
func (r *Redactor) other(v any, depth int) any {
	encoded, err := json.Marshal(v)
	var tree any
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(encoded))
		decoder.UseNumber()
		err = decoder.Decode(&tree)
	}
	if err != nil {
		return Mask
	}
	return r.value(tree, depth+1)
}

// field returns the value of a named field.
func (r *Redactor) field(key string, v any, depth int) any {
	if secretName(key) {
		switch v := v.(type) {
		case nil, bool:
			return v
		case string:
			if v == "" {
				return v
			}
		}
		return Mask
	}
	return r.value(v, depth)
}

// secretName reports whether a field of this name holds a credential.
func secretName(key string) bool {
	name := strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == '.' || c == ' ' {
			return -1
		}
		return c
	}, strings.ToLower(key))
	for _, part := range [...]string{
		"password", "passwd", "passphrase", "secret", "credential", "apikey", "accesskey",
		"privatekey", "authorization", "authtoken", "accesstoken", "refreshtoken", "bearer",
	} {
		if strings.Contains(name, part) {
			return true
		}
	}
	if strings.HasPrefix(name, "max") {
		return false
	}
	for _, whole := range [...]string{
		"token", "pwd", "pass", "auth", "cookie", "setcookie", "pin", "otp", "jwt",
		"sessionkey", "signingkey", "encryptionkey",
	} {
		if name == whole {
			return true
		}
	}
	return strings.HasSuffix(name, "token") || strings.HasSuffix(name, "cookie")
}

// spellings returns the forms in which an exact value may occur.
func spellings(secret string) []string {
	if len(secret) < minSecret || strings.Contains(Mask, secret) {
		return nil
	}
	list := []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), hex.EncodeToString([]byte(secret)),
		strings.ToUpper(hex.EncodeToString([]byte(secret))),
	}
	escaped, err := json.Marshal(secret)
	if err == nil {
		list = append(list, strings.Trim(string(escaped), `"`))
	}
	// In a longer base64 text, the value has one of three forms, and the characters at both ends also depend on its
	// neighbours.
	for shift := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), secret...))
		encoded = encoded[[...]int{0, 2, 3}[shift]:]
		if (len(secret)+shift)%3 != 0 {
			encoded = encoded[:len(encoded)-1]
		}
		list = append(list, encoded, strings.NewReplacer("+", "-", "/", "_").Replace(encoded))
	}
	return list
}
