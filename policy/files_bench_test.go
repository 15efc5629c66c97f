package policy_test

import (
	"fmt"
	"testing"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/pathrule"
)

// BenchmarkDecideFiles decides a 1 KB command, all of whose words may be files, by 256 rules about files of three
// kinds.
func BenchmarkDecideFiles(b *testing.B) {
	var globs []string
	for i := range 85 {
		globs = append(globs, fmt.Sprintf("*/forbidden%d/*.pem", i))
	}
	files, err := pathrule.New(globs, nil)
	if err != nil {
		b.Fatal(err)
	}
	table := make([]policy.Permission, 0, 86)
	list := make([]policy.Rule, 0, 85)
	for i := range 85 {
		table = append(table, policy.Permission{Pattern: fmt.Sprintf("*secret%d*", i), Action: policy.Deny})
		rule := deny("read")
		rule.Paths = []string{fmt.Sprintf("private%d/*", i)}
		list = append(list, rule)
	}
	o := open(rules(policy.Allow, list...))
	o.Files = files
	o.Permissions = map[string][]policy.Permission{"read": append(table, policy.Permission{Pattern: "*", Action: policy.Allow})}
	text := "make -C sub"
	for i := 0; len(text) < 1024; i++ {
		text += fmt.Sprintf(" dir%d/file%d.go", i, i)
	}
	r := bash(text)
	r.Dir, r.Bared = "/srv/work", true
	decides(b, o, r, policy.Ask)
}
