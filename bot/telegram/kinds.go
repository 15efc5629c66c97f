package telegram

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-telegram/bot/models"

	"github.com/zephbot/zephbot/bot"
)

// maxListed is how many options of a poll or tasks of a checklist are named to the model; Telegram allows fewer.
const maxListed = 40

// sticker is what people call one.
const sticker = "sticker"

// listFiles lists what came along besides text: what can be downloaded, and what is said in words. The kinds are what
// people call such things.
func listFiles(msg *models.Message) []bot.Attachment {
	list := append(listDownloads(msg), inWords(msg)...)
	for i := range list {
		list[i].Album = msg.MediaGroupID
	}
	return list
}

// listDownloads are what has a content.
func listDownloads(msg *models.Message) (list []bot.Attachment) {
	add := func(a bot.Attachment) { list = append(list, a) }
	if p := largestSize(msg.Photo); p != nil {
		add(bot.Attachment{Kind: bot.Photo, ID: p.FileID, MIME: "image/jpeg", Size: int64(p.FileSize)})
	}
	if f := msg.Document; f != nil && msg.Animation == nil { // an animation is told as a document too
		add(bot.Attachment{Kind: bot.Document, ID: f.FileID, Name: f.FileName, MIME: f.MimeType, Size: f.FileSize})
	}
	if f := msg.Voice; f != nil {
		add(bot.Attachment{
			Kind:    bot.Voice,
			ID:      f.FileID,
			MIME:    cmp.Or(f.MimeType, "audio/ogg"),
			Size:    f.FileSize,
			Note:    secondsText(f.Duration),
			Seconds: f.Duration,
		})
	}
	if f := msg.Audio; f != nil {
		title := strings.Trim(f.Performer+" – "+f.Title, " –")
		add(bot.Attachment{
			Kind:    bot.Audio,
			ID:      f.FileID,
			Name:    f.FileName,
			MIME:    f.MimeType,
			Size:    f.FileSize,
			Note:    joinWords(secondsText(f.Duration), title),
			Seconds: f.Duration,
		})
	}
	if f := msg.Video; f != nil {
		add(bot.Attachment{
			Kind:  bot.Video,
			ID:    f.FileID,
			Name:  f.FileName,
			MIME:  f.MimeType,
			Size:  f.FileSize,
			Note:  secondsText(f.Duration),
			Still: stillPicture(f.Thumbnail, f.Cover),
		})
	}
	if f := msg.VideoNote; f != nil {
		add(bot.Attachment{
			Kind:  bot.VideoNote,
			ID:    f.FileID,
			MIME:  "video/mp4",
			Size:  int64(f.FileSize),
			Note:  secondsText(f.Duration),
			Still: stillPicture(f.Thumbnail, nil),
		})
	}
	if f := msg.Animation; f != nil {
		add(bot.Attachment{
			Kind:  bot.Animation,
			ID:    f.FileID,
			Name:  f.FileName,
			MIME:  f.MimeType,
			Size:  f.FileSize,
			Note:  secondsText(f.Duration),
			Still: stillPicture(f.Thumbnail, nil),
		})
	}
	if f := msg.LivePhoto; f != nil && len(msg.Photo) == 0 && msg.Video == nil {
		if p := largestSize(f.Photo); p != nil {
			add(bot.Attachment{Kind: bot.Photo, ID: p.FileID, MIME: "image/jpeg", Size: int64(p.FileSize)})
		}
	}
	return list
}

// inWords is what needs no download: it is said in a line.
func inWords(msg *models.Message) (list []bot.Attachment) {
	say := func(kind, note string) { list = append(list, bot.Attachment{Kind: kind, Note: note}) }
	if f := msg.Sticker; f != nil {
		say(sticker, joinWords(f.Emoji, f.SetName))
	}
	switch {
	case msg.Venue != nil: // its place is told as a location too
		v := msg.Venue
		say("venue", joinWords(v.Title, v.Address, coordinateText(&v.Location)))
	case msg.Location != nil && msg.Location.LivePeriod != 0:
		say("live location", coordinateText(msg.Location))
	case msg.Location != nil:
		say("location", coordinateText(msg.Location))
	}
	if f := msg.Contact; f != nil {
		say("contact", joinWords(strings.TrimSpace(f.FirstName+" "+f.LastName), f.PhoneNumber))
	}
	if f := msg.Poll; f != nil {
		options := make([]string, 0, len(f.Options))
		for _, o := range f.Options {
			options = append(options, fmt.Sprintf("%s (%d)", o.Text, o.VoterCount))
		}
		say("poll", titledList(f.Question, options))
	}
	if f := msg.Dice; f != nil {
		say("dice", fmt.Sprintf("%s %d", f.Emoji, f.Value))
	}
	if f := msg.Checklist; f != nil {
		tasks := make([]string, 0, len(f.Tasks))
		for _, t := range f.Tasks {
			done := "open"
			if t.CompletionDate != 0 {
				done = "done"
			}
			tasks = append(tasks, fmt.Sprintf("%s (%s)", t.Text, done))
		}
		say("checklist", titledList(f.Title, tasks))
	}
	return append(list, rareContents(msg)...)
}

// rareContents is what people seldom send to a bot.
func rareContents(msg *models.Message) (list []bot.Attachment) {
	say := func(kind, note string) { list = append(list, bot.Attachment{Kind: kind, Note: note}) }
	if f := msg.Story; f != nil {
		say("story", cmp.Or(f.Chat.Title, f.Chat.FirstName, f.Chat.Username))
	}
	if f := msg.PaidMedia; f != nil {
		say("paid post", fmt.Sprintf("%d stars", f.StarCount))
	}
	if f := msg.Game; f != nil {
		say("game", joinWords(f.Title, f.Description))
	}
	if f := msg.Invoice; f != nil {
		say("invoice", joinWords(
			f.Title, f.Description, fmt.Sprintf("%d.%02d %s", f.TotalAmount/100, f.TotalAmount%100, f.Currency),
		))
	}
	if f := msg.Giveaway; f != nil {
		say("giveaway", f.PrizeDescription)
	}
	if msg.GiveawayWinners != nil {
		say("list of giveaway winners", "")
	}
	if msg.RichMessage != nil {
		say("formatted message", "")
	}
	return list
}

// largestSize is the largest of the sizes in which a picture is offered.
func largestSize(sizes []models.PhotoSize) *models.PhotoSize {
	var best *models.PhotoSize
	for i := range sizes {
		if p := &sizes[i]; best == nil || p.Width*p.Height >= best.Width*best.Height {
			best = p
		}
	}
	return best
}

// stillPicture is the picture that stands for a video.
func stillPicture(thumbnail *models.PhotoSize, cover []models.PhotoSize) string {
	if p := largestSize(cover); p != nil {
		return p.FileID
	}
	if thumbnail != nil {
		return thumbnail.FileID
	}
	return ""
}

func coordinateText(l *models.Location) string {
	return fmt.Sprintf("%.6f, %.6f", l.Latitude, l.Longitude)
}

// secondsText says how long a recording lasts; "" = nobody knows.
func secondsText(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n) + " s"
}

// joinWords are the words that are there.
func joinWords(words ...string) string {
	var list []string
	for _, w := range words {
		if w != "" {
			list = append(list, w)
		}
	}
	return strings.Join(list, ", ")
}

// titledList is a list with what it is about, of so many things that a line stays a line.
func titledList(title string, list []string) string {
	if len(list) == 0 {
		return title
	}
	if len(list) > maxListed {
		list = append(list[:maxListed:maxListed], "…")
	}
	return title + ": " + strings.Join(list, "; ")
}
