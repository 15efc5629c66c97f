package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// ErrStopped is the error of Once if the person ended the turn.
var ErrStopped = errors.New("stopped")

// ErrNoAnswer is the error of Once if the message got none. The reason has been shown.
var ErrNoAnswer = errors.New("no answer")

// ErrLeft means that the person left while a turn was being ended.
var ErrLeft = errors.New("left")

// errPressed ends what Ctrl-C interrupts.
var errPressed = errors.New("interrupted")

// stopCommand ends the running turn, as in every chat.
const stopCommand = "/stop"

// Interrupts sets the channel that receives each press of Ctrl-C. A press ends the running turn; one at the prompt, or
// while a turn is being ended, leaves. It must be called before Once and Talk.
func (t *Terminal) Interrupts(pressed <-chan struct{}) { t.pressed = pressed }

// Once accepts one message and waits for its answer. Questions are put to the person if there is one at the terminal,
// and denied otherwise. The error is ErrNoAnswer if the turn ended
// without an answer, ErrStopped if the person ended it, and ErrLeft if they did not wait for its end.
func (t *Terminal) Once(ctx context.Context, accept Accept, text string) error {
	t.mu.Lock()
	t.asked = !isCommand(text)
	t.mu.Unlock()
	err := t.exchange(ctx, accept, text)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && t.failed {
		return ErrNoAnswer
	}
	return err
}

// exchange hands in a message and waits until it is answered.
func (t *Terminal) exchange(ctx context.Context, accept Accept, text string) error {
	if err := t.handMessage(ctx, accept, t.newMessage(text)); err != nil {
		return err
	}
	err := t.runInterruptible(ctx, func(ctx context.Context) error { return t.awaitEnd(ctx, accept) })
	if !errors.Is(err, errPressed) {
		return err
	}
	return t.stopTurn(ctx, accept)
}

// Talk accepts every line of the input, one answer after the other, until the input ends or the person leaves.
func (t *Terminal) Talk(ctx context.Context, accept Accept) error {
	for {
		if t.opts.Ask && !t.opts.JSON {
			_, _ = fmt.Fprint(t.opts.Err, "> ") // it does no harm if nobody sees a prompt
		}
		var text string
		err := t.runInterruptible(ctx, func(ctx context.Context) (err error) {
			text, err = t.input.nextLine(ctx, 0)
			return err
		})
		switch {
		case errors.Is(err, io.EOF), ctx.Err() != nil:
			return nil
		case errors.Is(err, errPressed):
			t.endPromptLine()
			return nil
		case err != nil:
			return err
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		if err := t.exchange(ctx, accept, text); err != nil && !errors.Is(err, ErrStopped) {
			return err
		}
	}
}

// runInterruptible runs do with a context that Ctrl-C cancels; the error is then errPressed.
func (t *Terminal) runInterruptible(ctx context.Context, do func(ctx context.Context) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-t.pressed:
			cancel(errPressed)
		case <-inner.Done():
		}
	})
	err := do(inner)
	cancel(nil)
	watching.Wait()
	if err != nil && errors.Is(context.Cause(inner), errPressed) {
		return errPressed
	}
	return err
}

// stopTurn ends the running turn and waits for its end, which is shown like every answer. Questions that were
// asked in the meantime are void.
func (t *Terminal) stopTurn(ctx context.Context, accept Accept) error {
	t.endPromptLine()
	t.mu.Lock()
	done := t.answered > t.waiting // the answer was faster
	waiting := t.waiting
	t.questions = nil
	t.mu.Unlock()
	t.voidRequests()
	if done {
		return nil
	}
	if err := t.handMessage(ctx, accept, t.newMessage(stopCommand)); err != nil {
		return err
	}
	t.mu.Lock()
	t.waiting = waiting // an end that came before the command was accepted counts too
	t.mu.Unlock()
	err := t.runInterruptible(ctx, func(ctx context.Context) error { return t.awaitEnd(ctx, accept) })
	switch {
	case errors.Is(err, errPressed):
		return ErrLeft
	case err != nil:
		return err
	default:
		return ErrStopped
	}
}

// voidRequests cancels the requests of servers that wait for the person.
func (t *Terminal) voidRequests() {
	for {
		f, ok := t.nextForm()
		if !ok {
			return
		}
		f.reply <- Reply{Cancel: true}
	}
}

// endPromptLine ends the line that contains a person's ^C.
func (t *Terminal) endPromptLine() {
	if t.opts.Ask && !t.opts.JSON {
		_, _ = fmt.Fprintln(t.opts.Err) // as for every prompt
	}
}
