package redis

import "fmt"

// BudgetAt is a send budget whose clock is the key {send:BOT}now, in milliseconds, rather than the server's, and tick
// milliseconds behind at most.
func BudgetAt(s *Store, bot string, tick int) *Budget {
	remote, ok := s.engine.(*server)
	if !ok {
		panic("the budget of a test needs a server")
	}
	return newBudget(remote, bot, fmt.Sprintf("\nlocal now = tonumber(redis.call('GET', '{send:%s}now'))\nlocal tick = %d", bot, tick))
}
