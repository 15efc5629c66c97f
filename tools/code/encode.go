package code

import (
	"encoding/binary"
	"errors"

	"github.com/zephbot/zephbot/policy/gram"
	"github.com/zephbot/zephbot/tools/code/outline"
)

var errForeign = errors.New("not an outline")

// version begins every encoded outline. Another one means that the file is read again.
const version = 3

// encodeKnown encodes what is known about a file for the store.
func encodeKnown(k known) []byte {
	out := []byte{version}
	for _, word := range k.grams {
		out = binary.LittleEndian.AppendUint64(out, word)
	}
	text := func(s string) {
		out = binary.AppendUvarint(out, uint64(len(s)))
		out = append(out, s...)
	}
	for i := range k.symbols {
		s := &k.symbols[i]
		text(s.Name)
		text(s.Container)
		text(string(s.Kind))
		text(s.Doc)
		text(s.body)
		for _, n := range []int{s.Start, s.Line, s.End} {
			out = binary.AppendUvarint(out, uint64(max(n, 0)))
		}
	}
	return out
}

// decodeKnown decodes what encode has encoded; anything else is an error.
func decodeKnown(data []byte) (k known, err error) {
	k.grams = &gram.Set{}
	if len(data) < 1+8*len(k.grams) || data[0] != version {
		return known{}, errForeign
	}
	d := decoder{rest: data[1:]}
	for i := range k.grams {
		k.grams[i] = binary.LittleEndian.Uint64(d.rest)
		d.rest = d.rest[8:]
	}
	for len(d.rest) > 0 && d.isOK() && len(k.symbols) < outline.MaxSymbols {
		var s symbol
		s.Name, s.Container, s.Kind, s.Doc, s.body = d.text(), d.text(), outline.Kind(d.text()), d.text(), d.text()
		s.Start, s.Line, s.End = d.number(), d.number(), d.number()
		k.symbols = append(k.symbols, s)
	}
	if !d.isOK() || len(d.rest) > 0 {
		return known{}, errForeign
	}
	return k, nil
}

type decoder struct {
	rest   []byte
	broken bool
}

func (d *decoder) isOK() bool { return !d.broken }

func (d *decoder) number() int {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > 1<<31-1 {
		d.broken, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return int(n)
}

func (d *decoder) text() string {
	n := d.number()
	if n > len(d.rest) {
		d.broken, d.rest = true, nil
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}
