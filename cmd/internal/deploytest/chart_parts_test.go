package deploytest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// shapes are values of the chart: as it comes, with each optional part, with what an installation of one pod has around
// it, and with several pods.
func shapes() map[string]map[string]any {
	return map[string]map[string]any{"PostgreSQL": {"database": map[string]any{"secret": "db"}}, "defaults": nil, "everything": everything(), "surroundings": surroundings(), "three replicas": threeReplicas(), "two to ten replicas": with(threeReplicas(), "autoscaling", map[string]any{"enabled": true})}
}

// surroundings are values of one pod with a webhook, Redis, Qdrant and the Prometheus operator.
func surroundings() map[string]any {
	return map[string]any{
		"webhook": map[string]any{
			"url":     "https://bot.example.org/f3a9",
			"ingress": map[string]any{"enabled": true, "className": "nginx", "annotations": map[string]any{"a": "b"}, "tlsSecret": "bot-tls"},
		},
		"redis":          map[string]any{"secret": "redis", "caSecret": "redis-ca"},
		"qdrant":         map[string]any{"url": "http://qdrant:6334", "secret": "qdrant"},
		"serviceMonitor": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}},
		"alerts":         map[string]any{"enabled": true},
		"dashboard":      map[string]any{"enabled": true},
		"seccompProfile": map[string]any{"type": "Localhost", "localhostProfile": "profiles/zephbot.json"},
		"networkPolicy": map[string]any{
			"enabled": true, "webhookFrom": []any{map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"name": "ingress"}}}},
		},
	}
}

// threeReplicas are values of three pods, with a volume that the chart asks for.
func threeReplicas() map[string]any {
	v := surroundings()
	v["replicas"] = 3
	v["database"] = map[string]any{"secret": "db"}
	v["persistence"] = map[string]any{"sharedStorageClass": "nfs", "sharedSize": "5Gi"}
	return v
}

// polling are values of three pods without a webhook.
func polling() map[string]any {
	v := threeReplicas()
	delete(v, "webhook")
	return v
}

// with are values with one more.
func with(v map[string]any, key string, value any) map[string]any {
	v[key] = value
	return v
}

// TestWebhookWay: from the public address to the port of the program, each step names the next.
func TestWebhookWay(t *testing.T) {
	t.Parallel()
	o := manifests(t, surroundings())
	rule := o.ingress.Spec.Rules[0]
	path := rule.HTTP.Paths[0]
	if url := "https://" + rule.Host + path.Path; url != env(o.template().Spec.Containers[0])["ZEPH_TELEGRAM_WEBHOOK_URL"] || path.PathType != "Exact" {
		t.Errorf("the ingress takes %s (%s)", url, path.PathType)
	}
	if tls := o.ingress.Spec.TLS[0]; !slices.Equal(tls.Hosts, []string{rule.Host}) || tls.SecretName != "bot-tls" || o.ingress.Spec.IngressClassName != "nginx" {
		t.Errorf("ingress %+v", o.ingress.Spec)
	}
	target := o.webhook.Spec.Ports[0]
	if b := path.Backend.Service; b.Name != o.webhook.Metadata.Name || b.Port.Name != target.Name {
		t.Errorf("the ingress leads to %+v, the Service is %s with %+v", b, o.webhook.Metadata.Name, target)
	}
	c := o.template().Spec.Containers[0]
	at := slices.IndexFunc(c.Ports, func(p port) bool { return p.Name == target.TargetPort })
	if at < 0 || env(c)["ZEPH_TELEGRAM_WEBHOOK_LISTEN"] != ":8443" || c.Ports[at].ContainerPort != 8443 {
		t.Errorf("the Service leads to %s, the container has %+v", target.TargetPort, c.Ports)
	}
	in := o.network.Spec.Ingress
	if len(in) != 2 || in[1].Ports[0].Port != target.TargetPort || len(in[1].From) != 1 {
		t.Errorf("NetworkPolicy: %+v", in)
	}
	if o := manifests(t, nil); o.ingress != nil || o.webhook != nil || len(o.template().Spec.Containers[0].Ports) != 1 {
		t.Error("a way in without being asked for")
	}
}

// TestMonitor: the operator finds the Service of the metrics, and not the one of the webhook.
func TestMonitor(t *testing.T) {
	t.Parallel()
	o := manifests(t, surroundings())
	selects := func(labels map[string]string) bool {
		for k, v := range o.monitor.Spec.Selector.MatchLabels {
			if labels[k] != v {
				return false
			}
		}
		return true
	}
	if !selects(o.service.Metadata.Labels) || selects(o.webhook.Metadata.Labels) {
		t.Errorf("selector %v", o.monitor.Spec.Selector.MatchLabels)
	}
	e := o.monitor.Spec.Endpoints[0]
	if e.Port != o.service.Spec.Ports[0].Name || e.Path != "/metrics" || o.monitor.Metadata.Labels["release"] != "prometheus" {
		t.Errorf("monitor %+v", o.monitor)
	}
}

// TestSurroundings: URLs with passwords come from Secrets alone.
func TestSurroundings(t *testing.T) {
	t.Parallel()
	o := manifests(t, threeReplicas())
	from := map[string]string{}
	for _, e := range o.template().Spec.Containers[0].Env {
		if e.ValueFrom != nil {
			from[e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
		}
	}
	for name, want := range map[string]string{"ZEPH_DATABASE_URL": "db/url", "ZEPH_REDIS_URL": "redis/url", "ZEPH_VECTOR_API_KEY": "qdrant/api-key", "ZEPH_TELEGRAM_TOKEN": "zephbot/telegram-token"} {
		if from[name] != want {
			t.Errorf("%s is from %q, want %s", name, from[name], want)
		}
	}
}

// TestThreeReplicas looks at each field that makes three pods one service.
func TestThreeReplicas(t *testing.T) {
	t.Parallel()
	o := manifests(t, threeReplicas())
	d := o.deployment.Spec
	if d.Replicas == nil || *d.Replicas != 3 || o.stateful != nil || o.scaler != nil {
		t.Errorf("replicas %v, StatefulSet %v, scaler %v", d.Replicas, o.stateful, o.scaler)
	}
	if d.Strategy.Type != "RollingUpdate" || d.Strategy.RollingUpdate.MaxSurge != 1 || d.Strategy.RollingUpdate.MaxUnavailable != 0 || d.MinReadySeconds < 1 {
		t.Errorf("deployment %+v", d)
	}
	if o.budget.Spec.MaxUnavailable != 1 || manifests(t, nil).budget != nil {
		t.Errorf("budget %+v; one for one pod holds up every drain", o.budget)
	}
	vars := env(o.template().Spec.Containers[0])
	for name, want := range map[string]string{
		"ZEPH_WORKSPACES_SHARED": "true", "ZEPH_WORKSPACES_DIR": "/shared/workspaces", "ZEPH_DATA_DIR": "/data",
	} {
		if vars[name] != want {
			t.Errorf("%s is %q, want %q", name, vars[name], want)
		}
	}
	cfg := load(t, o.config.Data[config.FileName], vars)
	if !cfg.Workspaces.Shared || cfg.Database.URL.Reveal() == "" || cfg.Redis.URL.Reveal() == "" {
		t.Errorf("the program is alone: %+v", cfg.Workspaces)
	}
	checkShared(t, o)
	spread := o.template().Spec.TopologySpreadConstraints
	if len(spread) != 2 || spread[0].TopologyKey != "kubernetes.io/hostname" || spread[1].TopologyKey != "topology.kubernetes.io/zone" {
		t.Errorf("spread %+v", spread)
	}
	for _, s := range spread {
		if s.WhenUnsatisfiable != "ScheduleAnyway" || s.MaxSkew != 1 || !maps.Equal(s.LabelSelector.MatchLabels, d.Selector.MatchLabels) {
			t.Errorf("spread %+v, selector %v", s, d.Selector)
		}
	}
	if command := o.template().Spec.Containers[0].Lifecycle.PreStop.Exec.Command; !slices.Equal(command, []string{"sleep", "3"}) {
		t.Errorf("before the end of a pod: %q", command)
	}
}

// checkShared: what a pod has for itself ends with it, and what they share is one claim that all may write to.
func checkShared(t *testing.T, o objects) {
	t.Helper()
	if c := o.claim; c == nil || !slices.Equal(c.Spec.AccessModes, []string{"ReadWriteMany"}) || c.Spec.StorageClassName != "nfs" || c.Spec.Resources.Requests["storage"] != "5Gi" ||
		c.Metadata.Annotations["helm.sh/resource-policy"] != "keep" {
		t.Fatalf("claim %+v", c)
	}
	volumes := map[string]volume{}
	for _, v := range o.template().Spec.Volumes {
		volumes[v.Name] = v
	}
	if v := volumes["data"]; v.EmptyDir == nil || v.PersistentVolumeClaim != nil {
		t.Errorf("data_dir belongs to one process: %+v", v)
	}
	if v := volumes["shared"]; v.PersistentVolumeClaim == nil || v.PersistentVolumeClaim.ClaimName != o.claim.Metadata.Name {
		t.Errorf("shared volume %+v, claim %s", v, o.claim.Metadata.Name)
	}
	named := threeReplicas()
	named["persistence"] = map[string]any{"sharedClaim": "files"}
	theirs := manifests(t, named)
	at := slices.IndexFunc(theirs.template().Spec.Volumes, func(v volume) bool { return v.Name == "shared" })
	if theirs.claim != nil || theirs.template().Spec.Volumes[at].PersistentVolumeClaim.ClaimName != "files" {
		t.Errorf("with a claim that exists: %+v, %+v", theirs.claim, theirs.template().Spec.Volumes)
	}
}

// TestAutoscaler: pods are counted by it alone, by what the program exports.
func TestAutoscaler(t *testing.T) {
	t.Parallel()
	o := manifests(t, with(threeReplicas(), "autoscaling", map[string]any{"enabled": true}))
	s := o.scaler.Spec
	if o.deployment.Spec.Replicas != nil || s.ScaleTargetRef.Name != o.deployment.Metadata.Name || s.ScaleTargetRef.Kind != o.deployment.Kind {
		t.Errorf("scaler %+v", s)
	}
	if s.MinReplicas < 2 || s.MaxReplicas < s.MinReplicas {
		t.Errorf("scaler %+v", s)
	}
	m := s.Metrics[0].Pods
	if !strings.Contains(read(t, "cmd/internal/app/measured.go"), `"`+strings.TrimPrefix(m.Metric.Name, "zephbot_")+`"`) || m.Target.AverageValue != "8" {
		t.Errorf("scaled by %+v, which the program does not export", m)
	}
}

// TestNotes: they say what to do next, and name what there is.
func TestNotes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		override map[string]any
		want     []string
	}{
		"defaults":            {nil, []string{"polls Telegram", "data-bot-zephbot-0", "ZEPH_TELEGRAM_TOKEN from zephbot/telegram-token", "statefulset/bot-zephbot", "zephbot config check"}},
		"surroundings":        {surroundings(), []string{"takes updates at https://bot.example.org/f3a9", "ZEPH_REDIS_URL from redis/url", "hold a certificate", "networkPolicy.extraEgress"}},
		"three replicas":      {threeReplicas(), []string{"PostgreSQL", "deployment/bot-zephbot", "volume of bot-zephbot-shared", "3 pods share the work: each takes updates", "ZEPH_DATABASE_URL from db/url"}},
		"two to ten replicas": {with(polling(), "autoscaling", map[string]any{"enabled": true}), []string{"2 to 10 pods", "one of them polls Telegram", "prometheus-adapter"}},
		"no ingress":          {map[string]any{"webhook": map[string]any{"url": "https://bot.example.org/f3a9"}}, []string{"Service bot-zephbot-webhook, port 80"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			texts, err := render(t, values(t, tt.override))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(texts["NOTES.txt"], want) {
					t.Errorf("no %q in:\n%s", want, texts["NOTES.txt"])
				}
			}
		})
	}
}
