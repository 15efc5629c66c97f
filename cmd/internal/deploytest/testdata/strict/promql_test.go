package strict_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// expressions are those of the alert rules and the dashboard, by where they are.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
			}
		}
	}
	raw, err := os.ReadFile(root + "/charts/zephbot/files/alerts.yaml")
	if err == nil {
		err = yaml.Unmarshal(raw, &rules)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			all[rule.Alert] = rule.Expr
		}
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if raw, err = os.ReadFile(root + "/charts/zephbot/dashboards/zephbot.json"); err == nil {
		err = json.Unmarshal(raw, &board)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			all[panel.Title+": "+target.Expr] = target.Expr
		}
	}
	return all
}

// TestPromQL: Prometheus understands every expression. Grafana replaces its own variables before it asks.
func TestPromQL(t *testing.T) {
	t.Parallel()
	all := expressions(t)
	if len(all) < 40 {
		t.Fatalf("%d expressions", len(all))
	}
	grafana := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*")
	for where, expr := range all {
		if _, err := parser.NewParser(parser.Options{}).ParseExpr(grafana.Replace(expr)); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
}
