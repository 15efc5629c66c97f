package telegramtest

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-telegram/bot/models"
)

const (
	maxText     = 4096 // UTF-16 units, sendMessage
	maxCaption  = 1024
	maxEntities = 100 // the rest is dropped silently
)

// The patterns tdlib finds commands, mentions and links with; what may be around them is checked in code because RE2
// has no look-around.
var (
	commandPattern = expression(`/[a-zA-Z0-9_]{1,64}(?:@[a-zA-Z0-9_]{3,32})?`)
	mentionPattern = expression(`@[a-zA-Z0-9_]{3,32}`)
	urlPattern     = expression(`https?://[^\s<>"]+`)
)

// units is the length of s in UTF-16 code units, Telegram's measure of everything.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// detect finds bot commands, mentions and links in what a person says and merges them with the given entities.
func detect(text string, given []models.MessageEntity) []models.MessageEntity {
	out := slices.Clone(given)
	add := func(kind models.MessageEntityType, from, to int) {
		e := models.MessageEntity{Type: kind, Offset: units(text[:from]), Length: units(text[from:to])}
		for _, g := range out {
			if e.Offset < g.Offset+g.Length && g.Offset < e.Offset+e.Length && closed(g.Type) {
				return
			}
		}
		out = append(out, e)
	}
	for _, at := range urlPattern().FindAllStringIndex(text, -1) {
		add(models.MessageEntityTypeURL, at[0], at[0]+len(strings.TrimRight(text[at[0]:at[1]], ".,;:!?)")))
	}
	for _, at := range commandPattern().FindAllStringIndex(text, -1) {
		if free(text, at, "/<>") {
			add(models.MessageEntityTypeBotCommand, at[0], at[1])
		}
	}
	for _, at := range mentionPattern().FindAllStringIndex(text, -1) {
		if free(text, at, "") {
			add(models.MessageEntityTypeMention, at[0], at[1])
		}
	}
	slices.SortStableFunc(out, func(a, b models.MessageEntity) int { return cmp.Compare(a.Offset, b.Offset) })
	return out
}

// closed entities have nothing found inside them.
func closed(kind models.MessageEntityType) bool {
	switch kind {
	case models.MessageEntityTypeCode, models.MessageEntityTypePre, models.MessageEntityTypeTextLink,
		models.MessageEntityTypeTextMention, models.MessageEntityTypeURL, models.MessageEntityTypeBotCommand:
		return true
	}
	return false
}

// free says whether the match is alone: no word character and none of stop right before or after it.
func free(text string, at []int, stop string) bool {
	before, n := utf8.DecodeLastRuneInString(text[:at[0]])
	if n > 0 && (wordRune(before) || strings.ContainsRune(stop, before)) {
		return false
	}
	after, n := utf8.DecodeRuneInString(text[at[1]:])
	return n == 0 || !wordRune(after) && !strings.ContainsRune(stop, after)
}

func wordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// formatted reads text and entities (or parse_mode) of a request, checks them as Telegram does and trims the text.
// Lengths are checked by the caller, because every method has its own words for it.
func (r *request) formatted(textName, entitiesName string) (string, []models.MessageEntity, *apiError) {
	text := r.text(textName)
	var entities []models.MessageEntity
	if mode := r.text("parse_mode"); mode != "" {
		return parseMode(mode, text)
	}
	if _, fail := r.decode(entitiesName, &entities); fail != nil {
		return "", nil, fail
	}
	if fail := checkEntities(text, entities); fail != nil {
		return "", nil, fail
	}
	text, entities = trim(text, entities)
	return text, entities, nil
}

// checkEntities refuses entities that do not lie on the text.
func checkEntities(text string, entities []models.MessageEntity) *apiError {
	starts := runeStarts(text)
	total := len(starts) - 1
	for _, e := range entities {
		switch {
		case e.Type == "":
			return badRequest("can't parse MessageEntity: Field \"type\" must be of type String")
		case e.Type == models.MessageEntityTypeTextLink && e.URL == "":
			return badRequest("can't parse MessageEntity: Can't find field \"url\"")
		case e.Type == models.MessageEntityTypeTextMention && e.User == nil:
			return badRequest("can't parse MessageEntity: Can't find field \"user\"")
		case e.Offset < 0:
			return badRequest("entity has negative offset")
		case e.Length < 0:
			return badRequest("entity has negative length")
		case e.Length == 0:
			// Telegram drops empty entities without a word.
			continue
		case e.Offset+e.Length > total:
			return badRequestf(
				"entity beginning at UTF-16 offset %d ends after the end of the text at UTF-16 offset %d",
				e.Offset, e.Offset+e.Length,
			)
		case starts[e.Offset] < 0:
			return badRequestf("entity begins in a middle of a UTF-16 symbol at byte offset %d", starts[e.Offset+1])
		case starts[e.Offset+e.Length] < 0:
			return badRequestf(
				"entity beginning at UTF-16 offset %d ends in a middle of a UTF-16 symbol at byte offset %d",
				e.Offset, starts[e.Offset+e.Length+1],
			)
		}
	}
	return nil
}

// runeStarts maps every UTF-16 offset (and the end) to its byte offset, -1 inside a surrogate pair.
func runeStarts(text string) []int {
	out := make([]int, 0, len(text)+1)
	for at, r := range text {
		out = append(out, at)
		if utf16.RuneLen(r) == 2 {
			out = append(out, -1)
		}
	}
	return append(out, len(text))
}

// trim removes white space at the end, and at the start up to the first entity, as Telegram does, and cuts the entities
// to what is left.
func trim(text string, entities []models.MessageEntity) (string, []models.MessageEntity) {
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	lead := units(text) - units(strings.TrimLeftFunc(text, unicode.IsSpace))
	for _, e := range entities {
		if e.Length > 0 {
			lead = min(lead, e.Offset)
		}
	}
	// White space lies in the basic plane: one unit, one rune.
	for range lead {
		_, n := utf8.DecodeRuneInString(text)
		text = text[n:]
	}
	total := units(text)
	var out []models.MessageEntity
	for _, e := range entities {
		e.Offset -= lead
		e.Length = min(e.Length, total-e.Offset)
		if e.Length > 0 {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b models.MessageEntity) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length))
	})
	return text, out[:min(len(out), maxEntities)]
}

// sameContent compares what "message is not modified" compares.
func sameContent(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// expression compiles a pattern when it is first needed: the simulator carries this package into every process.
func expression(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
