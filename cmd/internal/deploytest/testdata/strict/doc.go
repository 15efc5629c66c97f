// Package strict holds the files of a deployment to the types of those who read them: the chart, as Helm renders it, to the API of Kubernetes and of the
// Prometheus operator, docker-compose.yml to compose-go, the unit to go-systemd. It is a module of its own, so that what it needs is not in the module of the
// program; `.ci/run chart` runs it. The package has only tests.
package strict
