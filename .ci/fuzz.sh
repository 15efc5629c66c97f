# shellcheck shell=bash
# Sourced by .ci/run, which sets scratch.

# fuzz_all TIME fuzzes every target of the module for that long, one at a time. It stays short on purpose: it finds what
# a change broke, not what is deep. A package is compiled once for all of its targets.
fuzz_all() {
	local time=$1 dir binary target targets count=0
	local cache=$scratch/corpus
	mkdir -p "$cache"
	# From the sources: asking each package's test binary would link all of them.
	local dirs
	dirs=$(grep -rl --include='*_test.go' --exclude-dir=testdata '^func Fuzz' . | xargs -r -n1 dirname | sort -u)
	for dir in $dirs; do
		binary=$scratch/fuzz.test
		timeout 300 go test -c -fuzz=Fuzz -o "$binary" "$dir" || return 1
		targets=$(cd "$dir" && "$binary" -test.list '^Fuzz') || return 1
		for target in $targets; do
			fuzz_one "$dir" "$binary" "$target" "$time" || return 1
			count=$((count + 1))
		done
		rm -f "$binary"
	done
	echo "$count targets"
	((count > 0))
}

# fuzz_one DIRECTORY BINARY TARGET TIME. The fuzzing engine now and then reports its own deadline as a failure when the
# time is up ("context deadline exceeded") and has no input to show for it; that is tried once more. A failure that
# saved an input is real and is told with the input.
fuzz_one() {
	local dir=$1 binary=$2 target=$3 time=$4 try out=$scratch/fuzz.out
	for try in 1 2; do
		if (cd "$dir" && timeout 120 "$binary" -test.run='^$' -test.fuzz="^$target\$" -test.fuzztime="$time" \
			-test.fuzzcachedir="$scratch/corpus" -test.parallel=2 >"$out" 2>&1); then
			echo "ok   $dir $target: $(grep -o 'execs: [0-9]*' "$out" | tail -n 1)"
			return 0
		fi
		if ! grep -q 'context deadline exceeded' "$out" || grep -q 'Failing input written to' "$out"; then break; fi
		echo "again $dir $target: the time was up, and no input failed (try $try)"
	done
	cat "$out"
	local input
	input=$(sed -n 's/.*Failing input written to \(testdata[^ ]*\).*/\1/p' "$out" | head -n 1)
	if [[ -n $input && -f $dir/$input ]]; then
		echo "the input, $dir/$input:"
		cat "$dir/$input"
	fi
	echo "repeat it with: go test -run='^$' -fuzz='^$target\$' -fuzztime=30s $dir"
	return 1
}
