package web

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
)

// These limits keep the work of the converter proportional to the page. It copies the text of a list, a quotation or a
// link once per level of nesting, and fills tables up to their widest row.
const (
	maxLevels  = 6    // of nested lists, quotations, links and emphasis
	maxColumns = 64   // of a table
	maxSpan    = 20   // of a cell
	maxAddress = 2000 // bytes of a link
	maxAlt     = 200  // bytes of the description of an image
	maxTitle   = 300  // bytes of the title
)

// clutter selects elements that are not part of a page's text.
const clutter = "nav, svg, math, canvas, iframe, frame, object, embed, audio, video, map, select, datalist, input, " +
	"textarea, link, meta, title"

// lineEnds matches blanks at the end of lines, which the converter leaves in lists and quotations.
var lineEnds = regexp.MustCompile(`[ \t]+\n`)

// markdown converts a page to Markdown, beginning with its title. It changes doc.
func markdown(doc *html.Node, location *url.URL) (string, error) {
	d := goquery.NewDocumentFromNode(doc)
	title, _ := cut(flat(d.Find("title").First()), maxTitle)
	home := baseOf(d, location)
	clean(d)
	addresses(d, home)
	flatten(doc, map[string]int{})
	tables(d)
	conv := converter.NewConverter(
		// Without escapes: they are noise to a model, and the converter takes quadratic time to find out which are
		// needed.
		converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(
			base.NewBasePlugin(),
			commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),
			table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal),
				table.WithHeaderPromotion(true)),
		),
	)
	out, err := conv.ConvertNode(doc)
	if err != nil {
		return "", failed(err, "The page could not be turned into text.",
			"Use another page, or pick elements with web_scrape.")
	}
	text := strings.TrimSpace(lineEnds.ReplaceAllString(strings.Map(invisible, string(out)), "\n"))
	if first, _, _ := strings.Cut(text, "\n"); title == "" || strings.TrimSpace(strings.TrimLeft(first, "#")) == title {
		return text, nil
	}
	return strings.TrimSpace("# " + title + "\n\n" + text), nil
}

// flat returns the text of a selection as one line.
func flat(s *goquery.Selection) string {
	return strings.Join(strings.Fields(strings.Map(invisible, s.Text())), " ")
}

// clean removes comments, clutter and hidden elements.
func clean(d *goquery.Document) {
	var doomed []*html.Node
	for _, root := range d.Nodes {
		for n := range root.Descendants() {
			if n.Type == html.CommentNode || n.Type == html.ElementNode && hidden(n) {
				doomed = append(doomed, n)
			}
		}
	}
	for _, n := range doomed {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
	d.Find(clutter).Remove()
	d.Find("footer").Each(func(_ int, s *goquery.Selection) {
		if s.Closest("blockquote, article").Length() == 0 { // there, it names the author of the text
			s.Remove()
		}
	})
}

// baseOf returns the base of the page's relative links.
func baseOf(d *goquery.Document, location *url.URL) *url.URL {
	if href, ok := d.Find("base[href]").First().Attr("href"); ok {
		if u, err := location.Parse(strings.TrimSpace(href)); err == nil && onWeb(u) {
			return u
		}
	}
	return location
}

func onWeb(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// addresses makes links absolute. Of links that lead nowhere (within the page, to a script, to data) it keeps only the
// text. It removes titles, because they are only visible when the pointer is over the link.
func addresses(d *goquery.Document, home *url.URL) {
	d.Find("a").Each(func(_ int, s *goquery.Selection) {
		n := s.Get(0)
		address := absolute(home, s.AttrOr("href", "#"))
		if address == "" {
			n.Data, n.DataAtom, n.Attr = "span", 0, nil
			return
		}
		n.Attr = []html.Attribute{{Key: "href", Val: address}}
	})
	d.Find("img").Each(func(_ int, s *goquery.Selection) {
		n := s.Get(0)
		alt, _ := cut(strings.Join(strings.Fields(s.AttrOr("alt", "")), " "), maxAlt)
		address := absolute(home, s.AttrOr("src", ""))
		switch {
		case alt == "": // decoration, or a tracking pixel
			s.Remove()
		case address == "":
			n.Type, n.Data, n.DataAtom, n.Attr = html.TextNode, alt, 0, nil
		default:
			n.Attr = []html.Attribute{{Key: "src", Val: address}, {Key: "alt", Val: alt}}
		}
	})
}

// absolute resolves an address of the page; "" if it is not a web address.
func absolute(home *url.URL, raw string) string {
	raw = strings.TrimSpace(raw)
	if raw == "" || strings.HasPrefix(raw, "#") {
		return ""
	}
	u, err := home.Parse(raw)
	if err != nil || !onWeb(u) {
		return ""
	}
	if text := u.String(); len(text) <= maxAddress {
		return text
	}
	return ""
}

// flatten replaces elements that are nested too deeply by plain boxes. levels counts the open elements of each family.
func flatten(n *html.Node, levels map[string]int) {
	family := ""
	if n.Type == html.ElementNode {
		switch n.Data {
		case "ul", "ol", "blockquote":
			family = "block"
			stripStart(n)
		case "b", "strong", "i", "em", "code", "kbd", "samp", "tt", "var", "a", "del", "s", "h1", "h2", "h3", "h4",
			"h5", "h6":
			family = "inline"
		}
	}
	if family != "" && levels[family] >= maxLevels {
		n.Data, n.DataAtom, n.Attr = "div", 0, nil
		if family == "inline" {
			n.Data = "span"
		}
		family = ""
	}
	if family != "" {
		levels[family]++
		defer func() { levels[family]-- }()
	}
	for child := range n.ChildNodes() {
		flatten(child, levels)
	}
}

// stripStart removes the start number of a list if it is not a number, because every line would be indented by its
// length.
func stripStart(n *html.Node) {
	for i, a := range n.Attr {
		if v, err := strconv.Atoi(a.Val); a.Key == "start" && (err != nil || v < 0 || v > 99999) {
			n.Attr[i].Val = "1"
		}
	}
}

// tables dissolves tables that do not contain data: those that contain other tables, which are used for layout and take
// the converter exponential time, and those that are too wide to read. It also removes implausible spans.
func tables(d *goquery.Document) {
	dissolve := map[*html.Node]bool{}
	d.Find("table table").Each(func(_ int, s *goquery.Selection) {
		for p := s.Get(0).Parent; p != nil && !dissolve[p]; p = p.Parent {
			if p.Data == "table" {
				dissolve[p] = true
			}
		}
	})
	d.Find("tr").Each(func(_ int, s *goquery.Selection) {
		if s.Children().Length() > maxColumns {
			dissolve[s.Closest("table").Get(0)] = true
		}
	})
	var parts []*html.Node
	d.Find("table, caption, thead, tbody, tfoot, tr, td, th").Each(func(_ int, s *goquery.Selection) {
		if dissolve[s.Closest("table").Get(0)] {
			parts = append(parts, s.Get(0))
		}
	})
	for _, n := range parts { // only now, because until here the parts had to find their table
		n.Data, n.DataAtom, n.Attr = "div", 0, nil
	}
	d.Find("td, th").Each(func(_ int, s *goquery.Selection) {
		for _, key := range []string{"colspan", "rowspan"} {
			if v, ok := s.Attr(key); ok {
				if span, err := strconv.Atoi(v); err != nil || span < 1 || span > maxSpan {
					s.RemoveAttr(key)
				}
			}
		}
	})
}
