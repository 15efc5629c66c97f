package texts

// profileBook is what the profile of the bot says in one language.
type profileBook struct {
	Description string // at most 512 characters
	Short       string // at most 120 characters
}

// ProfileDescription is what a chat with the bot shows that nobody has written in yet.
func (w Words) ProfileDescription(language string) string { return w.in(language).Profile.Description }

// ProfileShort is what the profile of the bot and links to it show.
func (w Words) ProfileShort(language string) string { return w.in(language).Profile.Short }
