package policy_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy"
)

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
