package command

import (
	"slices"
	"strings"
)

// blocklist is the default blocklist (seed 003, tools.shell.blocked_commands, and its documented additions).
const blocklist = "rm -rf /\nsudo\nsu\ndoas\npkexec\nmkfs\nfdisk\ndd if=\ndd of=\ncurl\nwget\nnc " +
	"\nncat\nnetcat\nshutdown\nreboot\nhalt\npoweroff\ncurl|bash"

// DefaultBlocked returns the default blocklist, in the spelling of tools.shell.allowed_commands.
func DefaultBlocked() []string { return strings.Split(blocklist, "\n") }

// DefaultConfirm returns the default confirm patterns (seed 003, tools.shell.confirm_patterns).
func DefaultConfirm() []string {
	return []string{
		"rm ", "git push -f", "git push --force", "drop table", "drop database", "truncate ", "$(", "`",
		"<(", ">(", "<<<", "eval ",
	}
}

// Blocked reports whether a command at any depth is on the default blocklist, and by which entry. Entries in allowed
// (in any case, with or without surrounding blanks) are removed from the list.
func Blocked(s Script, allowed []string) (pattern string, blocked bool) {
	if s.RunsDownload && !isOff(allowed, "curl|bash") {
		return "curl|bash", true
	}
	for i := range s.Commands {
		if pattern = blockedCommand(&s.Commands[i], allowed); pattern != "" {
			return pattern, true
		}
	}
	pattern = blockedLater(&s, allowed)
	return pattern, pattern != ""
}

// isOff reports whether allowed removes entry from the list.
func isOff(allowed []string, entry string) bool {
	for _, each := range allowed {
		if strings.EqualFold(strings.TrimSpace(each), strings.TrimSpace(entry)) {
			return true
		}
	}
	return false
}

// blockedCommand returns the entry that blocks one command; "" for none.
func blockedCommand(c *Command, allowed []string) string {
	name := c.Name
	if len(name) > 64 {
		return ""
	}
	name = strings.ToLower(name)
	entry := blockedName(name)
	switch {
	case name == "rm" && wipesDisk(c.Words[1:]):
		entry = "rm -rf /"
	case name == "dd":
		return blockedCopy(c.Words[1:], allowed)
	case name == "systemctl" || name == "loginctl":
		for _, w := range c.Words[1:] {
			if w == "poweroff" || w == "reboot" || w == "halt" {
				entry = w
			}
		}
	}
	if entry == "" || isOff(allowed, entry) {
		return ""
	}
	return entry
}

// blockedName returns the entry that blocks a command by its lower-case name alone. As in the seed, an entry also
// matches NAME.anything: mkfs.ext4, curl.exe. nc_helper.sh is a different name.
func blockedName(name string) string {
	stem, _, _ := strings.Cut(name, ".")
	switch stem {
	case "sudo", "su", "doas", "pkexec", "fdisk", "curl", "wget", "ncat", "netcat", "shutdown", "reboot", "halt",
		"poweroff":
		return stem
	case "nc":
		return "nc "
	case "sudoedit", "run0":
		return "sudo"
	}
	if strings.HasPrefix(name, "mkfs") || stem == "mke2fs" {
		return "mkfs"
	}
	return ""
}

// blockedCopy returns the entry for dd. The seed blocks every if=; of= is the documented addition.
func blockedCopy(words []string, allowed []string) string {
	for _, entry := range [...]string{"dd if=", "dd of="} {
		for _, w := range words {
			if len(w) >= 3 && strings.EqualFold(w[:3], entry[3:]) && !isOff(allowed, entry) {
				return entry
			}
		}
	}
	return ""
}

// removal is the meaning of the words of rm.
type removal struct {
	recursive, force, root bool
	targets                []string
}

// wipesDisk reports whether the words of rm delete an absolute path recursively and without asking, or a root, a
// top-level directory or a home directory recursively.
func wipesDisk(words []string) bool {
	r := readRemoval(words)
	if !r.recursive {
		return false
	}
	if r.root {
		return true
	}
	for _, target := range r.targets {
		if strings.HasPrefix(target, "/") && (r.force || isShallow(target)) || isHome(target) {
			return true
		}
	}
	return false
}

// readRemoval parses the words of rm.
func readRemoval(words []string) (r removal) {
	ended := false
	for _, w := range words {
		switch {
		case ended || len(w) < 2 || w[0] != '-':
			r.targets = append(r.targets, w)
		case w == "--":
			ended = true
		default:
			r.parseOption(w)
		}
	}
	return r
}

// parseOption parses one option. rm accepts any unambiguous prefix of a long one.
func (r *removal) parseOption(w string) {
	if strings.HasPrefix(w, "--") {
		r.recursive = r.recursive || strings.HasPrefix("--recursive", w)
		r.force = r.force || strings.HasPrefix("--force", w)
		r.root = r.root || len(w) > 3 && strings.HasPrefix("--no-preserve-root", w)
		return
	}
	r.recursive = r.recursive || strings.ContainsAny(w, "rR")
	r.force = r.force || strings.Contains(w, "f")
}

// isShallow reports whether an absolute path is the root, a top-level directory, or everything in one of them.
func isShallow(path string) bool {
	deep := 0
	for part := range strings.SplitSeq(path, "/") {
		switch part {
		case "", ".", "*":
		case "..":
			deep = max(deep-1, 0)
		default:
			deep++
		}
	}
	return deep <= 1
}

// isHome reports whether a path is a whole home directory.
func isHome(path string) bool {
	path = strings.Trim(path, `"`)
	path = strings.TrimSuffix(strings.TrimRight(path, "/*."), `"`)
	path = strings.TrimRight(path, `"/`)
	return path == "$HOME" || path == "${HOME}" || strings.HasPrefix(path, "~") && !strings.Contains(path, "/")
}

// usesNetwork reports whether a program with this lower-case name uses the network.
func usesNetwork(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	return isOfKind("network", stem)
}

// isSocket reports whether a redirection target is one of bash's network files.
func isSocket(target string) bool {
	return strings.Contains(target, "/dev/tcp/") || strings.Contains(target, "/dev/udp/")
}

// Network returns the first program or redirection that uses the network.
func Network(s Script) (name string, ok bool) {
	for i := range s.Commands {
		name = strings.ToLower(s.Commands[i].Name)
		if usesNetwork(name) {
			stem, _, _ := strings.Cut(name, ".")
			return stem, true
		}
		if name == "openssl" && len(s.Commands[i].Words) > 1 && s.Commands[i].Words[1] == "s_client" {
			return name, true
		}
	}
	if name, ok = networkLater(&s); ok {
		return name, true
	}
	for _, red := range s.Redirects {
		if strings.Contains(red.Target, "/dev/udp/") {
			return "/dev/udp", true
		}
		if isSocket(red.Target) {
			return "/dev/tcp", true
		}
	}
	return "", false
}

// Confirm returns the first default or given pattern that occurs in the text, or in a command without its quotes. Case
// is ignored.
func Confirm(s Script, patterns []string) (pattern string, ok bool) {
	return Contains(s, slices.Concat(DefaultConfirm(), patterns))
}

// Contains returns the first pattern that occurs in the text, or in a command without its quotes. Case is ignored.
func Contains(s Script, patterns []string) (pattern string, ok bool) {
	if len(patterns) == 0 {
		return "", false
	}
	var all strings.Builder
	all.WriteString(strings.ToLower(s.Text))
	from := 0 // commands are in the order of the text, so most are found just after the previous one
	for i := range s.Commands {
		resolved := s.Commands[i].Text
		if at := strings.Index(s.Text[from:], resolved); at >= 0 {
			from += at
			continue
		}
		all.WriteByte('\n')
		all.WriteString(strings.ToLower(resolved))
	}
	text := all.String()
	for _, each := range patterns {
		if each != "" && strings.Contains(text, strings.ToLower(each)) {
			return each, true
		}
	}
	return "", false
}
