# Takes the output of go test over several packages apart. It prints what one package's tests said right before the
# line that ends the package: "ok <tab> PACKAGE", "FAIL <tab> PACKAGE <tab> TIME", or "<tab> PACKAGE <tab> coverage".
#
#   mode=show  ok lines, and all that the failed packages said
#   mode=list  "failed PACKAGE TESTS" or "broken PACKAGE" for each package that failed; broken is what a second run cannot
#              mend; TESTS are those that failed, joined by |, or nothing if one of them ended all others
#   mode=one   what the package called want said
function reset() { n = 0; hangs = 0; ended = 0; names = "" }
BEGIN { FS = "\t"; reset() }
/^FAIL\t/ {
	pkg = $2
	sub(/ \[.*\]$/, "", pkg)
	kind = "failed"
	if ($0 ~ /\[(build|setup) failed\]/ || hangs) kind = "broken"
	if (mode == "list") print kind " " pkg " " (ended ? "" : names)
	if (mode == "show" || (mode == "one" && pkg == want)) {
		for (i = 0; i < n; i++) print held[i]
		print
	}
	reset()
	next
}
/^(ok  |\?   )\t/ || /^\t[^\t]+\t+coverage: / {
	if (mode == "show") print
	reset()
	next
}
/^FAIL$/ { next }
{
	if ($0 ~ /^panic: test timed out after /) hangs = 1
	if ($0 ~ /^(panic|fatal error|runtime): /) ended = 1
	if ($0 ~ /^--- FAIL: /) {
		split($0, words, " ")
		names = names (names == "" ? "" : "|") words[3]
	}
	held[n++] = $0
}
# What is left belongs to no package: errors of the go command itself.
END { if (mode == "show") for (i = 0; i < n; i++) print held[i] }
