package strict_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/moby/profiles/seccomp"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const root = "../../../../.."

// kinds are the types that the chart's objects have in their APIs.
func kinds() map[string]func() any {
	return map[string]func() any{
		"v1/ConfigMap":                            func() any { return &core.ConfigMap{} },
		"v1/Service":                              func() any { return &core.Service{} },
		"v1/PersistentVolumeClaim":                func() any { return &core.PersistentVolumeClaim{} },
		"v1/ServiceAccount":                       func() any { return &core.ServiceAccount{} },
		"apps/v1/StatefulSet":                     func() any { return &apps.StatefulSet{} },
		"apps/v1/Deployment":                      func() any { return &apps.Deployment{} },
		"networking.k8s.io/v1/NetworkPolicy":      func() any { return &networking.NetworkPolicy{} },
		"networking.k8s.io/v1/Ingress":            func() any { return &networking.Ingress{} },
		"policy/v1/PodDisruptionBudget":           func() any { return &policy.PodDisruptionBudget{} },
		"autoscaling/v2/HorizontalPodAutoscaler":  func() any { return &autoscaling.HorizontalPodAutoscaler{} },
		"monitoring.coreos.com/v1/ServiceMonitor": func() any { return &monitoring.ServiceMonitor{} },
		"monitoring.coreos.com/v1/PrometheusRule": func() any { return &monitoring.PrometheusRule{} },
	}
}

const surroundings = `
webhook: {url: "https://bot.example.org/f3a9", ingress: {enabled: true, className: nginx, annotations: {a: b}, tlsSecret: bot-tls}}
redis: {secret: redis, caSecret: redis-ca}
qdrant: {url: "http://qdrant:6334", secret: qdrant}
serviceMonitor: {enabled: true, labels: {release: prometheus}}
alerts: {enabled: true, labels: {release: prometheus}, usdPerHour: 12.5}
dashboard: {enabled: true, annotations: {grafana_folder: Bots}}
seccompProfile: {type: Localhost, localhostProfile: profiles/zephbot.json}
networkPolicy: {enabled: true, webhookFrom: [{namespaceSelector: {matchLabels: {name: ingress}}}], metricsFrom: [{podSelector: {}}], extraEgress: [{ports: [{port: 6379, protocol: TCP}]}]}
env: {ZEPH_LOG_LEVEL: debug, ZEPH_AGENT_CONCURRENCY: 8, ZEPH_AUDIT_ENABLED: true}
imagePullSecrets: [{name: registry}]
podAnnotations: {a: b}
podLabels: {team: x}
nodeSelector: {disk: ssd}
tolerations: [{operator: Exists}]
affinity: {nodeAffinity: {}}
`

const several = surroundings + `
replicas: 3
database: {secret: db}
persistence: {sharedStorageClass: nfs}
autoscaling: {enabled: true}
`

// rendered is the chart as Helm renders it: its values checked by its schema, its objects by their kind.
func rendered(t *testing.T, values string) (map[string][]any, error) {
	t.Helper()
	return renderedAs("bot", values)
}

// loaded is the chart, read once.
var loaded = sync.OnceValues(func() (*chart.Chart, error) {
	c, err := loader.Load(root + "/charts/zephbot")
	if err != nil {
		return nil, err
	}
	return c, c.Validate()
})

// renderedAs is the chart as a release of this name. An object that its API would not read is errRead.
func renderedAs(release, values string) (map[string][]any, error) {
	c, err := loaded()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRead, err)
	}
	override, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRead, err)
	}
	vals, err := chartutil.ToRenderValues(c, override, chartutil.ReleaseOptions{Name: release, Namespace: "default", IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	texts, err := engine.Engine{Strict: true}.Render(c, vals)
	if err != nil {
		return nil, err
	}
	objects := map[string][]any{}
	for name, text := range texts {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for document := range strings.SplitSeq(text, "\n---\n") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			kind, object, err := decoded(name, document)
			if err != nil {
				return nil, err
			}
			objects[kind] = append(objects[kind], object)
		}
	}
	return objects, nil
}

// errRead is the error of an object that its API does not read.
var errRead = errors.New("its API does not read this")

// decoded decodes one object strictly: a field that its API does not know is an error.
func decoded(name, text string) (kind string, object any, err error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		return "", nil, fmt.Errorf("%w: %s: %w\n%s", errRead, name, err, text)
	}
	make, known := kinds()[head.APIVersion+"/"+head.Kind]
	if !known {
		return "", nil, fmt.Errorf("%w: %s: kind %s/%s, which this test does not know", errRead, name, head.APIVersion, head.Kind)
	}
	object = make()
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		return "", nil, fmt.Errorf("%w: %s: %w\n%s", errRead, name, err, text)
	}
	return head.Kind, object, nil
}

func TestChart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		values string
		want   []string
	}{
		"defaults":     {want: []string{"ConfigMap 1", "Service 1", "ServiceAccount 1", "StatefulSet 1"}},
		"surroundings": {values: surroundings, want: []string{"ConfigMap 2", "Ingress 1", "NetworkPolicy 1", "PrometheusRule 1", "Service 2", "ServiceAccount 1", "ServiceMonitor 1", "StatefulSet 1"}},
		"several": {values: several, want: []string{
			"ConfigMap 2", "Deployment 1", "HorizontalPodAutoscaler 1", "Ingress 1", "NetworkPolicy 1", "PersistentVolumeClaim 1", "PodDisruptionBudget 1", "PrometheusRule 1", "Service 2", "ServiceAccount 1", "ServiceMonitor 1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, err := rendered(t, tt.values)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for kind, list := range objects {
				got = append(got, fmt.Sprint(kind, " ", len(list)))
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("objects %v, want %v", got, tt.want)
			}
		})
	}
}

// TestRefused: Helm itself says no, before anything is applied.
func TestRefused(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"replicas: 2":                              "missing: database.secret (the URL of a PostgreSQL), redis.secret (the URL of a Redis), persistence.sharedClaim",
		"autoscaling: {enabled: true}":             "several pods need what they share",
		"replica: 1":                               "additional properties 'replica' not allowed",
		"redis: {url: 'redis://:secret@h'}":        "additional properties 'url' not allowed",
		"webhook: {url: 'http://bot.example.org'}": "webhook/url",
		"seccompProfile: {type: Unconfined}":       "seccompProfile",
		"terminationGracePeriodSeconds: 10":        "terminationGracePeriodSeconds",
		"webhook: {ingress: {enabled: true}}":      "needs webhook.url",
	} {
		if _, err := rendered(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", values, err, want)
		}
	}
}

// TestRuntimeDefault: the profile that Docker, and others after it, call the default allows what the sandbox of commands needs of a process without
// capabilities: Landlock, a seccomp filter of its own, prctl.
func TestRuntimeDefault(t *testing.T) {
	t.Parallel()
	missing := map[string]bool{"landlock_create_ruleset": true, "landlock_add_rule": true, "landlock_restrict_self": true, "seccomp": true, "prctl": true}
	for _, rule := range seccomp.DefaultProfile().Syscalls {
		if rule.Action != "SCMP_ACT_ALLOW" || len(rule.Args) > 0 || (rule.Includes != nil && len(rule.Includes.Caps) > 0) {
			continue
		}
		for _, name := range rule.Names {
			delete(missing, name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("not allowed: %v", missing)
	}
}
