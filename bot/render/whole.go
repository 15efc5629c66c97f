package render

// Whole renders src like Markdown, as one message of any length: for channels without limits.
func Whole(src string) Message {
	d := build(src, Folding{})
	return d.message("", d.skipSpace(0), len(d.text))
}
