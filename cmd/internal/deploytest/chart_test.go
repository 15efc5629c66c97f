package deploytest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// everything are values that turn on each optional part of the chart.
func everything() map[string]any {
	return map[string]any{
		"env":              map[string]any{"ZEPH_LOG_LEVEL": "debug", "ZEPH_AGENT_CONCURRENCY": 8, "ZEPH_AUDIT_ENABLED": true},
		"imagePullSecrets": []any{map[string]any{"name": "registry"}},
		"podAnnotations":   map[string]any{"a": "b"},
		"podLabels":        map[string]any{"team": "x"},
		"nodeSelector":     map[string]any{"disk": "ssd"},
		"tolerations":      []any{map[string]any{"operator": "Exists"}},
		"affinity":         map[string]any{"nodeAffinity": map[string]any{}},
		"persistence":      map[string]any{"storageClass": "fast"},
		"fullnameOverride": "other",
		"networkPolicy": map[string]any{
			"enabled":     true,
			"metricsFrom": []any{map[string]any{"namespaceSelector": map[string]any{}}},
			"extraEgress": []any{map[string]any{"ports": []any{map[string]any{"port": 6379, "protocol": "TCP"}}}},
		},
	}
}

func TestChartHangsTogether(t *testing.T) {
	t.Parallel()
	for name, override := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := manifests(t, override)
			pod := o.template().Spec
			if len(pod.Containers) != 1 {
				t.Fatalf("%d containers, want 1", len(pod.Containers))
			}
			checkSelectors(t, o)
			checkMounts(t, o, pod)
			checkPorts(t, o, pod.Containers[0])
			checkLocked(t, o, pod)
		})
	}
}

// checkSelectors: what selects pods finds the chart's own.
func checkSelectors(t *testing.T, o objects) {
	t.Helper()
	selectors := map[string]map[string]string{"Service": o.service.Spec.Selector}
	if set := o.stateful; set != nil {
		selectors["StatefulSet"] = set.Spec.Selector.MatchLabels
		if set.Spec.ServiceName != o.service.Metadata.Name {
			t.Errorf("serviceName %q, but the Service is called %q", set.Spec.ServiceName, o.service.Metadata.Name)
		}
	}
	if o.deployment != nil {
		selectors["Deployment"] = o.deployment.Spec.Selector.MatchLabels
	}
	if o.budget != nil {
		selectors["PodDisruptionBudget"] = o.budget.Spec.Selector.MatchLabels
	}
	if o.webhook != nil {
		selectors["Service of the webhook"] = o.webhook.Spec.Selector
	}
	if o.network != nil {
		selectors["NetworkPolicy"] = o.network.Spec.PodSelector.MatchLabels
	}
	if (o.stateful == nil) == (o.deployment == nil) {
		t.Error("want a StatefulSet or a Deployment, not both")
	}
	for what, selector := range selectors {
		if len(selector) == 0 {
			t.Errorf("the selector of the %s is empty", what)
		}
		for k, v := range selector {
			if got := o.template().Metadata.Labels[k]; got != v {
				t.Errorf("the %s selects %s=%s; the pod has %q", what, k, v, got)
			}
		}
	}
}

// checkMounts: every mount has its volume, every volume is mounted, the config is the chart's own.
func checkMounts(t *testing.T, o objects, pod podSpec) {
	t.Helper()
	var have, mounted []string
	for _, v := range pod.Volumes {
		have = append(have, v.Name)
		if v.ConfigMap != nil && v.ConfigMap.Name != o.config.Metadata.Name {
			t.Errorf("volume %s is of the ConfigMap %q; the chart's is %q", v.Name, v.ConfigMap.Name, o.config.Metadata.Name)
		}
	}
	if o.stateful != nil {
		for _, v := range o.stateful.Spec.VolumeClaimTemplates {
			have = append(have, v.Metadata.Name)
		}
	}
	paths := map[string]string{}
	for _, m := range pod.Containers[0].VolumeMounts {
		mounted = append(mounted, m.Name)
		paths[m.MountPath] = m.Name
	}
	slices.Sort(have)
	slices.Sort(mounted)
	if diff := cmp.Diff(have, mounted); diff != "" {
		t.Errorf("volumes and mounts differ:\n%s", diff)
	}
	want := map[string]string{"/data": "data", "/tmp": "tmp", "/etc/zephbot": "config"}
	if o.deployment != nil {
		want["/shared"] = "shared"
	}
	if file := env(pod.Containers[0])["ZEPH_REDIS_CA_FILE"]; file != "" {
		want[filepath.Dir(file)] = "redis-ca"
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("mounts: -want +got\n%s", diff)
	}
	if env(pod.Containers[0])["ZEPH_DATA_DIR"] != "/data" {
		t.Error("the data directory is not the volume")
	}
	args := pod.Containers[0].Args
	if at := slices.Index(args, "--config"); at < 0 || at+1 == len(args) || args[at+1] != "/etc/zephbot/"+config.FileName {
		t.Errorf("args %q do not name the mounted config", args)
	}
	if o.config.Data[config.FileName] == "" {
		t.Errorf("the ConfigMap has no %s", config.FileName)
	}
}

// checkPorts: what the program listens on is what is declared, served and probed.
func checkPorts(t *testing.T, o objects, c container) {
	t.Helper()
	if len(c.Ports) == 0 || len(o.service.Spec.Ports) != 1 {
		t.Fatalf("ports %v, of the Service %v", c.Ports, o.service.Spec.Ports)
	}
	p := c.Ports[0]
	if listen := fmt.Sprintf(":%d", p.ContainerPort); env(c)["ZEPH_METRICS_LISTEN"] != listen {
		t.Errorf("ZEPH_METRICS_LISTEN is %q, the port %s", env(c)["ZEPH_METRICS_LISTEN"], listen)
	}
	s := o.service.Spec.Ports[0]
	if s.TargetPort != p.Name || s.Port != p.ContainerPort {
		t.Errorf("the Service has %v → %s, the container %d %s", s.Port, s.TargetPort, p.ContainerPort, p.Name)
	}
	for want, got := range map[string]probe{"/readyz": c.ReadinessProbe, "/healthz": c.LivenessProbe} {
		if got.HTTPGet.Path != want || got.HTTPGet.Port != p.Name {
			t.Errorf("a probe asks %s of %s, want %s of %s", got.HTTPGet.Path, got.HTTPGet.Port, want, p.Name)
		}
	}
	if c.StartupProbe.HTTPGet != c.LivenessProbe.HTTPGet {
		t.Errorf("the startup probe asks %v", c.StartupProbe.HTTPGet)
	}
}

// checkLocked: the pod runs commands that a model wrote, so it has as little as possible.
func checkLocked(t *testing.T, o objects, pod podSpec) {
	t.Helper()
	c := pod.Containers[0].SecurityContext
	docker := readImage(t)
	switch {
	case !pod.SecurityContext.RunAsNonRoot, !slices.Contains([]string{"RuntimeDefault", "Localhost"}, pod.SecurityContext.SeccompProfile.Type):
		t.Errorf("securityContext of the pod: %+v", pod.SecurityContext)
	case !c.ReadOnlyRootFilesystem, c.AllowPrivilegeEscalation == nil, *c.AllowPrivilegeEscalation, !slices.Equal(c.Capabilities.Drop, []string{"ALL"}):
		t.Errorf("securityContext of the container: %+v", c)
	case pod.AutomountServiceAccountToken == nil, *pod.AutomountServiceAccountToken:
		t.Error("the pod gets a token of its service account")
	case o.account == nil, o.account.Metadata.Name != pod.ServiceAccountName:
		t.Errorf("service account %q is not the chart's %+v", pod.ServiceAccountName, o.account)
	}
	user := fmt.Sprintf("%d:%d", pod.SecurityContext.RunAsUser, pod.SecurityContext.RunAsGroup)
	if user != docker.Last("USER") || pod.SecurityContext.FSGroup != pod.SecurityContext.RunAsGroup {
		t.Errorf("the chart runs as %s with fsGroup %d, the image as %s", user, pod.SecurityContext.FSGroup, docker.Last("USER"))
	}
	stop := 0
	if command := o.template().Spec.Containers[0].Lifecycle.PreStop.Exec.Command; len(command) == 2 {
		stop, _ = strconv.Atoi(command[1])
	}
	if pod.TerminationGracePeriodSeconds < 30+stop {
		t.Errorf("%d s to stop; the program takes up to 25", pod.TerminationGracePeriodSeconds)
	}
}

// env is what is set plainly; what comes from a Secret has an example's value.
func env(c container) map[string]string {
	out := map[string]string{}
	for _, e := range c.Env {
		out[e.Name] = e.Value
		switch {
		case e.ValueFrom == nil:
		case e.Name == "ZEPH_REDIS_URL":
			out[e.Name] = "rediss://redis.example.org"
		case e.Name == "ZEPH_DATABASE_URL":
			out[e.Name] = "postgres://zephbot@db.example.org/zephbot"
		default:
			out[e.Name] = "from-a-secret"
		}
	}
	return out
}

// TestChartConfigLoads reads the chart's config and environment as the program does.
func TestChartConfigLoads(t *testing.T) {
	t.Parallel()
	for name, override := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := manifests(t, override)
			c := load(t, o.config.Data[config.FileName], env(o.template().Spec.Containers[0]))
			if c.DataDir != "/data" || c.LLM.Primary != "main" || len(c.LLM.Providers) != 1 {
				t.Errorf("loaded: data_dir %q, llm %+v", c.DataDir, c.LLM.Primary)
			}
		})
	}
}

// load reads a config and an environment; unknown variables and keys that nothing reads yet are errors here.
func load(t *testing.T, file string, vars map[string]string) *config.Config {
	t.Helper()
	src := config.Source{
		File: "/etc/zephbot/" + config.FileName, Home: "/data", WorkDir: "/data",
		ReadFile: func(string) ([]byte, error) { return []byte(file), nil },
	}
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		src.Env = append(src.Env, k+"="+vars[k])
	}
	c, err := config.Load(src)
	if err != nil {
		t.Fatalf("the program refuses the config:\n%v", err)
	}
	known := knownVariables()
	for k := range vars {
		if strings.HasPrefix(k, "ZEPH_") && !slices.ContainsFunc(known, func(re *regexp.Regexp) bool { return re.MatchString(k) }) {
			t.Errorf("no key is set by the environment variable %s", k)
		}
	}
	return c
}

// knownVariables are the environment variables that the program reads; entries of lists and tables have any name.
func knownVariables() []*regexp.Regexp {
	var out []*regexp.Regexp
	placeholder := regexp.MustCompile(`<[A-Z]+>`)
	for _, k := range config.Keys() {
		if k.Env != "" {
			out = append(out, regexp.MustCompile("^"+placeholder.ReplaceAllString(k.Env, "[A-Z0-9_]+")+"$"))
		}
	}
	return out
}

// TestReplicasNeedWhatTheyShare: pods that would each refuse to start are refused before anything is applied, with all
// that is missing.
func TestReplicasNeedWhatTheyShare(t *testing.T) {
	t.Parallel()
	database, redis := map[string]any{"secret": "db"}, map[string]any{"secret": "redis"}
	volume := map[string]any{"sharedClaim": "files"}
	const theDatabase, theRedis, theVolume = "database.secret", "redis.secret", "persistence.sharedClaim or persistence.sharedStorageClass"
	for name, tt := range map[string]struct {
		override map[string]any
		missing  []string
	}{
		"nothing":     {map[string]any{"replicas": 2}, []string{theDatabase, theRedis, theVolume}},
		"autoscaler":  {map[string]any{"autoscaling": map[string]any{"enabled": true}}, []string{theDatabase, theRedis, theVolume}},
		"no database": {map[string]any{"replicas": 3, "redis": redis, "persistence": volume}, []string{theDatabase}},
		"no Redis":    {map[string]any{"replicas": 3, "database": database, "persistence": volume}, []string{theRedis}},
		"no volume":   {map[string]any{"replicas": 3, "database": database, "redis": redis}, []string{theVolume}},
		"all":         {map[string]any{"replicas": 3, "database": database, "redis": redis, "persistence": volume}, nil},
		"a class":     {map[string]any{"replicas": 3, "database": database, "redis": redis, "persistence": map[string]any{"sharedStorageClass": "nfs"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := render(t, values(t, tt.override))
			if (err == nil) != (tt.missing == nil) {
				t.Fatalf("render: %v, want %q to be missing", err, tt.missing)
			}
			for _, part := range []string{theDatabase, theRedis, theVolume} {
				if err != nil && strings.Contains(err.Error(), part) != slices.Contains(tt.missing, part) {
					t.Errorf("render: %v, want %q to be missing", err, tt.missing)
				}
			}
		})
	}
}

func TestContradictionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		override map[string]any
		want     string
	}{
		"twice":          {map[string]any{"env": map[string]any{"ZEPH_TELEGRAM_TOKEN": "x"}}, "env.ZEPH_TELEGRAM_TOKEN: stands in secretEnv too"},
		"set by chart":   {map[string]any{"env": map[string]any{"ZEPH_DATA_DIR": "/x"}}, "env.ZEPH_DATA_DIR: is set by the chart"},
		"no address":     {map[string]any{"webhook": map[string]any{"ingress": map[string]any{"enabled": true}}}, "needs webhook.url"},
		"one pod":        {map[string]any{"persistence": map[string]any{"sharedClaim": "files"}}, "have no effect on one pod"},
		"shared by hand": {with(threeReplicas(), "env", map[string]any{"ZEPH_WORKSPACES_SHARED": "false"}), "is set by the chart when there are several pods"},
		"no server":      {map[string]any{"redis": map[string]any{"caSecret": "ca"}}, "has no effect without redis.secret"},
		"no Qdrant":      {map[string]any{"qdrant": map[string]any{"secret": "q"}}, "has no effect without qdrant.url"},
		"Redis as a env": {map[string]any{"secretEnv": map[string]any{"ZEPH_REDIS_URL": map[string]any{"secret": "a", "key": "b"}}}, "use the value redis.secret"},
		"metrics secret": {map[string]any{"secretEnv": map[string]any{"ZEPH_METRICS_LISTEN": map[string]any{"secret": "a", "key": "b"}}}, "is set by the chart"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := render(t, values(t, tt.override)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("render: %v, want %q", err, tt.want)
			}
		})
	}
}

func TestOptionalParts(t *testing.T) {
	t.Parallel()
	o := manifests(t, nil)
	if o.network != nil {
		t.Error("a NetworkPolicy without being asked for")
	}
	o = manifests(t, map[string]any{"networkPolicy": map[string]any{"enabled": true}})
	if o.network == nil || len(o.network.Spec.Ingress) != 1 || len(o.network.Spec.Egress) != 2 || o.network.Spec.Ingress[0].From != nil {
		t.Errorf("NetworkPolicy: %+v", o.network)
	}
	o = manifests(t, everything())
	if len(o.network.Spec.Egress) != 3 || len(o.network.Spec.Ingress[0].From) != 1 || o.stateful.Metadata.Name != "other" {
		t.Errorf("with everything: %s %+v", o.stateful.Metadata.Name, o.network)
	}
	o = manifests(t, map[string]any{"serviceAccount": map[string]any{"name": "mine"}})
	if o.account != nil || o.template().Spec.ServiceAccountName != "mine" {
		t.Errorf("account %+v, pod uses %q", o.account, o.template().Spec.ServiceAccountName)
	}
}

// TestValuesSchema: the defaults fit the schema, and mistakes do not.
func TestValuesSchema(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	for name, tt := range map[string]struct {
		override map[string]any
		ok       bool
	}{
		"defaults":          {nil, true},
		"everything":        {everything(), true},
		"unknown key":       {map[string]any{"replica": 1}, false},
		"unknown inner key": {map[string]any{"metrics": map[string]any{"prot": 1}}, false},
		"low port":          {map[string]any{"metrics": map[string]any{"port": 80}}, false},
		"words for numbers": {map[string]any{"replicas": "1"}, false},
		"foreign variable":  {map[string]any{"secretEnv": map[string]any{"TOKEN": map[string]any{"secret": "a", "key": "b"}}}, false},
		"secret in clear":   {map[string]any{"secretEnv": map[string]any{"ZEPH_TELEGRAM_TOKEN": "123:abc"}}, false},
		"no time to stop":   {map[string]any{"terminationGracePeriodSeconds": 10}, false},
		"http webhook":      {map[string]any{"webhook": map[string]any{"url": "http://bot.example.org"}}, false},
		"no seccomp":        {map[string]any{"seccompProfile": map[string]any{"type": "Unconfined"}}, false},
		"seccomp, no file":  {map[string]any{"seccompProfile": map[string]any{"type": "Localhost"}}, false},
		"password in Redis": {map[string]any{"redis": map[string]any{"url": "redis://:secret@h"}}, false},
		"three replicas":    {threeReplicas(), true},
		"name with dots":    {map[string]any{"fullnameOverride": "my.bot"}, false},
		"secret with dots":  {map[string]any{"redis": map[string]any{"secret": "redis..url"}}, false},
		"odd memory":        {map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": "1x"}}}, false},
		"thousandths":       {map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": "512m"}}}, false},
		"no memory at all":  {map[string]any{"tmpSize": "0Mi"}, false},
		"odd resource":      {map[string]any{"resources": map[string]any{"requests": map[string]any{"memmory": "1Gi"}}}, false},
		"shared volume":     {map[string]any{"persistence": map[string]any{"accessMode": "ReadWriteMany"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vals := values(t, tt.override)
			data, err := json.Marshal(vals)
			if err != nil {
				t.Fatal(err)
			}
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(v); (err == nil) != tt.ok {
				t.Errorf("valid = %v, want %v: %v", err == nil, tt.ok, err)
			}
		})
	}
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("urn:values", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("urn:values")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestReadmeExampleLoads: the first config that a reader copies is one that the program takes.
func TestReadmeExampleLoads(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(chartDir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "```yaml\n")
	text, _, found := strings.Cut(rest, "```")
	var override map[string]any
	if err := yaml.Unmarshal([]byte(text), &override); err != nil || !found || override["config"] == nil {
		t.Fatalf("README.md of the chart has no example with config: %v", err)
	}
	o := manifests(t, override)
	c := load(t, o.config.Data[config.FileName], env(o.template().Spec.Containers[0]))
	if len(c.LLM.Providers) != 1 || len(c.Telegram.AllowedUsers) != 0 {
		t.Errorf("%d providers, allowed users: %v", len(c.LLM.Providers), c.Telegram.AllowedUsers)
	}
}

// TestReadmeNamesEveryValue: whoever adds a value says what it is for.
func TestReadmeNamesEveryValue(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join(chartDir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for key := range chartFile(t, "values.yaml") {
		if !strings.Contains(string(data), "`"+key) {
			t.Errorf("README.md of the chart does not name %s", key)
		}
	}
}

// TestHelmAgrees lints the chart and compares what Helm renders with what these tests render. Without Helm the other
// tests stand alone.
func TestHelmAgrees(t *testing.T) {
	t.Parallel()
	helm, err := exec.LookPath("helm")
	if err != nil {
		t.Skip("helm is not on PATH")
	}
	if out, err := exec.CommandContext(t.Context(), helm, "lint", "--strict", chartDir).CombinedOutput(); err != nil {
		t.Errorf("helm lint: %v\n%s", err, out)
	}
	for name, override := range map[string]map[string]any{"defaults": nil, "everything": everything(), "three replicas": threeReplicas()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := yaml.Marshal(override)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), helm, "template", release, chartDir, "--values", file).Output()
			if err != nil {
				t.Fatalf("helm template: %v", err)
			}
			var theirs objects
			theirs.add(t, "helm template", string(out))
			if diff := cmp.Diff(theirs, manifests(t, override), cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Errorf("-helm +ours\n%s", diff)
			}
		})
	}
}
