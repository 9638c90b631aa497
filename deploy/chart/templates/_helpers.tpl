{{- define "pailot.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "pailot.chosen" -}}
app.kubernetes.io/name: pailot
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "pailot.labels" -}}
{{ include "pailot.chosen" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}

{{- define "pailot.account" -}}
{{- .Values.serviceAccount.name | default (ternary (include "pailot.name" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}
