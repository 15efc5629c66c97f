package acp

import (
	"context"
	"encoding/base64"
	"io"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/tools"
)

// voice is what was shown of the answer of the model call that is under way. An editor cannot take text back, so a text
// that begins as an earlier attempt did is shown from where it differs.
type voice struct {
	shown string // since the model was asked
	again string // since the text became void
	void  bool
}

// hearPiece returns what of a new piece of text is to be shown.
func (v *voice) hearPiece(text string) string {
	if !v.void {
		v.shown += text
		return text
	}
	v.again += text
	if strings.HasPrefix(v.shown, v.again) {
		return ""
	}
	rest, ok := strings.CutPrefix(v.again, v.shown)
	if !ok {
		rest = "\n\n" + v.again
	}
	*v = voice{shown: v.again}
	return rest
}

// finalPart returns what of an answer is still to be shown.
func (v *voice) finalPart(text string) string {
	rest, ok := strings.CutPrefix(text, strings.TrimSpace(v.shown))
	switch {
	case v.shown == "":
		return text
	case !ok:
		return "\n\n" + text
	default:
		return rest
	}
}

// progress shows a turn while it runs.
type progress struct {
	project *Project
	chat    string
	done    chan struct{}
	once    sync.Once

	mu      sync.Mutex
	silence turn.Silence // of the model
	told    time.Duration
}

// Emit implements agent.Sink. Calls are shown by the executor (Project.Executor), which knows their results.
func (p *progress) Emit(_ context.Context, e agent.Event) {
	p.hearEvent(e)
	s := p.project.openSession(p.chat)
	if s == nil {
		return
	}
	s.mu.Lock()
	shown := ""
	switch e.Type {
	case agent.ThoughtEvent:
		s.mu.Unlock()
		s.sendUpdate(sdk.UpdateAgentThoughtText(e.Text))
		return
	case agent.PlanEvent:
		s.mu.Unlock()
		s.sendPlan(e.Plan)
		return
	case agent.DeltaEvent:
		shown = s.voice.hearPiece(e.Text)
	case agent.ResetEvent:
		s.void, s.again = s.shown != "", ""
	case agent.ModelEvent:
		if s.shown != "" {
			shown = "\n\n"
		}
		s.voice = voice{}
	case agent.ToolStartedEvent, agent.ToolProgressEvent, agent.ToolFinishedEvent:
	}
	s.mu.Unlock()
	if shown != "" {
		s.sendUpdate(sdk.UpdateAgentMessageText(shown))
	}
}

// sendPlan tells the editor the whole plan.
func (s *session) sendPlan(list []tools.PlanEntry) {
	entries := make([]sdk.PlanEntry, len(list))
	for i, e := range list {
		entries[i] = sdk.PlanEntry{
			Content: s.redactText(visible.Controls(e.Text)), Priority: sdk.PlanEntryPriorityMedium,
			Status: sdk.PlanEntryStatus(e.Status), // the same words
		}
	}
	s.sendUpdate(sdk.UpdatePlan(entries...))
}

// Run implements turn.Progress. It says when the model has said nothing for long; editors have a Stop of their own.
func (p *progress) Run(ctx context.Context) error {
	p.mu.Lock()
	p.silence.Begin(time.Now())
	p.mu.Unlock()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.done:
			return nil
		case <-tick.C:
			p.tellSilence()
		}
	}
}

func (p *progress) hearEvent(e agent.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silence.Observe(e, time.Now())
}

// tellSilence says once for each length of silence that it was reached. It is a thought: the answer has to stay as the
// model writes it.
func (p *progress) tellSilence() {
	p.mu.Lock()
	reached, _ := p.silence.Lasting(time.Now())
	tell := reached > p.told
	p.told = reached
	p.mu.Unlock()
	if s := p.project.openSession(p.chat); tell && s != nil {
		s.sendUpdate(sdk.UpdateAgentThoughtText("\n" + texts.Words{}.Silent(s.server.opts.Language, reached) + "\n"))
	}
}

// Close implements turn.Progress.
func (p *progress) Close() { p.once.Do(func() { close(p.done) }) }

// Send implements bot.Sender. What belongs to a conversation that is not open counts as sent: it is in the journal,
// which is shown when the conversation is opened.
func (p *Project) Send(ctx context.Context, row *bot.Row) (string, error) {
	s := p.openSession(row.Place.Chat)
	if s == nil {
		if row.Purpose == bot.Question {
			p.endUnasked(ctx, row)
		}
		return "", nil
	}
	switch row.Purpose {
	case bot.Question:
		s.askPerson(ctx, row)
	case bot.Final:
		s.showAnswer(row)
	case bot.Reply:
		s.showReply(row)
	case bot.Notice:
		s.showParagraph(row.Content.Text)
	case bot.Toast:
		if row.Alert {
			s.showParagraph(row.Content.Text)
		}
	case bot.Record, bot.Placeholder:
	}
	if row.Purpose != bot.Question {
		s.showPictures(ctx, row)
	}
	return "", nil
}

// showParagraph shows a sentence of ours apart from the answer.
func (s *session) showParagraph(text string) {
	if strings.TrimSpace(text) != "" {
		s.sendUpdate(sdk.UpdateAgentMessageText("\n\n" + text + "\n\n"))
	}
}

// showAnswer shows what is missing of an answer, and ends its prompt.
func (s *session) showAnswer(row *bot.Row) {
	s.mu.Lock()
	rest := s.voice.finalPart(row.Content.Text)
	s.voice = voice{}
	p := s.prompt
	own := p != nil && row.Turn == p.turn && !p.ended
	if own {
		p.ended = true
	}
	s.mu.Unlock()
	if rest != "" {
		s.sendUpdate(sdk.UpdateAgentMessageText(rest))
	}
	if own {
		close(p.done)
	}
}

// showReply shows the reply to a command, and ends its prompt. That to our own /stop is not
// shown: the end of the turn says it.
func (s *session) showReply(row *bot.Row) {
	s.mu.Lock()
	p := s.prompt
	own := p != nil && strings.HasPrefix(row.Key, "reply/"+p.turn+"/") && !p.ended
	if own {
		p.ended = true
	}
	s.mu.Unlock()
	if own || !strings.HasPrefix(row.Key, "reply/") {
		s.showParagraph(row.Content.Text)
	}
	if own {
		close(p.done)
	}
}

// maxPicture is how many bytes of a picture are sent to an editor.
const maxPicture = 5 << 20

// showPictures shows the files of a row: pictures as they are, others by name.
func (s *session) showPictures(ctx context.Context, row *bot.Row) {
	for _, f := range row.Content.Files() {
		if f.Media() != bot.Picture || f.Size > maxPicture {
			s.showParagraph(f.Name)
			continue
		}
		content, _, err := f.Open(ctx, row.Session, s.project.currentBackend().Blobs)
		if err != nil {
			s.showParagraph(f.Name)
			continue
		}
		raw, err := io.ReadAll(io.LimitReader(content, maxPicture))
		if _ = content.Close(); err != nil { // it was only read
			s.showParagraph(f.Name)
			continue
		}
		s.sendUpdate(sdk.UpdateAgentMessage(sdk.ImageBlock(base64.StdEncoding.EncodeToString(raw), f.Type)))
	}
}
