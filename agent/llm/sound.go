package llm

import (
	"bytes"
	"encoding/binary"
	"time"
)

// Media types of sounds that a chat plays as a voice message.
const (
	OggOpus = "audio/ogg"
	MP3     = "audio/mpeg"
)

// Sound is speech that was made of a text.
type Sound struct {
	Data   []byte
	Type   string        // OggOpus or MP3
	Length time.Duration // 0 = unknown
}

// SoundOf returns what the bytes are, by their beginning; ok is false if they are neither Opus in Ogg nor MP3.
func SoundOf(data []byte) (s Sound, ok bool) {
	switch {
	case bytes.HasPrefix(data, []byte("OggS")) && bytes.Contains(data[:min(len(data), 64)], []byte("OpusHead")):
		return Sound{Data: data, Type: OggOpus, Length: opusLength(data)}, true
	case bytes.HasPrefix(data, []byte("ID3")), len(data) > 1 && data[0] == 0xFF && data[1]&0xE6 == 0xE2:
		return Sound{Data: data, Type: MP3}, true
	default:
		return Sound{}, false
	}
}

// opusRate is the number of samples a second in which the pages of a file in Ogg count Opus, whatever it was recorded
// with (RFC 7845, section 4).
const opusRate = 48_000

// opusLength returns how long Opus in Ogg lasts: its last page says how many samples end with it, of which the header
// says how many are skipped. 0 = the file does not say.
func opusLength(data []byte) time.Duration {
	head := bytes.Index(data, []byte("OpusHead"))
	last := bytes.LastIndex(data, []byte("OggS"))
	if head < 0 || head+12 > len(data) || last < 0 || last+14 > len(data) {
		return 0
	}
	samples := int64(binary.LittleEndian.Uint64(data[last+6:])) //nolint:gosec // checked below: -1 means unknown
	samples -= int64(binary.LittleEndian.Uint16(data[head+10:]))
	if samples <= 0 || samples > opusRate*24*3600 {
		return 0
	}
	return time.Duration(samples) * time.Second / opusRate
}
