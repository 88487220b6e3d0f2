{{- define "monolock.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "monolock.selector" -}}
app.kubernetes.io/name: monolock
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "monolock.labels" -}}
{{ include "monolock.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "monolock.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* Whether etcd coordinates several servers. */ -}}
{{- define "monolock.several" -}}
{{- if .Values.etcd.endpoints }}yes{{ end -}}
{{- end -}}

{{- /* What a client writes as --server. */ -}}
{{- define "monolock.address" -}}
{{- $name := include "monolock.name" . -}}
{{- if include "monolock.several" . -}}
{{- $list := list -}}
{{- range $index := until (int .Values.etcd.replicas) -}}
{{- $list = append $list (printf "%s-%d.%s.%s.svc:7070" $name $index $name $.Release.Namespace) -}}
{{- end -}}
{{ join "," $list }}
{{- else -}}
{{ $name }}.{{ .Release.Namespace }}.svc:{{ .Values.service.port }}
{{- end -}}
{{- end -}}
