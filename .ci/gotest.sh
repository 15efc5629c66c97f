# shellcheck shell=bash
# Sourced by .ci/run, which sets scratch and flaky.
#
# Tests that fail are run once more, alone: those of a package that failed, or all of it if one of them ended the rest. A machine that does several things at once can make a test
# fail that is right about the program, and a day's work must not be thrown away for that. But a test that fails now
# and then is itself wrong, or has found something: so it is never silent. It is printed when it happens, with the first
# output, and again at the very end of the run. What fails twice fails; so does at once what time will not heal: code
# that does not compile, and a test that hangs. So does a test that breaks the service by a plan: what a fault hits depends on
# the moment, so a second run breaks something else, and would hide a promise that the first one saw broken.

# gotest STEP ARGUMENT… runs go test with the arguments, of which the last are package patterns.
gotest() {
	local step=$1
	shift
	local out=$scratch/out.$step rc=0
	# What the compiler says goes to stderr, what tests say to stdout, package by package.
	go test "$@" >"$out" 2>"$out.err" || rc=$?
	grep -v '^go: downloading ' "$out.err" || true
	# The lines of packages that passed, and everything that the others said.
	awk -v mode=show -f "$here/packages.awk" "$out"
	if ((rc == 0)); then return 0; fi

	local verdicts
	verdicts=$(awk -v mode=list -f "$here/packages.awk" "$out")
	if [[ -z $verdicts ]]; then
		echo "go test failed and named no package"
		return 1
	fi
	if grep -q '^broken ' <<<"$verdicts"; then
		echo "not tried again, because it does not compile or hangs:"
		sed -n 's/^broken \([^ ]*\).*/  \1/p' <<<"$verdicts"
		return 1
	fi
	local flags=() arg
	for arg in "$@"; do
		if [[ $arg != ./* ]]; then flags+=("$arg"); fi
	done
	local pkg names only again=0
	while read -r _ pkg names; do
		if [[ $pkg == */cmd/internal/crashtest ]]; then
			echo "=== not tried again, because its faults hit something else the next time: $pkg"
			again=1
			continue
		fi
		only=()
		if [[ -n $names ]]; then only=(-run "^($names)\$"); fi
		# The last -p counts.
		if go test -count=1 "${flags[@]}" -p 1 "${only[@]}" "$pkg" >"$scratch/again" 2>&1; then
			note_flake "$step" "$pkg" "$out"
		else
			echo "=== failed again, alone: $pkg"
			cat "$scratch/again"
			again=1
		fi
	done <<<"$verdicts"
	return "$again"
}

# note_flake STEP PACKAGE OUTPUT says it loudly, now and at the end.
note_flake() {
	{
		echo "FLAKY: package $2 (step $1), first output below"
		awk -v mode=one -v want="$2" -f "$here/packages.awk" "$3" | head -n 120
		echo
	} | tee -a "$flaky"
}
