{{/*
What the operator may do, and nothing else: the only list. The tests on a cluster compare it with the API server's
audit log, so a verb that is not used has to go, and one that is needed has to come here.
Children are written by server-side apply: patch, and create for the first time (the log shows patch for both).
What is not deleted here goes with its owner.
*/}}
{{- define "joinery.operatorRules" -}}
- apiGroups: [joinery.dev]
  resources: [joinqueries]
  verbs: [list, watch, patch]
- apiGroups: [joinery.dev]
  resources: [joinqueries/status]
  verbs: [patch]
- apiGroups: [joinery.dev]
  resources: [loadtests]
  verbs: [list, watch]
- apiGroups: [joinery.dev]
  resources: [loadtests/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch]
- apiGroups: [""]
  resources: [services]
  verbs: [list, watch, create, patch]
- apiGroups: [""]
  resources: [secrets]  # never list or watch; get: the certificate that a query has
  verbs: [{{ if .Values.tls.enabled }}get, {{ end }}create, patch]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [create, patch]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [create, patch]
{{- if .Values.spark.enabled }}
- apiGroups: [joinery.dev]
  resources: [joinqueries]
  verbs: [get]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, create, patch, delete]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [persistentvolumeclaims]  # of Spark's drivers and executors; they go with their query
  verbs: [create, patch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings]
  verbs: [create, patch]
- apiGroups: [rbac.authorization.k8s.io]  # of no other role than the driver's
  resources: [{{ if .Values.watchNamespaces }}roles{{ else }}clusterroles{{ end }}]
  resourceNames: [{{ include "joinery.sparkRole" . }}]
  verbs: [bind]
{{- end }}
{{- end -}}

{{/* What Spark's driver may do, in the namespace of its load: start executors, look after them, end them. */}}
{{- define "joinery.sparkDriverRules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, deletecollection]
{{- end -}}

{{/* Only where all namespaces are watched: the definition is looked at, to notice when it comes. */}}
{{- define "joinery.operatorClusterRules" -}}
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [list, watch]
{{- end -}}

{{/* What the check before an uninstall may do. */}}
{{- define "joinery.uninstallRules" -}}
- apiGroups: [joinery.dev]
  resources: [joinqueries]
  verbs: [list{{ if .Values.uninstall.removeQueries }}, delete{{ end }}]
{{- end -}}

{{/* Rights come before the check and go with it. */}}
{{- define "joinery.uninstallHook" -}}
helm.sh/hook: pre-delete
helm.sh/hook-weight: "-10"
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end -}}
