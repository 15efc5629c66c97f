# Stands in place of git before what a call runs that nobody has approved word for word. A repository may name programs in its configuration; none of them is run,
# whatever it says: what it sets that names a program is overridden, and what has a name of its own there is looked up first. The machine's configuration stays.
# An option that names a program (-c, --ext-diff, --textconv) counts: it is in the text, and asks unless a rule names it.
git() (
	set -f
	IFS='
'
	unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT \
		GIT_EXEC_PATH GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND GIT_TEMPLATE_DIR GIT_TRACE
	export GIT_TRACE2=0 GIT_TRACE2_EVENT=0 GIT_TRACE2_PERF=0 GIT_TERMINAL_PROMPT=0 GIT_PAGER=cat

	# Each word goes from the front of the list to its end.
	sub='' value='' ended='' reading=$GIT_ONLY_READS
	for word; do
		shift
		case $value in
		-C) cd "$word" || exit 128 ;;
		--git-dir) export GIT_DIR="$word" ;;
		--work-tree) export GIT_WORK_TREE="$word" ;;
		?*) set -- "$@" "$word" ;;
		esac
		[ -z "$value" ] || { value='' && continue; }
		if [ -z "$sub" ]; then
			case $word in
			-C | --git-dir | --work-tree) value=$word ;;
			-c | --config-env | --namespace | --attr-source) value=$word && set -- "$@" "$word" ;;
			--git-dir=*) export GIT_DIR="${word#*=}" ;;
			--work-tree=*) export GIT_WORK_TREE="${word#*=}" ;;
			--no-pager | -P | --no-optional-locks) ;;
			--literal-pathspecs) export GIT_LITERAL_PATHSPECS=1 ;;
			-*) set -- "$@" "$word" ;;
			*) sub=$word && set -- "$@" "$word" ;;
			esac
			case $sub in
			diff | log | show) set -- "$@" --no-ext-diff --no-textconv --ignore-submodules=dirty && reading=1 ;;
			blame | annotate) set -- "$@" --no-textconv && reading=1 ;;
			status) set -- "$@" --ignore-submodules=dirty && reading=1 ;;
			shortlog | describe | ls-files | ls-tree | rev-parse | rev-list | cat-file | merge-base | grep | name-rev | show-ref | for-each-ref) reading=1 ;;
			esac
			continue
		fi
		case $ended$word in
		--) ended=. ;;
		--submodule=diff) word=--submodule=log ;; # runs git within it, which asks its configuration alone
		esac
		set -- "$@" "$word"
	done

	# Where the kernel keeps git from doing more than reading, this is for right results alone. Elsewhere what only reads must not enter a bare repository that
	# somebody has put into a directory, which 2.38 can refuse.
	needed=31 # GIT_CONFIG_COUNT
	[ -z "$reading" ] || [ -n "$GIT_ONLY_READS" ] || needed=38
	version=$(command git version) || exit
	version=${version#git version }
	minor=${version#*.}
	if [ "${version%%.*}" -lt 2 ] || [ "${version%%.*}" -eq 2 ] && [ "${minor%%.*}" -lt $needed ]; then
		echo "git $version cannot be used without running what a repository says; 2.$needed can, or an approval of this call" >&2
		exit 128
	fi
	count=0
	set_() {
		export "GIT_CONFIG_KEY_$count=$1" "GIT_CONFIG_VALUE_$count=$2"
		count=$((count + 1))
		export GIT_CONFIG_COUNT="$count"
	}
	# What the machine says, or the second word; the home directory is the workspace or empty.
	machine() {
		command git config --system --get "$1" 2>/dev/null || { [ -n "$GIT_CONFIG_GLOBAL" ] && command git config --global --get "$1" 2>/dev/null; } || echo "$2"
	}
	modules='' hooks='' top=''
	{
		IFS= read -r modules
		IFS= read -r hooks
		IFS= read -r top
	} <<-END
		$(command git rev-parse --git-path modules --git-path hooks --show-toplevel 2>/dev/null)
	END
	for setting in core.fsmonitor=false core.alternateRefsCommand=true protocol.ext.allow=never protocol.fd.allow=never; do
		set_ "${setting%%=*}" "${setting#*=}"
	done
	if [ -n "$reading" ]; then
		export GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_OPTIONAL_LOCKS=0 GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL=none \
			GIT_EDITOR=false GIT_SSH_COMMAND=false GIT_ASKPASS=false SSH_ASKPASS=false
		for setting in safe.bareRepository=explicit core.hooksPath=/dev/null core.attributesFile=/dev/null core.gitProxy= credential.helper= log.showSignature=false \
			gpg.program=false gpg.openpgp.program=false gpg.x509.program=false gpg.ssh.program=false gpg.ssh.defaultKeyCommand=false \
			diff.submodule=short diff.ignoreSubmodules=dirty status.submoduleSummary=false submodule.recurse=false gc.auto=0 maintenance.auto=false protocol.allow=never; do
			set_ "${setting%%=*}" "${setting#*=}"
		done
		# With safe.bareRepository another repository may be found.
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
	else
		machines=$(machine core.hooksPath /dev/null)
		[ "$machines" = /dev/null ] || hooks=''
		set_ core.hooksPath "$machines"
	fi
	# The other end of a push to a directory is git with the configuration and the hooks of that directory alone.
	[ "$sub" != push ] || set_ protocol.file.allow never

	names=$(
		exec 2>/dev/null
		command git config --list --name-only --show-scope
		[ ! -d "$modules" ] || find "$modules" -name objects -prune -o -name config -type f -print | while IFS= read -r file; do
			command git config --file "$file" --list --name-only | sed 's/^/submodule	/'
		done
		if [ -n "$reading" ]; then
			command git config --file "$top/.gitmodules" --list --name-only | sed 's/^/submodule	/'
			command git config --blob :.gitmodules --list --name-only | sed 's/^/submodule	/'
			command git config --blob HEAD:.gitmodules --list --name-only | sed 's/^/submodule	/'
		elif [ -n "$top" ]; then
			command git -C "$top" ls-files -s | sed -n 's/^160000 [^	]*	//p' | while IFS= read -r module; do
				[ ! -e "$top/$module/.git" ] || command git -C "$top/$module" config --list --name-only --show-scope
			done
		fi
	)
	off=''
	while IFS='	' read -r scope name; do
		case $name in
		filter.*.clean | filter.*.smudge | filter.*.process)
			[ -z "$reading" ] || { set_ "$name" '' && continue; }
			;;
		filter.*.required | submodule.*.path | diff.*.textconv)
			case $reading$name in
			1filter.*) set_ "$name" false ;;
			1submodule.*) set_ "${name%.*}.ignore" dirty ;;
			diff.* | 1diff.*) set_ "$name" cat ;;
			esac
			continue
			;;
		esac
		case $reading$scope in
		local | worktree | submodule) ;;
		global) [ -z "$GIT_CONFIG_GLOBAL" ] || continue ;;
		*) continue ;;
		esac
		case $name in
		filter.*) set_ "$name" "$(machine "$name" '')" && off="$off ${name%.*}" ;;
		diff.external | diff.*.command) ;; # only git diff asks, and is told not to
		merge.*.driver) set_ "$name" "$(machine "$name" 'git merge-file %A %O %B')" ;;
		core.sshcommand) set_ "$name" "$(machine "$name" ssh)" ;;
		core.editor | sequence.editor) set_ "$name" "$(machine "$name" false)" ;;
		core.askpass | core.gitproxy) set_ "$name" "$(machine "$name" '')" ;;
		credential.helper | credential.*.helper)
			set_ "$name" ''
			while IFS= read -r helper; do
				[ -z "$helper" ] || set_ credential.helper "$helper"
			done <<-END
				$(command git config --system --get-all credential.helper 2>/dev/null)
			END
			;;
		gpg.program | gpg.openpgp.program) set_ "$name" "$(machine "$name" gpg)" ;;
		gpg.x509.program) set_ "$name" "$(machine "$name" gpgsm)" ;;
		gpg.ssh.program) set_ "$name" "$(machine "$name" ssh-keygen)" ;;
		gpg.ssh.defaultkeycommand) set_ "$name" "$(machine "$name" false)" ;;
		remote.*.uploadpack) set_ "$name" git-upload-pack ;;
		remote.*.receivepack) set_ "$name" git-receive-pack ;;
		submodule.*.update) set_ "$name" checkout ;;
		interactive.difffilter) set_ "$name" cat ;;
		hook.*.command) set_ "$name" true ;;
		alias.*) case $(command git config --get "$name") in !*) set_ "$name" '!false' ;; esac ;;
		man.*.path | browser.*.path | difftool.*.path | mergetool.*.path | *.command | *.cmd | *hook | sendemail.*cmd | sendemail.smtpserver | imap.tunnel)
			set_ "$name" "$(machine "$name" false)"
			;;
		esac
	done <<-END
		$names
	END
	case $sub in
	add | commit | merge | rebase | pull | push | checkout | switch | restore | reset | stash | cherry-pick | revert | am)
		set +f
		for hook in "${hooks:-/dev/null}"/*; do
			case $hook in *.sample) ;; *) [ ! -f "$hook" ] || [ ! -x "$hook" ] || { off="$off hooks" && break; } ;; esac
		done
		[ -z "$off" ] || echo "git: nobody approved this call word for word, so what this repository starts is off:$off" >&2
		;;
	esac
	command git --no-pager "$@"
)
