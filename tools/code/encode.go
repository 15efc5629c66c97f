package code

import (
	"encoding/binary"
	"errors"

	"github.com/zephbot/zephbot/tools/code/outline"
)

var errForeign = errors.New("not an outline")

// version begins every encoded outline. Another one means that the file is read again.
const version = 1

// encode encodes symbols for the store.
func encode(list []outline.Symbol) []byte {
	out := []byte{version}
	text := func(s string) {
		out = binary.AppendUvarint(out, uint64(len(s)))
		out = append(out, s...)
	}
	for i := range list {
		s := &list[i]
		text(s.Name)
		text(s.Container)
		text(string(s.Kind))
		text(s.Doc)
		for _, n := range []int{s.Start, s.Line, s.End} {
			out = binary.AppendUvarint(out, uint64(max(n, 0)))
		}
	}
	return out
}

// decode decodes what encode has encoded; anything else is an error.
func decode(data []byte) ([]outline.Symbol, error) {
	if len(data) == 0 || data[0] != version {
		return nil, errForeign
	}
	d := decoder{rest: data[1:]}
	var list []outline.Symbol
	for len(d.rest) > 0 && d.ok() && len(list) < outline.MaxSymbols {
		list = append(list, outline.Symbol{
			Name: d.text(), Container: d.text(), Kind: outline.Kind(d.text()), Doc: d.text(),
			Start: d.number(), Line: d.number(), End: d.number(),
		})
	}
	if !d.ok() || len(d.rest) > 0 {
		return nil, errForeign
	}
	return list, nil
}

type decoder struct {
	rest   []byte
	broken bool
}

func (d *decoder) ok() bool { return !d.broken }

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
