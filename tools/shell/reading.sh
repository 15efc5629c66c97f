# Stands before a script whose git commands only read, in place of git. A repository may name programs in its configuration; none of them is run here, whatever
# it says: what git takes from there is overridden by name, and programs that have names of their own in it are looked up first.
git() (
	while :; do
		case ${1-} in
		--no-pager | -P | --no-optional-locks) shift ;;
		--literal-pathspecs) export GIT_LITERAL_PATHSPECS=1 && shift ;;
		*) break ;;
		esac
	done
	version=$(command git version) || exit
	version=${version#git version }
	minor=${version#*.}
	if [ "${version%%.*}" -lt 2 ] || [ "${version%%.*}" -eq 2 ] && [ "${minor%%.*}" -lt 38 ]; then
		echo "git $version cannot read a repository without running what it says; 2.38 can" >&2
		exit 128
	fi
	unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG GIT_CONFIG_PARAMETERS \
		GIT_EXEC_PATH GIT_EXTERNAL_DIFF GIT_SSH GIT_PROXY_COMMAND GIT_TRACE GIT_TRACE2 GIT_TRACE2_EVENT
	export GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_OPTIONAL_LOCKS=0 GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL=none \
		GIT_TERMINAL_PROMPT=0 GIT_PAGER=cat GIT_EDITOR=false GIT_SSH_COMMAND=false GIT_ASKPASS=false SSH_ASKPASS=false
	count=0
	set_() {
		export "GIT_CONFIG_KEY_$count=$1" "GIT_CONFIG_VALUE_$count=$2"
		count=$((count + 1))
		export GIT_CONFIG_COUNT="$count"
	}
	for setting in safe.bareRepository=explicit core.fsmonitor=false core.hooksPath=/dev/null core.attributesFile=/dev/null \
		core.sshCommand=false core.gitProxy= core.alternateRefsCommand=true credential.helper= log.showSignature=false \
		gpg.program=false gpg.openpgp.program=false gpg.x509.program=false gpg.ssh.program=false gpg.ssh.defaultKeyCommand=false \
		diff.submodule=short diff.ignoreSubmodules=dirty status.submoduleSummary=false submodule.recurse=false \
		gc.auto=0 maintenance.auto=false protocol.allow=never; do
		set_ "${setting%%=*}" "${setting#*=}"
	done
	top=$(command git rev-parse --show-toplevel 2>/dev/null)
	if [ -n "$top" ]; then
		case $(pwd -P)/ in
		"$top"/*) ;;
		*) top= ;;
		esac
		if [ -z "$top" ] || [ ! -e "$top/.git" ]; then
			echo "git: this repository has its working tree elsewhere (core.worktree), so it is not read without approval" >&2
			exit 128
		fi
	fi
	names=$(
		command git config --list --name-only
		command git config --file "$top/.gitmodules" --list --name-only
		command git config --blob :.gitmodules --list --name-only
		command git config --blob HEAD:.gitmodules --list --name-only
	) 2>/dev/null
	while IFS= read -r name; do
		case $name in
		filter.*.clean | filter.*.smudge | filter.*.process) set_ "$name" "" ;;
		filter.*.required) set_ "$name" false ;;
		submodule.*.path) set_ "${name%.*}.ignore" dirty ;;
		esac
	done <<-END
		$names
	END
	sub=${1-}
	[ $# -eq 0 ] || shift
	case $sub in
	diff | log | show) set -- --no-ext-diff --no-textconv --ignore-submodules=dirty "$@" ;;
	blame | annotate) set -- --no-textconv "$@" ;;
	status) set -- --ignore-submodules=dirty "$@" ;;
	esac
	command git --no-pager "$sub" "$@"
)
