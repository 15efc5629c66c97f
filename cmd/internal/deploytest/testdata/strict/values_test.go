package strict_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// oddities are what people type, or what a template makes of something else.
var oddities = []string{
	"", "a", "A", "1", "1x", "0", "0Mi", "-1", "1.5", "1.5Gi", ".5", "1.", "1e3", "0x10", "512m", "512M", "512Mi", "512mi", "512 Mi", "1Gib", "100%", "true", "null", "no", "~", "nan",
	"my.bot", "my..bot", ".bot", "bot.", "-bot", "bot-", "my_bot", "My-Bot", "my bot", "1bot", "bot.1", "a/b", "a.example/b", "a:b", "a: b", "a #b", "{a: b}", "[a]", "*a", "&a", "!a", "@a", "`a`",
	"'", "\"", "\\", "a\nb", "a\tb", "ä", "..", "...", "..a", strings.Repeat("a", 64), strings.Repeat("a", 254), strings.Repeat("a-", 26) + "a", "{{ .Values }}", "30s", "0s", "1h", "https://h", "https://h:1/p", "https://H_x/p",
	"https://h p/", "http://h:6334", "Ki",
}

// leaves are the paths of all strings and numbers of the values, and of some below maps that are empty.
func leaves(values map[string]any, at []string) [][]string {
	var list [][]string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path := append(slices.Clone(at), key)
		if inner, ok := values[key].(map[string]any); ok {
			list = append(list, leaves(inner, path)...)
			continue
		}
		list = append(list, path)
	}
	return list
}

// with returns values in which one is another one.
func with(value any, path ...string) map[string]any {
	for _, key := range slices.Backward(path) {
		value = map[string]any{key: value}
	}
	return value.(map[string]any)
}

// TestOddValues: whatever stands in a value, it is refused before anything is applied, or every object is one that
// Kubernetes takes: Helm is not asked to apply half of a release.
func TestOddValues(t *testing.T) {
	t.Parallel()
	c, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	paths := leaves(c.Values, nil)
	for _, name := range []string{"podLabels", "nodeSelector"} {
		paths = append(paths, []string{name, "a"}, []string{name, oddKey})
	}
	for _, name := range []string{"cpu", "memory", "ephemeral-storage", "example.org/gpu", oddKey} {
		paths = append(paths, []string{"resources", "limits", name}, []string{"resources", "requests", name})
	}
	paths = append(paths, []string{"podAnnotations", oddKey}, []string{"secretEnv", "ZEPH_X", "secret"}, []string{"env", oddKey}, []string{"env", "A"},
		[]string{"webhook", "ingress", "annotations", oddKey}, []string{"serviceMonitor", "labels", oddKey}, []string{"serviceMonitor", "labels", "a"})
	var refused, taken atomic.Int64
	var wg sync.WaitGroup
	for _, base := range []string{"", several} {
		wg.Go(func() {
			for _, path := range paths {
				for _, odd := range oddities {
					p := slices.Clone(path)
					if i := slices.Index(p, oddKey); i >= 0 {
						p[i], odd = odd, "1"
					}
					if wrong := tried("bot", base, p, odd); errors.Is(wrong, errTaken) {
						taken.Add(1)
					} else if wrong != nil {
						t.Errorf("%s = %q: %v", strings.Join(p, "."), odd, wrong)
					} else {
						refused.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	for _, release := range oddities {
		if chartutil.ValidateReleaseName(release) != nil {
			continue
		}
		if wrong := tried(release, several, nil, ""); !errors.Is(wrong, errTaken) {
			t.Errorf("release %q: %v", release, wrong)
		}
	}
	if refused.Load() < 1000 || taken.Load() < 1000 {
		t.Errorf("%d values refused, %d taken", refused.Load(), taken.Load())
	}
}

// oddKey stands for a key of a map that is odd itself.
const oddKey = "?"

// errTaken says that Kubernetes takes all objects.
var errTaken = errors.New("taken")

// tried renders the chart with one odd value: nil = it was refused.
func tried(release, base string, path []string, odd string) error {
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(base), &values); err != nil {
		return err
	}
	if path != nil {
		values = chartutil.CoalesceTables(with(odd, path...), values)
	}
	raw, err := yaml.Marshal(values)
	if err != nil {
		return err
	}
	objects, err := renderedAs(release, string(raw))
	if errors.Is(err, errRead) {
		return err
	}
	if err != nil {
		return nil //nolint:nilerr // the chart refuses it
	}
	for kind, list := range objects {
		for _, object := range list {
			if wrong := objections(object); len(wrong) > 0 {
				return fmt.Errorf("%s: %s", kind, strings.Join(wrong, "; "))
			}
		}
	}
	return errTaken
}

// objections are what Kubernetes has against names, labels, references and quantities of an object.
func objections(object any) []string {
	m, err := meta.Accessor(object)
	if err != nil {
		return []string{err.Error()}
	}
	wrong := validation.IsDNS1123Subdomain(m.GetName())
	wrong = append(wrong, labelled(m.GetLabels())...)
	for key := range m.GetAnnotations() {
		wrong = append(wrong, validation.IsQualifiedName(strings.ToLower(key))...)
	}
	switch o := object.(type) {
	case *core.Service:
		wrong = append(wrong, validation.IsDNS1035Label(o.Name)...)
		wrong = append(wrong, labelled(o.Spec.Selector)...)
	case *core.PersistentVolumeClaim:
		wrong = append(wrong, claimed(&o.Spec)...)
	case *apps.StatefulSet:
		wrong = append(wrong, podded(&o.Spec.Template)...)
		wrong = append(wrong, validation.IsDNS1123Label(o.Spec.ServiceName)...)
		for i := range o.Spec.VolumeClaimTemplates {
			wrong = append(wrong, claimed(&o.Spec.VolumeClaimTemplates[i].Spec)...)
		}
	case *apps.Deployment:
		wrong = append(wrong, podded(&o.Spec.Template)...)
	case *networking.Ingress:
		for _, rule := range o.Spec.Rules {
			wrong = append(wrong, validation.IsDNS1123Subdomain(rule.Host)...)
		}
		if o.Spec.IngressClassName != nil {
			wrong = append(wrong, validation.IsDNS1123Subdomain(*o.Spec.IngressClassName)...)
		}
		for _, tls := range o.Spec.TLS {
			wrong = append(wrong, referred(tls.SecretName)...)
		}
	}
	return wrong
}

func referred(name string) []string {
	if name == "" {
		return nil
	}
	return validation.IsDNS1123Subdomain(name)
}

func labelled(labels map[string]string) []string {
	var wrong []string
	for key, value := range labels {
		wrong = append(wrong, validation.IsQualifiedName(key)...)
		wrong = append(wrong, validation.IsValidLabelValue(value)...)
	}
	return wrong
}

func claimed(c *core.PersistentVolumeClaimSpec) []string {
	var wrong []string
	if size := c.Resources.Requests[core.ResourceStorage]; size.Sign() <= 0 {
		wrong = append(wrong, "a volume of size "+size.String())
	}
	if c.StorageClassName != nil {
		wrong = append(wrong, referred(*c.StorageClassName)...)
	}
	return wrong
}

func podded(pod *core.PodTemplateSpec) []string {
	wrong := labelled(pod.Labels)
	wrong = append(wrong, labelled(pod.Spec.NodeSelector)...)
	wrong = append(wrong, referred(pod.Spec.ServiceAccountName)...)
	for key := range pod.Annotations {
		wrong = append(wrong, validation.IsQualifiedName(strings.ToLower(key))...)
	}
	for _, secret := range pod.Spec.ImagePullSecrets {
		wrong = append(wrong, validation.IsDNS1123Subdomain(secret.Name)...)
	}
	for _, c := range pod.Spec.Containers {
		if strings.ContainsAny(c.Image, " \t\n\"") {
			wrong = append(wrong, "an image "+c.Image)
		}
		for _, v := range c.Env {
			wrong = append(wrong, validation.IsEnvVarName(v.Name)...)
			if v.ValueFrom != nil {
				wrong = append(wrong, validation.IsDNS1123Subdomain(v.ValueFrom.SecretKeyRef.Name)...)
				wrong = append(wrong, validation.IsConfigMapKey(v.ValueFrom.SecretKeyRef.Key)...)
			}
		}
		for _, list := range []core.ResourceList{c.Resources.Limits, c.Resources.Requests} {
			for name, q := range list {
				wrong = append(wrong, validation.IsQualifiedName(string(name))...)
				if q.Sign() < 0 {
					wrong = append(wrong, "negative "+string(name))
				}
				if strings.HasSuffix(string(name), "memory") && q.MilliValue()%1000 != 0 {
					wrong = append(wrong, "a fraction of a byte: "+q.String())
				}
			}
		}
	}
	return wrong
}
