package acp

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/source"
)

// kindResource is the kind of an attachment whose text came with the prompt.
const kindResource = "resource"

// maxResource is how many bytes of such a text the model is shown.
const maxResource = 32 << 10

// readBlocks makes a message of the blocks of a prompt. Contents that are not text are stored
// first: the message names them.
func (s *session) readBlocks(ctx context.Context, id string, blocks []sdk.ContentBlock) (bot.Message, error) {
	m := s.newMessage(id)
	var said []string
	for i := range blocks {
		b := &blocks[i]
		switch {
		case b.Text != nil:
			said = append(said, b.Text.Text)
		case b.ResourceLink != nil:
			said = append(said, s.linkText(b.ResourceLink))
		default:
			a, err := s.storeBlock(ctx, b)
			if err != nil {
				return m, err
			}
			m.Files = append(m.Files, a)
		}
	}
	m.Text = strings.ToValidUTF8(strings.Join(said, ""), "\uFFFD")
	if strings.TrimSpace(m.Text) == "" && len(m.Files) == 0 {
		return m, wrongRequest("the prompt is empty")
	}
	if rest, ok := strings.CutPrefix(m.Text, "/"); ok && rest != "" && !strings.HasPrefix(rest, "/") {
		name, args, _ := strings.Cut(rest, " ")
		m.Command, m.Args = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(args)
	}
	return m, nil
}

// linkText names what the person refers to: a file of the project by its path there, as tools take it.
func (s *session) linkText(l *sdk.ContentBlockResourceLink) string {
	where := l.Uri
	if u, err := url.Parse(l.Uri); err == nil && u.Scheme == "file" {
		where = u.Path
		if rel, err := filepath.Rel(s.project.dir, u.Path); err == nil && filepath.IsLocal(rel) {
			where = rel
		}
	}
	if l.Name == "" || l.Name == where || l.Name == path.Base(where) {
		return fmt.Sprintf(" %q ", where)
	}
	return fmt.Sprintf(" %s (%q) ", l.Name, where)
}

// storeBlock stores what is not a text of the person.
func (s *session) storeBlock(ctx context.Context, b *sdk.ContentBlock) (bot.Attachment, error) {
	switch {
	case b.Image != nil:
		return s.storeEncoded(ctx, bot.Attachment{
			Kind: bot.Photo,
			MIME: b.Image.MimeType,
			Name: nameOf(textOf(b.Image.Uri)),
		}, b.Image.Data)
	case b.Audio != nil:
		return s.storeEncoded(ctx, bot.Attachment{Kind: bot.Audio, MIME: b.Audio.MimeType}, b.Audio.Data)
	case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
		r := b.Resource.Resource.TextResourceContents
		a := bot.Attachment{Kind: kindResource, Name: r.Uri, MIME: textOf(r.MimeType)}
		return s.storeContent(ctx, a, []byte(strings.ToValidUTF8(r.Text, "\uFFFD")))
	case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil:
		r := b.Resource.Resource.BlobResourceContents
		a := bot.Attachment{Kind: bot.Document, Name: nameOf(r.Uri), MIME: textOf(r.MimeType)}
		switch llm.KindOfType(a.MIME) {
		case llm.ImagePart:
			a.Kind = bot.Photo
		case llm.AudioPart:
			a.Kind = bot.Audio
		default: // by name only: the model can read a file of the project with its tools
			a.Note = r.Uri
			return a, nil
		}
		return s.storeEncoded(ctx, a, r.Blob)
	}
	return bot.Attachment{}, wrongRequest("a content block of an unknown type")
}

func textOf(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// nameOf returns the name of the file that an address means.
func nameOf(uri string) string {
	if u, err := url.Parse(uri); err == nil && u.Path != "" {
		return path.Base(u.Path)
	}
	return ""
}

func (s *session) storeEncoded(ctx context.Context, a bot.Attachment, data string) (bot.Attachment, error) {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(raw) == 0 {
		return a, wrongRequest("the data of a content block of type %s is not base64", a.MIME)
	}
	return s.storeContent(ctx, a, raw)
}

// storeContent stores a content for the session.
func (s *session) storeContent(ctx context.Context, a bot.Attachment, raw []byte) (bot.Attachment, error) {
	ref, err := s.project.currentBackend().Blobs.Put(ctx, string(s.sessionKey()), bytes.NewReader(raw))
	if err != nil {
		return a, fmt.Errorf("keep what came with the prompt: %w", err)
	}
	a.ID, a.Size = s.id+"/"+ref.Hash, ref.Size
	return a, nil
}

// FileLimit implements bot.Files: what came with a prompt is stored already.
func (*Project) FileLimit() int64 { return 0 }

// Fetch implements bot.Files.
func (p *Project) Fetch(ctx context.Context, id string) (io.ReadCloser, error) {
	chat, hash, ok := strings.Cut(id, "/")
	if !ok {
		return nil, bot.ErrFileGone
	}
	key := bot.Place{Channel: Name, Bot: BotID, Surface: bot.SurfaceBot, Chat: chat}.SessionKey("")
	content, err := p.currentBackend().Blobs.Open(ctx, string(key), hash)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", bot.ErrFileGone, err)
	}
	return content, nil
}

// receiver reads the texts that came with a prompt; what else came is read like the files of every channel.
type receiver struct {
	project *Project
	next    turn.Attachments
	wrap    func(from source.Source, text string) (marked string, rules []string)
}

// Receive returns what reads attachments of editors. wrap fences the texts of strangers (mark.Marker.Wrap).
func (p *Project) Receive(
	next turn.Attachments, wrap func(from source.Source, text string) (string, []string),
) turn.Attachments {
	return receiver{project: p, next: next, wrap: wrap}
}

// Receive implements turn.Attachments.
func (r receiver) Receive(ctx context.Context, sent *turn.Sent) (turn.Received, error) {
	return turn.ReceiveKind(ctx, sent, r.next, kindResource, r.readResource)
}

// readResource returns a text that came with a prompt, between the marks of texts of strangers.
// Its only error is that of ctx.
func (r receiver) readResource(ctx context.Context, a *bot.Attachment) (part llm.Part, rules []string, err error) {
	line := fmt.Sprintf("[the editor sent the text of %q]", a.Name)
	content, err := r.project.Fetch(ctx, a.ID)
	if err != nil {
		return llm.Part{Kind: llm.TextPart, Text: line + "\n[it is not available any more]"}, nil, ctx.Err()
	}
	defer func() { _ = content.Close() }() // it is only read
	raw, err := io.ReadAll(io.LimitReader(content, maxResource+utf8.UTFMax))
	if err != nil {
		return llm.Part{Kind: llm.TextPart, Text: line + "\n[it could not be read]"}, nil, ctx.Err()
	}
	if cut := maxResource; len(raw) > cut {
		for cut > 0 && !utf8.RuneStart(raw[cut]) {
			cut--
		}
		raw = raw[:cut]
		line += fmt.Sprintf(" It has %d bytes and begins (read on with the file tools):", a.Size)
	}
	marked, rules := r.wrap(source.File(a.Name), string(raw))
	return llm.Part{Kind: llm.TextPart, Text: line + "\n" + marked}, rules, nil
}
