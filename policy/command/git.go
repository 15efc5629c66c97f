package command

import "strings"

// git follows bisect run, rebase --exec and submodule foreach, and records configuration that starts programs.
func (f *finder) git(name string, words []word, at place) {
	sub := f.gitGlobal(words)
	if sub >= len(words) {
		return
	}
	if words[sub].dynamic() || words[sub].added {
		f.indirect("the git command is not known before it runs")
		return
	}
	rest := words[sub+1:]
	switch words[sub].text {
	case "bisect":
		if len(rest) > 0 && rest[0].text == "run" {
			f.wrapped("git bisect run", rest[1:], at)
		}
	case "submodule":
		for i, w := range rest {
			if w.text == "foreach" {
				f.foreach(rest[i+1:], at)
				break
			}
		}
	case "rebase":
		f.gitExec(rest, at)
	case "config":
		f.gitConfig(rest)
	case "filter-branch", "difftool", "mergetool", "instaweb", "send-email", "shell", "cvsserver", "remote-ext":
		if len(rest) > 0 {
			f.indirect(name + " " + words[sub].text + " runs programs from its arguments or configuration")
		}
	}
	f.gitTransport(rest)
}

// gitGlobal parses the options before the git command and returns its index.
func (f *finder) gitGlobal(words []word) int {
	i := 1
	for i < len(words) {
		text := words[i].text
		if words[i].dynamic() || !strings.HasPrefix(text, "-") {
			return i
		}
		switch {
		case text == "-c" || strings.HasPrefix(text, "--config-env") || strings.HasPrefix(text, "--exec-path="):
			f.indirect("git " + clip(text) + " may set a program that git runs")
			i++
		case text == "-C" || text == "--git-dir" || text == "--work-tree" || text == "--namespace" ||
			text == "--attr-source":
			i++
		}
		i++
	}
	return i
}

// foreach follows git submodule foreach: a single word is shell code, several words are a command.
func (f *finder) foreach(rest []word, at place) {
	for len(rest) > 0 && strings.HasPrefix(rest[0].text, "-") {
		rest = rest[1:]
	}
	f.joined("git submodule foreach", rest, at)
}

// gitExec follows git rebase --exec.
func (f *finder) gitExec(rest []word, at place) {
	for i, w := range rest {
		key, value, inline := strings.Cut(w.text, "=")
		switch {
		case inline && len(key) > 3 && strings.HasPrefix("--exec", key):
			f.code("git rebase --exec", word{text: value, mark: w.mark}, at)
		case (w.text == "-x" || len(w.text) > 3 && strings.HasPrefix("--exec", w.text)) && i+1 < len(rest):
			f.code("git rebase --exec", rest[i+1], at)
		case strings.HasPrefix(w.text, "-x"):
			f.code("git rebase --exec", word{text: w.text[2:], mark: w.mark}, at)
		}
	}
}

// gitConfig records settings with which git starts programs later.
func (f *finder) gitConfig(rest []word) {
	for _, w := range rest {
		text := strings.ToLower(w.text)
		if w.dynamic() || strings.HasPrefix(text, "!") {
			f.indirect("git config may set a program that git runs")
			return
		}
		for _, part := range [...]string{
			"pager", "editor", "alias.", "fsmonitor", "command", "hookspath", "askpass", "helper", "textconv", "cmd",
			"program", "driver", "clean", "smudge", "process", "uploadpack", "receivepack", "insteadof", "include",
			"external", "proxy", "sendmail", "-e",
		} {
			if strings.Contains(text, part) {
				f.indirect("git config may set a program that git runs")
				return
			}
		}
	}
}

// gitTransport records options and addresses with which git starts programs.
func (f *finder) gitTransport(rest []word) {
	for _, w := range rest {
		text := w.text
		key, _, _ := strings.Cut(text, "=")
		switch {
		case len(key) > 4 && (strings.HasPrefix("--upload-pack", key) || strings.HasPrefix("--receive-pack", key) ||
			strings.HasPrefix("--open-files-in-pager", key) ||
			strings.HasPrefix("--extcmd", key) || strings.HasPrefix("--config", key)):
			f.indirect("an option of git starts a program")
		case strings.HasPrefix(text, "-O") && len(text) > 2, strings.HasPrefix(text, "ext::"),
			strings.HasPrefix(text, "fd::"):
			f.indirect("an option of git starts a program")
		case text == "-u" || text == "-c" || text == "-x":
			f.gitShort(text)
		}
	}
}

// gitShort records short options that name a program for some git commands.
func (f *finder) gitShort(option string) {
	if option == "-c" {
		f.indirect("an option of git may set a program that git runs")
	}
}
