package web_test
import ("testing";"strings";"time";"fmt"
"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
)
func TestProbe(t *testing.T){
 fill:=func(s string,n int)string{return strings.Repeat(s,n/len(s))}
 M:=1<<20
 cases:=[]string{ "brackets",fill("[",M), "ticks",fill("`",M),"stars",fill("*",M),"br1",fill("[a] ",M),"brlines",fill("<p>[</p>",M),
 "ol","<ol>"+fill("<li>x",M), "li","<ul>"+fill("<li>x",M),"para",fill("<p>x",M),"bcomma",fill("<b>a</b> ",M),"li1", "<ul><li>"+fill("x<br>",M),"li4",strings.Repeat("<ul><li>",4)+fill("x<br>",M),"li6text",strings.Repeat("<ul><li>",6)+fill("<p>x",M),"li6nest",fill(strings.Repeat("<ul><li>x",6)+"</ul></ul></ul></ul></ul></ul>",M), "quote6",strings.Repeat("<blockquote>",6)+fill("x<br>",M), "td","<table><tr>"+fill("<td>x",M),"tr3","<table>"+fill("<tr><td>a<td>b<td>c",M),"trtd","<table><tr>"+fill("<td>",M/2)+fill("<tr><td>",M/2),"b400",fill("<b>",1200)+fill("x ",M),"b400i",strings.Repeat("<b><i>",200)+fill("x ",M),"bp",fill("<b>",300)+fill("<p>x",M),"span",strings.Repeat("<span>",400)+fill("x<i>y</i> ",M),"spaces",fill(" \n",M),"nbsp",fill("<p>&nbsp;",M),"inl",fill("<i> </i>",M),"divs",fill("<div>x</div>",M),"div400",strings.Repeat("<div>",400)+fill("<div>x</div>",M),"pre",fill("<pre>x</pre>",M),"prenl","<pre>"+fill("x\n",M),"li6pre",strings.Repeat("<ul><li>",6)+"<pre>"+fill("x\n",M),"a400",fill("<a href=https://e.com/><p>x</p></a>",M),"abr","<a href=https://e.com/>"+fill("x<br>",M),"h2br","<h2>"+fill("x<br>",M),"em","<em>"+fill("x<br>",M),"code","<code>"+fill("`x ",M),"emempty",fill("<em><br></em>",M),"codes",fill("<code>x</code>",M),"br",fill("<br>",M),"hr",fill("<hr>",M),
 }
 for i:=0;i<len(cases);i+=2{
  c:=converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled),converter.WithPlugins(base.NewBasePlugin(),commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
  s:=time.Now()
   b,err:=c.ConvertString(cases[i+1]);  if d:=time.Since(s);d>400*time.Millisecond{ fmt.Println(cases[i],d.Round(time.Millisecond),len(b),err)}
 }
}
