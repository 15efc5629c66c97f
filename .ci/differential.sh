# shellcheck shell=bash
# Sourced by .ci/run, after attack.sh.

# differential_all TIME spends half of it on scripts that the policy allows, run by the real bash: what it allows must run
# nothing else and write nothing. The other half is for commands in the languages of programs, run in the reading profile
# at each of its levels: none may have an effect. Where root calls, half of these are run as nobody. DIFFSEED repeats a
# search.
differential_all() {
	local rc=0 parts=2 sandbox=./tools/shell/sandbox
	export ZEPH_DIFF=$1 ZEPH_DIFF_SEED=${DIFFSEED:-}
	if ((EUID == 0)); then parts=4; fi
	go test -c -o "$scratch/effects.test" "$sandbox" || return 1
	ZEPH_DIFF_PARTS=2 go test ./cmd/internal/difftest -run '^TestDifferential$' -count=1 -v -timeout 0 || rc=1
	export ZEPH_DIFF_PARTS=$parts
	(cd "$sandbox" && "$scratch/effects.test" -test.run '^TestLanguages$' -test.v -test.timeout 0) || rc=1
	if ((EUID == 0)); then
		compiled_as nobody "$sandbox" "$scratch/effects.test" 0 -test.run '^TestLanguages$' -test.v -test.timeout 0 || rc=1
	fi
	rm -f "$scratch/effects.test"
	return "$rc"
}
