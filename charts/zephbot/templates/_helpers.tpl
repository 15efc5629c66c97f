{{/* name of the chart's objects: the release's name, with the chart's unless the release already says it */}}
{{- define "zephbot.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := printf "%s-%s" .Release.Name $name -}}
{{- if .Values.fullnameOverride -}}
{{- $full = .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- $full = .Release.Name -}}
{{- end -}}
{{- /* A release may be called 2.bots; a Service may not. */ -}}
{{- if regexMatch "^[0-9]" $full -}}
{{- $full = printf "%s-%s" .Chart.Name $full -}}
{{- end -}}
{{- regexReplaceAll "-+$" ($full | replace "." "-" | trunc 52) "" -}}
{{- end -}}

{{/* labels by which the pods are found; they never change for a release */}}
{{- define "zephbot.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "zephbot.labels" -}}
{{ include "zephbot.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "zephbot.serviceAccount" -}}
{{- default (include "zephbot.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{/* not empty when there may be more than one pod */}}
{{- define "zephbot.several" -}}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) -}}several{{- end -}}
{{- end -}}

{{/* the claim on the volume that several pods share */}}
{{- define "zephbot.sharedClaim" -}}
{{- default (printf "%s-shared" (include "zephbot.fullname" .)) .Values.persistence.sharedClaim -}}
{{- end -}}

{{/* several pods without what they have in common would refuse to start, one after the other: it is refused here, with all that is missing */}}
{{- define "zephbot.together" -}}
{{- if include "zephbot.several" . -}}
{{- $missing := list -}}
{{- if not .Values.database.secret -}}
{{- $missing = append $missing "database.secret (the URL of a PostgreSQL)" -}}
{{- end -}}
{{- if not .Values.redis.secret -}}
{{- $missing = append $missing "redis.secret (the URL of a Redis)" -}}
{{- end -}}
{{- if not (or .Values.persistence.sharedClaim .Values.persistence.sharedStorageClass) -}}
{{- $missing = append $missing "persistence.sharedClaim or persistence.sharedStorageClass (a volume that all pods may write to, ReadWriteMany)" -}}
{{- end -}}
{{- if $missing -}}
{{- fail (printf "replicas: several pods need what they share; missing: %s. Or set replicas: 1 and autoscaling.enabled: false" (join ", " $missing)) -}}
{{- end -}}
{{- range $name := list "ZEPH_WORKSPACES_DIR" "ZEPH_WORKSPACES_SHARED" -}}
{{- if or (hasKey $.Values.env $name) (hasKey $.Values.secretEnv $name) -}}
{{- fail (printf "env.%s: is set by the chart when there are several pods" $name) -}}
{{- end -}}
{{- end -}}
{{- else if or .Values.persistence.sharedClaim .Values.persistence.sharedStorageClass -}}
{{- fail "persistence.sharedClaim, persistence.sharedStorageClass: have no effect on one pod, whose files are on its own volume" -}}
{{- end -}}
{{- end -}}

{{/* values that contradict each other */}}
{{- define "zephbot.refusals" -}}
{{- include "zephbot.together" . -}}
{{- if and .Values.webhook.ingress.enabled (not .Values.webhook.url) -}}
{{- fail "webhook.ingress.enabled: needs webhook.url, the public https address" -}}
{{- end -}}
{{- if and .Values.redis.caSecret (not .Values.redis.secret) -}}
{{- fail "redis.caSecret: has no effect without redis.secret, which holds the URL (rediss://…)" -}}
{{- end -}}
{{- if and .Values.qdrant.secret (not .Values.qdrant.url) -}}
{{- fail "qdrant.secret: has no effect without qdrant.url" -}}
{{- end -}}
{{- range $name, $_ := .Values.env -}}
{{- if hasKey $.Values.secretEnv $name -}}
{{- fail (printf "env.%s: stands in secretEnv too; keep one" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name := list "ZEPH_DATA_DIR" "ZEPH_METRICS_LISTEN" "ZEPH_LOG_FORMAT" -}}
{{- if or (hasKey $.Values.env $name) (hasKey $.Values.secretEnv $name) -}}
{{- fail (printf "env.%s: is set by the chart" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := dict "ZEPH_TELEGRAM_WEBHOOK_URL" "webhook.url" "ZEPH_TELEGRAM_WEBHOOK_LISTEN" "webhook.port" "ZEPH_DATABASE_URL" "database.secret" "ZEPH_REDIS_URL" "redis.secret" "ZEPH_REDIS_CA_FILE" "redis.caSecret" "ZEPH_VECTOR_BACKEND" "qdrant.url" "ZEPH_VECTOR_URL" "qdrant.url" "ZEPH_VECTOR_API_KEY" "qdrant.secret" -}}
{{- if or (hasKey $.Values.env $name) (hasKey $.Values.secretEnv $name) -}}
{{- fail (printf "env.%s: use the value %s of the chart" $name $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
