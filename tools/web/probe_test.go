package web_test
import ("testing";"strings";"time";"fmt"
"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
)
func TestProbe(t *testing.T){
 fill:=func(s string,n int)string{return strings.Repeat(s,n/len(s))}
 M:=1<<18
 cases:=[]string{ "trtd64","<table><tr>"+fill("<td>",256)+fill("<tr><td>",M/2),"b8",strings.Repeat("<b>",8)+fill("x ",M),"i8p",strings.Repeat("<i>",8)+fill("<p>x",M),"b400",fill("<b>",1200)+fill("x ",M),"b400i",strings.Repeat("<b><i>",200)+fill("x ",M),"bp",fill("<b>",300)+fill("<p>x",M),"span",strings.Repeat("<span>",400)+fill("x<i>y</i> ",M),"spaces",fill(" \n",M),"nbsp",fill("<p>&nbsp;",M),"inl",fill("<i> </i>",M),"divs",fill("<div>x</div>",M),"div400",strings.Repeat("<div>",400)+fill("<div>x</div>",M),"pre",fill("<pre>x</pre>",M),"prenl","<pre>"+fill("x\n",M),"li6pre",strings.Repeat("<ul><li>",6)+"<pre>"+fill("x\n",M),"a400",fill("<a href=https://e.com/><p>x</p></a>",M),"abr","<a href=https://e.com/>"+fill("x<br>",M),"h2br","<h2>"+fill("x<br>",M),"em","<em>"+fill("x<br>",M),"code","<code>"+fill("`x ",M),"emempty",fill("<em><br></em>",M),"codes",fill("<code>x</code>",M),"br",fill("<br>",M),"hr",fill("<hr>",M),
 }
 for i:=0;i<len(cases);i+=2{
  c:=converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled),converter.WithPlugins(base.NewBasePlugin(),commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
  s:=time.Now()
   b,err:=c.ConvertString(cases[i+1]);  {d:=time.Since(s); fmt.Println(cases[i],d.Round(time.Millisecond),len(b),err)}
 }
}
