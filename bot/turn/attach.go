package turn

import (
	"context"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/policy/source"
)

// Sent is a message whose files are to be read for a turn.
type Sent struct {
	Message   *bot.Message
	Session   bot.SessionKey
	Workspace string // id of the session's workspace
	Turn      string
}

// Received is what became of the files of a message.
type Received struct {
	// Parts take the place of the files in the journal, in their order: contents that were kept, texts, and what is
	// known by name only.
	Parts   []llm.Part
	Flagged bool          // a text among them tries to give instructions
	Source  source.Source // of that text
	Notices []string      // sentences for the person, in their language
	USD     float64       // what reading them cost at the configured prices
}

// Flag notes that a text of a source matched rules; the first one that did is named.
func (r *Received) Flag(from source.Source, rules []string) {
	if len(rules) > 0 && !r.Flagged {
		r.Flagged, r.Source = true, from
	}
}

// Attachments reads what comes along with messages (bot/attach). Receive may take as long as a download does. It may be
// called again for the same message, after a crash too, and leaves nothing twice. Its only error is that of ctx: what
// cannot be read is named in the result. Safe for concurrent use.
type Attachments interface {
	Receive(ctx context.Context, sent *Sent) (Received, error)
}

// ReceiveKind has read read the files of one kind, and next receive the others. What read gives comes first; rules are
// those that its text matched. Its only error is that of ctx.
func ReceiveKind(
	ctx context.Context, sent *Sent, next Attachments, kind string,
	read func(context.Context, *bot.Attachment) (part llm.Part, rules []string, err error),
) (Received, error) {
	rest, others := *sent.Message, *sent
	rest.Files = nil
	var own Received
	for i := range sent.Message.Files {
		a := &sent.Message.Files[i]
		if a.Kind != kind {
			rest.Files = append(rest.Files, *a)
			continue
		}
		part, rules, err := read(ctx, a)
		if err != nil {
			return Received{}, err
		}
		own.Parts = append(own.Parts, part)
		own.Flag(source.File(a.Name), rules)
	}
	if len(rest.Files) == 0 {
		return own, nil
	}
	others.Message = &rest
	got, err := next.Receive(ctx, &others)
	got.Parts = append(own.Parts, got.Parts...)
	if own.Flagged {
		got.Flagged, got.Source = true, own.Source
	}
	return got, err
}

// FileProblem is why a file that a person sent cannot be worked with.
type FileProblem string

// The problems of files. What is in brackets is said with them (Trouble).
const (
	FileTooLarge    FileProblem = "too_large"   // the channel does not give it, or we do not take it (Size, Limit)
	FileGone        FileProblem = "gone"        // the channel does not have it any more
	FileAway        FileProblem = "away"        // it could not be fetched now
	FileNoRoom      FileProblem = "no_room"     // there is no place to keep it
	FileUnseen      FileProblem = "unseen"      // the model does not take pictures
	FileNoPicture   FileProblem = "no_picture"  // it is none, or of a kind that nobody reads
	FileTooManyDots FileProblem = "many_pixels" // it has more pixels than are read (Size, Limit: in millions)
	FileDamaged     FileProblem = "damaged"     // a document that cannot be read
	FileLocked      FileProblem = "locked"      // a document with a password
	FileBloated     FileProblem = "bloated"     // a document that unpacks to more than is read
	FileUnheard     FileProblem = "unheard"     // nothing is set up that writes down speech
	FileMuted       FileProblem = "muted"       // its sender does not want recordings to be written down
	FileNoSound     FileProblem = "no_sound"    // it is no recording
	FileNotWritten  FileProblem = "not_written" // what is said in it could not be written down
	FileNoWords     FileProblem = "no_words"    // nothing is said in it
	FileLong        FileProblem = "long"        // a recording that is larger than what is written down
	FileUnread      FileProblem = "unread"      // a format that is not read
	FileNoText      FileProblem = "no_text"     // a document without a text, such as a scan
	FileScanned     FileProblem = "scanned"     // a scan of which only the first pages are seen (Size of Limit pages)
)

// Trouble is a problem with a file, for the person who sent it.
type Trouble struct {
	Problem FileProblem
	Kind    string // of the attachment (bot.Attachment)
	Name    string // "" = it has none
	Size    int64
	Limit   int64
	Note    string // a sentence that follows: which quota is used up; "" = none
}
