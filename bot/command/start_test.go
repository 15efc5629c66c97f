package command_test

import (
	"strings"
	"testing"
)

// TestStart: a link shows what it may show, and nothing else that it brings does anything.
func TestStart(t *testing.T) {
	t.Parallel()
	const unknown, admin = "I do not know that link or code; it may have been used already.", "You are an admin"
	const code = "ABCDEFGH23456777"
	for name, row := range map[string]struct {
		args  string
		admin bool
		want  string
	}{
		"nothing":             {want: "Hello Ann"},
		"a command":           {args: "status", want: "Nothing is running"},
		"in capitals":         {args: "Help", want: "/stop"},
		"one that acts":       {args: "clear", want: unknown},
		"one of admins":       {args: "policy", admin: true, want: unknown},
		"not a payload":       {args: "help me", want: unknown},
		"too long":            {args: strings.Repeat("a", 65), want: unknown},
		"a code":              {args: code, admin: true, want: admin},
		"a code of nobody":    {args: code, want: unknown},
		"a link of an admin":  {args: "campaign-7", admin: true, want: unknown},
		"signs of other ways": {args: "../../etc", want: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := setup(t)
			c := call("start", row.admin)
			c.Message.Args = row.args
			if got := d.answer(c); !strings.Contains(got, row.want) || row.want != admin && strings.Contains(got, admin) {
				t.Errorf("/start %s: %q, want %q", row.args, got, row.want)
			}
			if c.Message.Command != "start" || c.Message.Args != row.args {
				t.Errorf("the message was changed: %+v", c.Message)
			}
		})
	}
}
