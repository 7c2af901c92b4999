{{- define "levada.labels" -}}
app.kubernetes.io/name: levada
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The labels that select the pods of a role: (list . "fetch") */}}
{{- define "levada.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: levada
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "levada.name" -}}
{{- $root := index . 0 -}}
{{ printf "%s-%s" $root.Release.Name (index . 1) | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "levada.collection" -}}
{{ .Values.collection | default (printf "%s/%s" .Release.Namespace .Release.Name | sha256sum | trunc 16) | quote }}
{{- end }}

{{- define "levada.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "levada.secretEnv" -}}
{{- $root := index . 0 -}}
- name: {{ index . 1 }}
  valueFrom:
    secretKeyRef: { name: {{ $root.Values.secret.name }}, key: {{ index . 2 }} }
{{- end }}

{{/* What every process needs to reach the engines. */}}
{{- define "levada.env" -}}
{{ include "levada.secretEnv" (list . "PGPASSWORD" .Values.secret.postgresqlPassword) }}
{{ include "levada.secretEnv" (list . "RABBITMQ_PASSWORD" .Values.secret.rabbitmqPassword) }}
{{ include "levada.secretEnv" (list . "OPENSEARCH_PASSWORD" .Values.secret.opensearchPassword) }}
{{- if hasPrefix "s3:" .Values.bodies }}
{{ include "levada.secretEnv" (list . "AWS_ACCESS_KEY_ID" .Values.secret.s3AccessKey) }}
{{ include "levada.secretEnv" (list . "AWS_SECRET_ACCESS_KEY" .Values.secret.s3SecretKey) }}
{{- end }}
- { name: LEVADA_RABBITMQ, value: {{ .Values.rabbitmq.url | quote }} }
- { name: LEVADA_STORE, value: {{ .Values.postgresql.dsn | quote }} }
{{- end }}

{{- define "levada.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "levada.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: ["ALL"] }
{{- end }}

{{- define "levada.probes" -}}
ports:
  - { name: health, containerPort: 8401 }
readinessProbe:
  httpGet: { path: /ready, port: health }
  periodSeconds: 5
livenessProbe:
  httpGet: { path: /live, port: health }
  periodSeconds: 10
  failureThreshold: 6
{{- end }}

{{- define "levada.podPlace" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "levada.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "levada.selector" . | nindent 8 }}
{{- end }}
