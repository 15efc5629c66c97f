package simulator_test

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/zephbot/zephbot/bot/webpage/browsertest"
)

// give puts files into the page as a person does: chosen, pasted or dropped.
func (b *tab) give(how string, files map[string][]byte, names ...string) {
	b.t.Helper()
	var list strings.Builder
	for _, name := range names {
		kind := "text/plain"
		if strings.HasSuffix(name, ".png") {
			kind = "image/png"
		}
		fmt.Fprintf(&list, "list.items.add(new File([Uint8Array.from(atob(%q), (c) => c.charCodeAt(0))], %q, { type: %q }));",
			base64.StdEncoding.EncodeToString(files[name]), name, kind)
	}
	b.Do(how, chromedp.Evaluate[chromedp.Void]("{ const list = new DataTransfer(); "+list.String()+map[string]string{
		"choose": `const field = document.querySelector("#file"); field.files = list.files; field.dispatchEvent(new Event("change"));`,
		"paste":  `document.querySelector("#text").dispatchEvent(new ClipboardEvent("paste", { clipboardData: list, bubbles: true, cancelable: true }));`,
		"drop":   `document.querySelector(".chat").dispatchEvent(new DragEvent("drop", { dataTransfer: list, bubbles: true, cancelable: true }));`,
	}[how]+" }"))
}

// pictures: an album is chosen, previewed, sent and looked at; the bot's reaction and its own photo are shown.
func (b *tab) pictures() {
	files := map[string][]byte{"a.png": picture(160, 90), "b.png": picture(90, 160), "c.png": picture(120, 120), "notes.txt": []byte("hello")}
	b.give("choose", files, "a.png", "b.png")
	b.give("paste", files, "c.png")
	b.Until(`document.querySelectorAll("#strip canvas.thumb").length === 3 && document.querySelector("#strip").textContent.includes("3 files")`)
	b.Shot("20-preview")
	b.Do("one less", browsertest.Click(`.thumbs [aria-label="Remove a.png"]`))
	b.Until(`document.querySelectorAll("#strip canvas.thumb").length === 2`)
	b.give("drop", files, "a.png")
	b.write("three of them")
	b.Until(`document.querySelectorAll("li.mine .album.of-3 .photo img").length === 3`)
	b.Until(`[...document.querySelectorAll("li.mine .album img")].every((i) => i.complete && i.naturalWidth > 0)`)
	b.Until(shows(".mine", "three of them"))
	b.Until(`document.querySelector("li.mine .reactions")?.getAttribute("aria-label") === "Reactions: 👀"`)
	b.write("photo")
	b.Until(`document.querySelector("li.bot-made .photo img")?.naturalWidth === 640`)
	b.Until(shows(".bot-made", "a chart"))
	b.Shot("21-album")
	b.Do("look", browsertest.Click("li.mine .album .photo"))
	b.Until(`document.querySelector("#viewer").open && document.querySelector("#viewer-count").textContent === "Ann · 1 of 4" && document.querySelector("#viewer-image").naturalWidth > 0`)
	b.Do("the next ones", chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	b.Until(`document.querySelector("#viewer-count").textContent === "Zeph · 4 of 4" && document.querySelector("#viewer-text").textContent === "a chart"`)
	b.Until(`document.querySelector("#viewer-after").disabled && document.querySelector("#viewer-image").naturalWidth === 640`)
	b.Shot("22-viewer")
	b.Do("close", chromedp.KeyEvent(kb.Escape))
	b.Until(`!document.querySelector("#viewer").open && document.activeElement.classList.contains("photo")`)
	// The same as files: documents, below each other. Pictures and others are messages of their own.
	b.give("choose", files, "a.png", "notes.txt")
	b.Do("as files", browsertest.Click("#as-file"))
	b.Until(`document.querySelectorAll("#strip canvas").length === 0 && document.querySelector("#as-file").checked`)
	b.write("as files")
	b.Until(`[...document.querySelectorAll("li.mine")].at(-1).querySelectorAll("a.file").length === 2`)
	b.Until(shows(".bot-made", "got notes.txt"))
	b.give("choose", files, "a.png", "notes.txt")
	b.write("mixed")
	b.Until(`[...document.querySelectorAll("li.mine")].at(-1).querySelectorAll("a.file").length === 1 && [...document.querySelectorAll("li.mine")].at(-2).querySelector(".photo")`)
	b.Until(`document.querySelector("#live").textContent.includes("photo. a chart") || document.querySelector("#live").textContent.includes("got notes.txt")`)
}

// sent: an album of the bot is one message with one caption.
func (b *tab) sent() {
	b.write("album")
	b.Until(`document.querySelectorAll("li.bot-made .album.of-2 .photo img").length === 2`)
	b.Until(shows(".bot-made", "two charts"))
	b.Until(`document.querySelector("#live").textContent.includes("album of 2. two charts")`)
	b.Until(`(document.querySelector("#scroll").scrollHeight - document.querySelector("#scroll").scrollTop - document.querySelector("#scroll").clientHeight) < 3`)
	b.Shot("26-bots-album")
}

// voice: a recording is made, sent and played.
func (b *tab) voice() {
	b.Do("record", browsertest.Click("#record"))
	b.Until(`document.querySelector("#record").classList.contains("on") && !document.querySelector("#record-time").hidden`)
	b.Do("discard", browsertest.Click("#record-discard"))
	b.Until(`document.querySelector("#record-time").hidden && !document.querySelector("li.mine .player")`)
	b.Do("record", browsertest.Click("#record"))
	b.Until(`document.querySelector("#record-text").textContent === "Recording 0:01"`)
	b.Do("send", browsertest.Click("#record"))
	b.Until(`document.querySelector("li.mine .player .left")?.textContent === "0:01"`)
	// It beeps now and then: the strokes of the waveform differ.
	b.Until(`new Set([...document.querySelectorAll("li.mine .wave i")].map((e) => e.style.height)).size > 1`)
	b.Shot("23-voice")
	b.Do("play", browsertest.Click("li.mine .player .play"))
	b.Until(`document.querySelector("li.mine .player audio").currentTime > 0 && document.querySelector("li.mine .player .left").textContent.includes("/")`)
	b.Until(`document.querySelector("li.mine .player audio").ended`)
	b.Until(`[...document.querySelectorAll("li.mine .wave i")].every((e) => e.classList.contains("played"))`)
	b.Until(`document.querySelector("li.mine .play").getAttribute("aria-label").startsWith("Play")`)
}

// quote: what is selected of a message is quoted by the reply; the keys of a message do what its buttons do.
func (b *tab) quote() {
	b.write("the first half and the second half")
	b.Until(shows(".bot-made", "echo: the first half and the second half"))
	b.Do("select", chromedp.Evaluate[chromedp.Void](`{ const text = [...document.querySelectorAll("li.bot-made .text")].at(-1).firstChild;
		const range = document.createRange(); range.setStart(text, 6); range.setEnd(text, 20); getSelection().removeAllRanges(); getSelection().addRange(range);
		text.parentNode.closest("li").querySelector('[data-act="reply"]').click(); }`))
	b.Until(`document.querySelector("#strip-text").textContent === "Quote Zeph" + "the first half"`)
	b.write("this one")
	b.Until(`[...document.querySelectorAll("li.mine .quote.cited span")].at(-1)?.textContent === "the first half"`)
	b.Until(shows(".bot-made", "echo: this one"))
	last := `[...document.querySelectorAll("li.mine")].at(-1)`
	b.Do("keys", chromedp.Evaluate[chromedp.Void](last+`.tabIndex = 0; `+last+`.focus()`), browsertest.Strike("o", 79))
	b.Until(`document.activeElement.textContent.includes("echo: the first half")`)
	b.Do("edit by key", chromedp.Evaluate[chromedp.Void](last+`.focus()`), browsertest.Strike("e", 69))
	b.Until(`document.querySelector("#text").value === "this one" && document.querySelector("#strip-text").textContent.startsWith("Edit")`)
	b.Do("not", chromedp.KeyEvent(kb.Escape))
	b.Until(`document.querySelector("#text").value === ""`)
	// An own message that answers a long one stays in the chat.
	b.write(strings.Repeat("long ", 200))
	b.Until(`[...document.querySelectorAll("li.bot-made .text")].at(-1)?.textContent.startsWith("echo: long long")`)
	b.Do("answer a long one", chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll("li.bot-made [data-act='reply']")].at(-1).click()`))
	b.write("short")
	b.Until(`[...document.querySelectorAll("li.mine .text")].at(-1)?.textContent === "short"`)
	b.Until(`[...document.querySelectorAll("li.mine .bubble")].at(-1).getBoundingClientRect().left >= document.querySelector("#messages").getBoundingClientRect().left`)
}

// alone: an ephemeral message is marked, and another person does not see it.
func (b *tab) alone() {
	b.write("@zephbot aside")
	b.Until(`document.querySelector("li.alone .text")?.textContent === "for you alone" && document.querySelector("li.alone .only").textContent.includes("Only you see this")`)
	b.Until(`document.querySelector("#live").textContent.includes("only for you: for you alone")`)
	b.Shot("24-alone")
	b.Until(`document.querySelector("#strip").hidden`)
	b.Do("be Ben", browsertest.Click(`[data-person="1002"]`))
	b.Until(`document.body.dataset.ready === "1002/-1001/7"`)
	b.Until(shows("", "@zephbot aside") + ` && !document.querySelector("li.alone")`)
	b.Do("be Cy", browsertest.Click(`[data-person="1003"]`))
	b.Until(`document.body.dataset.ready === "1003/-1001/7" && document.querySelector("li.alone")`)
}

// topic: a new one is opened, by the keyboard alone.
func (b *tab) topic() {
	b.Do("plus", chromedp.Evaluate[chromedp.Void](`document.querySelector('[data-topic="-1001"]').focus()`), chromedp.KeyEvent(kb.Enter))
	b.Until(`document.querySelector("#topic").open && document.activeElement.id === "topic-name"`)
	if n := browsertest.Eval[int](b.Tab, `document.querySelectorAll("li.group").length`); n != 1 {
		b.t.Errorf("%d headings of groups with topics, want 1", n)
	}
	b.Shot("25-topic")
	b.Do("name", chromedp.KeyEvent("Plans"), chromedp.KeyEvent(kb.Enter))
	b.Until(`!document.querySelector("#topic").open && document.querySelector("#chat-title").textContent === "Plans"`)
	b.Until(`document.querySelector("#messages").textContent.includes("opened the topic “Plans”")`)
	b.Do("back to Deploys", browsertest.Click(`[data-chat="-1001/7"]`))
	b.Until(`document.body.dataset.ready === "1003/-1001/7"`)
}
