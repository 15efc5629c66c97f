package deploytest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metricName matches the name of a metric in an expression.
var metricName = regexp.MustCompile(`\b(?:zephbot|process|go)_[a-z_]+`)

// documented lists the first cells of the rows of docs/observability.md that match: its metrics, or its alerts. That
// the page is what the program says is tested beside the program.
func documented(t *testing.T, row string) []string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, found := range regexp.MustCompile("(?m)^\\| `("+row+")`").FindAllStringSubmatch(string(page), -1) {
		list = append(list, found[1])
	}
	return list
}

// known fails if an expression uses a metric that the program does not have.
func known(t *testing.T, where, expr string) {
	t.Helper()
	all := append(documented(t, "zephbot_[a-z_]+"), "process_resident_memory_bytes", "process_cpu_seconds_total")
	names := metricName.FindAllString(expr, -1)
	if len(names) == 0 && !strings.HasPrefix(expr, "label_values(") {
		t.Errorf("%s: %q has no metric", where, expr)
	}
	for _, name := range names {
		histogram := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			histogram = strings.TrimSuffix(histogram, suffix)
		}
		if !slices.Contains(all, name) && !slices.Contains(all, histogram) {
			t.Errorf("%s: there is no metric %s", where, name)
		}
	}
}

// TestAlerts: the rules know only metrics that there are, each alert is explained, and the limit of costs is a value.
func TestAlerts(t *testing.T) {
	t.Parallel()
	o := manifests(t, map[string]any{"alerts": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}, "usdPerHour": 0.5}})
	if o.rules == nil || o.rules.Metadata.Labels["release"] != "prometheus" || len(o.rules.Spec.Groups) != 1 {
		t.Fatalf("%+v", o.rules)
	}
	var names []string
	for _, rule := range o.rules.Spec.Groups[0].Rules {
		names = append(names, rule.Alert)
		known(t, rule.Alert, rule.Expr)
		if rule.Annotations["summary"] == "" || !slices.Contains([]string{"critical", "warning", "info"}, rule.Labels["severity"]) {
			t.Errorf("%s: %v %v", rule.Alert, rule.Labels, rule.Annotations)
		}
		if rule.Alert == "ZephbotCost" && !strings.HasSuffix(rule.Expr, "* 3600 > 0.5") {
			t.Errorf("the limit of costs: %s", rule.Expr)
		}
	}
	if want := documented(t, "Zephbot[A-Za-z]+"); !slices.Equal(names, want) {
		t.Errorf("alerts\n%v\nin the docs\n%v", names, want)
	}
	if o := manifests(t, nil); o.rules != nil || o.dashboard != nil {
		t.Error("rules and dashboard that nobody asked for")
	}
}

// TestDashboard: the dashboard knows only metrics that there are, and is the same alone and in the chart.
func TestDashboard(t *testing.T) {
	t.Parallel()
	alone, err := os.ReadFile(filepath.Join(chartDir, "dashboards", "zephbot.json"))
	if err != nil {
		t.Fatal(err)
	}
	o := manifests(t, map[string]any{"dashboard": map[string]any{"enabled": true, "annotations": map[string]any{"grafana_folder": "Bots"}}})
	if o.dashboard == nil || o.dashboard.Metadata.Labels["grafana_dashboard"] != "1" || o.dashboard.Metadata.Annotations["grafana_folder"] != "Bots" {
		t.Fatalf("%+v", o.dashboard)
	}
	if strings.TrimSpace(o.dashboard.Data["zephbot.json"]) != strings.TrimSpace(string(alone)) {
		t.Error("the dashboard of the chart is another one")
	}
	var board struct {
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			Type    string `json:"type"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal(alone, &board); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, panel := range board.Panels {
		if ids[panel.ID] || panel.Title == "" || panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("panel %d %q", panel.ID, panel.Title)
		}
		ids[panel.ID] = true
		for _, target := range panel.Targets {
			known(t, panel.Title, target.Expr)
		}
	}
	if len(ids) < 20 {
		t.Errorf("%d panels", len(ids))
	}
}
