package attach_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/blob/blobtest"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/attach"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools/document"
	"github.com/zephbot/zephbot/tools/document/documenttest"
)

// shelf is a channel's files by id. "cut" breaks off, "away" fails, "gone" and "large" are refused.
type shelf struct {
	mu      sync.Mutex
	files   map[string][]byte
	limit   int64
	fails   int // so many downloads break off before one works
	fetched []string
}

func (s *shelf) FileLimit() int64 { return s.limit }

func (s *shelf) Fetch(_ context.Context, id string) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched = append(s.fetched, id)
	switch id {
	case "gone":
		return nil, fmt.Errorf("refused: %w", bot.ErrFileGone)
	case "large":
		return nil, fmt.Errorf("refused: %w", bot.ErrFileTooLarge)
	case "away":
		return nil, errors.New("no connection")
	}
	data, ok := s.files[id]
	if !ok {
		return nil, bot.ErrFileGone
	}
	if s.fails > 0 {
		s.fails--
		return io.NopCloser(io.MultiReader(bytes.NewReader(data[:len(data)/2]), broken{})), nil
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// broken is a connection that breaks off.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// scribe writes down what is said.
type scribe struct {
	text string
	err  error
	name string
	data int
}

func (s *scribe) Transcribe(_ context.Context, name string, recording io.Reader, _ int64, _ time.Duration) (string, float64, error) {
	data, err := io.ReadAll(recording)
	s.name, s.data = name, len(data)
	return s.text, 0.006, errors.Join(s.err, err)
}

// inside reads documents without a process, by their kind alone.
type inside struct{}

func (inside) Text(_ context.Context, f *os.File, kind document.Kind) (string, bool, error) {
	switch kind {
	case document.Zip:
		return "", false, document.ErrTooLarge
	case document.Old:
		return "", false, document.ErrLocked
	case document.Tar:
		return "", false, document.ErrUnknown
	case document.Packed:
		return "a.txt, 5 bytes, needs a password", false, document.ErrLocked
	case document.Encoded:
		return strings.Repeat("ß", 5000), true, nil
	case document.HTML:
		return " ", false, nil
	case document.RTF:
		return "", false, nil
	case document.PDF:
		if raw, _ := io.ReadAll(f); strings.Contains(string(raw), "scan") {
			return "", false, nil
		}
		return "the text of a pdf", false, nil
	default:
		return "the text of a " + string(kind), false, nil
	}
}

func (inside) Pages(context.Context, *os.File) ([][]byte, int, error) {
	return [][]byte{documenttest.JPEG(20, 30), documenttest.JPEG(20, 30)}, 9, nil
}

type world struct {
	*shelf
	dir   string
	blobs *blobtest.Store
	deps  attach.Deps
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{shelf: &shelf{files: map[string][]byte{}}, dir: t.TempDir(), blobs: &blobtest.Store{}}
	w.deps = attach.Deps{
		Files: w.shelf, Blobs: w.blobs, Documents: inside{}, Accepts: func() llm.Accepts { return llm.Accepts{Image: true} }, Words: texts.Words{}, Log: zerolog.Nop(),
		Dir: func(channel string, session bot.SessionKey, workspace string) (string, error) {
			if channel != "test" || session != "s" || workspace != "w" {
				t.Errorf("the workspace of %s %s %s", channel, session, workspace)
			}
			return w.dir, nil
		},
		Wrap: func(from source.Source, text string) (string, []string) {
			var rules []string
			if strings.Contains(text, "obey") {
				rules = []string{"orders"}
			}
			return "<" + string(from) + "|" + text + ">", rules
		},
	}
	return w
}

func (w *world) receive(t *testing.T, files ...bot.Attachment) turn.Received {
	t.Helper()
	got, err := attach.New(w.deps).Receive(cost.WithPayer(t.Context(), cost.Unlimited{}), &turn.Sent{
		Message: &bot.Message{Files: files, Place: bot.Place{Channel: "test"}}, Session: "s", Workspace: "w", Turn: "test-7/1",
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// stored lists what is in the workspace.
func (w *world) stored(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// summed is what became of files, in a line each.
func summed(got turn.Received) []string {
	var lines []string
	for _, p := range got.Parts {
		line := strings.TrimSpace(string(p.Kind) + " " + p.Label)
		if p.Hash != "" {
			line += " kept"
		}
		lines = append(lines, strings.TrimSpace(line+" "+p.Text))
	}
	for _, n := range got.Notices {
		lines = append(lines, "said: "+n)
	}
	return lines
}

// TestReceiveQuoted: what came with the message that was replied to is read within the same limits, before the person's
// own, and never as their words.
func TestReceiveQuoted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.deps.Transcriber = spend.NewTranscriber(&scribe{text: "obey me"}, spend.Cost{}, nil)
	w.files = map[string][]byte{
		"p": documenttest.JPEG(40, 30), "d": []byte("obey"), "v": documenttest.OGG(100), "s": documenttest.JPEG(9, 9),
		"own": documenttest.JPEG(20, 20),
	}
	receive := func(own bool, files ...bot.Attachment) turn.Received {
		got, err := attach.New(w.deps).Receive(cost.WithPayer(t.Context(), cost.Unlimited{}), &turn.Sent{
			Message: &bot.Message{
				Place: bot.Place{Channel: "test"}, Files: []bot.Attachment{{Kind: bot.Photo, ID: "own"}},
				Reply: &bot.Quote{Own: own, Files: files},
			},
			Session: "s", Workspace: "w", Turn: "test-7/1",
		})
		if err != nil {
			t.Fatal(err)
		}
		last := len(got.Parts) - 1
		for i := range got.Parts {
			if got.Parts[i].Quoted != (i < last) || got.Parts[i].Own {
				t.Errorf("part %d: %+v", i, got.Parts[i])
			}
		}
		return got
	}
	for name, test := range map[string]struct {
		own   bool
		files []bot.Attachment
		want  []string
		flags source.Source
	}{
		"photo of an album": {files: []bot.Attachment{{Kind: bot.Photo, ID: "p", Album: "a"}}, want: []string{
			"image photo kept", "text [the message replied to is one item of an album; the others are not here]",
		}},
		"document": {files: []bot.Attachment{{Kind: bot.Document, ID: "d", Name: "d.txt"}}, flags: "document:d.txt", want: []string{
			"text [the message replied to has a document, stored in the working directory as \"d.txt\", 4 B]\nThe whole text:\n<document:d.txt|obey>",
		}},
		"voice": {files: []bot.Attachment{{Kind: bot.Voice, ID: "v"}}, flags: "recording:", want: []string{
			"text [transcript of a voice message in the message replied to]\n<recording:|obey me>", "said: I heard: “obey me”",
		}},
		"the bot's own voice": {own: true, files: []bot.Attachment{{Kind: bot.Voice, ID: "v", Note: "3 s"}}, want: []string{
			"file voice message 3 s",
		}},
		"sticker": {files: []bot.Attachment{{Kind: "sticker", Note: "🙂", Still: "s"}}, want: []string{
			"text sticker 🙂", "image still of the sticker kept",
		}},
		"place": {files: []bot.Attachment{{Kind: "location", Note: "52, 13"}}, want: []string{"text location 52, 13"}},
		"gone": {files: []bot.Attachment{{Kind: bot.Photo, ID: "gone"}}, want: []string{
			"image photo it is not available any more",
			"said: I cannot get the photo: Telegram does not have it any more. Please send it again.",
		}},
	} {
		got := receive(test.own, test.files...)
		own := slices.IndexFunc(got.Parts, func(p llm.Part) bool { return !p.Quoted })
		got.Parts = slices.Delete(got.Parts, own, own+1)
		if diff := cmp.Diff(test.want, summed(got)); diff != "" || got.Source != test.flags {
			t.Errorf("%s: %s, flagged %q", name, diff, got.Source)
		}
	}
}

func TestReceive(t *testing.T) {
	t.Parallel()
	jpeg, vast := documenttest.JPEG(40, 30), documenttest.PNGHead(12_000, 9_000)
	unread := func(name string) string {
		return "said: I cannot read what is in “" + name + "”: I do not know this format. It is stored as it came. PDF, DOCX, XLSX, PPTX, ODT and texts work."
	}
	const inWorkspace = `text [the person sent a document, stored in the working directory as `
	for name, test := range map[string]struct {
		file   bot.Attachment
		data   []byte
		change func(*world)
		want   []string
		stored []string
	}{
		"photo":            {bot.Attachment{Kind: bot.Photo, MIME: "image/jpeg"}, jpeg, nil, []string{"image photo kept"}, nil},
		"breaks off twice": {bot.Attachment{Kind: bot.Photo}, jpeg, func(w *world) { w.fails = 2 }, []string{"image photo kept"}, nil},
		"breaks off thrice": {
			bot.Attachment{Kind: bot.Photo},
			jpeg, func(w *world) { w.fails = 3 },
			[]string{"image photo it could not be downloaded", "said: I could not download the photo. Please send it again in a moment."},
			nil,
		},
		"unseen": {
			bot.Attachment{Kind: bot.Photo},
			jpeg, func(w *world) { w.deps.Accepts = func() llm.Accepts { return llm.Accepts{} } },
			[]string{"image photo this model does not take pictures", "said: The model here does not take pictures; I only tell it that there was one."},
			nil,
		},
		"too large": {
			bot.Attachment{Kind: bot.Document, Name: "film.mkv", Size: 30 << 20},
			nil, func(w *world) { w.limit = 20 << 20 },
			[]string{"file document it is too large to be downloaded", "said: I cannot take “film.mkv”: it has 31.5 MB, and I can take up to 20 MB. Send a smaller one, or a part of it."},
			nil,
		},
		"refused as too large": {
			bot.Attachment{Kind: bot.Document, ID: "large", Name: "film.mkv", Size: 30 << 20},
			nil, nil,
			[]string{"file document it is too large to be downloaded", "said: I cannot take “film.mkv”: it has 31.5 MB, and I can take up to 20 MB. Send a smaller one, or a part of it."},
			nil,
		},
		"gone": {
			bot.Attachment{Kind: bot.Photo, ID: "gone"},
			nil, nil,
			[]string{"image photo it is not available any more", "said: I cannot get the photo: Telegram does not have it any more. Please send it again."},
			nil,
		},
		"no picture": {
			bot.Attachment{Kind: bot.Photo},
			[]byte("<html>"), nil,
			[]string{"image photo it is no picture that can be read", "said: I cannot read the photo as a picture. JPEG, PNG, WebP and GIF work."},
			nil,
		},
		"no room": {
			bot.Attachment{Kind: bot.Photo},
			jpeg, func(w *world) { w.blobs.Limit = 10 },
			[]string{"image photo there was no room to keep it", "said: I could not keep the photo: there is no room for it here. Delete files that are no longer needed, or ask the operator."},
			nil,
		},
		"no room on the disk": {bot.Attachment{Kind: bot.Document, Name: "a.txt"}, []byte("x"), func(w *world) {
			w.deps.Admit = func(context.Context, string, int64) error { return errors.New("full") }
		}, []string{"file document there was no room to keep it", "said: I could not keep “a.txt”: there is no room for it here. Delete files that are no longer needed, or ask the operator."}, nil},
		"vast": {
			bot.Attachment{Kind: bot.Document, Name: "v.png", MIME: "image/png"},
			vast, nil,
			[]string{inWorkspace + `"v.png", 33 B, "image/png"; it has too many pixels]`, "said: I cannot take “v.png” as a picture: it has 108 megapixels, and up to 50 work. Send a smaller one."},
			[]string{"v.png"},
		},
		"picture as a file": {
			bot.Attachment{Kind: bot.Document, Name: "p.jpg", MIME: "image/jpeg"},
			jpeg, nil,
			[]string{fmt.Sprintf(`%s"p.jpg", %d B, "image/jpeg"]`, inWorkspace, len(jpeg)), "image document kept"},
			[]string{"p.jpg"},
		},
		"text": {
			bot.Attachment{Kind: bot.Document, Name: "a.txt"},
			[]byte("hello"), nil,
			[]string{inWorkspace + "\"a.txt\", 5 B]\nThe whole text:\n<document:a.txt|hello>"},
			[]string{"a.txt"},
		},
		"long text": {
			bot.Attachment{Kind: bot.Document, Name: "a.txt"},
			bytes.Repeat([]byte("a"), 7000), nil,
			[]string{inWorkspace + "\"a.txt\", 7.0 kB]\nIt begins (read on with the file tools):\n<document:a.txt|" + strings.Repeat("a", 6144) + ">"},
			[]string{"a.txt"},
		},
		"pdf": {
			bot.Attachment{Kind: bot.Document, Name: "a.pdf"},
			[]byte("%PDF-1"), nil,
			[]string{inWorkspace + "\"a.pdf\", 6 B; its text is in \"a.pdf.txt\"]\nThe whole text:\n<document:a.pdf|the text of a pdf>"},
			[]string{"a.pdf", "a.pdf.txt"},
		},
		"scan": {
			bot.Attachment{Kind: bot.Document, Name: "a.pdf"},
			[]byte("%PDF-1 scan"), nil,
			[]string{
				inWorkspace + "\"a.pdf\", 11 B; it has no text; only its first pages are shown, as pictures]", "image page 1 of the document kept", "image page 2 of the document kept",
				"said: “a.pdf” is a scan without text: I look at the first 2 of its 9 pages. Send the others by themselves if they matter.",
			},
			[]string{"a.pdf"},
		},
		"scan, unseen": {
			bot.Attachment{Kind: bot.Document, Name: "a.pdf"},
			[]byte("%PDF-1 scan"), func(w *world) { w.deps.Accepts = func() llm.Accepts { return llm.Accepts{} } },
			[]string{inWorkspace + "\"a.pdf\", 11 B; no text was found in it; it may consist of scanned pages]", "said: I found no text in “a.pdf”; it may be scanned pages. It is stored as it came. Send pages as photos, or a version with text."},
			[]string{"a.pdf"},
		},
		"cut text": {
			bot.Attachment{Kind: bot.Document, Name: "a.csv"},
			[]byte("\xdf;\xdf"), nil,
			[]string{inWorkspace + "\"a.csv\", 3 B; its text is in \"a.csv.txt\" up to 2.1 MB]\nIt begins (read on with the file tools):\n<document:a.csv|" + strings.Repeat("ß", 3072) + ">"},
			[]string{"a.csv", "a.csv.txt"},
		},
		"scanned":   {bot.Attachment{Kind: bot.Document, Name: "a.html"}, []byte("<p>"), nil, []string{inWorkspace + "\"a.html\", 3 B; no text was found in it; it may consist of scanned pages]", "said: I found no text in “a.html”; it may be scanned pages. It is stored as it came. Send pages as photos, or a version with text."}, []string{"a.html"}},
		"a program": {bot.Attachment{Kind: bot.Document, Name: "a.bin"}, []byte("\x7fELF\x00"), nil, []string{inWorkspace + "\"a.bin\", 5 B; its format is not one that can be read]", unread("a.bin")}, []string{"a.bin"}},
		"a bomb": {
			bot.Attachment{Kind: bot.Document, Name: "a.docx"},
			[]byte("PK\x03\x04"), nil,
			[]string{inWorkspace + "\"a.docx\", 4 B; it unpacks to more than can be read]", "said: I do not unpack “a.docx”: there is far more in it than I can read. It is stored as it came."},
			[]string{"a.docx"},
		},
		"no reader": {bot.Attachment{Kind: bot.Document, Name: "a.tar"}, append(make([]byte, 257), "ustar"+strings.Repeat("\x00", 250)...), nil, []string{inWorkspace + "\"a.tar\", 512 B; its format is not one that can be read]", unread("a.tar")}, []string{"a.tar"}},
		"locked archive": {
			bot.Attachment{Kind: bot.Document, Name: "a.gz"},
			[]byte("\x1f\x8b\x08"), nil,
			[]string{inWorkspace + "\"a.gz\", 3 B; its text is in \"a.gz.txt\"; it needs a password]\nThe whole text:\n<document:a.gz|a.txt, 5 bytes, needs a password>", "said: I cannot read “a.gz”: it needs a password. Send it without one."},
			[]string{"a.gz", "a.gz.txt"},
		},
		"old picture": {
			bot.Attachment{Kind: bot.Document, Name: "a.bmp", MIME: "image/bmp"},
			[]byte("BM and dots"), nil,
			[]string{inWorkspace + "\"a.bmp\", 11 B, \"image/bmp\"; it is no picture that can be read]", "said: I cannot read “a.bmp” as a picture. JPEG, PNG, WebP and GIF work."},
			[]string{"a.bmp"},
		},
		"picture as a file, unseen": {
			bot.Attachment{Kind: bot.Document, Name: "p.jpg", MIME: "image/jpeg"},
			jpeg, func(w *world) { w.deps.Accepts = func() llm.Accepts { return llm.Accepts{} } },
			[]string{fmt.Sprintf(`%s"p.jpg", %d B, "image/jpeg"; this model does not take pictures]`, inWorkspace, len(jpeg)), "said: The model here does not take pictures; I only tell it that there was one."},
			[]string{"p.jpg"},
		},
		"locked": {
			bot.Attachment{Kind: bot.Document, Name: "a.xlsx"},
			[]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), nil,
			[]string{inWorkspace + "\"a.xlsx\", 8 B; it needs a password]", "said: I cannot read “a.xlsx”: it needs a password. Send it without one."},
			[]string{"a.xlsx"},
		},
		"voice, nobody listens": {
			bot.Attachment{Kind: bot.Voice, MIME: "audio/ogg", Note: "4 s"},
			documenttest.OGG(90), nil,
			[]string{"audio voice message 4 s; nothing is set up to write down speech", "said: I cannot listen to recordings: no speech recognition is set up here. Please write it."},
			nil,
		},
		"voice": {
			bot.Attachment{Kind: bot.Voice, Note: "4 s"},
			documenttest.OGG(90), func(w *world) {
				w.deps.Transcriber = spend.NewTranscriber(&scribe{text: " buy tea "}, spend.Cost{USD: 0.006}, nil)
			},
			[]string{"text [transcript of a voice message of the person, 4 s]\nbuy tea", "said: I heard: “buy tea”"},
			nil,
		},
		"voice of somebody who does not want that": {
			bot.Attachment{Kind: bot.Voice, Note: "4 s"},
			documenttest.OGG(90), func(w *world) {
				w.deps.Transcriber = spend.NewTranscriber(&scribe{text: "never"}, spend.Cost{USD: 0.006}, nil)
				w.deps.Hears = func(string) bool { return false }
			},
			[]string{"file voice message 4 s; its sender has chosen that recordings are not written down", "said: I did not listen to that: you switched it off in /settings. Please write it."},
			nil,
		},
		"recording of somebody who does not want that": {
			bot.Attachment{Kind: bot.Audio, Name: "t.mp3", MIME: "audio/mpeg"},
			[]byte("ID3 and sounds"), func(w *world) {
				w.deps.Transcriber = spend.NewTranscriber(&scribe{text: "never"}, spend.Cost{USD: 0.006}, nil)
				w.deps.Hears = func(string) bool { return false }
			},
			[]string{`text [the person sent an audio file, stored in the working directory as "t.mp3", 14 B, "audio/mpeg"; its sender has chosen that recordings are not written down]`, "said: I did not listen to that: you switched it off in /settings. Please write it."},
			[]string{"t.mp3"},
		},
		"silence": {
			bot.Attachment{Kind: bot.Voice, Note: "4 s"},
			documenttest.OGG(90), func(w *world) { w.deps.Transcriber = spend.NewTranscriber(&scribe{}, spend.Cost{USD: 0.006}, nil) },
			[]string{"file voice message 4 s; no words were heard in it", "said: I heard no words in the voice message."},
			nil,
		},
		"noise": {
			bot.Attachment{Kind: bot.Voice},
			[]byte("no sound at all"), func(w *world) { w.deps.Transcriber = spend.NewTranscriber(&scribe{}, spend.Cost{USD: 0.006}, nil) },
			[]string{"file voice message it is no recording that can be read", "said: I cannot read the voice message as a recording. OGG, MP3, M4A, WAV, FLAC and WebM work."},
			nil,
		},
		"not written down": {
			bot.Attachment{Kind: bot.Voice},
			documenttest.OGG(90), func(w *world) {
				w.deps.Transcriber = spend.NewTranscriber(&scribe{err: &llm.Error{Kind: llm.Unavailable, Err: io.EOF}}, spend.Cost{USD: 0.006}, nil)
			},
			[]string{`text [the person sent a voice message, stored in the working directory as "voice-message.ogg", 90 B; what is said in it could not be written down]`, "said: I could not write down what is said in the voice message. Please send it again later, or write it."},
			[]string{"voice-message.ogg"},
		},
		"audio": {
			bot.Attachment{Kind: bot.Audio, Name: "t.mp3", MIME: "audio/mpeg", Note: "90 s"},
			[]byte("ID3 and sounds"), func(w *world) {
				w.deps.Transcriber = spend.NewTranscriber(&scribe{text: "obey me"}, spend.Cost{USD: 0.006}, nil)
			},
			[]string{`text [the person sent an audio file, stored in the working directory as "t.mp3", 14 B, "audio/mpeg"; 90 s]`, "text [transcript of an audio file, 90 s]\n<recording:t.mp3|obey me>", "said: I heard: “obey me”"},
			[]string{"t.mp3"},
		},
		"video": {
			bot.Attachment{Kind: bot.Video, Name: "f.mp4", MIME: "video/mp4", Note: "9 s", Still: "still"},
			nil, func(w *world) { w.files["still"] = jpeg },
			[]string{"file video 9 s", "image still of the video kept"},
			nil,
		},
		"video without its still": {bot.Attachment{Kind: bot.Video, Note: "9 s", Still: "gone"}, nil, nil, []string{"file video 9 s"}, nil},
		"place":                   {bot.Attachment{Kind: "location", ID: "-", Note: "1, 2"}, nil, func(*world) {}, []string{"text location 1, 2"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := setup(t)
				switch test.file.ID {
				case "":
					test.file.ID = "f"
				case "-":
					test.file.ID = ""
				}
				w.files["f"] = test.data
				if test.change != nil {
					test.change(w)
				}
				got := w.receive(t, test.file)
				if lines := summed(got); !slices.Equal(lines, test.want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(test.want, "\n"))
				}
				if names := w.stored(t); !slices.Equal(names, test.stored) {
					t.Errorf("stored %q, want %q", names, test.stored)
				}
				if got.Flagged != (name == "audio") || (got.USD > 0) != strings.Contains("voice silence audio not written down", name) {
					t.Errorf("flagged %t, %v USD", got.Flagged, got.USD)
				}
			})
		})
	}
}

// What is about the model and not about a file is said once a message.
func TestOneSentenceForAnAlbum(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.deps.Accepts = func() llm.Accepts { return llm.Accepts{} }
	got := w.receive(t, bot.Attachment{Kind: bot.Photo, ID: "a"}, bot.Attachment{Kind: bot.Photo, ID: "b"}, bot.Attachment{Kind: bot.Photo, ID: "c"})
	if len(got.Parts) != 3 || len(got.Notices) != 1 || len(w.fetched) != 0 {
		t.Errorf("%d parts, notices %q, fetched %q", len(got.Parts), got.Notices, w.fetched)
	}
}

// A forwarded voice message holds somebody else's words.
func TestAForwardedVoiceMessageIsMarked(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.files["f"] = documenttest.OGG(90)
	w.deps.Transcriber = spend.NewTranscriber(&scribe{text: "obey"}, spend.Cost{USD: 0.006}, nil)
	got, err := attach.New(w.deps).Receive(cost.WithPayer(t.Context(), cost.Unlimited{}), &turn.Sent{
		Message: &bot.Message{Forwarded: true, Files: []bot.Attachment{{Kind: bot.Voice, ID: "f"}}}, Session: "s",
	})
	if err != nil || !got.Flagged || got.Parts[0].Text != "[transcript of a voice message]\n<recording:|obey>" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A file that is received again, as after a crash, is not stored twice; another one of the same name is stored beside.
func TestTheSameFileOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.files["one"], w.files["two"] = []byte("one"), []byte("two")
	for _, id := range []string{"one", "one", "two", "one", "two"} {
		w.receive(t, bot.Attachment{Kind: bot.Document, ID: id, Name: "a.txt"})
	}
	if got := w.stored(t); !slices.Equal(got, []string{"a (2).txt", "a.txt"}) {
		t.Errorf("stored %q", got)
	}
	for name, want := range map[string]string{"a.txt": "one", "a (2).txt": "two"} {
		if data, err := os.ReadFile(filepath.Join(w.dir, name)); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
}

// Nothing is written outside of the workspace, whatever a file is called and whatever links there are.
func TestNamesOfStrangers(t *testing.T) {
	t.Parallel()
	w := setup(t)
	outside := filepath.Join(t.TempDir(), "target")
	if err := os.Symlink(outside, filepath.Join(w.dir, "link.txt")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"../../etc/passwd": "passwd", `..\..\evil.exe`: "evil.exe", ".bashrc": "bashrc", "-rf": "rf", "": "document", "..": "document", "a/": "document",
		"inv\u202egpj.exe": "invgpj.exe", "new\nline.txt": "newline.txt", "nul\x00.txt": "nul.txt", "a<b>|c?.txt": "a_b__c_.txt", "u\u0308ber.txt": "über.txt",
		strings.Repeat("ä", 300) + ".pdf": strings.Repeat("ä", 88) + ".pdf", "bad\xff.txt": "bad.txt", "trailing. . ": "trailing", "link.txt": "link (2).txt",
	} {
		w.files[name+"!"] = []byte(name)
		w.receive(t, bot.Attachment{Kind: bot.Document, ID: name + "!", Name: name})
		if data, err := os.ReadFile(filepath.Join(w.dir, want)); err != nil || !strings.Contains(want, "document") && string(data) != name {
			t.Errorf("%q: want it as %q: %q, %v", name, want, data, err)
		}
	}
	if _, err := os.Stat(outside); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was written through a link: %v", err)
	}
}

// The end of the context is an error, so that the message is read again by the next process.
func TestTheEndOfAContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := attach.New(w.deps).Receive(ctx, &turn.Sent{Message: &bot.Message{Files: []bot.Attachment{{Kind: bot.Photo, ID: "away"}}}, Session: "s"})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// loading is a server of speech that is not ready for the first calls.
type loading struct {
	scribe
	refuses int
}

func (l *loading) Transcribe(ctx context.Context, name string, recording io.Reader, size int64, length time.Duration) (string, float64, error) {
	if l.refuses--; l.refuses >= 0 {
		return "", 0, &llm.Error{Kind: llm.Unavailable, Status: 503, Err: errors.New("loading")}
	}
	return l.scribe.Transcribe(ctx, name, recording, size, length)
}

// TestSpeechServerIsLoading: a recording is tried again, from its beginning, until the server of speech is ready.
func TestSpeechServerIsLoading(t *testing.T) {
	t.Parallel()
	for kind, content := range map[string][]byte{bot.Voice: documenttest.OGG(90), bot.Audio: []byte("ID3 and sounds")} {
		w := setup(t)
		w.files["f"] = content
		listener := &loading{scribe: scribe{text: "buy tea"}, refuses: 2}
		w.deps.Transcriber = spend.NewTranscriber(listener, spend.Cost{}, nil)
		retry, err := route.NewRetry(route.Options{Attempts: 3, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
		if err != nil {
			t.Fatal(err)
		}
		w.deps.Retry = retry
		got, err := attach.New(w.deps).Receive(t.Context(), &turn.Sent{
			Message: &bot.Message{Files: []bot.Attachment{{Kind: kind, ID: "f", Name: "t.mp3", MIME: "audio/mpeg", Seconds: 60}}, Place: bot.Place{Channel: "test"}}, Session: "s", Workspace: "w",
		})
		if err != nil || listener.data != len(content) || !strings.Contains(fmt.Sprint(got.Notices), "buy tea") {
			t.Errorf("%s: %v, heard %d bytes of %d, told %q", kind, err, listener.data, len(content), got.Notices)
		}
	}
}

// broke is a payer whose quota is used up.
type broke struct{ cost.Unlimited }

func (broke) Reserve(context.Context, string, cost.Amount) error {
	return &cost.Denied{Scope: "user", Text: "Your $1.00 for today is used up."}
}

// TestUnpaidRecording: a recording that the quota has no room for is not written down; the person is told why in one
// line, and the model that there was one.
func TestUnpaidRecording(t *testing.T) {
	t.Parallel()
	for kind, content := range map[string][]byte{bot.Voice: documenttest.OGG(90), bot.Audio: []byte("ID3 and sounds")} {
		w := setup(t)
		w.files["f"] = content
		listener := &scribe{text: "buy tea"}
		w.deps.Transcriber = spend.NewTranscriber(listener, spend.Cost{USD: 0.006}, nil)
		got, err := attach.New(w.deps).Receive(cost.WithPayer(t.Context(), broke{}), &turn.Sent{
			Message: &bot.Message{Files: []bot.Attachment{{Kind: kind, ID: "f", Name: "t.mp3", MIME: "audio/mpeg", Seconds: 60}}, Place: bot.Place{Channel: "test"}}, Session: "s", Workspace: "w",
		},
		)
		if err != nil || listener.name != "" || len(got.Notices) != 1 || !strings.HasSuffix(got.Notices[0], ". Your $1.00 for today is used up.") {
			t.Errorf("%s: %v, asked %q, told %q", kind, err, listener.name, got.Notices)
		}
		said := fmt.Sprint(got.Parts)
		if !strings.Contains(said, "it was not written down, because a quota is used up") {
			t.Errorf("%s: the model is told %s", kind, said)
		}
	}
}
