package policy_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
)

// perms builds a bash table from lines "allow git *".
func perms(lines ...string) map[string][]policy.Permission {
	var list []policy.Permission
	for _, l := range lines {
		action, pattern, _ := strings.Cut(l, " ")
		list = append(list, policy.Permission{Pattern: pattern, Action: policy.Effect(action)})
	}
	return map[string][]policy.Permission{"bash": list}
}

func TestBashByRules(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		rules   []string
		command string
		want    policy.Effect
		rule    string
	}{
		{"plain", []string{"allow git *"}, "git status", policy.Allow, `permissions.bash[0] "git *" allow`},
		{"case", []string{"allow GIT STATUS*"}, "git status", policy.Allow, ""},
		{"list", []string{"allow git *"}, "git status; curl https://x.example", policy.Ask, "default: ask"},
		{"and", []string{"allow git *"}, "git status && make", policy.Ask, ""},
		{"or", []string{"allow git *"}, "git status || make", policy.Ask, ""},
		{"pipe", []string{"allow git *"}, "git log | make", policy.Ask, ""},
		{"background", []string{"allow git *"}, "git log & make", policy.Ask, ""},
		{"newline", []string{"allow git *"}, "git log\nmake", policy.Ask, ""},
		{"substitution", []string{"allow git *"}, "git log $(make)", policy.Ask, ""},
		{"back ticks", []string{"allow git *"}, "git log `make`", policy.Ask, ""},
		{"subshell", []string{"allow git *"}, "(git log; make)", policy.Ask, ""},
		{"every command allowed", []string{"allow git *", "allow make"}, "git log && make", policy.Allow, `"git *" allow`},
		{"semicolon in quotes", []string{"allow git *"}, `git commit -m "x; sudo y"`, policy.Allow, ""},
		{"first match wins", []string{"allow git push origin*", "deny git push*"}, "git push origin main", policy.Allow, ""},
		{"first match wins with quotes", []string{"allow git commit*", "ask git *"}, `git commit -m "a b"`, policy.Allow, ""},
		{"later deny", []string{"allow git log*", "deny git push*"}, "git push", policy.Deny, "permissions.bash[1]"},
		{"an allow of everything comes first", []string{"allow *", "deny make*"}, "git log; make x", policy.Allow, ""},
		{"deny over the whole text", []string{"allow git *", "allow make*", "deny *; make*"}, "git log; make x", policy.Deny, "permissions.bash[2]"},
		{"ask over the whole text", []string{"allow git *", "allow make*", "ask *&&*"}, "git log && make x", policy.Ask, "permissions.bash[2]"},
		{"deny beats ask over the whole text", []string{"allow git *", "allow make*", "ask *&&*", "deny *make*"}, "git log && make x", policy.Deny, "permissions.bash[3]"},
		{"bare star is not for the whole text", []string{"allow git *", "allow make*", "deny *"}, "git log && make x", policy.Allow, ""},
		{"quotes inside a name", []string{"deny sudoku*", "allow *"}, `su"do"ku x`, policy.Deny, ""},
		{"path of a program", []string{"deny make*", "allow *"}, "/usr/bin/make all", policy.Deny, "permissions.bash[0]"},
		{"path of a program without words", []string{"deny make", "allow *"}, "/usr/bin/make", policy.Deny, "permissions.bash[0]"},
		{"an allow is for the words", []string{"allow make*"}, "./make all", policy.Ask, ""},
		{"name with a space", []string{"allow git *"}, `"git status"`, policy.Ask, "default: ask"},
		{"redirection", []string{"allow echo *", "deny *> /etc/*"}, "echo x > /etc/motd", policy.Deny, "permissions.bash[1]"},
		{"redirection in quotes", []string{"allow echo *", "deny > /etc/*"}, `echo x >/e"tc"/motd`, policy.Deny, "permissions.bash[1]"},
		{"only a redirection", []string{"allow > x"}, "> x", policy.Ask, "built-in: indirection (permissions.bash[0]"},
		{"redirection that writes", []string{"allow echo *"}, "echo a > x", policy.Ask, "built-in: redirection that writes"},
		{"redirection that appends", []string{"allow *"}, "echo a >> x", policy.Ask, "built-in: redirection that writes"},
		{"redirection that a rule names", []string{"allow echo a > x"}, "echo a > x", policy.Ask, ""},
		{"redirection to nowhere", []string{"allow echo *"}, "echo a 2>&1 >/dev/null", policy.Allow, ""},
		{"only an assignment", []string{"allow *"}, "A=1", policy.Allow, ""},
		{"assignment before a command", []string{"allow git *", "deny *A=1*"}, "A=1 git log", policy.Deny, "permissions.bash[1]"},
		{"wrapper", []string{"allow timeout *"}, "timeout 5 make", policy.Ask, "default: ask"},
		{"interpreter", []string{"allow bash *"}, "bash -c 'make all'", policy.Ask, ""},
		{"indirection", []string{"allow *"}, "cmd=make; $cmd all", policy.Ask, "built-in: indirection"},
		{"here-string", []string{"allow *"}, "bash <<< 'make'", policy.Ask, "built-in: indirection"},
		{"unparsable", []string{"allow *"}, "echo 'x", policy.Ask, "built-in: indirection"},
		{"unparsable and denied", []string{"deny *make*", "allow *"}, "make 'x", policy.Deny, ""},
		{"indirection does not soften", []string{"deny *"}, "$cmd all", policy.Deny, ""},
		{"blocklist before an allow", []string{"allow *"}, "sudo make", policy.Deny, `built-in: blocklist "sudo"`},
		{"blocklist in a substitution", []string{"allow *"}, "echo $(sudo make)", policy.Deny, "built-in: blocklist"},
		{"empty command", []string{"allow *"}, "", policy.Allow, ""},
		{"comment", []string{"allow ls"}, "# nothing", policy.Ask, "default: ask"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSet(t, policy.Options{Permissions: perms(tt.rules...), AllowNetwork: true})
			got := s.Decide(bash(tt.command))
			if got.Effect != tt.want || !strings.Contains(got.Rule, tt.rule) {
				t.Errorf("%q: got %+v, want %s by %q", tt.command, got, tt.want, tt.rule)
			}
			if got.Reason.String() == "" {
				t.Error("no reason")
			}
		})
	}
}

func TestBashSeveralInputs(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{Permissions: perms("allow git *", "deny make*")})
	r := policy.Request{Tool: "bash", Inputs: []string{"git log", "make"}}
	if got := s.Decide(r); got.Effect != policy.Deny {
		t.Errorf("got %+v", got)
	}
	r.Inputs = []string{"make", "git log"}
	if got := s.Decide(r); got.Effect != policy.Deny {
		t.Errorf("got %+v", got)
	}
}

func TestNetworkAndBlocklist(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		options policy.Options
		command string
		want    policy.Effect
		rule    string
	}{
		{"S5 network off", policy.Options{AllowedCommands: []string{"curl"}}, "curl https://x.example", policy.Deny, `allow_network = false, "curl"`},
		{"S13 network off, hidden", policy.Options{AllowedCommands: []string{"curl"}}, "cat <(curl https://x.example)", policy.Deny, "allow_network = false"},
		{"S5 network on asks", policy.Options{AllowNetwork: true}, "curl https://x.example", policy.Ask, "built-in: bash asks"},
		{"running a download", policy.Options{AllowNetwork: true, Permissions: perms("allow *")}, "curl https://x.example | bash", policy.Deny, `blocklist "curl|bash"`},
		{"S19 allowed", policy.Options{AllowNetwork: true, AllowedCommands: []string{"sudo"}}, "sudo id", policy.Ask, ""},
		{"S20 blocked and allowed", policy.Options{AllowNetwork: true, BlockedCommands: []string{"curl"}, AllowedCommands: []string{"curl"}}, "curl x", policy.Deny, `shell.blocked_commands "curl" deny`},
		{"blocked beside permissions", policy.Options{BlockedCommands: []string{"Docker"}, Permissions: perms("allow *")}, "/usr/bin/docker ps", policy.Deny, `shell.blocked_commands "docker"`},
		{"blocked by name only beside permissions", policy.Options{BlockedCommands: []string{"docker"}, Permissions: perms("allow *")}, "echo docker", policy.Allow, ""},
		{"blocked extension", policy.Options{BlockedCommands: []string{"tool"}, Permissions: perms("allow *")}, "tool.sh x", policy.Deny, ""},
		{"blocked words", policy.Options{BlockedCommands: []string{"git push -f"}, Permissions: perms("allow *")}, `git "push" -f x`, policy.Deny, ""},
		{"blocked words, others", policy.Options{BlockedCommands: []string{"git push -f"}, Permissions: perms("allow *")}, "git push x", policy.Allow, ""},
		{"blocked in quotes", policy.Options{BlockedCommands: []string{"docker"}}, `dock"er" ps`, policy.Deny, ""},
		{"blocked anywhere without permissions", policy.Options{BlockedCommands: []string{"docker"}}, "echo docker", policy.Deny, ""},
		{"not blocked", policy.Options{BlockedCommands: []string{"docker"}}, "echo x", policy.Ask, ""},
		{"nothing known", policy.Options{}, "find . -name '*.go' -delete", policy.Ask, "built-in: bash asks"},
		{"uncertain", policy.Options{}, "$x y", policy.Ask, "built-in: indirection"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := newSet(t, tt.options).Decide(bash(tt.command))
			if got.Effect != tt.want || !strings.Contains(got.Rule, tt.rule) {
				t.Errorf("got %+v, want %s by %q", got, tt.want, tt.rule)
			}
		})
	}
}

func TestReadingCommands(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		command string
		change  func(*policy.Request, *policy.Options)
		want    policy.Effect
	}{
		{"inside", "ls -la src", nil, policy.Allow},
		{"absolute inside", "cat /work/a.txt", nil, policy.Allow},
		{"the root itself", "ls /work", nil, policy.Allow},
		{"second root", "ls /data/x", nil, policy.Allow},
		{"several", "git status && wc -l a.go", nil, policy.Allow},
		{"outside", "cat /etc/passwd", nil, policy.Ask},
		{"upwards", "cat ../x", nil, policy.Ask},
		{"upwards at last", "ls ..", nil, policy.Ask},
		{"upwards inside", "cat a/../b", nil, policy.Allow},
		{"home", "cat ~/x", nil, policy.Ask},
		{"braces", "cat /work/{a,../../etc/passwd}", nil, policy.Ask},
		{"brace in quotes", "cat 'a{b'", nil, policy.Ask},
		{"redirected", "ls > out.txt", nil, policy.Ask},
		{"one of two only", "ls; make", nil, policy.Ask},
		{"variable", "cat $X", nil, policy.Ask},
		{"no sandbox", "ls -la", func(r *policy.Request, _ *policy.Options) { r.Confined = false }, policy.Allow},
		{"no sandbox, a file that leads inside", "cat a", func(r *policy.Request, _ *policy.Options) {
			r.Confined, r.Dir, r.Files = false, "/work", map[string][]string{"/work/a": {"/work/b"}}
		}, policy.Allow},
		{"no sandbox, a file that leads outside", "cat a", func(r *policy.Request, _ *policy.Options) {
			r.Confined, r.Dir, r.Files = false, "/work", map[string][]string{"/work/a": {"/etc/shadow"}}
		}, policy.Ask},
		{"no sandbox, a file that nobody looked up", "cat a", func(r *policy.Request, _ *policy.Options) {
			r.Confined, r.Dir, r.Files = false, "/work", map[string][]string{}
		}, policy.Ask},
		{"no sandbox, a pattern", "cat a*", func(r *policy.Request, _ *policy.Options) { r.Confined = false }, policy.Ask},
		{"no sandbox, a file in an option", "wc --files0-from=a", func(r *policy.Request, _ *policy.Options) { r.Confined = false }, policy.Ask},
		{"no sandbox, a program that is not one of six", "echo x", func(r *policy.Request, _ *policy.Options) { r.Confined = false }, policy.Ask},
		{"no sandbox, another program", "git status", func(r *policy.Request, _ *policy.Options) { r.Confined = false }, policy.Ask},
		{"any command, confined", "make -j4 && $x", func(_ *policy.Request, o *policy.Options) { o.Unasked = policy.UnaskedConfined }, policy.Allow},
		{"any command, no sandbox", "make", func(r *policy.Request, o *policy.Options) {
			r.Confined, o.Unasked = false, policy.UnaskedConfined
		}, policy.Ask},
		{"any command that evidently writes", "make >log", func(_ *policy.Request, o *policy.Options) { o.Unasked = policy.UnaskedConfined }, policy.Ask},
		{"any command, confirm pattern", "make", func(_ *policy.Request, o *policy.Options) {
			o.Unasked, o.ConfirmPatterns = policy.UnaskedConfined, []string{"make"}
		}, policy.Ask},
		{"any command, with rules", "make", func(_ *policy.Request, o *policy.Options) {
			o.Unasked, o.Permissions = policy.UnaskedConfined, perms("allow git *")
		}, policy.Ask},
		{"no roots", "ls", func(r *policy.Request, _ *policy.Options) { r.InsidePaths = nil }, policy.Ask},
		{"switched off", "ls", func(_ *policy.Request, o *policy.Options) { o.Unasked = policy.UnaskedNothing }, policy.Ask},
		{"with rules", "ls", func(_ *policy.Request, o *policy.Options) { o.Permissions = perms("allow git *") }, policy.Ask},
		{"confirm pattern", "ls secret", func(_ *policy.Request, o *policy.Options) { o.ConfirmPatterns = []string{"secret"} }, policy.Ask},
		{"nothing", "", nil, policy.Ask},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := bash(tt.command)
			r.Confined, r.InsidePaths = true, []string{"/work", "/data/"}
			o := policy.Options{Unasked: policy.UnaskedReading}
			if tt.change != nil {
				tt.change(&r, &o)
			}
			got := newSet(t, o).Decide(r)
			if got.Effect != tt.want {
				t.Errorf("%q: got %+v, want %s", tt.command, got, tt.want)
			}
			if got.Reading != (got.Effect == policy.Allow && r.Confined) {
				t.Errorf("%q runs where it can change something: %+v", tt.command, got)
			}
		})
	}
}

// TestConfirms: what the operator wants to be asked about is recognised wherever it stands in a command, and also where
// another rule asks first.
func TestConfirms(t *testing.T) {
	t.Parallel()
	rules := func(list ...policy.Permission) policy.Options {
		return policy.Options{
			Permissions: map[string][]policy.Permission{"bash": list}, ConfirmPatterns: command.DefaultConfirm(),
		}
	}
	deploy := rules(policy.Permission{Pattern: "deploy *", Action: policy.Ask}, policy.Permission{Pattern: "make *", Action: policy.Allow})
	files := policy.Options{Permissions: map[string][]policy.Permission{
		"read": {{Pattern: "other/*", Action: policy.Ask}, {Pattern: "*", Action: policy.Allow}},
	}}
	own := policy.Options{ConfirmPatterns: []string{"deploy"}}
	for _, c := range []struct {
		options policy.Options
		text    string
		want    bool
	}{
		{policy.Options{ConfirmPatterns: command.DefaultConfirm()}, "rm a.tmp", false}, // built in, not the operator's own
		{policy.Options{ConfirmPatterns: command.DefaultConfirm()}, "echo $(date)", false},
		{policy.Options{}, "touch a", false},
		{files, "cat other/x.txt", true}, // its output would show what has to be approved
		{files, "cat open.txt", false},
		{own, "touch a", false},
		{own, "touch a && ./DEPLOY now", true},
		{own, `touch a; de"pl"oy`, true},
		{own, "x=dep; ${x}loy now", true}, // it cannot be foreseen
		{deploy, "touch a", false},
		{deploy, "deploy now", true},
		{deploy, "touch a && deploy now", true}, // that no rule allows touch is said first
		{deploy, "/usr/bin/deploy now", true},
		{deploy, "nice -n 5 deploy now", true},
		{deploy, "echo x | xargs deploy", true},
		{deploy, "bash -c 'deploy now'", true},
		{deploy, "unknown-wrapper deploy now", true},
		{deploy, "$RUN now", true},
		{rules(policy.Permission{Pattern: "*", Action: policy.Ask}), "touch a", true},
		{rules(policy.Permission{Pattern: "> *.lock", Action: policy.Ask}), "echo x > a.lock", true},
		{rules(policy.Permission{Pattern: "rm *", Action: policy.Allow}, policy.Permission{Pattern: "rm -r *", Action: policy.Ask}), "rm -r a", true},
	} {
		o := c.options
		o.Tools = []act.Tool{{Name: "bash", Statement: act.Statement{Act: act.Runs}}, {Name: "read", Statement: act.Statement{Act: act.ReadsFile, Verb: act.Read}}}
		set, err := policy.New(o)
		if err != nil {
			t.Fatal(err)
		}
		r := policy.Request{
			Tool: "bash", Inputs: []string{c.text}, Dir: "/w", InsidePaths: []string{"/w"}, Bared: true,
			Files: map[string][]string{"/w/other/x.txt": {"/w/other/x.txt"}, "/w/open.txt": {"/w/open.txt"}},
		}
		if got := set.Confirms(r); got != c.want {
			t.Errorf("%q with %v: %t, want %t", c.text, c.options.Permissions, got, c.want)
		}
	}
	set, err := policy.New(policy.Options{ConfirmPatterns: []string{"deploy"}})
	if err != nil {
		t.Fatal(err)
	}
	if set.Confirms(policy.Request{Tool: "read", Inputs: []string{"deploy"}}) {
		t.Error("a tool that runs no command")
	}
}

// wrapping returns programs, known and unknown ones, that run the command after them, each with some options before it.
func wrapping() []string {
	return []string{
		"choom -n 0 --", "setarch x86_64", "setarch x86_64 -R", "valgrind --leak-check=full", "perf stat -e cycles", "perf record -o x", "run-parts --regex x", "gcc -wrapper", "chrt -r 10", "ionice -c 3 -n 7",
		"taskset -c 1", "numactl --cpunodebind=0", "prlimit --nofile=10", "unshare -r --mount-proc", "nsenter -t 1 -m", "flock /tmp/l", "watch -n 1", "parallel -j2", "entr -r", "systemd-run --user --scope",
		"start-stop-daemon --start --exec", "dbus-run-session --", "fakeroot --", "fakeroot -u", "proot -r /x", "eatmydata", "catchsegv", "ltrace -f", "strace -f -o x", "gdb --args", "expect -c", "rlwrap -a",
		"tmux new -d", "screen -dm", "at now", "batch", "firejail --quiet", "bwrap --bind / /", "cgexec -g cpu:x", "torsocks", "proxychains4 -q", "unknown-wrapper", "./run.sh --", "python3 wrap.py", "bash wrap.sh", "node wrap.js",
		"nice --weird 3", "timeout --weird 3", "env --weird x", "stdbuf --weird=x", "xargs --weird", "busybox", "toybox", "chpst -u x", "setuidgid x", "softlimit -m 5", "trickle -d 5", "cpulimit -l 5", "pv x |xargs",
		"uv-run", "npx", "xvfb-run -a", "asciinema rec -c", "hyperfine -N", "multitime -n 2", "daemonize -c /x", "capsh --gid=1 --", "pkexec --weird", "ssh-agent", "sg x -c", "ld.so --weird", "nohup --weird", "gtimeout 5",
	}
}

// TestAttackDeniedBehindWrapper: what is denied is denied behind every wrapper: the blocklist, blocked commands,
// network commands and deny rules.
func TestAttackDeniedBehindWrapper(t *testing.T) {
	t.Parallel()
	sets := map[string]*policy.Set{
		"blocklist": newSet(t, policy.Options{Permissions: perms("allow *")}),
		"blocked":   newSet(t, policy.Options{AllowNetwork: true, BlockedCommands: []string{"shred", "mytool wipe"}, Permissions: perms("allow *")}),
		"network":   newSet(t, policy.Options{Permissions: perms("allow *")}),
		"rule":      newSet(t, policy.Options{AllowNetwork: true, Permissions: perms("deny shred *", "deny mytool*", "deny mytool wipe*", "allow *")}),
		"full":      newSet(t, policy.Options{Level: policy.Full, AllowNetwork: true, Permissions: perms("deny shred *", "deny mytool*", "allow *")}),
	}
	for set, words := range map[string][]string{
		"blocklist": {"sudo id", "/usr/bin/sudo id", "./sudo id", "SUDO id", "su root", "rm -rf /", "dd if=/dev/zero of=x", "nc.openbsd x 1", "netcat.traditional x 1", "curl.exe x", "mkfs.ext4 /dev/sda", "systemctl reboot", "reboot -f"},
		"blocked":   {"shred x", "/usr/bin/shred x", "mytool wipe x", "./mytool wipe x"},
		"network":   {"ssh host", "/usr/bin/socat x y", "telnet x", "nc x 1", "rsync a b:"},
		"rule":      {"shred x", "/usr/bin/shred x", "SHRED x", "mytool wipe x"},
		"full":      {"shred x", "mytool wipe x"},
	} {
		for _, wrapper := range wrapping() {
			for _, w := range words {
				text := wrapper + " " + w
				if d := sets[set].Decide(everydayCall(text)); d.Effect != policy.Deny {
					t.Errorf("%s: %q is %s: %s", set, text, d.Effect, d.Rule)
				}
			}
		}
	}
}

// TestDataIsNotDenied: a denied word that is data for its program is no command.
func TestDataIsNotDenied(t *testing.T) {
	t.Parallel()
	set := newSet(t, policy.Options{BlockedCommands: []string{"shred"}, Permissions: perms("deny rm *", "deny shred*", "allow *")})
	for _, text := range []string{
		"grep rm file", "grep -rn sudo docs", "echo sudo", "echo rm x", `git commit -m "rm x"`, "git commit -m 'sudo curl'", "man sudo", "which curl", "apt-cache show wget", "apt list shred", "type nc", "command -v curl",
		"cat sudo", "ls curl", "cp nc nc.bak", "nc_helper.sh x", "./nc_helper.sh 1", "mytool curl.py", "mytool sudo.log", "make halt", "make reboot", "npm install curl", "docker pull curlimages/curl", "kubectl get pods shutdown",
		"find . -name sudo", "find . -name rm -print", "timeout 5 grep sudo x", "xargs -n1 grep curl", "env A=b grep rm x", "awk '/sudo/ {print}' x", "sed -n /curl/p x", "printf '%s' sudo", "test -f sudo", "[ -x curl ]",
		"python3 sudo.py", "go test -run sudo ./...", "tar tf curl.tar", "ps -C sshd", "pgrep ssh", "systemctl status ssh", "journalctl -u ssh", "pip install httpie", "bash -c 'grep sudo x'", `bash -c "echo 'sudo'"`,
		"nice -n 5 grep sudo x", "time grep rm x", "find . -name x -exec grep sudo {} +", "sudoku x", "./deploy.sh host", "mytool links",
	} {
		if d := set.Decide(everydayCall(text)); d.Effect == policy.Deny {
			t.Errorf("%q is denied: %s", text, d.Rule)
		}
	}
}
