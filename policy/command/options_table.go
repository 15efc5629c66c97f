package command

import "strings"

// programTable assigns a table of options to programs.
type programTable struct{ names, options string }

// optionTable returns the table of a program by its lower-case name; "" if it has none.
func optionTable(name string) string {
	for _, find := range [...]func(string) string{buildTable, fileTable, terminalTable, reachTable} {
		if options := find(name); options != "" {
			return options
		}
	}
	// The names of interpreters and compilers often contain a version.
	stem := strings.TrimRight(name, "0123456789.-")
	if shell(stem) {
		return shellOptions
	}
	return languageTable(stem)
}

// tableIn returns the table of a program in one list.
func tableIn(list []programTable, name string) string {
	for i := range list {
		if strings.Contains(list[i].names, name) && listed(list[i].names, name) {
			return list[i].options
		}
	}
	return ""
}

// buildTable is the part for programs that build, test and install.
func buildTable(name string) string {
	list := [...]programTable{
		{"git", gitOptions},
		{"make gmake", makeOptions},
		{"npm cnpm", npmOptions},
		{"npx bunx pnpx", npxOptions},
		{"yarn pnpm", yarnOptions},
		{"go", goOptions},
		{"cargo", cargoOptions},
		{"cmake", cmakeOptions},
		{"ninja samu", ninjaOptions},
		{"gradle gradlew", gradleOptions},
		{"mvn mvnw", mvnOptions},
		{"rustc", rustcOptions},
		{"java", javaOptions},
		{"javac", javacOptions},
		{"pytest py.test", pytestOptions},
		{"pip pip3", pipOptions},
	}
	return tableIn(list[:], name)
}

// fileTable is the part for programs that work with files.
func fileTable(name string) string {
	list := [...]programTable{
		{"tar gtar bsdtar", tarOptions},
		{"find gfind", findOptions},
		{"sed gsed ssed", sedOptions},
		{"awk gawk mawk nawk", awkOptions},
		{"rsync", rsyncOptions},
		{"zip", zipOptions},
		{"unzip", unzipOptions},
		{"gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lzma zcat bzcat xzcat zstdcat", squeezeOptions},
		{"sort gsort", sortOptions},
		{"tee gtee", teeOptions},
		{"uniq guniq", uniqOptions},
		{"shuf gshuf", shufOptions},
		{"split gsplit csplit", splitOptions},
		{"xxd", xxdOptions},
		{"iconv", iconvOptions},
		{"cpio", cpioOptions},
	}
	return tableIn(list[:], name)
}

// terminalTable is the part for pagers, editors, wrappers and the system.
func terminalTable(name string) string {
	list := [...]programTable{
		{"less more most pg", lessOptions},
		{"man", manOptions},
		{"vim vi nvim view rvim rview vimdiff gvim ex", editorOptions},
		{"nano pico rnano", nanoOptions},
		{"emacs emacsclient jove mg", emacsOptions},
		{"env genv", envOptions},
		{"xargs gxargs", xargsOptions},
		{"time gtime", timeOptions},
		{"strace ltrace", straceOptions},
		{"watch", watchOptions},
		{"systemctl", systemctlOptions},
		{"journalctl", journalOptions},
		{"date gdate", dateOptions},
		{"pandoc", pandocOptions},
		{"tex latex pdftex pdflatex xetex xelatex luatex lualatex latexmk", texOptions},
		{"jq yq gojq", jqOptions},
		{"apt apt-get apt-cache aptitude dpkg dpkg-query", aptOptions},
	}
	return tableIn(list[:], name)
}

// reachTable is the part for other machines, containers and databases.
func reachTable(name string) string {
	list := [...]programTable{
		{"ssh", sshOptions},
		{"scp", scpOptions},
		{"sftp", sftpOptions},
		{"curl", curlOptions},
		{"wget wget2", wgetOptions},
		{"docker podman nerdctl", containerOptions},
		{"docker-compose podman-compose", composeOptions},
		{"kubectl oc", kubectlOptions},
		{"helm", helmOptions},
		{"terraform tofu", terraformOptions},
		{"sqlite3 sqlite", sqliteOptions},
		{"psql", psqlOptions},
		{"mysql mariadb", mysqlOptions},
		{"openssl", opensslOptions},
		{"ffmpeg", ffmpegOptions},
		{"tcpdump", tcpdumpOptions},
		{"nmap", nmapOptions},
	}
	return tableIn(list[:], name)
}

// languageTable is the part for interpreters and compilers.
func languageTable(name string) string {
	list := [...]programTable{
		{"python pypy", pythonOptions},
		{"node nodejs", nodeOptions},
		{"perl", perlOptions},
		{"ruby", rubyOptions},
		{"php php-cgi", phpOptions},
		{"lua luajit", luaOptions},
		{"deno", denoOptions},
		{"gcc g++ cc c++ clang clang++ gfortran", gccOptions},
		{"ipython rscript julia tclsh wish expect guile groovy jshell irb bun ghci octave gnuplot rake jrunscript jjs scala kotlin elixir erl swipl gimp", otherLanguages},
	}
	return tableIn(list[:], name)
}
