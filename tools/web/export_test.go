package web

import (
	"net"
	"net/url"
	"time"

	"golang.org/x/net/html"
)

// Guarded returns the dialer of production, whose sockets refuse what is not public.
func Guarded() *net.Dialer { return guarded(time.Minute) }

// Cost returns the bound on matching one element of the document.
func Cost(selector string, doc *html.Node) float64 { return shapeOf(doc).cost(selector) }

// HiddenStyle reports whether an inline style hides.
func HiddenStyle(style string) bool { return hiddenStyle(style) }

// Markdown converts a page.
func Markdown(doc *html.Node, location *url.URL) (string, error) { return markdown(doc, location) }

// ReadAnswer reads an answer of a search service as web_search does.
func ReadAnswer(backend string, data []byte) string {
	list, err := backends()[backend].read(data)
	if err != nil {
		return ""
	}
	return result(list, maxFoundPages).Text
}
