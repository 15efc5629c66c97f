// Package difftest compares what the policy allows with what bash does: scripts are made up, those that the policy
// would run without asking are run by the real bash in a scratch directory, and it is a finding when a command ran that
// no rule allows, or a file was written.
//
// Only harmless words are made up, programs are stand-ins, and the scripts run with few rights (see shell). `go test`
// plays a few thousand scripts from a fixed seed; ZEPH_DIFF=60s plays for that long, from ZEPH_DIFF_SEED or a new seed.
package difftest
