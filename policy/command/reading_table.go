package command

// readingRule returns the table of commands that follow the common rules for flags.
func readingRule(name string) (reading, bool) {
	switch name {
	case "cat":
		return reading{
			flags: "AbeEnstTuv", any: true,
			long: "show-all number number-nonblank show-ends show-tabs squeeze-blank show-nonprinting",
		}, true
	case "head", "tail":
		return reading{
			flags: "qvz", values: "nc", count: true, any: true,
			long: "lines bytes quiet silent verbose zero-terminated",
		}, true
	case "wc":
		return reading{flags: "cmlLw", any: true, long: "bytes chars lines words max-line-length total"}, true
	case "md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "b2sum":
		return reading{flags: "bt", long: "binary text tag"}, true
	case "sort":
		return reading{
			flags: "bdfghiMnRrVcCmsuz", values: "kt",
			long: "numeric-sort reverse unique human-numeric-sort version-sort ignore-case key field-separator check stable",
		}, true
	case "uniq":
		return reading{flags: "cdDiuz", values: "fsw", most: 1, long: "count repeated unique ignore-case"}, true
	case "cut":
		return reading{
			flags: "nsz", values: "bcdf",
			long: "bytes characters delimiter fields only-delimited complement output-delimiter",
		}, true
	case "nl", "tac", "rev", "column", "fold", "expand", "paste", "join", "comm":
		return reading{flags: "abstz123iu", values: "wdnv"}, true
	case "od", "hexdump", "strings", "base64":
		return reading{flags: "abcdxvCn", values: "AjNwts", long: "decode wrap", most: 1}, true
	case "diff", "cmp":
		return reading{
			flags: "abBcdeEilnNpqrsTtuwy", values: "UCWx",
			long: "unified context brief recursive side-by-side ignore-case ignore-all-space ignore-space-change color exclude",
		}, true
	}
	return listingRule(name)
}

// listingRule is the part of the table for commands that show what exists, not its content.
func listingRule(name string) (reading, bool) {
	switch name {
	case "ls":
		return reading{
			flags: "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1", values: "ITw", any: true,
			long: "all almost-all author human-readable inode reverse recursive size directory classify color sort time time-style full-time group-directories-first no-group numeric-uid-gid si width",
		}, true
	case "stat":
		return reading{
			flags: "fLtxs", values: "c", any: true,
			long: "format printf terse dereference file-system",
		}, true
	case "du", "df":
		return reading{
			flags: "0abchHiklLmPsSxT", values: "dBt",
			long: "all bytes human-readable total summarize max-depth apparent-size inodes si block-size print-type type one-file-system",
		}, true
	case "file":
		return reading{
			flags: "bhikLnNrsv0",
			long:  "brief mime mime-type mime-encoding dereference no-dereference",
		}, true
	case "realpath", "readlink":
		return reading{flags: "efmnPLsqz", long: "canonicalize canonicalize-existing canonicalize-missing"}, true
	case "tree":
		return reading{flags: "adfhilnpstDFr", values: "LIP", long: "dirsfirst noreport gitignore prune"}, true
	}
	return plainRule(name)
}

// plainRule is the part of the table for commands whose words are not paths, and for search commands.
func plainRule(name string) (reading, bool) {
	switch name {
	case "grep", "egrep", "fgrep":
		return reading{
			flags: "abcEFGhHiIlLnoPqRrsTUvwxzZ", values: "ABCDm", count: true, skip: 1,
			long: "after-context before-context context color colour count extended-regexp fixed-strings files-with-matches files-without-match ignore-case include exclude exclude-dir invert-match line-number max-count no-filename only-matching perl-regexp quiet recursive with-filename word-regexp",
		}, true
	case "rg":
		return reading{
			flags: "aceFHhiIlLnNoPqSsUvwx0", values: "ABCgmtTM", skip: 1,
			long: "after-context before-context context color count fixed-strings files-with-matches glob hidden ignore-case line-number max-count max-columns no-heading no-ignore only-matching smart-case type word-regexp",
		}, true
	case "echo":
		return reading{flags: "neE", plain: true}, true
	case "printf":
		return reading{plain: true}, true
	case "pwd":
		return reading{flags: "LP", plain: true, most: -1}, true
	case "whoami", "true", "false", ":", "groups":
		return reading{plain: true, most: -1}, true
	case "uptime", "free", "uname", "id":
		return reading{flags: "abgGhimnoprsuvwt", plain: true, most: -1}, true
	case "date":
		return reading{
			flags: "uRI", values: "d", paths: "r", plain: true, prefix: "+",
			long: "utc date iso-8601 rfc-3339 rfc-email",
		}, true
	case "which", "type":
		return reading{flags: "apt", plain: true}, true
	case "basename", "dirname":
		return reading{flags: "az", values: "s", plain: true}, true
	case "seq":
		return reading{flags: "w", values: "sf", count: true, plain: true}, true
	case "tr":
		return reading{flags: "cCdst", plain: true}, true
	case "sleep":
		return reading{plain: true, most: 1}, true
	case "test", "[":
		return reading{flags: "abcdefghklnopqrstuwxzGLNOS"}, true
	}
	return reading{}, false
}

// gitRule returns the table of reading git commands.
func gitRule(sub string) (reading, bool) {
	const show = " stat shortstat numstat name-only name-status summary patch no-patch oneline graph decorate all pretty format abbrev-commit abbrev date since until after before author committer grep max-count " +
		"no-merges merges first-parent reverse cached staged color no-color word-diff unified raw cc diff-filter find-renames follow no-renames check ignore-all-space ignore-space-change no-ext-diff no-textconv stdin-paths topo-order date-order left-right cherry-pick tags branches remotes relative "
	switch sub {
	case "status": // but not -v: it shows changes like diff, but ignores --no-textconv and --no-ext-diff
		return reading{
			flags: "sbz",
			long:  "short branch porcelain long untracked-files ignored show-stash ahead-behind no-renames",
		}, true
	case "log", "show", "diff": // but not whatchanged: new versions of git allow an alias to replace it
		return reading{flags: "psuzwbiEFRMC", values: "nUSGL", count: true, long: show}, true
	case "shortlog":
		return reading{flags: "nse", long: "numbered summary email all no-merges since until"}, true
	case "blame", "annotate":
		return reading{flags: "wesltfnMC", values: "L", long: "porcelain date show-email"}, true
	case "rev-parse":
		return reading{
			flags: "q",
			long:  "abbrev-ref short verify show-toplevel is-inside-work-tree git-dir show-prefix show-cdup symbolic-full-name",
		}, true
	case "ls-files":
		return reading{
			flags: "cdmosutvz",
			long:  "cached deleted modified others stage exclude-standard full-name",
		}, true
	case "describe":
		return reading{long: "tags all always abbrev dirty long"}, true
	case "branch":
		return reading{
			flags: "arvl", long: "all remotes list verbose show-current contains merged no-merged no-color",
			plain: true, most: -1,
		}, true
	case "tag":
		return reading{flags: "ln", long: "list contains points-at sort", plain: true, most: -1}, true
	case "remote":
		return reading{flags: "v", plain: true, most: -1}, true
	case "rev-list", "cat-file", "ls-tree", "merge-base":
		return reading{
			flags: "tperdlz", values: "n",
			long: "count all max-count name-only abbrev is-ancestor full-tree oneline",
		}, true
	}
	return reading{}, false
}
