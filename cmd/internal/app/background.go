package app

import (
	"context"

	"github.com/zephbot/zephbot/bot"
)

// background are the commands that run without anybody waiting, in this process and in others.
type background struct{ core *Core }

// Running implements command.Background.
func (b background) Running(ctx context.Context, session bot.SessionKey) (here int, elsewhere []bot.Fact, err error) {
	if runner := b.core.kit.runner; runner != nil {
		here = runner.Active(string(session))
	}
	if b.core.shared() {
		elsewhere, err = b.core.news.End(ctx, session)
	}
	return here, elsewhere, err
}

// End implements command.Background.
func (b background) End(session bot.SessionKey) {
	if runner := b.core.kit.runner; runner != nil {
		runner.Cancel(string(session), "")
	}
}

// any says whether commands of a session are under way, so that what was read before may not be so any more.
func (b background) any(session string) bool {
	if len(b.core.kit.runner.Background(session)) > 0 {
		return true
	}
	return b.core.news != nil && b.core.news.Elsewhere(bot.SessionKey(session)) // the command line has no news
}

// follow ends what other processes want to end here.
func (b background) follow(ctx context.Context) error {
	runner := b.core.kit.runner
	if runner == nil || runner.Idle() {
		return nil
	}
	ids, err := b.core.news.Ending(ctx)
	if err != nil {
		return err
	}
	runner.CancelRuns(ids)
	return nil
}
