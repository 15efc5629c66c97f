package redis

// BudgetAt is a send budget whose clock is the key {send:BOT}now, in milliseconds, rather than the server's.
func BudgetAt(s *Store, bot string) *Budget {
	remote, ok := s.engine.(*server)
	if !ok {
		panic("the budget of a test needs a server")
	}
	return newBudget(remote, bot, "\nlocal now = tonumber(redis.call('GET', '{send:"+bot+"}now'))")
}
