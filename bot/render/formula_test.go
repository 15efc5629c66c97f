package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/bot/render"
)

// visible is everything that an answer shows.
func visible(list []render.Message) string {
	var b strings.Builder
	for _, m := range list {
		b.WriteString(m.Text + "\n")
	}
	return b.String()
}

// formulas are what models write between the marks of formulas.
func formulas() *rapid.Generator[string] {
	parts := rapid.SampledFrom([]string{
		"x", "y_1", "a*b", "a_{i}", "*c*", "^2", `\frac{a}{b}`, `\sum_{i=1}^{n}`, "+", "-", "=", "<", ">", "(", ")", "[", "]", "~", "|", "||", "'", "!", "&", "#", ":", ",", " ",
		`\alpha`, `\left(`, `\right)`, `\,`, "2", "0.5", "**k", "__m", "~~n", "α", "Σ", "≤",
	})
	return rapid.Custom(func(t *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(parts, 1, 12).Draw(t, "parts"), "")
		return "z" + strings.TrimSpace(s) + "w" // no space at the ends, and more than signs
	})
}

// TestReadable: simple formulas become Unicode, others stay as they are, and what is money or a variable is no formula.
func TestReadable(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`so $x^2 + y_1 \le \alpha$ holds`:       "so x² + y₁ ≤ α holds",
		`\[E = mc^2\]`:                          "E = mc²",
		`\(a \to b\), $w$`:                      "a → b, w",
		`$$\frac{a}{b+1}$$`:                     "a/(b+1)",
		`$\sqrt{2}$ $O(n^2)$ $a<b$`:             "√2 O(n²) a < b",
		`\[ \sum_{i=1}^n i^2 \]`:                "∑ᵢ₌₁ⁿ i²",
		`$x_{max}$ and $e^{-x^2}$`:              "xₘₐₓ and $e^{-x^2}$",
		`$\vec{v} \cdot \hat{n}$`:               "v\u20d7 · n\u0302",
		`$\mathbb{R}^n$ $\{1,2\}$`:              "ℝⁿ {1,2}",
		`\(\text{if } x > 0\)`:                  "if x > 0",
		"$$\nx = a \\\\\n+ b_2\n$$":             "x = a\n+ b₂",
		`$\begin{x}$ $my_var$ $x_Q$`:            `$\begin{x}$ $my_var$ $x_Q$`,
		`$5 and $10, 5$, $HOME:$`:               `$5 and $10, 5$, $HOME:$`,
		"`$x^2$` and arr\\[i\\]":                "$x^2$ and arr[i]",
		`$` + strings.Repeat("{", 100) + `x^2$`: `$` + strings.Repeat("{", 100) + `x^2$`,
	} {
		if got := render.Markdown(src); len(got) != 1 || got[0].Text != want {
			t.Errorf("%q became %+v, want %q", src, got, want)
		}
	}
}

// shown is how a formula is shown outside of rich messages: readable, or as it was written.
func shown(whole string) string { return strings.TrimSuffix(visible(render.Markdown(whole)), "\n") }

// TestFormulasAreWhole: a formula is shown readable or as it was written, sign by sign, and the same wherever it is.
func TestFormulasAreWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		formula := formulas().Draw(t, "formula")
		marks := rapid.SampledFrom([][2]string{{"$", "$"}, {"$$", "$$"}, {`\(`, `\)`}}).Draw(t, "marks")
		if marks[0] == "$" && strings.Contains(formula, "**") {
			t.Skip("bold text between two amounts of money is no formula")
		}
		context := rapid.SampledFrom([]string{"%s", "so %s holds", "- so %s\n- b", "1. %s", "> %s", "# %s", "**so** %s *too*", "a\n%s\nb", "x: %s, y."}).Draw(t, "context")
		whole := marks[0] + formula + marks[1]
		src := fmt.Sprintf(context, whole)
		if as := shown(whole); as != whole && !strings.ContainsAny(as, `$\_^{}`) {
			whole = as
		}
		if got := visible(render.Markdown(src)); !strings.Contains(got, whole) {
			t.Fatalf("%q became %q", src, got)
		}
		if got := render.Partial(src).Text; !strings.Contains(got, whole) {
			t.Fatalf("%q became %q while it was written", src, got)
		}
		if raw, ok := render.Rich(src); ok {
			var v any
			if err := json.Unmarshal(raw, &v); err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			visibleOf(v, &got)
			if !strings.Contains(got.String(), formula) {
				t.Fatalf("%q became %q as a rich message", src, got.String())
			}
		}
	})
}

// TestFormulaBlocksAreWhole: so is one over several lines, line by line.
func TestFormulaBlocksAreWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(formulas(), 1, 6).Draw(t, "lines")
		starts := rapid.SampledFrom([]string{"", "+ ", "- ", "# ", "1. ", "> ", "= ", "* "})
		for i := range lines {
			lines[i] = starts.Draw(t, "start") + lines[i]
		}
		marks := rapid.SampledFrom([][2]string{{"$$", "$$"}, {`\[`, `\]`}}).Draw(t, "marks")
		src := rapid.SampledFrom([]string{"", "It is:\n", "It is:\n\n"}).Draw(t, "before") +
			marks[0] + "\n" + strings.Join(lines, "\n") + "\n" + marks[1] + "\nso *it* is"
		got := visible(render.Markdown(src))
		if !strings.ContainsAny(got, `$\_^{}`) {
			t.Skip("it became readable")
		}
		for _, line := range lines {
			if !strings.Contains(got, line) {
				t.Fatalf("%q: %q is not in %q", src, line, got)
			}
		}
	})
}

// TestProductsAreWhole: products without any marks keep their asterisks and underscores.
func TestProductsAreWhole(t *testing.T) {
	t.Parallel()
	factor := rapid.SampledFrom([]string{"a", "b_1", "c", "2", "10", "width", "x1", "(a+b)", "n_max"})
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SampledFrom([]string{"*", " * ", "**"}).Draw(t, "times")
		product := strings.Join(rapid.SliceOfN(factor, 2, 5).Draw(t, "factors"), times)
		src := fmt.Sprintf(rapid.SampledFrom([]string{"%s", "area = %s.", "so %s is it", "- %s", "> %s"}).Draw(t, "context"), product)
		if times == "**" && !powers(product) {
			t.Skip("bold between words")
		}
		if got := visible(render.Markdown(src)); !strings.Contains(got, product) {
			t.Fatalf("%q became %q", src, got)
		}
	})
}

// powers reports whether every power is one of numbers or names: between two words it could be the start of bold text.
func powers(s string) bool { return !strings.ContainsAny(s, "()") && strings.Count(s, "**") == 1 }

// TestNoCellVanishes: every cell of a table is shown, whatever the shape of the table and wherever it is.
func TestNoCellVanishes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := 0
		cell := func() string {
			n++
			word := fmt.Sprintf("c%dx", n)
			return fmt.Sprintf(rapid.SampledFrom([]string{"%s", "**%s**", "`%s`", "[%s](https://x.org)", "*%s*", "~~%s~~", " %s ", "%s\\|p", "$%s$", "||%s||", "<b>%s</b>", "%s *", "_%s", "`a\\|%s`"}).Draw(t, "form"), word)
		}
		row := func(cells int) string {
			var b strings.Builder
			for range cells {
				b.WriteString("|" + cell())
			}
			return b.String() + rapid.SampledFrom([]string{"|", ""}).Draw(t, "end")
		}
		columns := rapid.IntRange(1, 5).Draw(t, "columns")
		lines := []string{row(columns), strings.Repeat("|-", columns) + "|"}
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			lines = append(lines, row(rapid.IntRange(1, 7).Draw(t, "cells")))
		}
		prefix := rapid.SampledFrom([]string{"", "> ", "  "}).Draw(t, "prefix")
		src := "So:\n\n" + prefix + strings.Join(lines, "\n"+prefix) + "\n\nend"
		shown := map[string]string{"text": visible(render.Markdown(src)), "partial": render.Partial(src).Text}
		if raw, ok := render.Rich(src); ok {
			shown["rich"] = string(raw)
		}
		for how, got := range shown {
			for i := 1; i <= n; i++ {
				if word := fmt.Sprintf("c%dx", i); strings.Count(got, word) < 1 {
					t.Fatalf("%s: cell %s of\n%s\nis not in\n%s", how, word, src, got)
				}
			}
		}
	})
}
