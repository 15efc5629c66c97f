package code

import (
	"slices"
	"strings"
)

// synonyms are words that programs and people use for the same thing, a group a line. They are about programs in
// general; what words mean in a single field is left to the search by meaning.
const synonyms = `
remove delete drop discard erase clear unregister
add append insert put register
create build construct generate new
fetch get load retrieve obtain read
receive read accept
send write post publish deliver emit
return release restore put back
wait sleep pause delay block
delay backoff interval pause
retry repeat again attempt
start begin launch run open
stop close end shutdown finish terminate quit
choose select pick decide
check verify validate ensure
detect check probe
change update modify set edit
convert transform parse decode unmarshal
encode marshal serialize format
join merge combine aggregate concat
split divide partition separate
error failure fault problem
show display print render
user person member people somebody
number count size length
sum total
limit maximum bound cap
list enumerate iterate
connect dial open
picture photo image
compute calculate
option setting config preference parameter
lock mutex
goroutine thread worker
copy clone duplicate
admin administrator
ban block deny forbid reject
master primary leader
replica slave follower secondary
hash digest checksum crc
hook callback listener
queue pending backlog
server host address
permission right access
login signin authentication
password secret credential
log trace record
variable field attribute property
folder directory
reply answer response
question query request
`

// synonymsOf returns the words that stand for each word of a question besides itself, as they are compared.
func synonymsOf(words []string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(synonyms) {
		group := strings.Fields(line)
		for i, word := range group {
			group[i] = normalWord(word)
		}
		for _, word := range group {
			if !slices.Contains(words, word) {
				continue
			}
			for _, other := range group {
				if other != word && !slices.Contains(words, other) && !slices.Contains(out[word], other) {
					out[word] = append(out[word], other)
				}
			}
		}
	}
	return out
}
