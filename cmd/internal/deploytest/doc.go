// Package deploytest compares deployment files and docs with the program: the Dockerfile, fly.toml,
// docker-compose.yml, the unit of systemd and the Helm chart are decoded strictly, their config is loaded by the
// program's own reader, and their ports, users and directories must agree. Besides its tests it has a reader of
// Dockerfiles, for the test that plays the image.
package deploytest
