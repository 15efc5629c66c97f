package command

import (
	"iter"
	"strings"
	"sync"
)

// takesData lists the programs, besides the reading commands, that never run their arguments: what looks like a command
// among them is a name, a text or a file. Where one of them does run a command (git bisect run, docker exec), it is
// followed separately.
const takesData = "git hg svn gh glab npm yarn pnpm pip pip3 pipx apt apt-get apt-cache aptitude dpkg dpkg-query brew dnf yum apk pacman snap flatpak gem bundle composer conda poetry uv " +
	"man info whatis apropos help whereis tldr locate hash alias unalias export declare typeset local readonly set unset read readarray mapfile shift return exit break continue ulimit umask " +
	"cp mv rm rmdir mkdir touch ln chmod chown chgrp install tee dd truncate mktemp mkfifo rename shred tar gtar bsdtar zip unzip gzip gunzip bzip2 bunzip2 xz unxz zstd 7z cpio ar " +
	"make gmake cmake ninja gradle mvn cargo go gofmt rustc javac tsc docker docker-compose podman nerdctl kubectl oc helm terraform vagrant systemctl service journalctl crontab kill killall pkill pgrep " +
	"ps top htop less more most vim vi nvim view nano emacs code gsed ssed awk gawk mawk nawk jq yq gh scp sftp rsync useradd usermod userdel groupadd getent passwd chsh lsof ss netstat ip ifconfig " +
	"pytest mypy ruff black flake8 eslint prettier jest psql mysql sqlite3 redis-cli mongosh openssl gpg md5 xxd zcat zgrep bzgrep xzgrep ack ag fd fdfind gfind bfs split csplit shuf factor expr bc cal " +
	"lscpu lsblk mount umount dmesg hostname locale env_file printenv nproc tput clear history logger wall write mail mailx ssh-keygen gsort gtee gcat gls ggrep gecho gfold pandoc ffmpeg convert sqlite"

// dataTakers is takesData as a set.
var dataTakers = sync.OnceValue(func() map[string]bool { return lookup(takesData) })

// Later yields what unknown programs of the script may run: for each later word of a program that is not known to take
// data, its lower-case name as a command, and the words from there on. If a word is a text such as 'sudo id; ls', each
// command in it is yielded. An unknown wrapper therefore hides nothing.
func (s *Script) Later() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for i := range s.Commands {
			c := &s.Commands[i]
			if !c.mayRunWords() {
				continue
			}
			for at := 1; at < len(c.Words); at++ {
				if !later(c.Words[at], c.Words[at:], yield) {
					return
				}
			}
		}
	}
}

// later yields the commands that one word may be or contain.
func later(text string, words []string, yield func(string, []string) bool) bool {
	if strings.HasPrefix(text, "-") || isAssignment(text) {
		_, value, ok := strings.Cut(text, "=")
		if !ok {
			return true
		}
		text = value
	}
	if !strings.ContainsAny(text, " \t\n;|&(){}`$,") {
		return text == "" || yield(strings.ToLower(baseName(text)), words)
	}
	for segment := range strings.FieldsFuncSeq(text,
		func(r rune) bool { return strings.ContainsRune("\n;|&(){}`$,", r) }) {
		fields := strings.Fields(segment)
		if len(fields) > 0 && !yield(strings.ToLower(baseName(fields[0])), fields) {
			return false
		}
	}
	return true
}

// mayRunWords reports whether a program may run its later words and is not otherwise followed.
func (c *Command) mayRunWords() bool {
	name := strings.ToLower(c.Name)
	if len(c.Words) < 2 || reads(name) || dataTakers()[name] || name == "ssh" || name == "eval" {
		return false
	}
	spec, ok := wrapperOf(name)
	if !ok {
		return true
	}
	words := make([]word, len(c.Words))
	for i, text := range c.Words {
		words[i] = word{text: text, mark: c.mark(i)}
	}
	return !spec.read(name, words).known
}

// blockedLater returns the entry that blocks something an unknown program of the script may run; "" for none.
func blockedLater(s *Script, allowed []string) string {
	for name, words := range s.Later() {
		if !variant(name) {
			continue
		}
		if entry := blockedCommand(&Command{Name: name, Words: words}, allowed); entry != "" {
			return entry
		}
	}
	return ""
}

// networkLater returns the network command that an unknown program of the script may run. Names that are ordinary words
// count only in the position of a command.
func networkLater(s *Script) (name string, ok bool) {
	for name := range s.Later() {
		if fetches(name) && variant(name) && !listed("host links http https ftp dig ping", name) {
			return name, true
		}
	}
	return "", false
}

// variant reports whether a later word can be a program: sudo, nc.openbsd and mkfs.ext4 can; curl.py and sudo.log are
// more likely files.
func variant(name string) bool {
	stem, suffix, ok := strings.Cut(name, ".")
	return !ok || stem == "mkfs" || listed("openbsd traditional exe com real distrib dpkg-dist bin", suffix)
}
