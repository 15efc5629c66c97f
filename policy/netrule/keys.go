package netrule

import (
	"bytes"
	"crypto/sha256"
	"slices"
)

// keySize is the size of what a Keys keeps of an address, in bytes.
const keySize = 8

// Keys is a set of addresses of which only hashes are kept, in the order in which they were added. The zero value is
// empty. It is encoded as bytes.
type Keys []byte

func keyOf(plain string) []byte {
	sum := sha256.Sum256([]byte(plain))
	return sum[:keySize]
}

// KeysOf returns the set of some addresses in plain form.
func KeysOf(list ...string) Keys {
	var k Keys
	for _, plain := range list {
		k = k.with(keyOf(plain))
	}
	return k
}

// Has reports whether an address in plain form is in the set.
func (k Keys) Has(plain string) bool { return k.index(keyOf(plain)) >= 0 }

// Len returns the number of addresses.
func (k Keys) Len() int { return len(k) / keySize }

// Add returns the set with those of another one, without the oldest ones if there are more than most. The receiver is
// not changed.
func (k Keys) Add(more Keys, most int) Keys {
	out := slices.Clone(k)
	for i := 0; i+keySize <= len(more); i += keySize {
		out = out.with(more[i : i+keySize])
	}
	if over := out.Len() - most; over > 0 {
		out = slices.Clone(out[over*keySize:])
	}
	return out
}

func (k Keys) with(key []byte) Keys {
	if k.index(key) >= 0 {
		return k
	}
	return append(k, key...)
}

func (k Keys) index(key []byte) int {
	for i := 0; i+keySize <= len(k); i += keySize {
		if bytes.Equal(k[i:i+keySize], key) {
			return i
		}
	}
	return -1
}
