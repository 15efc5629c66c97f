package console

import "strings"

// SetHistory sets the lines that the arrows lead to, oldest first. It does not change the text.
func (e *Editor) SetHistory(lines []string) {
	e.history, e.shown, e.draft = lines, 0, ""
}

// olderLine shows the line of the history before the one that is shown; false if there is none.
func (e *Editor) olderLine() bool {
	if e.shown >= len(e.history) {
		return false
	}
	if e.shown == 0 {
		e.draft = e.text
	}
	e.shown++
	e.text = e.history[len(e.history)-e.shown]
	e.at = len(e.text)
	return true
}

// newerLine shows the line of the history after the one that is shown, at last what the person had written.
func (e *Editor) newerLine() bool {
	if e.shown == 0 {
		return false
	}
	e.shown--
	e.text = e.draft
	if e.shown > 0 {
		e.text = e.history[len(e.history)-e.shown]
	}
	e.at = len(e.text)
	return true
}

// Search returns the newest line of the history that contains text, after skipping so many of them.
func (e *Editor) Search(text string, skip int) (line string, ok bool) {
	for i := len(e.history) - 1; i >= 0 && text != ""; i-- {
		if !strings.Contains(strings.ToLower(e.history[i]), strings.ToLower(text)) {
			continue
		}
		if skip == 0 {
			return e.history[i], true
		}
		skip--
	}
	return "", false
}

// Word returns the text between the last blank before the cursor and the cursor, and where it begins.
func (e *Editor) Word() (text string, start int) {
	start = strings.LastIndexAny(e.text[:e.at], " \n") + 1
	return e.text[start:e.at], start
}

// CommonPrefix returns the longest beginning that all texts share.
func CommonPrefix(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	common := texts[0]
	for _, t := range texts[1:] {
		for !strings.HasPrefix(t, common) {
			common = common[:len(common)-1]
		}
	}
	return strings.ToValidUTF8(common, "")
}
