# One static binary on Debian: the agent's tools need a shell, coreutils and git, which an empty image does not have.
#
#   docker build -t zephbot .
#   docker run -d --name zephbot --restart unless-stopped --stop-timeout 40 --read-only --tmpfs /tmp:size=256m,mode=1777 \
#       --cap-drop ALL --security-opt no-new-privileges -v zephbot:/data -e ZEPH_TELEGRAM_TOKEN -e … zephbot

FROM --platform=$BUILDPLATFORM golang:1.26.8-trixie AS build
# Whose files the context holds does not matter here; without this, git refuses to name the commit for `zephbot version`.
RUN git config --system --add safe.directory /src
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS=linux
ARG TARGETARCH
# Where the context has no repository or a broken one: --build-arg GOFLAGS=-buildvcs=false
ARG GOFLAGS=
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -tags grpcnotrace,zephbot_image -trimpath -ldflags='-s -w' -o /out/zephbot ./cmd/zephbot

FROM debian:trixie-slim AS program
# tini reaps what a command of the agent leaves behind: a process whose parent is gone becomes a child of process 1.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bash ca-certificates coreutils git tini tzdata \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 zephbot \
    && useradd --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin zephbot \
    && install -d -o 10001 -g 10001 -m 0700 /data /shared
COPY --from=build /out/zephbot /usr/local/bin/zephbot

# Everything that must outlive the container is in /data, or in what several processes share: PostgreSQL and a volume at /shared; a file /data/zephbot.toml is read, the environment wins over it.
ENV HOME=/data \
    ZEPH_DATA_DIR=/data \
    ZEPH_LOG_FORMAT=json \
    ZEPH_METRICS_LISTEN=:9090
USER 10001:10001
WORKDIR /data
VOLUME /data
# /metrics, /healthz and /readyz.
EXPOSE 9090
# For Docker and Podman; Kubernetes and Fly ask /healthz themselves. Opening the database after a crash may take a while.
HEALTHCHECK --interval=15s --timeout=5s --start-period=120s --retries=4 CMD ["/usr/local/bin/zephbot", "health"]
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/zephbot"]
CMD ["serve"]

# A new volume of Fly.io belongs to root, and nothing but the image can change that: it starts as root, gives the directory away, and goes on as the program's
# user without any capability.
FROM program AS fly
USER root
ENTRYPOINT ["/usr/bin/tini", "--", "/bin/sh", "-c", "chown 10001:10001 /data && exec setpriv --reuid=10001 --regid=10001 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs -- /usr/local/bin/zephbot \"$@\"", "zephbot"]

# What is built when no target is named.
FROM program
