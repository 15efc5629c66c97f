package telegram

import "testing"

// FuzzVisitor: whatever an update contains, only a person who writes in private is a visitor.
func FuzzVisitor(f *testing.F) {
	for _, seed := range []string{
		`{"update_id":1,"message":{"text":"/start X","chat":{"type":"private"},"from":{"id":7,"first_name":"Ann","last_name":"B"}}}`,
		`{"update_id":1,"message":{"text":"/start X","chat":{"type":"group"},"from":{"id":7}}}`,
		`{"update_id":1,"message":{"text":"/start X","chat":{"type":"private"},"from":{"id":7,"is_bot":true}}}`,
		`{"message":{"from":{"id":-1}}}`, `{"message":null}`, `[]`, ``, `{"message":{"text":7}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		who, ok := readVisitor(raw, func(string) bool { return true })
		if ok != (who.ID > 0 && who.Name != "") {
			t.Errorf("%+v %v", who, ok)
		}
		if _, ok := readVisitor(raw, func(string) bool { return false }); ok {
			t.Error("nobody was wanted")
		}
	})
}
