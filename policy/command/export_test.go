package command

import "strings"

// ParseWithoutFinder parses text for a walker that panics at the first command.
func ParseWithoutFinder(text string) (problem string) { return (*finder)(nil).parse(text, place{}) }

// ReadPlain reads text by the plain grammar alone and says why it is not plain, or "".
func ReadPlain(text string) string {
	reason, _ := readPlain(text, nil).differs(nil)
	return reason
}

// TableOf returns the table of options of a program.
func TableOf(name string) string { return optionTable(strings.ToLower(name)) }

// Tabled names one program of each table.
const Tabled = "git make npm npx yarn go cargo cmake ninja gradle mvn rustc java javac pytest pip tar find sed awk rsync zip unzip gzip sort tee uniq shuf split xxd iconv cpio " +
	"less man vim nano emacs env xargs time strace watch systemctl journalctl date pandoc pdflatex jq apt ssh scp sftp curl wget docker docker-compose kubectl helm terraform " +
	"sqlite3 psql mysql openssl ffmpeg tcpdump nmap python node perl ruby php lua deno gcc julia bash"

// Panicked returns what a panic of the parser becomes.
func Panicked(value any) error { return panicked(value) }

// SedShows reports whether a sed script certainly only prints and substitutes.
func SedShows(script string) bool { return sedShows(script) }

// SedPrints reports whether a sed script, parsed as GNU sed parses it, runs and uses nothing.
func SedPrints(script string) bool { return sedScript(script) == sedPrints }
