package telegramtest

import (
	"bytes"
	"image"
	_ "image/jpeg" // formats of photos
	_ "image/png"

	_ "golang.org/x/image/webp"
)

// checkPhoto refuses an upload that is no photo within the limits of sendPhoto: 10 MB, width and
// height 10 000 together, ratio 20.
func checkPhoto(kind string, data []byte) *apiError {
	if kind != "photo" {
		return nil
	}
	if len(data) > 10<<20 {
		return badRequestf(
			"file of size %d bytes is too big for a photo; the maximum size is 10485760 bytes", len(data),
		)
	}
	head, _, err := image.DecodeConfig(bytes.NewReader(data))
	switch {
	case err != nil:
		return badRequest("IMAGE_PROCESS_FAILED")
	case head.Width+head.Height > 10_000, head.Width > 20*head.Height, head.Height > 20*head.Width:
		return badRequest("PHOTO_INVALID_DIMENSIONS")
	}
	return nil
}
