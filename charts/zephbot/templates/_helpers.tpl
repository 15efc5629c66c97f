{{/* name of the chart's objects: the release's name, with the chart's unless the release already says it */}}
{{- define "zephbot.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* labels by which the pods are found; they never change for a release */}}
{{- define "zephbot.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
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

{{/* what would lose or double messages is refused before anything is applied */}}
{{- define "zephbot.refusals" -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- fail "replicas: more than one needs a shared PostgreSQL (database.url) and a webhook (telegram.webhook_url), which this version does not have; two pods that poll with one token take each other's messages. Set replicas: 1" -}}
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
{{- end -}}
