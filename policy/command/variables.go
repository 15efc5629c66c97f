package command

import "strings"

// decides reports whether the variable decides which program or code runs, or with what configuration.
func decides(name string) bool {
	for _, prefix := range [...]string{"LD_", "DYLD_", "BASH_", "GIT_", "PYTHON", "PERL", "RUBY", "NODE_", "NPM_CONFIG_", "npm_config_", "LUA_", "SUDO_", "SSH_", "MALLOC_", "GCONV_", "XDG_", "LESS"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "PATH", "ENV", "PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS4", "IFS", "SHELLOPTS", "BASHOPTS", "CDPATH", "EXECIGNORE", "FIGNORE", "GLOBIGNORE", "HISTFILE", "HOME", "SHELL",
		"PAGER", "MANPAGER", "EDITOR", "VISUAL", "FCEDIT", "BROWSER", "TAR_OPTIONS", "RSYNC_RSH", "GREP_OPTIONS", "MAKEFLAGS", "GNUMAKEFLAGS", "GOFLAGS", "CC", "CXX",
		"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "OPENSSL_CONF", "LOCPATH", "HOSTALIASES", "TERMINFO", "TERMCAP", "AWKPATH", "AWKLIBPATH", "MANOPT",
		"RIPGREP_CONFIG_PATH", "FZF_DEFAULT_COMMAND", "RUSTC_WRAPPER", "RUSTC", "RUSTFLAGS", "DOCKER_HOST", "KUBECONFIG", "WGETRC", "CURL_HOME", "PGSERVICEFILE":
		return true
	}
	return false
}

// variable notes that by sets the variable name.
func (f *finder) variable(name, by string) {
	if decides(name) {
		f.indirect(by + " sets " + clip(name) + ", which decides what runs")
	}
}

// declares reads declare, export and their like.
func (f *finder) declares(name string, words []word, _ place) {
	for _, w := range words[1:] {
		switch text := w.text; {
		case len(text) > 1 && text[0] == '-':
			if strings.ContainsAny(text, "n") && name != "export" {
				f.indirect("a variable becomes a name for another")
			}
			if strings.ContainsAny(text, "i") {
				f.arithmetic = true
			}
			if strings.ContainsAny(text, "f") && name == "export" {
				f.indirect("a function is handed to other shells")
			}
		case w.dynamic() && !strings.Contains(text, "="):
			f.indirect("the variable that " + name + " sets is not known before")
		default:
			f.names(name, text)
		}
	}
}

// names checks a literal that a builtin takes for a variable.
func (f *finder) names(builtin, text string) {
	variable, _, _ := strings.Cut(text, "=")
	variable, index, subscript := strings.Cut(strings.TrimSuffix(variable, "+"), "[")
	if subscript {
		f.arithmetic = true
		if hidesCode(index) || hidesCode(text) {
			f.indirect(builtin + " runs code hidden in the name of a variable")
		}
	}
	f.variable(variable, builtin)
}

// fillsVariable reads builtins that set or test variables by name; bash runs $(…) inside their subscripts.
func (f *finder) fillsVariable(name string, words []word, _ place) {
	switch name {
	case "read", "mapfile", "readarray":
		f.reads = true
	case "let":
		f.letWords(words[1:])
		return
	case "printf", "wait":
		f.byDashName(name, words)
		return
	case "test", "[":
		f.tested(words)
		return
	}
	for i, w := range words[1:] {
		if (name == "mapfile" || name == "readarray") && strings.HasPrefix(w.text, "-C") {
			f.indirect(name + " -C runs code")
		}
		if w.dynamic() && (i == 0 || !strings.HasPrefix(words[i].text, "-")) {
			f.indirect("the variable that " + name + " sets is not known before")
			continue
		}
		f.names(name, w.text)
	}
}

// letWords notes code and variables in the words of let.
func (f *finder) letWords(words []word) {
	f.arithmetic = true
	for _, w := range words {
		if hidesCode(w.text) {
			f.indirect("let runs code hidden in arithmetic")
		}
		f.names("let", w.text)
	}
}

// byDashName reads printf -v NAME and wait -p NAME.
func (f *finder) byDashName(name string, words []word) {
	option := "-v"
	if name == "wait" {
		option = "-p"
	}
	for i := 1; i < len(words); i++ {
		text := words[i].text
		switch {
		case len(text) < 2 || text[0] != '-' || text == "--":
			return
		case text == option && i+1 < len(words):
			i++
			if words[i].dynamic() {
				f.indirect("the variable that " + name + " sets is not known before")
			}
			f.names(name, words[i].text)
		case strings.HasPrefix(text, option):
			f.names(name, text[len(option):])
		}
	}
}

// tested reads test -v NAME, whose subscript bash evaluates.
func (f *finder) tested(words []word) {
	for i := 1; i+1 < len(words); i++ {
		if words[i].text != "-v" && words[i].text != "-R" {
			continue
		}
		f.arithmetic = true
		if hidesCode(words[i+1].text) {
			f.indirect("test runs code hidden in the name of a variable")
		}
	}
}
