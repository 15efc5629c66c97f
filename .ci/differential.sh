# shellcheck shell=bash
# Sourced by .ci/run.

# differential_all TIME makes up scripts for that long and runs those that the policy allows in the real bash: what it
# allows must run nothing else and write nothing. DIFFSEED repeats a search.
differential_all() {
	ZEPH_DIFF=$1 ZEPH_DIFF_SEED=${DIFFSEED:-} timeout 1200 go test ./cmd/internal/difftest -run '^TestDifferential$' -count=1 -v -timeout 20m
}
