package deploytest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"
)

const chartDir = "../../../charts/zephbot"

// release is how the chart is installed in these tests.
const release = "bot"

// chartFile reads and decodes a YAML file of the chart.
func chartFile(t *testing.T, name string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chartDir, name))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

// values are values.yaml with some of them replaced.
func values(t *testing.T, override map[string]any) map[string]any {
	t.Helper()
	v := chartFile(t, "values.yaml")
	merge(v, override)
	return v
}

// merge puts src over dst as Helm does: tables are merged, everything else is replaced.
func merge(dst, src map[string]any) {
	for k, v := range src {
		if table, ok := v.(map[string]any); ok {
			if old, ok := dst[k].(map[string]any); ok {
				merge(old, table)
				continue
			}
		}
		dst[k] = v
	}
}

// render renders the templates of the chart, by name, with the functions of Helm that they use. TestHelmAgrees compares
// it with Helm where there is one.
func render(t *testing.T, vals map[string]any) (map[string]string, error) {
	t.Helper()
	root := template.New("chart").Option("missingkey=error")
	root.Funcs(functions(root))
	names, err := filepath.Glob(filepath.Join(chartDir, "templates", "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no templates: %v", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := root.New(filepath.Base(name)).Parse(string(data)); err != nil {
			t.Fatal(err)
		}
	}
	meta := chartFile(t, "Chart.yaml")
	dot := map[string]any{
		"Values":  vals,
		"Chart":   map[string]any{"Name": meta["name"], "Version": meta["version"], "AppVersion": meta["appVersion"]},
		"Files":   chartFiles{},
		"Release": map[string]any{"Name": release, "Namespace": "default", "Service": "Helm"},
	}
	out := map[string]string{}
	for _, name := range names {
		base := filepath.Base(name)
		if strings.HasPrefix(base, "_") {
			continue
		}
		var b bytes.Buffer
		if err := root.ExecuteTemplate(&b, base, dot); err != nil {
			return nil, err
		}
		out[base] = b.String()
	}
	return out, nil
}

// chartFiles is Helm's .Files.
type chartFiles struct{}

// Get returns a file of the chart; like Helm's, "" if there is none.
func (chartFiles) Get(name string) string {
	data, err := os.ReadFile(filepath.Join(chartDir, name))
	if err != nil {
		return ""
	}
	return string(data)
}

// functions are those of Helm and its library that the chart uses, with the order of arguments that they have there.
func functions(root *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, dot any) (string, error) {
			var b strings.Builder
			err := root.ExecuteTemplate(&b, name, dot)
			return b.String(), err
		},
		"fail":       func(text string) (string, error) { return "", errors.New(text) },
		"default":    defaultTo,
		"quote":      func(v any) string { return fmt.Sprintf("%q", fmt.Sprint(v)) },
		"toString":   func(v any) string { return fmt.Sprint(v) },
		"trunc":      func(n int, s string) string { return s[:min(n, len(s))] },
		"trimSuffix": func(suffix, s string) string { return strings.TrimSuffix(s, suffix) },
		"contains":   func(part, s string) bool { return strings.Contains(s, part) },
		"replace":    func(old, with, s string) string { return strings.ReplaceAll(s, old, with) },
		"regexMatch": func(pattern, s string) (bool, error) { return regexp.MatchString(pattern, s) },
		"regexReplaceAll": func(pattern, s, with string) (string, error) {
			r, err := regexp.Compile(pattern)
			if err != nil {
				return "", err
			}
			return r.ReplaceAllString(s, with), nil
		},
		"nindent": func(n int, s string) string {
			pad := "\n" + strings.Repeat(" ", n)
			return pad + strings.ReplaceAll(s, "\n", pad)
		},
		"dict": func(pairs ...any) map[string]any {
			out := map[string]any{}
			for i := 0; i+1 < len(pairs); i += 2 {
				out[fmt.Sprint(pairs[i])] = pairs[i+1]
			}
			return out
		},
		"empty": func(v any) bool { return v == nil || v == "" || v == 0 || v == false },
		"ternary": func(yes, no any, which bool) any {
			if which {
				return yes
			}
			return no
		},
		"urlParse": func(text string) (map[string]any, error) {
			u, err := url.Parse(text)
			if err != nil {
				return nil, err
			}
			return map[string]any{"scheme": u.Scheme, "host": u.Host, "hostname": u.Hostname(), "path": u.Path}, nil
		},
		"hasKey": func(m map[string]any, k string) bool { _, ok := m[k]; return ok },
		"list":   func(v ...any) []any { return v },
		"append": func(list []any, v any) []any { return append(slices.Clone(list), v) },
		"join": func(sep string, list []any) string {
			texts := make([]string, len(list))
			for i, v := range list {
				texts[i] = fmt.Sprint(v)
			}
			return strings.Join(texts, sep)
		},
		"int": func(v any) (int, error) {
			n, ok := v.(int)
			if !ok {
				return 0, fmt.Errorf("%v is not an integer", v)
			}
			return n, nil
		},
		"sha256sum": func(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) },
		"toYaml": func(v any) (string, error) {
			data, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(data), "\n"), err
		},
	}
}

func defaultTo(fallback, v any) any {
	if v == nil || v == "" || v == 0 || v == false {
		return fallback
	}
	return v
}

// manifests renders the chart and decodes each object strictly: a field that is misspelled, or stands in the wrong
// place, is an error.
func manifests(t *testing.T, override map[string]any) objects {
	t.Helper()
	texts, err := render(t, values(t, override))
	if err != nil {
		t.Fatal(err)
	}
	var out objects
	for name, text := range texts { // in any order: no object needs another
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		out.add(t, name, text)
	}
	return out
}

// add decodes the objects of one rendered template.
func (o *objects) add(t *testing.T, name, text string) {
	t.Helper()
	all := yaml.NewDecoder(strings.NewReader(text))
	for {
		var node yaml.Node
		err := all.Decode(&node)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		var kind struct {
			Kind     string   `yaml:"kind"`
			Metadata metadata `yaml:"metadata"`
		}
		if err := node.Decode(&kind); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if kind.Kind == "" {
			continue // a template that renders to nothing
		}
		into := o.target(kind.Kind, kind.Metadata.Name)
		if into == nil {
			t.Fatalf("%s: an object of kind %s, which this test does not know", name, kind.Kind)
		}
		data, err := yaml.Marshal(&node)
		if err != nil {
			t.Fatal(err)
		}
		strict := yaml.NewDecoder(bytes.NewReader(data))
		strict.KnownFields(true)
		if err := strict.Decode(into); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
	}
}

// target is where an object is decoded into; nil where there is no such kind.
func (o *objects) target(kind, name string) any {
	switch kind {
	case "StatefulSet":
		o.stateful = &statefulSet{}
		return o.stateful
	case "Deployment":
		o.deployment = &deployment{}
		return o.deployment
	case "PodDisruptionBudget":
		o.budget = &disruptionBudget{}
		return o.budget
	case "HorizontalPodAutoscaler":
		o.scaler = &autoscaler{}
		return o.scaler
	case "PrometheusRule":
		o.rules = &prometheusRule{}
		return o.rules
	case "ServiceMonitor":
		o.monitor = &serviceMonitor{}
		return o.monitor
	case "Ingress":
		o.ingress = &ingress{}
		return o.ingress
	case "Service":
		if strings.HasSuffix(name, "-webhook") {
			o.webhook = &service{}
			return o.webhook
		}
		return &o.service
	case "ConfigMap":
		if strings.HasSuffix(name, "-dashboard") {
			o.dashboard = &configMap{}
			return o.dashboard
		}
		return &o.config
	case "PersistentVolumeClaim":
		o.claim = &sharedClaim{}
		return o.claim
	case "ServiceAccount":
		o.account = &serviceAccount{}
		return o.account
	case "NetworkPolicy":
		o.network = &networkPolicy{}
		return o.network
	default:
		return nil
	}
}
