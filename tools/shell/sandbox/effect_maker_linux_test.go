package sandbox_test

import (
	"embed"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// maker makes up commands. What it writes between ‹ and › are names of the world in which the command runs, so a seed
// gives the same commands everywhere.
type maker struct {
	*rand.Rand
	last []string
}

func newMaker(seed uint64) *maker {
	return &maker{Rand: rand.New(rand.NewPCG(seed, 25))} //nolint:gosec // commands must be repeatable
}

// language is a program, or several, with what its arguments can say.
type language struct {
	name  string
	needs string // the program; "" = bash alone
	make  func(*maker) string
}

// languages are those whose programs are installed.
var languages = sync.OnceValue(func() []language {
	var out []language
	for _, l := range []language{
		{"sed", "sed", (*maker).sed},
		{"awk", "awk", (*maker).awk},
		{"git", "git", (*maker).git},
		{"git configuration", "git", (*maker).gitConfigured},
		{"find", "find", (*maker).find},
		{"tar", "tar", (*maker).tar},
		{"sort", "sort", (*maker).sort},
		{"xargs", "xargs", (*maker).xargs},
		{"rg", "rg", (*maker).rg},
		{"jq", "jq", (*maker).jq},
		{"files", "", (*maker).fileTools},
		{"wrappers", "", (*maker).wrappers},
		{"bash", "", (*maker).bash},
		{"perl", "perl", (*maker).perl},
		{"system calls", "perl", (*maker).calls},
		{"python", "python3", (*maker).python},
		{"node", "node", (*maker).node},
		{"ruby", "ruby", (*maker).ruby},
		{"others", "", (*maker).others},
	} {
		if _, err := exec.LookPath(l.needs); l.needs == "" || err == nil {
			out = append(out, l)
		}
	}
	return out
})

// next is one command.
func (m *maker) next() string {
	list := languages()
	l := list[m.IntN(len(list))]
	if m.one(4) {
		l = list[m.IntN(5)] // what the promise rests on, and the languages that are used most
	}
	if strings.Contains("python3 node ruby jq", l.needs) && l.needs != "" && !m.one(5) {
		l = list[m.IntN(7)] // those take long to start
	}
	text := l.make(m)
	if len(m.last) > 8 && m.one(10) {
		text = m.mutate(text)
	}
	if m.one(20) {
		text = m.pick("cat f | ", "head -c 9 g.txt | ", "cd d; ", "cd r1 && ", "cd dirlink; ", "export HOME=‹work›; ",
			"HOME=‹work› ", "! ") + text
	}
	if m.one(20) {
		text += m.pick(" | head -n 1", " 2>&1 | cat", " | tee "+m.target(), " > "+m.target(), " >> "+m.target(), " &",
			" && "+m.payload(), "; "+m.payload())
	}
	if len(m.last) < 256 {
		m.last = append(m.last, text)
	} else {
		m.last[m.IntN(256)] = text
	}
	return text
}

// mutate puts a piece of an earlier command, or a sign that many languages know, into a command.
func (m *maker) mutate(text string) string {
	at := m.IntN(len(text) + 1)
	piece := m.pick(";", "\n", "'", "\"", "{", "}", "|", " -", "--", "=", "\\", "!", "@", " -- ", "\t", "#", "/", "&",
		"$(", ")", "`", "e ", "w ", "%")
	if m.one(3) {
		other := m.last[m.IntN(len(m.last))]
		from := m.IntN(len(other) + 1)
		piece = other[from:min(len(other), from+m.IntN(24))]
	}
	return text[:at] + piece + text[min(len(text), at+m.IntN(3)):]
}

// one is true once in n times.
func (m *maker) one(n int) bool { return m.IntN(n) == 0 }

// pick is one of its arguments.
func (m *maker) pick(list ...string) string { return list[m.IntN(len(list))] }

// word is one of the words of a list.
func (m *maker) word(list string) string { return m.pick(strings.Fields(list)...) }

// some is up to n of the arguments, each after a space.
func (m *maker) some(n int, list ...string) string {
	var b strings.Builder
	for range m.IntN(n + 1) {
		b.WriteString(" " + m.pick(list...))
	}
	return b.String()
}

// quote is text as one word of the shell, now and then without the signs that protect it.
func (m *maker) quote(text string) string {
	if m.one(5) && !strings.ContainsAny(text, "\"$`\\!") {
		return `"` + text + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// source is a file that is there.
func (m *maker) source() string {
	return m.pick("f", "f", "f", "g.txt", "d/x", "data.csv", "data.json", "./f", "‹work›/g.txt", "‹allowed›/notes",
		"link", "*.txt", "/etc/passwd", "README", "r1/a.txt")
}

// target is a place that must stay as it is.
func (m *maker) target() string {
	return m.pick("new", "new", "f", "g.txt", "d/new", "d/x", "‹work›/new", "‹allowed›/new", "‹allowed›/notes",
		"‹out›/new", "‹out›/file", "‹box›/new", "link", "dirlink/new", "fifo",
		"/tmp/x-‹mark›", "/var/tmp/x-‹mark›", "/dev/shm/x-‹mark›", "$HOME/x-‹mark›", "/run/x-‹mark›", "/x-‹mark›",
		".git/config", ".git/index", ".git/HEAD", ".git/hooks/new", "canary",
		"/proc/‹pid›/oom_score_adj", "/proc/‹pid›/comm", "/proc/self/cwd/new", "/proc/self/root‹out›/new",
		"/proc/$PPID/cwd/new", "/dev/tcp/127.0.0.1/‹tcp›", "datagram.sock")
}

// payload is a command that acts.
func (m *maker) payload() string {
	t, s := m.target(), m.source()
	return m.pick("./canary", "‹work›/canary", "sh ./canary", "sh ‹work›/canary", "touch "+t, "echo x > "+t,
		"echo x >> "+s, ": > "+s, "rm -f "+s, "rm -rf d", "chmod 700 "+s, "chmod a+x "+s,
		"mv "+s+" "+t, "ln "+s+" "+t, "ln -s f "+t, "mkdir "+t, "rmdir empty", "mkfifo "+t, "cp "+s+" "+t,
		"truncate -s 0 "+s, "touch "+s, "touch -d 2001-01-01 "+s, "chown 1:1 "+s, "dd if=f of="+t,
		"kill ‹pid›", "kill -STOP ‹pid›", "kill -9 ‹pid›", "renice 19 ‹pid›", "setsid ./canary", "nohup ./canary",
		"sleep 100 &", "setsid sleep 100 &", "bash -c 'echo > /dev/tcp/127.0.0.1/‹tcp›'",
		"bash -c 'echo > /dev/udp/127.0.0.1/‹udp›'", "tee "+t+" <f", "install f "+t, "mknod "+t+" p", "kill -SEGV $$",
		"sed -i s/a/b/ f", "chgrp 1 f", "unlink f", "rename f", "git init d/n", "git add f")
}

// code is a payload without the quotes that many languages have for texts.
func (m *maker) code() string { return strings.ReplaceAll(m.payload(), `"`, "") }

// effects has what programs can do, one thing a line, after a head line; ⏎ stands for a newline. ‹target›, ‹source› and
// ‹run› are a place, a file and a command; ‹code› is a command as a text.
//
//go:embed testdata/effects
var effects embed.FS

// effectLines are the lines of the files, by the name of the file.
var effectLines = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	list, _ := effects.ReadDir("testdata/effects") // it is in the program
	for _, e := range list {
		raw, _ := effects.ReadFile("testdata/effects/" + e.Name())
		for line := range strings.Lines(string(raw)) {
			name, text := strings.TrimSuffix(e.Name(), ".txt"), strings.TrimSuffix(line, "\n")
			if !strings.HasPrefix(text, "# ") {
				out[name] = append(out[name], strings.ReplaceAll(text, "⏎", "\n"))
			}
		}
	}
	return out
})

// line is a line of a file, filled in.
func (m *maker) line(file string) string {
	text := m.pick(effectLines()[file]...)
	for _, name := range []struct {
		name string
		make func() string
	}{
		{"'‹code›'", func() string { return m.quote(m.code()) }},
		{"‹code›", func() string { return strings.ReplaceAll(m.code(), "'", "") }},
		{"‹run›", m.payload},
		{"‹target›", m.target},
		{"‹source›", m.source},
	} {
		for strings.Contains(text, name.name) {
			text = strings.Replace(text, name.name, name.make(), 1)
		}
	}
	return text
}

// repositories are the workspace and those in it that have hostile files of their own.
const repositories = 3

// template makes a workspace as it was cloned.
func template(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	cmd := exec.CommandContext(tb.Context(), "bash", "--noprofile", "--norc", "-ec", fmt.Sprintf(templateScript, repositories))
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + searchPath(), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "LANG=C.UTF-8"}
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("make the workspace: %v\n%s", err, out)
	}
	return dir
}

// templateScript makes a repository with two commits (one of them looks signed), a branch, staged and unstaged changes,
// and copies of it.
const templateScript = `umask 022
mkdir d empty
seq 1 40 > f; printf 'b\na\nc a[0]\n' > g.txt; echo x > d/x; printf 'a,b\n1,2\n' > data.csv; printf '{"a":[1,2],"b":"c"}\n' > data.json; echo hello > README
printf 'p\nw new\n1e ./canary\n' > script.sed; printf 'BEGIN { print "x" > "new"; system("./canary") }\n' > prog.awk; printf 'f\ng.txt\n' > names
printf 'print "hi\\n"; system("./canary"); open(F, ">new");\n' > prog.pl; printf 'import os; os.system("./canary"); open("new","w")\n' > prog.py; printf './canary\necho x > new\n' > script.sh
printf '\0\1\2' > a.bin; gzip -k -n f; tar -cf a.tar f d; ln -s ../out/file link; ln -s ../out dirlink; tar -cf links.tar link dirlink
rm -f .git; mkdir r1; cd r1
git init -q -b main .; rm -rf .git/hooks .git/info .git/description
git config user.name a; git config user.email a@b
echo 1 > a.txt; printf '\0\1' > b.bin; echo 'int x;' > c.c; mkdir s; echo s > s/s.txt; git add .; git commit -qm one
echo 2 >> a.txt; printf '\0\2' > b.bin; git commit -qam two; git branch side HEAD~1; git tag -a -m tag v1
{ git cat-file commit HEAD | sed -n '1,/^committer/p'; printf 'gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n'; } > ../commit
git update-ref refs/heads/main "$(git hash-object -t commit -w ../commit)"; rm ../commit
git update-index --add --cacheinfo "160000,$(git rev-parse HEAD),sub" || true
echo 3 >> a.txt; echo staged > st.txt; git add st.txt; echo un > untracked.txt; printf '\0\3' > b.bin
git repack -qad; git prune; rm -f .git/COMMIT_EDITMSG; cd ..; i=2; while [ $i -le %d ]; do cp -r r1 "r$i"; i=$((i + 1)); done; cp -r r1/.git .git; mkdir bare; cp -r r1/.git/. bare/
`
