// Package image is the tool generate_image: a model's provider makes a picture of words, or changes one that somebody
// has sent. It costs money, which the person whose turn it is pays; what may cost more than a limit is made only after
// somebody has approved it. The picture is stored in the working directory and sent to the chat.
package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// Name of the tool.
const Name = "generate_image"

const (
	longest  = 4000 // characters of a prompt; DALL-E 3 takes no more (OpenAI's reference of images)
	mostSame = 100  // pictures whose names differ in nothing but a number
	maxInput = 20 << 20
	timeout  = 4 * time.Minute
)

// Shapes of pictures.
const (
	Square    = "square"
	Landscape = "landscape"
	Portrait  = "portrait"
)

// sent stands for the picture that was sent last.
const sent = "sent"

// Says returns the statement of the tool for the policy.
func Says() []act.Tool {
	return []act.Tool{{Name: Name, Statement: act.Statement{Act: act.Makes, Verb: act.Create, Gain: 0.8}}}
}

// Wish is a picture that is wanted.
type Wish struct {
	Prompt, Shape string
	Edit          []byte // the picture to be changed; nil = a new one
	EditType      string // its media type
}

// Made is a picture that was made.
type Made struct {
	Data []byte
	Type string  // image/png, image/jpeg or image/webp
	USD  float64 // what it cost
}

// Options configure the tool. All are required.
type Options struct {
	// Price is the most that a picture costs, in USD; known is false if nobody knows it.
	Price func(w *Wish) (usd float64, known bool)
	// AskAbove is the price above which a person is asked.
	AskAbove float64
	// Make makes a picture. Its errors are *tools.Error.
	Make func(ctx context.Context, w *Wish) (Made, error)
	// Last returns the picture that was sent last in a conversation; ok is false if there is none.
	Last func(ctx context.Context, o tools.Origin) (content io.ReadCloser, ok bool, err error)
	// Dir returns the working directory of a conversation.
	Dir func(o tools.Origin) (string, error)
	// Admit refuses to write so many bytes at a path.
	Admit func(ctx context.Context, path string, bytes int64) error
	// Limit returns how many bytes a picture may have in the channel of a call; 0 = it delivers none.
	Limit func(o tools.Origin) int64
	// Keep stores a content for a session before it is sent.
	Keep func(ctx context.Context, session string, content io.Reader) (hash string, size int64, err error)
}

type args struct {
	Prompt string `json:"prompt" jsonschema:"what the picture shows, or how the given picture is to change; in detail"`
	Shape  string `json:"shape,omitempty" jsonschema:"square if it is left out"`
	Edit   string `json:"edit,omitempty" jsonschema:"the picture to change: 'sent' for the newest one of this conversation (sent, replied to or made), or the path of a file of the working directory"`
}

type maker struct{ Options }

// New returns the tool.
func New(o Options) (tools.Tool, error) {
	m := maker{o}
	return tools.New(tools.Typed[args]{
		Definition: tools.Definition{
			Name: Name, Says: act.Of(Says(), Name), Timeout: timeout,
			Description: "Makes a picture of a description, or changes a given picture, stores it in the working " +
				"directory and sends it to the chat. It costs money: make one only when it is asked for.",
		},
		Adjust: func(s *jsonschema.Schema) {
			s.Properties["shape"].Enum = []any{Square, Landscape, Portrait}
		},
		Describe: m.describe,
		Check: func(ctx context.Context, call *tools.Call, in args) error {
			_, err := m.wish(ctx, call, in)
			return err
		},
		Run:     m.run,
		Changes: m.changes,
	})
}

// describe says what the call may cost. Its text leaves for the provider, which the conversation goes to as well.
func (m maker) describe(_ context.Context, _ *tools.Call, in args) (tools.Subject, error) {
	if err := in.validate(); err != nil {
		return tools.Subject{}, err
	}
	w := Wish{Prompt: in.Prompt, Shape: in.Shape}
	if in.Edit != "" {
		w.Edit = []byte{} // it is priced as one that changes another, which is not read yet
	}
	usd, known := m.Price(&w)
	note := reason.Notes(reason.New(reason.CostUnknown))
	if known {
		note = reason.Notes(reason.New(reason.CostsUpTo, price(usd)))
	}
	if in.Edit != "" {
		note = note.And(reason.New(reason.ChangesPicture))
	}
	return tools.Subject{
		Inputs: []string{in.Prompt}, Show: in.Prompt, Note: note, Costly: !known || usd > m.AskAbove,
	}, nil
}

// price writes an amount with two significant digits, as people read money.
func price(usd float64) string { return strconv.FormatFloat(usd, 'g', 2, 64) }

func (in *args) validate() error {
	switch {
	case strings.TrimSpace(in.Prompt) == "":
		return tools.Errorf(tools.InvalidParameters, "prompt is empty: say what the picture shows")
	case utf8.RuneCountInString(in.Prompt) > longest:
		return tools.Errorf(tools.InvalidParameters, "prompt is longer than %d characters: shorten it", longest)
	}
	return nil
}

// wish returns what is wanted, with the picture that is to be changed.
func (m maker) wish(ctx context.Context, call *tools.Call, in args) (*Wish, error) {
	w := &Wish{Prompt: in.Prompt, Shape: in.Shape}
	var content io.ReadCloser
	switch in.Edit {
	case "":
		return w, nil
	case sent:
		var ok bool
		var err error
		if content, ok, err = m.Last(ctx, call.Origin); err != nil {
			return nil, &tools.Error{Category: tools.ServerError, Message: "the picture that was sent cannot be read", Err: err}
		} else if !ok {
			return nil, &tools.Error{
				Category: tools.InvalidParameters, Message: "nobody has sent a picture in this conversation",
				Suggestion: "Ask the person to send it, or name a file of the working directory.",
			}
		}
	default:
		root, err := m.open(call.Origin)
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }() // only a handle of a directory
		f, err := root.Open(in.Edit)
		if err != nil {
			return nil, &tools.Error{
				Category: tools.InvalidParameters, Message: fmt.Sprintf("%q is no file of the working directory", in.Edit), Err: err,
			}
		}
		content = f
	}
	defer func() { _ = content.Close() }() // opened for reading
	var err error
	if w.Edit, err = io.ReadAll(io.LimitReader(content, maxInput+1)); err != nil {
		return nil, &tools.Error{Category: tools.ServerError, Message: "the picture cannot be read", Err: err}
	}
	w.EditType = http.DetectContentType(w.Edit)
	switch {
	case len(w.Edit) > maxInput:
		return nil, tools.Errorf(tools.InvalidParameters, "the picture has more than %d MB", maxInput>>20)
	case pictureEndings()[w.EditType] == "":
		return nil, tools.Errorf(tools.InvalidParameters, "only PNG, JPEG and WebP can be changed; this is %s", w.EditType)
	}
	return w, nil
}

// open returns the working directory, which nothing leads out of.
func (m maker) open(o tools.Origin) (*os.Root, error) {
	dir, err := m.Dir(o)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		var root *os.Root
		if root, err = os.OpenRoot(dir); err == nil {
			return root, nil
		}
	}
	return nil, &tools.Error{Category: tools.ServerError, Message: "the working directory cannot be used", Err: err}
}

func (m maker) run(ctx context.Context, call *tools.Call, in args) (*tools.Result, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	w, err := m.wish(ctx, call, in)
	if err != nil {
		return nil, err
	}
	root, err := m.open(call.Origin)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only a handle of a directory
	made, err := m.Make(ctx, w)
	if err != nil {
		return nil, err
	}
	paid := context.WithoutCancel(ctx) // what is paid for is kept, also if the turn is being stopped
	paid, cancel := context.WithTimeout(paid, time.Minute)
	defer cancel()
	result := &tools.Result{}
	name, stored := m.store(paid, root, in.Prompt, &made)
	where := "It is stored as " + name + " in the working directory."
	if stored != nil {
		where = fmt.Sprintf("It is not stored in the working directory: %v.", stored)
	}
	if limit := m.Limit(call.Origin); limit > 0 && int64(len(made.Data)) <= limit {
		hash, size, err := m.Keep(paid, call.Origin.Session, bytes.NewReader(made.Data))
		if err != nil {
			return nil, &tools.Error{Category: tools.ServerError, Message: "The picture was made but cannot be sent. " + where, Err: err}
		}
		result.Files = []tools.File{{Name: name, MIME: made.Type, Hash: hash, Size: size}}
		result.Text = "The picture is on its way to the chat. " + where
	} else {
		result.Text = "The picture is made; this chat shows no pictures, so tell the person where it is. " + where
	}
	if made.USD > 0 {
		result.Text += " It cost " + price(made.USD) + " USD."
	}
	return result, nil
}

// changes says under which names a picture may be stored: the first that is free, in each format.
func (m maker) changes(_ context.Context, call *tools.Call, in args) (tools.Changes, error) {
	root, err := m.open(call.Origin)
	if err != nil {
		return tools.Changes{}, err
	}
	defer func() { _ = root.Close() }() // only a handle of a directory
	dir, err := filepath.EvalSymlinks(root.Name())
	if err != nil {
		return tools.Changes{}, &tools.Error{Category: tools.ServerError, Message: "the working directory cannot be used", Err: err}
	}
	area := tools.Area{Root: dir, Alone: true}
	for _, ending := range pictureEndings() {
		for n := 1; n <= mostSame; n++ {
			name := pictureName(in.Prompt, n, ending)
			if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
				area.Paths = append(area.Paths, filepath.Join(dir, name))
				break
			}
		}
	}
	return tools.Changes{Files: []tools.Area{area}}, nil
}

// store writes a picture under a name of its own.
func (m maker) store(ctx context.Context, root *os.Root, prompt string, made *Made) (name string, err error) {
	ending := pictureEndings()[made.Type]
	if err := m.Admit(ctx, filepath.Join(root.Name(), pictureName(prompt, 1, ending)), int64(len(made.Data))); err != nil {
		return pictureName(prompt, 1, ending), err
	}
	for n := 1; n <= mostSame; n++ {
		name = pictureName(prompt, n, ending)
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return name, errors.New("it cannot be written there")
		}
		if _, err = f.Write(made.Data); errors.Join(err, f.Close()) != nil {
			_ = root.Remove(name) // a part of a picture is of no use
			return name, errors.New("it cannot be written there")
		}
		return name, nil
	}
	return name, errors.New("there are too many pictures of this name")
}

// pictureName is the nth name of a picture: with the first words of its prompt, as in picture-a-red-fox-2.png.
func pictureName(prompt string, n int, ending string) string {
	if n == 1 {
		return baseName(prompt) + ending
	}
	return fmt.Sprintf("%s-%d%s", baseName(prompt), n, ending)
}

// baseName makes a name of the first words of a prompt: "a red fox" is picture-a-red-fox.
func baseName(prompt string) string {
	const words, letters = 4, 40
	name := "picture"
	for i, word := range strings.FieldsFunc(strings.ToLower(prompt), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		if i == words || len(name)+len(word) > letters {
			break
		}
		name += "-" + word
	}
	return name
}

// pictureEndings returns how the names of pictures end, by their media types.
func pictureEndings() map[string]string {
	return map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp"}
}
