package texts

import (
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/pelletier/go-toml/v2"

	"github.com/zephbot/zephbot/bot/texts/languages"
)

// library reads all languages, once.
var library = sync.OnceValue(func() *shelf { return read(languages.Files) })

// shelf is all languages.
type shelf struct {
	books    map[string]*book
	problems []string // what is missing or wrong in the files; a test demands that there is nothing
}

// in returns the book for an IETF language tag, by default English.
func in(tag string) *book {
	base, _, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(tag), "_", "-"), "-")
	if b, ok := library().books[base]; ok {
		return b
	}
	return library().books[languages.Standard]
}

// Languages lists the languages there are texts for; English, the default, first.
func (Words) Languages() []string { return languages.Tags() }

// read reads every file of a directory of languages.
func read(files fs.FS) *shelf {
	s := &shelf{books: map[string]*book{}}
	names, err := fs.Glob(files, "*.toml")
	if err != nil {
		s.problems = append(s.problems, err.Error())
	}
	standard := s.file(files, languages.Standard, nil)
	s.books[languages.Standard] = standard
	for _, name := range names {
		tag := strings.TrimSuffix(name, ".toml")
		if tag == languages.Standard {
			continue
		}
		if len(tag) != 2 {
			s.problems = append(s.problems, name+": a file is named by the two letters of its language (ISO 639-1)")
		}
		s.books[tag] = s.file(files, tag, standard)
	}
	return s
}

// file reads a language. standard is the book of English; nil for English itself.
func (s *shelf) file(files fs.FS, tag string, standard *book) *book {
	r := &reader{tag: tag}
	content := map[string]any{}
	data, err := fs.ReadFile(files, tag+".toml")
	if err == nil {
		err = toml.Unmarshal(data, &content)
	}
	if err != nil {
		r.problem("%v", err)
	}
	b, same := &book{}, reflect.Value{}
	if standard != nil {
		same = reflect.ValueOf(*standard)
	}
	r.fill("", reflect.ValueOf(b).Elem(), same, content)
	s.problems = append(s.problems, r.problems...)
	return b
}

// reader fills a book with what a file says. What the file lacks, or has with other gaps, is taken from English.
type reader struct {
	tag      string
	problems []string
}

func (r *reader) problem(format string, values ...any) {
	r.problems = append(r.problems, r.tag+".toml: "+fmt.Sprintf(format, values...))
}

// fill sets to, a part of a book, to what the file says there, or to known, the same part in English. In English itself
// known is invalid.
func (r *reader) fill(at string, to, known reflect.Value, said any) {
	switch to.Kind() {
	case reflect.String:
		to.SetString(r.sentence(at, known, said))
	case reflect.Array:
		r.forms(at, to, known, said)
	case reflect.Map:
		r.entries(at, to, known, r.table(at, said))
	case reflect.Struct:
		table := r.table(at, said)
		for i := range to.NumField() {
			field := to.Type().Field(i)
			if !field.IsExported() {
				continue
			}
			name, english := snake(field.Name), reflect.Value{}
			if known.IsValid() {
				english = known.Field(i)
			}
			value, ok := table[name]
			if ok || field.Tag.Get("catalogue") != "optional" {
				r.fill(join(at, name), to.Field(i), english, value)
			} else if known.IsValid() {
				to.Field(i).Set(english)
			}
			delete(table, name)
		}
		r.unknown(at, table)
	default:
		r.problem("%s: a %s cannot be a sentence", at, to.Kind())
	}
}

// table returns a copy of a table of the file.
func (r *reader) table(at string, said any) map[string]any {
	table, ok := said.(map[string]any)
	if !ok && said != nil {
		r.problem("%s must be a table", at)
	}
	if table = maps.Clone(table); table == nil {
		table = map[string]any{}
	}
	return table
}

// unknown reports what is left of a table.
func (r *reader) unknown(at string, rest map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		r.problem("%s is no sentence", join(at, name))
	}
}

// entries fills a map of sentences. Its keys are those of English.
func (r *reader) entries(at string, to, known reflect.Value, table map[string]any) {
	to.Set(reflect.MakeMap(to.Type()))
	keys := slices.Collect(maps.Keys(table))
	if known.IsValid() {
		keys = keys[:0]
		for _, key := range known.MapKeys() {
			keys = append(keys, key.String())
		}
	}
	slices.Sort(keys)
	for _, name := range keys {
		key, english := reflect.ValueOf(name).Convert(to.Type().Key()), reflect.Value{}
		if known.IsValid() {
			english = known.MapIndex(key)
		}
		value := reflect.New(to.Type().Elem()).Elem()
		r.fill(join(at, name), value, english, table[name])
		to.SetMapIndex(key, value)
		delete(table, name)
	}
	r.unknown(at, table)
}

// sentence returns a sentence of the file, or the English one.
func (r *reader) sentence(at string, known reflect.Value, said any) string {
	english := ""
	if known.IsValid() {
		english = known.String()
	}
	text, ok := said.(string)
	switch {
	case said == nil:
		r.problem("%s is missing", at)
	case !ok:
		r.problem("%s must be a text", at)
	case !known.IsValid():
		return text
	case strings.TrimSpace(text) == "" && english != "":
		r.problem("%s is empty", at)
	case !maps.Equal(verbs(text), verbs(english)):
		r.problem("%s must leave open what English does: %q, not %q", at, english, text)
	case !slices.Equal(inner.FindAllString(text, -1), inner.FindAllString(english, -1)):
		r.problem("%s must have the same reason in it as %q", at, english)
	case edges(text) != edges(english):
		r.problem("%s must begin and end with the same spaces as %q", at, english)
	default:
		return text
	}
	return english
}

// forms fills a sentence about a number: one for each form that the language needs.
func (r *reader) forms(at string, to, known reflect.Value, said any) {
	table := r.table(at, said)
	forms := formsOf(r.tag)
	for _, form := range forms {
		english := reflect.Value{}
		if known.IsValid() {
			english = known.Index(otherForm)
			if form == oneForm {
				english = known.Index(oneForm)
			}
		}
		name := formNames[form]
		to.Index(form).SetString(r.sentence(join(at, name), english, table[name]))
		delete(table, name)
	}
	to.Index(languageOfForms).SetString(r.tag)
	r.unknown(at, table)
}

// verb is a gap of a sentence: %s, or %[2]s for what is second in English.
var verb = regexp.MustCompile(`%(?:\[(\d+)\])?([^a-zA-Z%\[]*[a-zA-Z%])`)

// verbs lists the gaps of a sentence, by number.
func verbs(text string) map[string]string {
	found := map[string]string{}
	next := 1
	for _, m := range verb.FindAllStringSubmatch(text, -1) {
		if m[2] == "%" {
			continue
		}
		number := fmt.Sprint(next)
		if m[1] != "" {
			number = m[1]
		}
		found[number] = m[2]
		next++
	}
	return found
}

// inner is the gap of a reason inside another one.
var inner = regexp.MustCompile(`\{[:.+~]?of\}`)

// edges says whether a text begins and ends with space: such a text is a part of a sentence.
func edges(text string) [2]bool {
	return [2]bool{strings.TrimLeft(text, " \n") != text, strings.TrimRight(text, " \n") != text}
}

func join(at, name string) string { return strings.TrimPrefix(at+"."+name, ".") }

// snake is the name of a field as files write it: StoppedNothing is stopped_nothing, URL is url.
func snake(name string) string {
	var b strings.Builder
	upper := true
	for i, r := range name {
		if unicode.IsUpper(r) && !upper && i > 0 {
			b.WriteByte('_')
		}
		upper = unicode.IsUpper(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
