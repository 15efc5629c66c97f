package render_test

import "testing"

// Letters that are no markup must arrive, and markup that models write must work although CommonMark sees none in it.
func TestMarkdownKeepsLetters(t *testing.T) {
	t.Parallel()
	check(t, []example{
		{"math", "so $x_1*y_1$ and $a_{i}*b_{i}*c$ hold", "so $x_1*y_1$ and $a_{i}*b_{i}*c$ hold", nil},
		{"math in brackets", `\(a\) and \(x_1*y*z\), \[ \frac{a}{b}*c*d \]`, `a and \(x_1*y*z\), \[ \frac{a}{b}*c*d \]`, nil},
		{"math with two dollars", `$$\sum_{i}^{n} x_i*y_i*z$$`, `$$\sum_{i}^{n} x_i*y_i*z$$`, nil},
		{"math block", "It is:\n$$\nx = a\n+ b*c*d\n- \\frac{1}{2}\n$$\ndone *i*", "It is:\n\n$$\nx = a\n+ b*c*d\n- \\frac{1}{2}\n$$\n\ndone i", []string{"italic i"}},
		{"math block in brackets", "\\[\n1. x_1\n# y\n\\]", "\\[\n1. x_1\n# y\n\\]", nil},
		{"math block in a list", "- so\n  $$\n  + a_1*b*c\n  $$\n- b", "• so\n   $$\n   + a_1*b*c\n   $$\n• b", nil},
		{"math block that never ends", "$$\n**a**\n\n- b", "$$\na\n\n• b", []string{"bold a"}},
		{"math in bold", "**so $x_1*y$**", "so $x_1*y$", []string{"bold so $x_1*y$"}},
		{"escaped brackets", `\[x\] and \[see below\]`, "[x] and [see below]", nil},
		{"money", "from **$5** to **$6**, $7 or *8*", "from $5 to $6, $7 or 8", []string{"bold $5", "bold $6", "italic 8"}},
		{"variables", "`$HOME` or $HOME and **$PATH**", "$HOME or $HOME and $PATH", []string{"code $HOME", "bold $PATH"}},
		{"code between dollars", "$a `*b*` c$", "$a *b* c$", []string{"code *b*"}},
		{"escaped bracket is no math", `\(*a* \[b]`, `(a [b]`, []string{"italic a"}},
		{"product", "2*3*4 = 24, 2*x*y, 2**10 and 3**5", "2*3*4 = 24, 2*x*y, 2**10 and 3**5", nil},
		{"product of names", "a*b*c and area=width*height*depth", "a*b*c and area=width*height*depth", nil},
		{"product of brackets", "(a+b)*c*d, x[i]*y*z and (a)*(b)*(c)", "(a+b)*c*d, x[i]*y*z and (a)*(b)*(c)", nil},
		{"italics after a bracket", "(see) *there* and (*here*)", "(see) there and (here)", []string{"italic there", "italic here"}},
		{"product in italics", "*so 2*3 is 6*", "so 2*3 is 6", []string{"italic so 2*3 is 6"}},
		{"part of a word", "*cat*s, **un**believable, pho**bia**", "cats, unbelievable, phobia", []string{"italic cat", "bold un", "bold bia"}},
		{"chinese", "他*强调*文字和**粗体**文字", "他强调文字和粗体文字", []string{"italic 强调", "bold 粗体"}},
		{"dunder", "__init__, __main__.py, obj.__class__.__name__, __FILE__ and (__dirname__)", "__init__, __main__.py, obj.__class__.__name__, __FILE__ and (__dirname__)", nil},
		{"bold word with underscores", "this is __bold__, __wichtig__!", "this is bold, wichtig!", []string{"bold bold", "bold wichtig"}},
		{"dunder of a program", "x.__mine__, __mine__(), __my_name__, __mine__.py and __slots__", "x.__mine__, __mine__(), __my_name__, __mine__.py and __slots__", nil},
		{"dunder in bold", "**the __init__ method**", "the __init__ method", []string{"bold the __init__ method"}},
		{"bold with underscores", "__Note:__ and __two words__", "Note: and two words", []string{"bold Note:", "bold two words"}},
		{"bold ends at a colon", "**x:**y and **Note.**Next *a:*b", "x:y and Note.Next a:b", []string{"bold x:", "bold Note.", "italic a:"}},
		{"bold begins at a quotation mark", "这是**“强调”**的字", "这是“强调”的字", []string{"bold “强调”"}},
		{"power of brackets", "x**(1/2) + y**(1/3)", "x**(1/2) + y**(1/3)", nil},
		{"spoiler", "it was ||the **butler**||.", "it was the butler.", []string{"spoiler the butler", "bold butler"}},
		{"spoiler over code", "||the `key`||", "the key", []string{"spoiler the key"}},
		{"spoiler over two lines", "||a\nb||", "a\nb", []string{"spoiler a\nb"}},
		{"spoiler in a quote", "> ||a||", "a", []string{"blockquote a", "spoiler a"}},
		{"two bars are or", "a || b || c, (x||y) && (z||w), a||b||c, if [ -f x ] || exit", "a || b || c, (x||y) && (z||w), a||b||c, if [ -f x ] || exit", nil},
		{"surplus cells", "|a|b|\n|-|-|\n|1|2|**3**|`x\\|y`|\n", "a | b\n--+---+---+----\n1 | 2 | 3 | x|y", []string{"pre a | b\n--+---+---+----\n1 | 2 | 3 | x|y"}},
		{"surplus cells in a quote", "> a|b\n> -|-\n> 1|2|3", "a | b\n--+---+--\n1 | 2 | 3", []string{
			"blockquote a | b\n--+---+--\n1 | 2 | 3", "pre a | b\n--+---+--\n1 | 2 | 3",
		}},
		{"rule below a table", "so\n|a|b|\n|-|-|\n|1|2|\n---\nx", "so\n\na | b\n--+--\n1 | 2\n\n———\n\nx", []string{"pre a | b\n--+--\n1 | 2"}},
		{"rule below a table in a quote", "> a|b\n> -|-\n> 1|2\n> ---\n", "a | b\n--+--\n1 | 2\n\n———", []string{"blockquote a | b\n--+--\n1 | 2\n\n———", "pre a | b\n--+--\n1 | 2"}},
		{"surplus links", "|a|\n|-|\n|1|[x](https://x.org)|\n", "a\n--+--\n1 | x\nx", []string{"pre a\n--+--\n1 | x", "text_link x → https://x.org"}},
	})
}
