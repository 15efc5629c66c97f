package metrics

import "github.com/prometheus/client_golang/prometheus"

// Spent returns the USD that each provider has cost since this process began.
func (m *Metrics) Spent() map[string]float64 {
	own := prometheus.NewRegistry() // without the gauges, some of which ask others
	own.MustRegister(m.cost)
	families, err := own.Gather()
	spent := map[string]float64{}
	if err != nil {
		return spent // a counter of ours always has a value
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				spent[label.GetValue()] = metric.GetCounter().GetValue()
			}
		}
	}
	return spent
}
