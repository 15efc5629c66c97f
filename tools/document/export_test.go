package document

import "io"

// Read is what the process does with all kinds but PDF.
func Read(r io.ReaderAt, size int64, kind Kind) (string, bool, error) {
	return readDocument(r, size, kind, nil)
}
