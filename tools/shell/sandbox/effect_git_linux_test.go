package sandbox_test

import (
	"fmt"
	"strings"
)

// configuration is a file with settings.
func (m *maker) configuration(n int) string {
	var b strings.Builder
	for range n {
		name, value, _ := strings.Cut(m.line("git_settings"), "=")
		at := strings.LastIndexByte(name, '.')
		section := name[:at]
		if first, rest, ok := strings.Cut(section, "."); ok {
			section = fmt.Sprintf("%s %q", first, rest)
		}
		fmt.Fprintf(&b, "[%s]\n\t%s = %q\n", section, name[at+1:], value)
	}
	return b.String()
}

// files are the hostile files of a world: what programs read without being told to.
func (m *maker) files() map[string]string {
	out := map[string]string{
		".gitconfig": m.configuration(1 + m.IntN(12)), "included": m.configuration(6),
		"attributes": "* diff=evil filter=evil merge=evil\n",
		".bashrc":    m.payload() + "\n", ".profile": m.payload() + "\n",
		".inputrc": "$include /dev/tcp/127.0.0.1/‹tcp›\n", ".sqliterc": ".shell " + m.payload() +
			"\n.output new\n", ".gdbinit": "shell " + m.payload() + "\n",
		".curlrc": "output = new\n", ".wgetrc": "output_document = new\n", ".exrc": "!" + m.payload() + "\n",
		".vimrc":     "call system('" + strings.ReplaceAll(m.code(), "'", "") + "')\n",
		".ripgreprc": "--pre=./canary\n", "Makefile": "X := $(shell " + m.payload() + ")\nall:\n\t" +
			m.payload() + "\n",
		"sitecustomize.py": "import os\nos.system('''" + m.payload() + "''')\n",
		"usercustomize.py": "open('new', 'w')\n", ".npmrc": "script-shell=./canary\n", ".dircolors": "x\n",
		".lesskey": "#env\nLESSOPEN=|./canary %s\n", ".perltidyrc": "x\n",
		".jq": "def f: input;\n", ".toprc": "x\n", ".nanorc": "x\n", ".screenrc": "x\n", ".tigrc": "x\n",
		".psqlrc": "\\! ./canary\n", ".ssh/config": "Host *\n\tProxyCommand " + m.payload() +
			"\n\tPermitLocalCommand yes\n\tLocalCommand ./canary\n",
	}
	for hook := range strings.FieldsSeq("post-index-change pre-commit post-checkout fsmonitor-watchman reference-transaction pre-rebase post-rewrite pre-auto-gc") {
		out["hooks/"+hook] = "#!/bin/sh\n" + m.payload() + "\n"
	}
	head := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[user]\n\tname = a\n\temail = a@b\n"
	for i := range repositories + 1 {
		dir := fmt.Sprintf("r%d/", i)
		if i == 0 {
			dir = ""
		}
		out[dir+".git/config"] = head + m.configuration(1+m.IntN(10))
		out[dir+".gitattributes"] = m.pick("* diff=evil\n", "* filter=evil\n", "* diff=evil filter=evil merge=evil\n",
			"*.txt diff=evil filter=evil\n*.bin diff=evil\n", "* text=auto working-tree-encoding=UTF-16\n",
			"* export-subst ident filter=evil\n")
		out[dir+".gitmodules"] = "[submodule \"sub\"]\n\tpath = sub\n\turl = " + m.pick("ext::sh -c ./canary",
			"-u./canary", "../bare") + "\n\tupdate = " + m.pick("!./canary", "checkout", "rebase") + "\n"
		out[dir+".mailmap"] = "a <a@b>\n"
		for _, hook := range []string{"post-index-change", "pre-commit", "post-checkout", "query-watchman"} {
			if m.one(3) {
				out[dir+".git/hooks/"+hook] = "#!/bin/sh\n" + m.payload() + "\n"
			}
		}
	}
	out["bare/config"] = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n" + m.configuration(4)
	return out
}

// gitConfigured is a command that only reads, in a repository that does not.
func (m *maker) gitConfigured() string {
	return m.pick("cd r1; ", "cd r2; ", "cd r3; ", "cd r1; HOME=‹work› ", "HOME=‹work› ", "cd r1/s; ", "",
		"cd bare; ") +
		m.pick("git ", "git ", "git ", "git --no-pager ", "git -p ", "git --paginate ", "git --no-optional-locks ") +
		m.line("git_reading") +
		m.some(2, "--", "a.txt", "-p", "HEAD", "--textconv", "--ext-diff", "--output=new", "-c", "--stat", "--raw",
			"-z",
			"--no-index f g.txt", "-O"+m.target(), "--color=always", "--ignore-submodules=none", "--recurse-submodules")
}

// git is a command with options and an environment of its own.
func (m *maker) git() string {
	text := "git "
	if m.one(2) {
		text = m.line("git_environment") + " git "
	}
	for range m.IntN(3) {
		setting := "-c " + m.quote(m.line("git_settings")) + " "
		text += m.pick(setting, setting, "-C r1 ", "-C r2 ", "--git-dir=bare ", "--git-dir r1/.git ",
			"--work-tree=‹out› ",
			"--exec-path=. ", "-p ", "--bare ", "--namespace=x ", "--config-env=core.pager=PWD ", "--attr-source=HEAD ")
	}
	return text + m.line("git")
}
