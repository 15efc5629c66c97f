package command

import "strings"

// maxValues limits the values of one word.
const maxValues = 16

// giveVariable records values of a variable.
func (f *finder) giveVariable(name string, values ...word) {
	if f.given == nil {
		f.given = map[string][]word{}
	}
	if len(f.given[name])+len(values) <= maxValues {
		f.given[name] = append(f.given[name], values...)
	}
}

// resolveWords finds what the words with variables may be. It is incomplete, which is said otherwise: a command whose
// words are not all literal is never covered by a standing approval.
func (f *finder) resolveWords() {
	if len(f.given) == 0 {
		return
	}
	for i := range f.out.Commands {
		c := &f.out.Commands[i]
		for j, text := range c.Words {
			if c.markOf(j)&MarkExpansion != 0 {
				c.Values = append(c.Values, f.expandWord(text, maxValues)...)
			}
		}
	}
}

// expandWord returns what a word in source form may be: literal text, double quotes, $NAME and ${NAME}. depth limits
// variables that contain variables.
func (f *finder) expandWord(source string, depth int) []FileName {
	if depth == 0 {
		return nil
	}
	list := []FileName{{Optional: true, Pattern: !strings.Contains(source, `"`) && strings.ContainsAny(source, "*?[")}}
	for source != "" {
		before, rest, found := strings.Cut(source, "$")
		if strings.ContainsAny(before, "`\\'(){}") {
			return nil
		}
		for i := range list {
			list[i].Name += strings.ReplaceAll(before, `"`, "")
		}
		if !found {
			break
		}
		var name string
		if name, source, found = variableIn(rest); !found {
			return nil
		}
		var next []FileName
		for _, value := range f.given[name] {
			found := []FileName{{Name: value.text, Pattern: strings.ContainsAny(value.text, "*?[")}}
			if value.isDynamic() {
				found = f.expandWord(value.text, depth-1)
			}
			for _, v := range found {
				for _, each := range list {
					next = append(next, FileName{
						Name:     each.Name + v.Name,
						Optional: true,
						Pattern:  each.Pattern || v.Pattern,
					})
				}
			}
		}
		if list = next; len(list) == 0 || len(list) > maxValues {
			return nil
		}
	}
	return list
}

// variableIn returns the variable at the beginning of what follows a dollar sign.
func variableIn(text string) (name, rest string, ok bool) {
	if braced, found := strings.CutPrefix(text, "{"); found {
		name, rest, ok = strings.Cut(braced, "}")
		return name, rest, ok && isName(name)
	}
	end := 0
	for end < len(text) && isName(text[:end+1]) {
		end++
	}
	return text[:end], text[end:], end > 0
}
