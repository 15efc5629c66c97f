package sandbox_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// TestWork: what people do all day goes on inside the sandbox, with every network.
func TestWork(t *testing.T) {
	t.Parallel()
	needLandlock(t)
	for _, w := range []struct{ name, needs, text, want string }{
		{"sort", "", `seq 200000 | sort -R -S 1M -T . | sort -n -S 1M -T . | tail -n 1`, "200000\n"},
		{"job control", "", `exec 2>/dev/null; set -m; sleep 600 & kill %1; wait %1; echo "$?"; (echo bg) & wait; fg; echo end`, "143\nbg\nend\n"},
		{"follow and stop", "", `echo a > log; : > seen; tail -f log >> seen & while ! grep -q a seen; do :; done; echo b >> log; while ! grep -q b seen; do :; done; kill $!; wait; cat seen`, "a\nb\n"},
		{"pipes and substitutions", "", `paste -d+ <(seq 2) <(seq 3 4) | tee >(cat > copy) | bc 2>/dev/null || echo 4; wait; cat <<< here; printf x > /dev/stdout`, ""},
		{"limits of its own", "", `ulimit -n 64; ulimit -n; nice -n 5 true && echo nice; taskset -c 0 true 2>/dev/null; echo end`, "64\nnice\nend\n"},
		{"modes and times", "", `echo x > f && chmod 755 f && touch -d 2001-01-01 f && stat -c %a-%Y f && mkdir -m 700 d && chown "$(id -u)" f && cp -p f g && ln -s f l && mv g d`, "755-978307200\n"},
		{"archive", "tar", `mkdir d; echo x > d/f; tar cf a.tar d && rm -r d && tar xf a.tar && cat d/f`, "x\n"},
		{"git", "git", `git init -q . && echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -qm m && git log --oneline | wc -l && git clone -q . c && ls c`, "1\nf\n"},
		{"perl", "perl", `perl -e 'use Socket; my $pid = fork(); if (!$pid) { exit 3 } waitpid $pid, 0; print $? >> 8, "\n"'`, "3\n"},
		{"local sockets", "perl", `perl -MIO::Socket::UNIX -e '
			my $s = IO::Socket::UNIX->new(Local => "s", Listen => 1) or die "listen $!";
			if (!fork) { my $c = IO::Socket::UNIX->new(Peer => "s") or die "connect $!"; print $c "hi\n"; exit }
			my $c = $s->accept; print scalar <$c>; wait'`, "hi\n"},
		{"python", "/usr/bin/python3", `cat > p.py <<'END'
import multiprocessing as mp
def f(x): return x * x
if __name__ == "__main__":
    for how in ("fork", "spawn", "forkserver"):
        with mp.get_context(how).Pool(2) as p: print(sum(p.map(f, range(10))))
    with mp.Manager() as m:
        d = m.dict(); p = mp.Process(target=d.__setitem__, args=("a", 1)); p.start(); p.join(); print(d["a"])
END
/usr/bin/python3 p.py`, "285\n285\n285\n1\n"},
		{"node", "/usr/bin/node", `cat > n.js <<'END'
const cp = require("child_process"), net = require("net"), fs = require("fs")
if (process.argv[2]) { process.send("child"); process.disconnect() } else {
  cp.fork(__filename, ["x"]).on("message", m => console.log(m)).on("exit", () => {
    const s = net.createServer(c => c.end("sock")).listen("n.sock", () =>
      net.connect("n.sock").on("data", d => { console.log(String(d)); s.close(); console.log(String(cp.execSync("echo sub")).trim()) }))
  })
}
END
/usr/bin/node n.js`, "child\nsock\nsub\n"},
	} {
		for _, network := range []sandbox.Network{sandbox.NetworkOff, sandbox.NetworkInternet, sandbox.NetworkAll} {
			t.Run(w.name+" "+network.String(), func(t *testing.T) {
				t.Parallel()
				if w.needs != "" {
					if _, err := exec.LookPath(w.needs); err != nil {
						t.Skipf("no %s on this machine", w.needs)
					}
				}
				spec := confined(t)
				spec.Network = network
				spec.Limits = sandbox.Limits{Procs: 512, Memory: 4 << 30, FileSize: 1 << 30, Files: 4096}
				spec.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "HOME=" + spec.Dir, "TMPDIR=" + spec.Dir}
				got := run(t, spec, w.text)
				if got.status.Err != nil || got.status.Code != 0 || got.status.Signal != "" || w.want != "" && got.out != w.want {
					if strings.Contains(got.out, "No such file or directory: '/usr/lib/python3") {
						t.Skip("no whole Python on this machine")
					}
					t.Errorf("%+v %q, want %q", got.status, got.out, w.want)
				}
			})
		}
	}
}
