package when

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	// Zones do not depend on what is installed on a machine: containers without any are common.
	_ "time/tzdata"

	"github.com/zephbot/zephbot/policy/nearest"
)

// zoneList is the names of zones that people can choose, one a line, sorted: those of areas and places in the zone
// database of Go, and UTC. A test compares it with that database. Behind each name is the ISO 3166 code of its country,
// as zone.tab of the database of IANA (2025b) has it.
//
//go:embed zones.txt
var zoneList string

// zones returns the names, and the same by their lower-case form.
var zones = sync.OnceValues(func() (names []string, lower map[string]string) {
	lower = map[string]string{}
	for line := range strings.Lines(zoneList) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		names = append(names, name)
		lower[strings.ToLower(name)] = name
	}
	return names, lower
})

// Country returns the ISO 3166 code of the country of a zone; "" = it has none, or there is no such zone.
func Country(name string) string {
	for line := range strings.Lines(zoneList) {
		if zone, country, _ := strings.Cut(strings.TrimSpace(line), " "); zone == name {
			return country
		}
	}
	return ""
}

// ErrZone means that there is no zone of a name.
var ErrZone = errors.New("there is no such time zone")

// Zone returns the time zone of a name such as "Europe/Berlin", in any case, and its usual spelling. Blanks may be
// for underlines, and the name of a place for the whole, if there is only one of it. Nothing else is a name: no
// abbreviation, no offset and no path, so that nothing of what is written reaches a file
// system. The error wraps ErrZone.
func Zone(text string) (zone *time.Location, name string, err error) {
	names, lower := zones()
	wanted := strings.ToLower(strings.Join(strings.Fields(text), "_"))
	name, ok := lower[wanted]
	if !ok {
		name, ok = place(names, wanted)
	}
	if !ok {
		return nil, "", fmt.Errorf("%q: %w", shorten(text), ErrZone)
	}
	zone, err = time.LoadLocation(name)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, ErrZone)
	}
	return zone, name, nil
}

// place finds the one zone that ends with the name of a place.
func place(names []string, wanted string) (string, bool) {
	found := ""
	for _, name := range names {
		if wanted == "" || !strings.HasSuffix(strings.ToLower(name), "/"+wanted) {
			continue
		}
		if found != "" {
			return "", false
		}
		found = name
	}
	return found, found != ""
}

// Near lists at most three names that are similar to a text which is no zone, the most similar first.
func Near(text string) []string {
	names, _ := zones()
	wanted := strings.ToLower(strings.Join(strings.Fields(text), "_"))
	if runes := []rune(wanted); len(runes) > 40 || len(runes) < 3 {
		return nil
	}
	var list []string
	rest := slices.Clone(names)
	for len(list) < 3 {
		near, ok := similar(wanted, rest)
		if !ok {
			break
		}
		list = append(list, near)
		rest = slices.DeleteFunc(rest, func(n string) bool { return n == near })
	}
	return list
}

// similar finds a name by the whole of it, by its place, or by a part of its place.
func similar(wanted string, names []string) (string, bool) {
	byKey := map[string]string{}
	var keys []string
	for _, name := range names {
		lower := strings.ToLower(name)
		for _, key := range []string{lower, lower[strings.LastIndexByte(lower, '/')+1:]} {
			if _, ok := byKey[key]; !ok {
				byKey[key] = name
				keys = append(keys, key)
			}
		}
	}
	if near, ok := nearest.Nearest(wanted, keys); ok {
		return byKey[near], true
	}
	for _, name := range names {
		if strings.Contains(strings.ToLower(name), wanted) {
			return name, true
		}
	}
	return "", false
}

// Names lists the names of all zones, sorted.
func Names() []string {
	names, _ := zones()
	return slices.Clone(names)
}
