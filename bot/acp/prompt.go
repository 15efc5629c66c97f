package acp

import (
	"context"
	"errors"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/google/uuid"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/visible"
)

// settleEvery is how often it is checked whether a prompt has ended without an answer.
const settleEvery = time.Second

// prompt is a prompt under way.
type prompt struct {
	id        string
	turn      string
	done      chan struct{} // closed when its answer was shown
	stopped   chan struct{} // closed when it was cancelled
	cancelled bool
	handed    bool // its message is stored
	ended     bool
}

// errBusy is the error of a second prompt.
var errBusy = sdk.NewInvalidRequest(map[string]any{
	"error": "a prompt is under way in this session: wait for its end, or cancel it",
})

// errOver means that a session was closed after it was found.
var errOver = errors.New("the session is over")

// Prompt implements sdk.Agent: it returns when the turn has ended.
func (s *server) Prompt(ctx context.Context, req sdk.PromptRequest) (resp sdk.PromptResponse, err error) {
	defer s.recoverPanic(&err)
	s.busy.Add(1)
	defer s.busy.Done()
	// The library cancels the request of a prompt when another one of its session arrives, even if that one is refused.
	// What ends a prompt is session/cancel, $/cancel_request with its id, and the end of the connection.
	request := ctx
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(s.life, end)()
	sess, p, err := s.claimSession(ctx, string(req.SessionId))
	if err != nil {
		return resp, err
	}
	defer sess.finishPrompt(p)
	defer context.AfterFunc(request, func() {
		if s.cancels.cancelled(sess.id) {
			sess.cancelTurn()
		}
	})()
	msg, err := sess.readBlocks(ctx, p.id, req.Prompt)
	if err != nil {
		return resp, err
	}
	if err := sess.introduceSession(ctx, &msg); err != nil {
		return resp, err
	}
	if handed, err := sess.submitPrompt(ctx, p, msg); err != nil || !handed {
		return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, err
	}
	reason, err := sess.awaitTurn(ctx, p)
	sess.sendUsage(ctx)
	return sdk.PromptResponse{StopReason: reason}, err
}

// beginPrompt claims the session for a prompt.
func (s *session) beginPrompt() (*prompt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return nil, errOver
	case s.prompt != nil:
		return nil, errBusy
	}
	id := uuid.Must(uuid.NewV7()).String()
	s.prompt = &prompt{
		id:      id,
		turn:    bot.TurnID(Name, BotID, id),
		done:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
	s.voice = voice{}
	s.used = s.server.opts.Now()
	return s.prompt, nil
}

// finishPrompt gives the session free. Calls that are shown as under way have ended with the turn.
func (s *session) finishPrompt(p *prompt) {
	s.mu.Lock()
	open := s.calls
	s.calls = map[string]*shownCall{}
	if s.prompt == p {
		s.prompt = nil
	}
	s.used = s.server.opts.Now()
	s.mu.Unlock()
	for id, c := range open {
		if !c.ended {
			s.sendUpdate(sdk.UpdateToolCall(s.callID(id), sdk.WithUpdateStatus(sdk.ToolCallStatusFailed)))
		}
	}
}

// introduceSession gives the session its title, and says what is to be said before the answer.
func (s *session) introduceSession(ctx context.Context, msg *bot.Message) error {
	s.mu.Lock()
	title := s.saved.Title
	if title == "" {
		s.saved.Title = titleOf(msg.Text)
	}
	fresh := s.saved.Title != title
	now, notices := s.saved.Title, s.notice
	s.notice = nil
	s.mu.Unlock()
	for _, text := range notices {
		s.sendUpdate(sdk.UpdateAgentMessageText(text + "\n\n"))
	}
	if err := s.saveSession(ctx); err != nil {
		return err
	}
	if fresh {
		at := s.server.opts.Now().UTC().Format(time.RFC3339Nano)
		s.sendUpdate(sdk.SessionUpdate{SessionInfoUpdate: &sdk.SessionSessionInfoUpdate{Title: &now, UpdatedAt: &at}})
	}
	return nil
}

// titleLength is how many characters a title has.
const titleLength = 80

// titleOf returns a title made of the first line of a text.
func titleOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(visible.Name(strings.TrimSpace(line)))
	if len(runes) > titleLength {
		runes = append(runes[:titleLength-1], '…')
	}
	return string(runes)
}

// submitPrompt stores the message of a prompt, unless it was cancelled before.
func (s *session) submitPrompt(ctx context.Context, p *prompt, msg bot.Message) (bool, error) {
	s.handing.Lock()
	defer s.handing.Unlock()
	s.mu.Lock()
	cancelled := p.cancelled
	s.mu.Unlock()
	if cancelled {
		return false, nil
	}
	if err := s.handMessage(ctx, msg); err != nil {
		return false, err
	}
	p.handed = true
	return true, nil
}

// awaitTurn waits for the end of a turn.
func (s *session) awaitTurn(ctx context.Context, p *prompt) (sdk.StopReason, error) {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	var leaving <-chan time.Time
	gone, settled := ctx.Done(), 0
	for {
		select {
		case <-p.done:
			return s.stopReason(p), nil
		case <-gone: // the editor has left
			gone = nil
			s.cancelTurn()
			timer := time.NewTimer(leaveTime)
			defer timer.Stop()
			leaving = timer.C
		case <-leaving:
			return sdk.StopReasonCancelled, nil
		case <-tick.C:
			over, err := s.isIdle(context.WithoutCancel(ctx))
			if err != nil {
				return "", err
			}
			if settled++; !over {
				settled = 0
			}
			if settled > 2 { // whatever it has to say is said
				return s.stopReason(p), nil
			}
		}
	}
}

// isIdle reports whether nothing is under way and nothing waits in the session.
func (s *session) isIdle(ctx context.Context) (bool, error) {
	store := s.project.currentBackend().Store
	lane, err := store.Lane(ctx, s.sessionKey())
	if err != nil || lane.Turn != "" {
		return false, err
	}
	waiting, err := store.Tickets(ctx, string(s.sessionKey()))
	return len(waiting) == 0, err
}

// stopReason returns why a turn has ended, in the protocol's words.
func (s *session) stopReason(p *prompt) sdk.StopReason {
	s.mu.Lock()
	cancelled := p.cancelled
	s.mu.Unlock()
	if cancelled {
		return sdk.StopReasonCancelled
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(s.server.life), replyTime)
	defer done()
	tail, err := s.project.currentBackend().Store.Tail(ctx, s.sessionKey(), 0)
	if err != nil {
		return sdk.StopReasonEndTurn
	}
	for i := len(tail.Entries) - 1; i >= 0; i-- {
		e := &tail.Entries[i]
		if e.Turn != p.turn || e.Kind != journal.EndEntry && e.Kind != journal.AnswerEntry {
			continue
		}
		switch e.Reason {
		case journal.ReasonLimit, journal.ReasonLoop:
			return sdk.StopReasonMaxTurnRequests
		case journal.ReasonLength:
			return sdk.StopReasonMaxTokens
		case journal.ReasonRefusal, journal.ReasonFiltered:
			return sdk.StopReasonRefusal
		case journal.ReasonStopped:
			return sdk.StopReasonCancelled
		}
		break
	}
	return sdk.StopReasonEndTurn
}

// cancelTurn ends the turn that is under way, as /stop does. Questions to the editor are withdrawn at once.
func (s *session) cancelTurn() {
	s.mu.Lock()
	p := s.prompt
	if p == nil || p.cancelled {
		s.mu.Unlock()
		return
	}
	p.cancelled = true
	close(p.stopped)
	s.mu.Unlock()
	s.handing.Lock() // a /stop that is stored before its message would not stop it
	defer s.handing.Unlock()
	if !p.handed {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(s.server.life), replyTime)
	defer done()
	m := s.newMessage(uuid.Must(uuid.NewV7()).String())
	m.Text, m.Command = "/stop", "stop"
	if err := s.handMessage(ctx, m); err != nil && !errors.Is(err, context.Canceled) {
		s.server.opts.Log.Error().Err(err).Msg("a turn could not be stopped")
	}
}
