{{/* Names, labels and what several templates share. */}}

{{- define "joinery.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* 40 characters leave room for suffixes: a StatefulSet's name must stay below 53. */}}
{{- define "joinery.fullname" -}}
{{- $name := include "joinery.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What a pod is chosen by; never more, for it cannot be changed. Arguments: (list $ "component"). */}}
{{- define "joinery.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "joinery.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Arguments: (list $ "component"). part-of is also on every query's pods. */}}
{{- define "joinery.labels" -}}
{{- $root := index . 0 -}}
{{ include "joinery.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: joinery
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* repository@digest or repository:tag. Arguments: (list $ values-of-an-image default-tag). */}}
{{- define "joinery.image" -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default (index . 2) }}
{{- end -}}
{{- end -}}

{{- define "joinery.ownImage" -}}
{{ include "joinery.image" (list . .Values.image .Chart.AppVersion) }}
{{- end -}}

{{- define "joinery.sparkImage" -}}
{{ include "joinery.image" (list . .Values.spark.image .Chart.AppVersion) }}
{{- end -}}

{{/* The role of Spark's drivers: a ClusterRole, bound in the namespace of each load; or a Role in each namespace. */}}
{{- define "joinery.sparkRole" -}}
{{- if not .Values.watchNamespaces }}{{ .Release.Namespace }}-{{ end }}{{ include "joinery.fullname" . }}-spark-driver
{{- end -}}

{{- define "joinery.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (printf "%s-operator" (include "joinery.fullname" .)) }}
{{- else -}}
{{ .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{- define "joinery.redisSecret" -}}
{{ .Values.redis.existingSecret | default (printf "%s-redis" (include "joinery.fullname" .)) }}
{{- end -}}

{{- define "joinery.authSecret" -}}
{{ .Values.auth.existingSecret | default (printf "%s-auth" (include "joinery.fullname" .)) }}
{{- end -}}

{{- define "joinery.caSecret" -}}
{{ include "joinery.fullname" . }}-ca
{{- end -}}

{{/* Every pod of the chart runs so. */}}
{{- define "joinery.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "joinery.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Where a pod may run. Argument: values with nodeSelector, tolerations, affinity, priorityClassName. */}}
{{- define "joinery.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* Values that are right one by one, but not together: found, wanted. */}}
{{- define "joinery.checks" -}}
{{- $redis := .Values.redis -}}
{{- if and $redis.url $redis.existingSecret -}}
{{- fail "redis.url and redis.existingSecret are both set, wanted one of them" -}}
{{- end -}}
{{- if and $redis.bundled (or $redis.url $redis.existingSecret) -}}
{{- fail "redis.bundled is true and a Redis of yours is named; set redis.bundled=false to use yours, or name none" -}}
{{- end -}}
{{- if not (or $redis.bundled $redis.url $redis.existingSecret) -}}
{{- fail "redis.bundled is false and no Redis is named; set redis.url, or redis.existingSecret (key url)" -}}
{{- end -}}
{{- if and $redis.persistence.existingClaim $redis.persistence.hostPath -}}
{{- fail "redis.persistence.existingClaim and redis.persistence.hostPath are both set, wanted one of them" -}}
{{- end -}}
{{- if and (not $redis.persistence.enabled) (or $redis.persistence.existingClaim $redis.persistence.hostPath) -}}
{{- fail "redis.persistence.enabled is false and a place is named; set it to true, or name no existingClaim and no hostPath" -}}
{{- end -}}
{{- if and .Values.auth.token .Values.auth.existingSecret -}}
{{- fail "auth.token and auth.existingSecret are both set, wanted one of them" -}}
{{- end -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.create is false and serviceAccount.name is empty; name the account that the operator runs as" -}}
{{- end -}}
{{- end -}}
