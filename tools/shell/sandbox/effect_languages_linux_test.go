package sandbox_test

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sedCommand is a command of sed, with its addresses.
func (m *maker) sedCommand(depth int) string {
	address := m.pick("", "", "", "1", "$", "2,4", "/a/", "/zz/", "/a/,/b/", "1~2", "0,/a/", "/a/I", `\,a,`, "2!",
		"$!", "1,+3", "/a/,~4", " 1 ")
	label := m.pick("a", "b", "x;", "a b", "end", "", "e", "w")
	flags := m.pick("", "g", "p", "e", "ge", "e", "w "+m.target(), "gw "+m.target(), "2e", "Ie", "me",
		"pw/dev/stdout", "ep")
	switch m.IntN(9) {
	case 0:
		return address + "s/" + m.pick("a", ".*", "^", `\(a\)`, "[0-9]*") + "/" + strings.ReplaceAll(m.code(), "/",
			`\/`) + "/" + flags
	case 1:
		return address + "s" + m.pick(",", "|", "#", ";", "x", "e") + m.pick("a", ".*", "^") + m.pick(",", "|", "#",
			";") + strings.ReplaceAll(m.code(), "|", "") + m.pick(",", "|", "#", ";") + flags
	case 2:
		return address + m.pick("b", "t", "T", ": ", ":", "b ") + label
	case 3:
		return address + m.pick("w", "W", "w ", "W ", "r", "R", "r ", "wnew", "w/dev/stdout") + m.target()
	case 4:
		return address + m.pick("e ", "e", "e  ", "e\t") + m.payload()
	case 5:
		return address + m.pick("a", "i", "c", "a\\\n", "i\\\n", "c\\\n", "a ", "a\\") + m.pick("x", m.payload(),
			"x\\\ny", "}", "w new")
	case 6:
		if depth < 3 {
			return address + "{" + m.sedScript(depth+1) + m.pick("}", ";}", "\n}", " }")
		}
		return "p"
	default:
		return address + m.pick("p", "d", "=", "l", "n", "N", "q1", "Q", "h;H;g;G;x", "D", "P", "y/ab/cd/", "z", "F",
			"v", "#n", "# x", "e", "l 5")
	}
}

func (m *maker) sedScript(depth int) string {
	var b strings.Builder
	for range 1 + m.IntN(4) {
		b.WriteString(m.sedCommand(depth))
		b.WriteString(m.pick(";", "\n", " ; ", ";;", "\n\n", "; ", "\n#x\n"))
	}
	return strings.TrimSuffix(b.String(), ";")
}

func (m *maker) sed() string {
	options := m.some(2, "-n", "-n", "-E", "-r", "-s", "-u", "-z", "--posix", "--sandbox", "--debug", "-i", "-i.bak",
		"-i"+m.pick("new", "d/*", "‹out›/*"), "--in-place", "--in-place=.b", "-ni", "-nE", "-l 5",
		"--follow-symlinks", "--quiet", "-b", "--null-data", "-nf script.sed", "--expression=p", "-Es")
	script := m.sedScript(0)
	how := m.pick("-e ", "", "", "--expression=", "-ne ", "-e p -e ") + m.quote(script)
	switch m.IntN(8) {
	case 0:
		how = m.pick("-f ", "--file=", "-nf ") + m.pick("script.sed", "<(echo "+m.quote(script)+")")
	case 1:
		how = "-f /dev/stdin f <<'END'\n" + script + "\nEND\n"
		return "sed" + options + " " + how
	case 2:
		first, rest, _ := strings.Cut(script, "\n")
		how = "-e " + m.quote(first) + " -e " + m.quote(rest)
	}
	return "sed" + options + " " + how + m.pick(" ", " -- ", " -s ") + m.source() + m.some(1, m.source())
}

func (m *maker) awkText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

func (m *maker) awkStatement() string {
	text := m.awkText(m.target())
	run := m.awkText(m.payload())
	return m.pick(
		"print > "+text, "print >> "+text, "printf \"%s\", $0 > "+text, "print $1 > "+text, "print | "+run,
		"printf \"x\" | "+run, "system("+run+")", run+" | getline", run+" | getline x", "getline < "+text,
		"getline x < "+text, "while (("+run+" | getline x) > 0) print x",
		"print |& "+run, run+" |& getline x", `print "x" |& "/inet/tcp/0/127.0.0.1/‹tcp›"`,
		`"/inet/tcp/0/127.0.0.1/‹tcp›" |& getline x`, `print "x" |& "/inet/udp/0/127.0.0.1/‹udp›"`,
		`print "x" > "/inet/udp/0/127.0.0.1/‹udp›"`, "close("+text+")", "print \"x\" > \"/dev/stdout\"",
		"print > $1", "print > (\"n\" \"ew\")", "f = "+run+"; system(f)", "x = "+text+"; print > x",
		"print $0; fflush()", `print "x" > ENVIRON["HOME"] "/new"`, "system(\"\")", "ARGV[1] = "+text,
		"print length($0), NR", "delete a; a[1] = 2", "next", "exit 1",
		"print substr($0, 1) > "+text+"; close("+text+")", "nextfile", "printf \"%c\", 0 > "+text,
		`print strftime("%s")`, "@f()", `stat("f", d); chdir("d")`, `print "x" > "/dev/fd/3"`,
		`print "x" > "/proc/self/cwd/new"`)
}

func (m *maker) awk() string {
	var b strings.Builder
	for range 1 + m.IntN(3) {
		b.WriteString(m.pick("", "BEGIN ", "END ", "/a/ ", "NR == 1 ", "$1 > 2 ", "BEGINFILE ", "NR==1,NR==3 ",
			"function f(x) "))
		fmt.Fprintf(&b, "{ %s }%s", m.awkStatement()+m.some(1, "; "+m.awkStatement(), "\n "+m.awkStatement()),
			m.pick(" ", "\n", "; "))
	}
	script := b.String()
	if m.one(12) {
		script = m.pick(`@load "filefuncs"`, `@load "fork"`, `@load "readfile"`, `@load "inplace"`,
			`@include "inplace"`, `@include "prog.awk"`, `@include "‹work›/prog.awk"`, `@load "rwarray"`) + "\n" +
			m.pick(`BEGIN { writea("new", PROCINFO) }`, `BEGIN { if (fork() == 0) system("./canary") }`, script)
	}
	options := m.some(2, "-F,", "-v x=1", "-v 'x="+m.target()+"'", "-i inplace", "-l filefuncs", "-l ./canary",
		"--posix", "-c", "-o", "-o"+m.target(), "-p", "--profile=new", "-d", "--dump-variables="+m.target(),
		"--pretty-print=new", "-D", "-S", "--sandbox", "-n", "-W exec=prog.awk", "-W dump",
		"-e 'BEGIN { system(\"./canary\") }'", "-s", "-b")
	how := m.quote(script)
	switch m.IntN(8) {
	case 0:
		how = m.pick("-f ", "-E ", "--file=", "-W exec ") + m.pick("prog.awk", "<(echo "+m.quote(script)+")")
	case 1:
		how = "-f /dev/stdin f <<'END'\n" + script + "\nEND\n"
	}
	return m.pick("", "", "", "AWKPATH=. ", "AWKLIBPATH=. ", "POSIXLY_CORRECT=1 ") + m.pick("awk", "awk", "gawk",
		"mawk", "gawk", "busybox awk") + options + " " + how + m.pick(" ", " -- ") + m.source() + m.some(2,
		m.source(), "x="+m.target(), "FS=,")
}

func (m *maker) find() string {
	run := m.quote(m.code())
	return m.pick("find ", "find ", "find -L ", "find -O3 ", "find -D exec ", "busybox find ") +
		m.pick(". -maxdepth 1", "d", "r1/s", "‹out›", "f g.txt", "‹allowed›", "empty d", "-files0-from names",
			"dirlink/") + m.some(3, "-type f", "-name '*.txt'", "-newer f", "-maxdepth 1", "-size -9",
		"-not -path './.git/*'", "-print", "-o", "-true", "-empty", "-prune", "-regex '.*x'", "-samefile f",
		"-perm /222", "!", "-depth", "-mmin -9", "-quit -o", "-printf '%p\\n'", "-ls") + " " +
		m.pick("-delete", "-exec ./canary {} \\;", "-exec ./canary {} +", "-execdir ../canary {} ';'",
			"-ok ./canary {} \\;", "-okdir ./canary \\;", "-exec sh -c "+run+" \\;", "-exec sh -c "+run+" x {} +",
			"-execdir sh -c "+run+" \\;", "-fprint "+m.target(), "-fprint0 "+m.target(),
			"-fprintf "+m.target()+" '%p'", "-fls "+m.target(), "-exec touch {} +", "-exec chmod 700 {} \\;",
			"-exec rm -f {} +", "-exec mv {} new \\;", "-exec sed -i p {} +", "-exec cat {} + -fprint new",
			"-print0 | xargs -0 "+m.pick("./canary", "rm -f", "touch", "chmod 777"), "-exec grep -l a {} \\; -delete",
			"-execdir chown 1 {} +", "\\( -name f -delete -o -exec ./canary \\; \\)", "-exec cp {} ‹out›/new \\;",
			"-exec ln {} new \\;")
}

func (m *maker) tar() string {
	t, run := m.target(), m.quote(m.code())
	options := m.some(3, "--to-command="+run, "--checkpoint=1", "--checkpoint=1 --checkpoint-action=exec="+run,
		"--checkpoint-action=exec=./canary", "-I "+run, "--use-compress-program="+run, "-I ./canary",
		"--rsh-command=./canary", "-F ./canary", "--info-script=./canary", "--new-volume-script ./canary", "-M",
		"-L 1", "--remove-files", "-C d", "-C ‹out›", "-P", "--one-top-level", "--one-top-level=new", "-O",
		"--to-stdout", "--index-file="+t, "-g "+t, "--listed-incremental="+t, "--overwrite", "--unlink-first",
		"--recursive-unlink", "--keep-directory-symlink", "-h", "-z", "-j", "-J", "--zstd", "--transform='s,f,new,'",
		"--transform='s/f/x/e'", "-v", "--totals", "--touch", "-p", "--same-owner", "--xattrs", "--acls",
		"--volno-file="+t, "--backup", "--suffix=.b", "--exclude-from=names", "-T names", "--wildcards",
		"--no-recursion", "--atime-preserve=system", "--atime-preserve", "--sparse", "--force-local",
		"--rmt-command=./canary", "-b 1")
	return m.pick("", "", "", "TAR_OPTIONS=--to-command=./canary ",
		"TAR_OPTIONS='--checkpoint=1 --checkpoint-action=exec=./canary' ", "GZIP=-f ", "TAPE="+t+" ",
		"RSH=./canary ") + "tar " +
		m.pick("-xf a.tar", "-xf links.tar", "-tf a.tar", "-tvf a.tar", "-xOf a.tar", "-cf "+t+" f", "-cf - f d",
			"-cf /dev/null f d", "-czf "+t+" f", "-cf - -I ./canary f", "-rf a.tar f", "-uf a.tar g.txt",
			"-Af a.tar links.tar", "--delete -f a.tar f", "-df a.tar", "--diff -f a.tar", "-xf x:a.tar",
			"-tf 127.0.0.1:x", "-cf x:y f", "-xf - <a.tar", "-cvf /dev/null .", "--test-label -f a.tar",
			"-cWf "+t+" f", "-cf "+t+" --remove-files f") + options + m.some(1, "f", "d", "link", "-- f")
}

func (m *maker) sort() string {
	t := m.target()
	return m.pick("", "", "TMPDIR=. ", "TMPDIR=‹out› ") + m.pick("sort", "sort", "sort", "shuf", "uniq", "tsort",
		"split", "csplit", "tee", "comm", "join", "paste", "tac", "fmt", "pr", "nl", "fold", "ptx", "expand",
		"cut -c1", "tr a b <", "column", "rev") +
		m.some(3, "-o "+t, "-o"+t, "--output="+t, "--output "+t, "-ro "+t, "-no"+t, "--compress-program=./canary",
			"--compress-program="+m.quote(m.code()), "-S 1k", "-S 1k --compress-program=./canary", "-T .", "-T ‹out›",
			"-T d", "--batch-size=2", "--parallel=2", "--files0-from=names", "-n", "-r", "-u", "-k2", "-t,", "-m",
			"-c", "-R", "--random-source=f", "-z", "-a", "-l 5", "--filter="+m.quote(m.code()),
			"--additional-suffix=x", "-p", "-n 2", "-b 9", "-f new") + " " + m.source() + m.some(2, m.source(), t,
		"'/a/'", "/2/", "+1", "-o"+t)
}

func (m *maker) xargs() string {
	run := m.quote(m.code())
	return m.pick("echo f | ", "ls | ", "printf 'f\\0' | ", "find . -print0 | ", "", "cat names | ", "seq 3 | ",
		"echo "+m.quote(m.payload())+" | ") + m.pick("xargs", "xargs", "busybox xargs", "parallel") + m.some(3, "-0",
		"-I{}", "-I %", "-n 1", "-P 2", "-r", "-t", "-L 1", "-a names", "--arg-file=names", "-d ,", "-E x",
		"--process-slot-var=X", "-p", "-o", "-x", "-s 99", "--max-args=1", "-i", "-e") + " " +
		m.pick("./canary", "rm -f", "touch", "chmod 777", "sh -c "+run, "sh -c "+run+" x", "sh", "bash -c", "mv -t d",
			"cp -t ‹out›", "sed -i p", "truncate -s 0", "mkdir", "tee", "echo", "cat", "ln -t d", "perl -e",
			"git add", "env ./canary", "{}", "xargs ./canary", "sort -o", "kill", "chown 1", "dd of=new if=f",
			"-I{} sh -c '{}'", "install -t d")
}

func (m *maker) rg() string {
	return m.pick("", "", "RIPGREP_CONFIG_PATH=.ripgreprc ", "PATH=.:$PATH ", "HOME=‹work› ") + "rg " + m.pick("a",
		"-e a", "-f names", ".") + m.some(4, "--pre=./canary", "--pre "+m.pick("./canary", "canary", "rm", "touch",
		"‹work›/canary", "sh"), "--pre-glob '*'", "--hostname-bin ./canary", "--hyperlink-format default", "-z",
		"--search-zip", "-l", "-c", "--json", "-uuu", "--files", "-g '*.txt'", "--type-add x:*.x", "-r x",
		"--passthru", "-L", "--no-config", "--sort path", "-A 2", "--pcre2", "--mmap", "--debug", "--trace",
		"--color always", "--stats", "--ignore-file names", "-0", "--type-list", "--generate man") + m.some(2, ".",
		m.source(), "..")
}

func (m *maker) jq() string {
	filter := m.pick(".", ".a[]", "keys", ".a|add", "input", "inputs", "env", "$ENV.HOME", "input_filename", "debug",
		"stderr", "@sh", "@base64", "getpath([\"a\"])", "include \"x\"; .", "import \"x\" as x; .",
		"import \"data\" as $d; $d", "\"\\(.)\"", "halt_error", "input_line_number", "$__prog_args",
		"get_search_list", "limit(3; repeat(1))", "ltrimstr(\"x\")", "splits(\"a\")", "modulemeta", "now|todate",
		"system(\"./canary\")")
	return m.pick("jq ", "jq ", "jq -n ", "jq -r ") + m.quote(filter) + m.some(3, "--arg x "+m.target(),
		"--argjson x 1", "--slurpfile x f", "--rawfile x f", "-L .", "-L ‹out›", "-f prog.awk", "--from-file names",
		"--args a b", "-s", "-c", "-S", "-e", "--tab", "--stream", "--seq", "-R", "-C", "--run-tests names",
		"--debug-dump-disasm", "-i", "--in-place", "-o new", "--output new", "--exit-status") + " " +
		m.pick("data.json", "f", "", m.source()) + m.some(1, "> "+m.target(), "| tee "+m.target(), "| sh",
		"| xargs -I{} touch {}", "| bash")
}

// fileTools are programs whose work are files.
func (m *maker) fileTools() string {
	return m.pick("", "", "", "POSIXLY_CORRECT=1 ", "TMPDIR=. ") + m.line("files")
}

// wrappers are programs that run others.
func (m *maker) wrappers() string {
	text := m.quote(m.code())
	return m.line("wrappers") + " " + m.pick(m.payload(), "sh -c "+text, "bash -c "+text)
}

// bash is what the shell itself can do.
func (m *maker) bash() string { return m.line("bash") }

// pauseCall is pause(2), which amd64 alone has.
const pauseCall = 34

// numbers of system calls that may harm the machine on which the search runs, should the profile fail.
var harmful = map[int]bool{
	unix.SYS_REBOOT: true, unix.SYS_KEXEC_LOAD: true, unix.SYS_KEXEC_FILE_LOAD: true, unix.SYS_SETTIMEOFDAY: true,
	unix.SYS_CLOCK_SETTIME: true, unix.SYS_CLOCK_ADJTIME: true, unix.SYS_ADJTIMEX: true,
	unix.SYS_SETHOSTNAME: true, unix.SYS_SETDOMAINNAME: true, unix.SYS_SWAPON: true, unix.SYS_SWAPOFF: true,
	unix.SYS_KILL: true, unix.SYS_TKILL: true, unix.SYS_TGKILL: true, unix.SYS_INIT_MODULE: true,
	unix.SYS_FINIT_MODULE: true, unix.SYS_DELETE_MODULE: true, unix.SYS_PIVOT_ROOT: true, unix.SYS_CHROOT: true,
	unix.SYS_UMOUNT2: true, unix.SYS_MOUNT: true, unix.SYS_ACCT: true, unix.SYS_QUOTACTL: true,
	unix.SYS_VHANGUP: true, unix.SYS_SYSLOG: true,
	pauseCall: true, unix.SYS_RT_SIGSUSPEND: true, unix.SYS_RT_SIGQUEUEINFO: true,
	unix.SYS_RT_TGSIGQUEUEINFO: true, unix.SYS_RT_SIGTIMEDWAIT: true, unix.SYS_SYNC: true, unix.SYS_EXIT: true,
	unix.SYS_EXIT_GROUP: true,
}

// calls are system calls with arguments by chance, and those with which files, processes and sockets are changed behind
// the back of programs.
func (m *maker) calls() string {
	path := m.pick("f", "d", "g.txt", "link", ".", "new", "‹out›/file", "‹work›/f", "fifo", "canary", "d/x",
		"stream.sock")
	// S copies its arguments, because the kernel may write to them and perl has constants.
	p := fmt.Sprintf("sub S{my($n,@a)=@_;syscall($n,@a)}$p=qq(%s);$n=qq(%s);$v=qq(user.x);$b=qq(b)x64;$z=pack(q(q*),1,0,1,0);open(F,q(<),q(%s));$d=fileno(F);opendir(D,q(.));",
		path, m.pick("new", "‹out›/new", "d/new", "f", "‹box›/new", "link"), m.pick("f", "g.txt", "d/x", "canary"))
	var call string
	for range 1 + m.IntN(8) {
		call += m.call()
	}
	if m.one(10) { // the same calls by the numbers of another mode of the processor
		call = strings.ReplaceAll(call, "S(", "S(0x40000000|")
	}
	return "perl -e '" + p + call + "'"
}

// call is one system call, or a few that belong together.
func (m *maker) call() string {
	sys := func(nr int, args string) string { return fmt.Sprintf("S(%d,%s);", nr, args) }
	if m.one(2) {
		nr := m.IntN(472)
		for harmful[nr] {
			nr = m.IntN(472)
		}
		var args []string
		for range 6 {
			args = append(args, m.pick("0", "0", "1", "2", "-1", "-100", "$p", "$p", "$n", "$v", "$b", "$z", "$d",
				"$d", "0600", "0777", "577", "1089", "66", "4096", "512", "256", "1024", "0x1000",
				strconv.Itoa(m.IntN(1<<16)), "‹pid›", "3", "4", "8"))
		}
		return sys(nr, strings.Join(args, ","))
	}
	return m.pick(
		sys(unix.SYS_FCHMOD, "$d,0700"), sys(unix.SYS_FCHMODAT, "-100,$p,0700"), sys(452, "-100,$p,0700,0"), sys(452,
			"$d,q(),0700,0x1000"), sys(unix.SYS_FCHOWN, "$d,-1,-1"), sys(unix.SYS_FCHOWN, "$d,1,1"),
		sys(unix.SYS_FCHOWNAT, "-100,$p,-1,-1,0"), sys(unix.SYS_FCHOWNAT, "$d,q(),0,0,0x1000"),
		sys(unix.SYS_UTIMENSAT, "-100,$p,$z,0"), sys(unix.SYS_UTIMENSAT, "$d,0,$z,0"), sys(unix.SYS_UTIMENSAT,
			"-100,$p,0,0"), sys(unix.SYS_SETXATTR, "$p,$v,$b,3,0"), sys(unix.SYS_FSETXATTR, "$d,$v,$b,3,0"),
		sys(unix.SYS_LSETXATTR, "$p,$v,$b,3,0"), sys(463, "-100,$p,0,$v,pack(q(PLL),q(y),1,0),16"), sys(466,
			"-100,$p,0,$v"), sys(469, "-100,$p,pack(q(QL4),0x80,0,0,0,0),24,0"), sys(469,
			"$d,q(),pack(q(QL4),0x80,0,0,0,0),24,0x1000"), sys(unix.SYS_REMOVEXATTR, "$p,$v"),
		sys(unix.SYS_FREMOVEXATTR, "$d,$v"),
		sys(unix.SYS_TRUNCATE, "$p,1"), sys(unix.SYS_FTRUNCATE, "$d,1"), sys(unix.SYS_FALLOCATE, "$d,0,0,99"),
		sys(unix.SYS_OPENAT, "-100,$p,512"), sys(unix.SYS_OPENAT, "-100,$p,514"), sys(unix.SYS_OPENAT,
			"-100,$n,65,0600"), sys(unix.SYS_OPENAT, "-100,q(.),0x410002,0600"), sys(unix.SYS_OPENAT2,
			"-100,$n,pack(q(Q3),65,0600,0),24"), sys(unix.SYS_LINKAT, "-100,$p,-100,$n,0"), sys(unix.SYS_LINKAT,
			"$d,q(),-100,$n,0x1000"), sys(unix.SYS_SYMLINKAT, "$p,-100,$n"), sys(unix.SYS_RENAMEAT2,
			"-100,$p,-100,$n,2"), sys(unix.SYS_RENAMEAT2, "-100,$p,-100,$n,0"), sys(unix.SYS_UNLINKAT, "-100,$p,0"),
		sys(unix.SYS_UNLINKAT, "-100,q(empty),512"), sys(unix.SYS_MKDIRAT, "-100,$n,0777"), sys(unix.SYS_MKNODAT,
			"-100,$n,0010600,0"), sys(unix.SYS_MKNODAT, "-100,$n,0140600,0"), sys(unix.SYS_MKNODAT,
			"-100,$n,0020600,259"),
		sys(unix.SYS_IOCTL, "$d,0x40086602,pack(q(Q),0x40)"), sys(unix.SYS_IOCTL, "$d,0x40086602,pack(q(Q),0x80)"),
		sys(unix.SYS_IOCTL, "$d,0x401c5820,pack(q(L7),0x80,0,0,0,0,0,0)"), sys(unix.SYS_IOCTL,
			"$d,0x40087602,pack(q(Q),7)"), sys(unix.SYS_IOCTL, "$d,0x40049409,0"), sys(unix.SYS_IOCTL,
			"$d,0x40806685,$b x 2"), sys(unix.SYS_IOCTL, "$d,"+strconv.Itoa(0x40000000|m.IntN(1<<16)<<0|8<<16)+",$b"),
		sys(unix.SYS_FCNTL, "$d,1036,pack(q(Q),3)"), sys(unix.SYS_FCNTL, "$d,1024,0"), sys(unix.SYS_FCNTL,
			"$d,1026,31"),
		"pipe(R,W);"+sys(unix.SYS_FCNTL, "fileno(R),8,‹pid›")+sys(unix.SYS_FCNTL,
			"fileno(R),10,"+m.word("9 15 19 10"))+sys(unix.SYS_FCNTL, "fileno(R),4,0x2000")+"syswrite W,q(x);",
		"pipe(R,W);"+sys(unix.SYS_FCNTL, "fileno(R),15,pack(q(l2),1,‹pid›)")+sys(unix.SYS_FCNTL,
			"fileno(R),4,0x2000")+"syswrite W,q(x);", "pipe(R,W);"+sys(unix.SYS_IOCTL,
			"fileno(R),0x8901,pack(q(l),‹pid›)")+sys(unix.SYS_FCNTL, "fileno(R),4,0x2000")+"syswrite W,q(x);",
		sys(unix.SYS_KILL, "‹pid›,15"), sys(unix.SYS_TKILL, "‹pid›,9"), sys(unix.SYS_TGKILL, "‹pid›,‹pid›,15"),
		sys(unix.SYS_RT_SIGQUEUEINFO, "‹pid›,15,pack(q(l4x112),15,0,-1,0)"),
		"$h=S("+strconv.Itoa(unix.SYS_PIDFD_OPEN)+",‹pid›,0);"+sys(unix.SYS_PIDFD_SEND_SIGNAL, "$h,9,0,0"),
		"$h=S("+strconv.Itoa(unix.SYS_OPENAT)+",-100,q(/proc/‹pid›),0);"+sys(unix.SYS_PIDFD_SEND_SIGNAL,
			"$h,9,0,0"), sys(unix.SYS_PRLIMIT64, "‹pid›,7,pack(q(Q2),9,9),0"), sys(unix.SYS_SETPRIORITY,
			"0,‹pid›,19"), sys(unix.SYS_SETPRIORITY, "2,0,19"), sys(unix.SYS_IOPRIO_SET, "1,‹pid›,24583"),
		sys(unix.SYS_SCHED_SETSCHEDULER, "‹pid›,3,pack(q(l),0)"), sys(unix.SYS_SCHED_SETAFFINITY,
			"‹pid›,8,pack(q(Q),1)"), sys(unix.SYS_SETPGID, "‹pid›,0"), sys(unix.SYS_PTRACE, "16,‹pid›,0,0"),
		sys(unix.SYS_PROCESS_VM_WRITEV, "‹pid›,0,0,0,0,0"), sys(unix.SYS_PROCESS_MRELEASE, "‹pid›,0"),
		sys(unix.SYS_SHMCTL, "‹shm›,0,0"), sys(unix.SYS_SEMCTL, "‹sem›,0,0"), sys(unix.SYS_SEMCTL, "‹sem›,0,16,7"),
		sys(unix.SYS_SHMAT, "‹shm›,0,0"), sys(unix.SYS_MSGCTL, "‹msg›,0,0"), sys(unix.SYS_MSGSND, "‹msg›,pack(q(qA8),1,q(x)),8,04000"),
		sys(unix.SYS_MQ_UNLINK, "q(keep-‹mark›)"), sys(unix.SYS_SEMOP, "‹sem›,pack(q(SsS),0,1,0),1"), sys(unix.SYS_SHMGET, "‹key›,4096,0666|01000"), sys(unix.SYS_SEMGET,
			"‹key›,1,0666|01000"), sys(unix.SYS_MSGGET, "‹key›,0666|01000"),
		sys(unix.SYS_MQ_OPEN, "q(x-‹mark›),66,0666,0"), sys(unix.SYS_ADD_KEY, "q(user),q(x-‹mark›),q(v),1,-4"),
		sys(unix.SYS_ADD_KEY, "q(user),q(x-‹mark›),q(v),1,-5"), sys(unix.SYS_MEMFD_CREATE, "q(x),0"),
		sys(unix.SYS_NAME_TO_HANDLE_AT, "-100,$p,$b,$z,0"), sys(unix.SYS_OPEN_BY_HANDLE_AT, "$d,$b,2"),
		sys(unix.SYS_IO_URING_SETUP, "8,$b x 4"), sys(unix.SYS_UNSHARE, "0x10020000"), sys(unix.SYS_SETNS,
			"$d,0"), sys(unix.SYS_COPY_FILE_RANGE, "$d,0,$d,0,9,0"), sys(unix.SYS_SPLICE, "$d,0,1,0,9,0"),
		sys(unix.SYS_SENDFILE, "1,$d,0,9"), sys(unix.SYS_CLONE, "0x10000011,0,0,0,0"), sys(unix.SYS_FANOTIFY_INIT,
			"0,0"), sys(unix.SYS_INOTIFY_INIT1, "0"), sys(unix.SYS_FLOCK, "$d,2"), sys(unix.SYS_SYNCFS, "$d"),
		sys(unix.SYS_FSYNC, "$d"), sys(unix.SYS_BPF, "0,$b,48"), sys(unix.SYS_PERF_EVENT_OPEN, "$b,0,-1,-1,0"),
		sys(unix.SYS_USERFAULTFD, "1"), sys(unix.SYS_SWAPOFF, "$p"), sys(unix.SYS_FSOPEN, "q(tmpfs),0"),
		sys(unix.SYS_OPEN_TREE, "-100,$p,1"), sys(unix.SYS_MOUNT_SETATTR, "-100,$p,0,$b,32"), sys(unix.SYS_EXECVE,
			"q(./canary),0,0"), sys(unix.SYS_EXECVEAT, "-100,q(./canary),0,0,0"),
	)
}

// deeds are one or two deeds in a language of scripts.
func (m *maker) deeds(language string) string {
	return m.line(language) + "\n" + strings.Repeat(m.line(language)+"\n", m.IntN(2))
}

func (m *maker) perl() string {
	script := "sub S{my($n,@a)=@_;syscall($n,@a)}" + m.deeds("perl")
	if m.one(6) {
		return m.pick("PERL5OPT=-Mre=debug ", "PERL5LIB=. ", "PERL5DB='BEGIN{system(q(./canary))}' ", "") + "perl " +
			m.pick("-pi -e s/a/b/", "-ni.bak -e print", "-i -pe 1", "-pe 's/a/`touch new`/e'",
				"-ne 'print;system(q(./canary))'", "-I. prog.pl", "prog.pl", "-d prog.pl", "-S prog.pl", "-x names",
				"-c prog.pl", "-MO=Deparse prog.pl", "-Mlib=. -e1", "-E 'say 1;unlink q(f)'",
				"-l -0777 -ne 'open F,q(>new)'", "-s -e 1", "-u -e 1") + " f"
	}
	return "perl -e " + m.quote(script) + m.some(1, "f")
}

func (m *maker) python() string {
	if m.one(8) {
		return m.pick("PYTHONPATH=. ", "PYTHONSTARTUP=prog.py ", "PYTHONINSPECT=1 ", "PYTHONPYCACHEPREFIX=. ",
			"PYTHONDUMPREFS=1 ") + "python3 " + m.pick("prog.py", "-m compileall .", "-m http.server ‹tcp›",
			"-m venv new", "-m zipfile -c new f", "-m tarfile -e a.tar d", "-c 'import prog'",
			"-m py_compile prog.py", "-m json.tool data.json new", "-m cProfile -o new prog.py",
			"-m trace -t -C d prog.py", "-m pdb prog.py", "-m webbrowser x", "-m pip install x", "-m unittest",
			"-m timeit -s 'open(\"new\",\"w\")'", "-m ensurepip", "-i -c 1")
	}
	const imports = "import os,subprocess,socket,sys,time,signal,shutil,fcntl,resource,mmap\n"
	script := m.deeds("python")
	for name := range strings.FieldsSeq("tempfile sqlite3 ctypes zipfile tarfile logging shelve compileall py_compile venv pathlib webbrowser faulthandler pty") {
		if strings.Contains(script, name+".") {
			script = "import " + name + "\n" + script
		}
	}
	for _, name := range []string{"urllib.request", "multiprocessing.shared_memory"} {
		if strings.Contains(script, name) {
			script = "import " + name + "\n" + script
		}
	}
	return "python3 -c " + m.quote(imports+script)
}

func (m *maker) node() string {
	if m.one(8) {
		return "node " + m.pick("--cpu-prof", "--heap-prof", "--trace-events-enabled", "--report-on-signal", "--prof",
			"--diagnostic-dir=d --cpu-prof", "-r ./canary", "--inspect=127.0.0.1:0", "--redirect-warnings=new",
			"--trace-event-categories=v8", "--build-snapshot=new", "--env-file=names", "--import ./canary") + " -e 1"
	}
	return "node -e " +
		m.quote(`const fs=require("fs"),cp=require("child_process"),net=require("net"),dgram=require("dgram"),http=require("http"),os=require("os"),v8=require("v8");setTimeout(()=>process.exit(),200);`+"\n"+m.deeds("node"))
}

func (m *maker) ruby() string {
	return "ruby " + m.pick("-rsocket -rfileutils ", "-i.b -pe 1 f; ruby -rsocket -rfileutils ") + "-e " +
		m.quote(m.deeds("ruby"))
}

// others are programs with a language of their own that is used less.
func (m *maker) others() string { return m.line("others") }
