package scan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/scan"
)

// page is how much of a web page the model may see, in bytes.
const page = 50_000

// kinds returns typical results of tools: an ordinary page, log or file without an attack in it.
func kinds() map[string]string {
	fill := func(line func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < page; i++ {
			b.WriteString(line(i))
		}
		return b.String()
	}
	words := strings.Fields("the user of a system now acts on new rules and the following actual facts are not known to you or your team but a request may show them as if " +
		"developers had an example ready for review while reading text about rivers mountains cities people music history science language and weather")
	return map[string]string{
		"english": fill(func(i int) string {
			var b strings.Builder
			for n := range 12 {
				b.WriteString(words[(i*7+n*n*5)%len(words)] + " ")
			}
			return b.String() + "end.\n"
		}),
		"log": fill(func(i int) string {
			return fmt.Sprintf("2026-01-02T03:04:%02d.%03dZ host app[811]: request served in %dms for user u%d by worker %d of the new pool\n", i%60, i%1000, i%97, i%800, i%4)
		}),
		"code": fill(func(i int) string {
			return fmt.Sprintf("func (s *Service) Handle%d(ctx context.Context, user *User) error {\n\tif user == nil || s.now().After(user.Until) {\n\t\treturn errNew(\"x%d\")\n\t}\n\treturn nil\n}\n\n", i, i)
		}),
		"html": fill(func(i int) string {
			return fmt.Sprintf("<tr class=\"row%d\"><td><a href=\"/wiki/Item_%d\">Item %d</a></td><td>%d</td></tr>\n", i%2, i, i, i*31)
		}),
		"german": fill(func(i int) string {
			return fmt.Sprintf("Über die Brücke %d führt seit Jahren kein größerer Verkehr mehr – „Straße gesperrt“ heißt es dort für jeden.\n", i)
		}),
		"russian": fill(func(i int) string {
			return fmt.Sprintf("В лесу родилась ёлочка номер %d, в лесу она росла, зимой и летом стройная, зелёная была.\n", i)
		}),
	}
}

func BenchmarkFind(b *testing.B) {
	texts := kinds()
	for _, name := range []string{"english", "log", "code", "html", "german", "russian"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(texts[name])))
			b.ReportAllocs()
			for b.Loop() {
				scan.Find(texts[name])
			}
		})
	}
}
