# Reads the exceptions ("file:line reason", # comments) and then a cover profile; prints the blocks that no test ran,
# and fails when there are any, or when an exception is not one any more.
FNR == 1 { part++ }
part == 1 {
	if ($0 ~ /^[ \t]*(#|$)/) next
	if (NF < 2) { print FILENAME ":" FNR ": an exception needs a reason"; bad = 1; next }
	except[$1] = FILENAME ":" FNR
	next
}
/^mode: / { next }
{
	# file.go:from.column,to.column statements count
	if ($2 == 0) next # an empty block
	place = $1
	sub("^" module, "", place)
	total[place] = $2
	if ($3 > 0) run[place] = 1
}
END {
	for (place in total) {
		all += total[place]
		if (place in run) { done += total[place]; continue }
		match(place, /:[0-9]+\./)
		line = substr(place, 1, RSTART - 1) substr(place, RSTART, RLENGTH - 1)
		if (line in except) { used[line] = 1; done += total[place]; continue }
		print line ": not run by a test (" total[place] " statements)" | "sort -t: -k1,1 -k2,2n"
		missing = 1
	}
	close("sort -t: -k1,1 -k2,2n")
	for (line in except) if (!(line in used)) { print except[line] ": " line " is run by tests now; take the exception away"; bad = 1 }
	if (!all) { print "no statements: the profile is empty"; exit 1 }
	printf "covered: %d of %d statements of policy\n", done, all
	exit missing || bad
}
