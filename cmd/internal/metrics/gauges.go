package metrics

import "github.com/prometheus/client_golang/prometheus"

// Gauge registers a gauge that is read at each scrape, such as sessions_active and queue_depth.
func (m *Metrics) Gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, read,
	))
}

// GaugesBy registers gauges with one label that are read at each scrape, such as mcp_servers by state.
func (m *Metrics) GaugesBy(name, help, label string, read func() map[string]float64) {
	family := Family{Name: name, Help: help, Label: label}
	m.Collect([]Family{family}, func(emit Emit) {
		for value, n := range read() {
			emit(name, value, n)
		}
	})
}

// Family describes values that are read at each scrape.
type Family struct {
	Name, Help string
	Label      string // "" = it is one value
	Total      bool   // the value only grows: a counter
}

// Emit reports a value of a family. label is ignored if the family has none.
type Emit func(family, label string, value float64)

// Collect registers families whose values are read together at each scrape. What read does not emit is absent then.
// read can be called by several scrapes at once, and must return within seconds.
func (m *Metrics) Collect(families []Family, read func(Emit)) {
	c := collector{families: map[string]family{}, read: read}
	for _, f := range families {
		var labels []string
		if f.Label != "" {
			labels = []string{f.Label}
		}
		kind := prometheus.GaugeValue
		if f.Total {
			kind = prometheus.CounterValue
		}
		name := prometheus.BuildFQName(namespace, "", f.Name)
		c.families[f.Name] = family{
			desc:     prometheus.NewDesc(name, f.Help, labels, nil),
			kind:     kind,
			labelled: f.Label != "",
		}
	}
	m.registry.MustRegister(c)
}

// collector reads its values at each scrape.
type collector struct {
	families map[string]family
	read     func(Emit)
}

type family struct {
	desc     *prometheus.Desc
	kind     prometheus.ValueType
	labelled bool
}

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range c.families {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	c.read(func(name, label string, value float64) {
		f := c.families[name]
		if f.labelled {
			out <- prometheus.MustNewConstMetric(f.desc, f.kind, value, label)
			return
		}
		out <- prometheus.MustNewConstMetric(f.desc, f.kind, value)
	})
}
