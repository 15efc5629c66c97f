# shellcheck shell=bash
# Sourced by .ci/run, which sets here, scratch and flaky.

# attack_all runs every test whose name begins with TestAttack as an ordinary user: nobody where root calls. A package
# that fails does not keep the others from being tried.
attack_all() {
	local dir dirs count=0 rc=0 user
	user=$(id -un)
	if ((EUID == 0)); then user=nobody; fi
	dirs=$(grep -rl --include='*_test.go' --exclude-dir=testdata '^func TestAttack' . | xargs -r -n1 dirname | sort -u)
	for dir in $dirs; do
		# Two at once: one is linked while another one waits for what it has started.
		if ((count >= 2)); then wait -n || rc=1; fi
		count=$((count + 1))
		attack_package "$user" "$dir" "$scratch/attack.$count" &
	done
	local left
	for ((left = 0; left < 2 && left < count; left++)); do wait -n || rc=1; done
	echo "$count packages"
	((count > 0 && rc == 0))
}

# attack_package USER DIRECTORY FILES compiles the tests of a package and runs its attacks.
attack_package() {
	timeout 600 go test -c -ldflags='-s -w' -o "$3.test" "$2" || return 1
	local rc=0
	attack_twice "$@" || rc=1
	rm -f "$3.test"
	return "$rc"
}

# attack_twice USER DIRECTORY FILES tries a package that fails once more, as gotest does, and says so at the end of the run.
attack_twice() {
	attack_as "$@" && return 0
	cp "$3.out" "$3.first"
	attack_as "$@" || return 1
	{
		echo "FLAKY: package $2 (step attack, as $1), first output below"
		head -n 120 "$3.first"
		echo
	} | tee -a "$flaky"
}

attack_as() {
	compiled_as "$1" "$2" "$3.test" 600 -test.run '^TestAttack' >"$3.out" 2>&1 || {
		cat "$3.out"
		echo "the attack suite of $2 failed as $1"
		return 1
	}
	echo "ok   $2 as $1"
}

# compiled_as USER DIRECTORY PROGRAM SECONDS ARGUMENTS… runs the compiled tests of a package, at most that long (0 = as
# long as they take), in a copy of it that the user may read: a checkout or a temporary directory of root is often closed
# to others.
compiled_as() {
	local user=$1 dir=$2 program=$3 seconds=$4 place rc=0 as=()
	shift 4
	place=$(mktemp -d "${TMPDIR:-/tmp}/zephbot-attack.XXXXXX")
	# The program has a directory of its own: what a test confines may see the directory of its program.
	mkdir -p "$place/tmp" "$place/home" "$place/package" "$place/bin"
	cp "$program" "$place/bin/tests"
	cp -r "$dir/." "$place/package"
	chmod -R a+rX "$place"
	if [[ $user != "$(id -un)" ]]; then
		chown -R "$user" "$place"
		as=(setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups)
	fi
	(cd "$place/package" && env HOME="$place/home" TMPDIR="$place/tmp" "${as[@]}" \
		timeout "$seconds" ../bin/tests "$@") </dev/null || rc=$?
	chmod -R u+rwX "$place" 2>/dev/null || true
	rm -rf "$place"
	return "$rc"
}
