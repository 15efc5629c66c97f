package web

import (
	"fmt"
	"io"
	"net/url"

	"golang.org/x/net/html"
)

// Text turns an HTML file into Markdown, as fetch does with a page: without scripts, navigation and what a reader would
// not see. Addresses that are not complete are left out.
func Text(r io.Reader) (string, error) {
	doc, err := html.Parse(r)
	if err != nil {
		return "", fmt.Errorf("parse HTML: %w", err)
	}
	return markdown(doc, &url.URL{})
}
