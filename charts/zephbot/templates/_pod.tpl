{{/* the pod, of the StatefulSet and of the Deployment */}}
{{- define "zephbot.pod" -}}
metadata:
  labels:
    {{- include "zephbot.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # A changed config restarts the pod.
    checksum/config: {{ .Values.config | sha256sum }}
    {{- if .Values.metrics.scrape }}
    prometheus.io/scrape: "true"
    prometheus.io/port: {{ .Values.metrics.port | quote }}
    prometheus.io/path: /metrics
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "zephbot.serviceAccount" . | quote }}
  # The agent runs commands: it gets no key to the cluster.
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      {{- toYaml .Values.seccompProfile | nindent 6 }}
  containers:
    - name: zephbot
      image: "{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
        - --config
        - /etc/zephbot/zephbot.toml
      env:
        - name: ZEPH_DATA_DIR
          value: /data
        - name: ZEPH_LOG_FORMAT
          value: json
        - name: ZEPH_METRICS_LISTEN
          value: ":{{ .Values.metrics.port }}"
        {{- if include "zephbot.several" . }}
        - name: ZEPH_WORKSPACES_SHARED
          value: "true"
        - name: ZEPH_WORKSPACES_DIR
          value: /shared/workspaces
        {{- end }}
        {{- if .Values.webhook.url }}
        - name: ZEPH_TELEGRAM_WEBHOOK_URL
          value: {{ .Values.webhook.url | quote }}
        - name: ZEPH_TELEGRAM_WEBHOOK_LISTEN
          value: ":{{ .Values.webhook.port }}"
        {{- end }}
        {{- with .Values.redis.caSecret }}
        - name: ZEPH_REDIS_CA_FILE
          value: /etc/zephbot-redis/ca.crt
        {{- end }}
        {{- with .Values.qdrant.url }}
        - name: ZEPH_VECTOR_BACKEND
          value: qdrant
        - name: ZEPH_VECTOR_URL
          value: {{ . | quote }}
        {{- end }}
        {{- range $name, $from := dict "ZEPH_DATABASE_URL" .Values.database "ZEPH_REDIS_URL" .Values.redis "ZEPH_VECTOR_API_KEY" .Values.qdrant }}
        {{- if $from.secret }}
        - name: {{ $name | quote }}
          valueFrom:
            secretKeyRef:
              name: {{ $from.secret | quote }}
              key: {{ $from.key | quote }}
        {{- end }}
        {{- end }}
        {{- range $name, $value := .Values.env }}
        - name: {{ $name | quote }}
          value: {{ $value | toString | quote }}
        {{- end }}
        {{- range $name, $from := .Values.secretEnv }}
        - name: {{ $name | quote }}
          valueFrom:
            secretKeyRef:
              name: {{ $from.secret | quote }}
              key: {{ $from.key | quote }}
        {{- end }}
      ports:
        - name: metrics
          containerPort: {{ .Values.metrics.port }}
          protocol: TCP
        {{- if .Values.webhook.url }}
        - name: webhook
          containerPort: {{ .Values.webhook.port }}
          protocol: TCP
        {{- end }}
      # Opening the database after a crash may take a while; only then is silence a reason to restart.
      startupProbe:
        httpGet:
          path: /healthz
          port: metrics
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet:
          path: /healthz
          port: metrics
        periodSeconds: 15
        timeoutSeconds: 5
        failureThreshold: 4
      readinessProbe:
        httpGet:
          path: /readyz
          port: metrics
        periodSeconds: 10
        timeoutSeconds: 5
      {{- if and .Values.webhook.url .Values.preStopSeconds }}
      # The ingress hears of the end of a pod when the pod does: until it sends nothing more, what it sends is still taken.
      lifecycle:
        preStop:
          exec:
            command:
              - sleep
              - {{ .Values.preStopSeconds | quote }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop:
            - ALL
      {{- with .Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - name: data
          mountPath: /data
        {{- if include "zephbot.several" . }}
        - name: shared
          mountPath: /shared
        {{- end }}
        - name: tmp
          mountPath: /tmp
        - name: config
          mountPath: /etc/zephbot
          readOnly: true
        {{- if .Values.redis.caSecret }}
        - name: redis-ca
          mountPath: /etc/zephbot-redis
          readOnly: true
        {{- end }}
  volumes:
    - name: tmp
      emptyDir:
        sizeLimit: {{ .Values.tmpSize }}
    - name: config
      configMap:
        name: {{ include "zephbot.fullname" . | quote }}
    {{- with .Values.redis.caSecret }}
    - name: redis-ca
      secret:
        secretName: {{ . | quote }}
    {{- end }}
    {{- if include "zephbot.several" . }}
    # What a pod has for itself, and loses with it. Everything that counts is in PostgreSQL and on the shared volume.
    - name: data
      emptyDir:
        sizeLimit: {{ .Values.persistence.size }}
    - name: shared
      persistentVolumeClaim:
        claimName: {{ include "zephbot.sharedClaim" . | quote }}
    {{- end }}
  {{- if include "zephbot.several" . }}
  # A node or a zone that fails takes as few pods with it as can be.
  topologySpreadConstraints:
    {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ $key }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "zephbot.selector" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
