package deploytest_test

// objects are what the chart makes. The types hold the fields of the Kubernetes API that the chart uses and no others,
// so that a strict decoder refuses what it does not mean.
type objects struct {
	stateful   *statefulSet // with SQLite
	deployment *deployment  // with PostgreSQL
	service    service
	config     configMap
	account    *serviceAccount
	network    *networkPolicy
	webhook    *service
	ingress    *ingress
	budget     *disruptionBudget
	scaler     *autoscaler
	monitor    *serviceMonitor
	claim      *sharedClaim
	rules      *prometheusRule
	dashboard  *configMap
}

// template is the pod, of whichever makes it.
func (o *objects) template() podTemplate {
	if o.deployment != nil {
		return o.deployment.Spec.Template
	}
	return o.stateful.Spec.Template
}

type typeMeta struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
}

type metadata struct {
	Name        string            `yaml:"name"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

type labelSelector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type statefulSet struct {
	typeMeta `yaml:",inline"`
	Metadata metadata `yaml:"metadata"`
	Spec     struct {
		Replicas             int           `yaml:"replicas"`
		ServiceName          string        `yaml:"serviceName"`
		Selector             labelSelector `yaml:"selector"`
		Template             podTemplate   `yaml:"template"`
		VolumeClaimTemplates []volumeClaim `yaml:"volumeClaimTemplates"`
	} `yaml:"spec"`
}

type podTemplate struct {
	Metadata metadata `yaml:"metadata"`
	Spec     podSpec  `yaml:"spec"`
}

type deployment struct {
	typeMeta `yaml:",inline"`
	Metadata metadata `yaml:"metadata"`
	Spec     struct {
		Replicas        *int          `yaml:"replicas"`
		MinReadySeconds int           `yaml:"minReadySeconds"`
		Selector        labelSelector `yaml:"selector"`
		Strategy        struct {
			Type          string `yaml:"type"`
			RollingUpdate struct {
				MaxSurge       int `yaml:"maxSurge"`
				MaxUnavailable int `yaml:"maxUnavailable"`
			} `yaml:"rollingUpdate"`
		} `yaml:"strategy"`
		Template podTemplate `yaml:"template"`
	} `yaml:"spec"`
}

type disruptionBudget struct {
	typeMeta `yaml:",inline"`
	Metadata metadata `yaml:"metadata"`
	Spec     struct {
		MaxUnavailable int           `yaml:"maxUnavailable"`
		Selector       labelSelector `yaml:"selector"`
	} `yaml:"spec"`
}

type autoscaler struct {
	typeMeta `yaml:",inline"`
	Metadata metadata `yaml:"metadata"`
	Spec     struct {
		ScaleTargetRef struct {
			typeMeta `yaml:",inline"`
			Name     string `yaml:"name"`
		} `yaml:"scaleTargetRef"`
		MinReplicas int           `yaml:"minReplicas"`
		MaxReplicas int           `yaml:"maxReplicas"`
		Metrics     []scaleMetric `yaml:"metrics"`
		Behavior    struct {
			ScaleDown struct {
				StabilizationWindowSeconds int `yaml:"stabilizationWindowSeconds"`
				Policies                   []struct {
					Type          string `yaml:"type"`
					Value         int    `yaml:"value"`
					PeriodSeconds int    `yaml:"periodSeconds"`
				} `yaml:"policies"`
			} `yaml:"scaleDown"`
		} `yaml:"behavior"`
	} `yaml:"spec"`
}

type scaleMetric struct {
	Type string `yaml:"type"`
	Pods struct {
		Metric struct {
			Name string `yaml:"name"`
		} `yaml:"metric"`
		Target struct {
			Type         string `yaml:"type"`
			AverageValue string `yaml:"averageValue"`
		} `yaml:"target"`
	} `yaml:"pods"`
}

type serviceMonitor struct {
	typeMeta `yaml:",inline"`
	Metadata metadata `yaml:"metadata"`
	Spec     struct {
		Selector  labelSelector `yaml:"selector"`
		Endpoints []struct {
			Port     string `yaml:"port"`
			Path     string `yaml:"path"`
			Interval string `yaml:"interval"`
		} `yaml:"endpoints"`
	} `yaml:"spec"`
}

type prometheusRule struct {
	typeMeta `yaml:",inline"`
	Metadata metadata   `yaml:"metadata"`
	Spec     alertRules `yaml:"spec"`
}

// alertRules is a file of rules for Prometheus.
type alertRules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

type ingress struct {
	typeMeta `yaml:",inline"`
	Metadata metadata `yaml:"metadata"`
	Spec     struct {
		IngressClassName string `yaml:"ingressClassName"`
		TLS              []struct {
			Hosts      []string `yaml:"hosts"`
			SecretName string   `yaml:"secretName"`
		} `yaml:"tls"`
		Rules []struct {
			Host string `yaml:"host"`
			HTTP struct {
				Paths []ingressPath `yaml:"paths"`
			} `yaml:"http"`
		} `yaml:"rules"`
	} `yaml:"spec"`
}

type ingressPath struct {
	Path     string `yaml:"path"`
	PathType string `yaml:"pathType"`
	Backend  struct {
		Service struct {
			Name string `yaml:"name"`
			Port struct {
				Name string `yaml:"name"`
			} `yaml:"port"`
		} `yaml:"service"`
	} `yaml:"backend"`
}

// sharedClaim is a PersistentVolumeClaim on its own.
type sharedClaim struct {
	typeMeta    `yaml:",inline"`
	volumeClaim `yaml:",inline"`
}

type volumeClaim struct {
	Metadata metadata `yaml:"metadata"`
	Spec     struct {
		AccessModes      []string  `yaml:"accessModes"`
		StorageClassName string    `yaml:"storageClassName"`
		Resources        resources `yaml:"resources"`
	} `yaml:"spec"`
}

type resources struct {
	Requests map[string]string `yaml:"requests"`
	Limits   map[string]string `yaml:"limits"`
}

type podSpec struct {
	ServiceAccountName            string              `yaml:"serviceAccountName"`
	AutomountServiceAccountToken  *bool               `yaml:"automountServiceAccountToken"`
	EnableServiceLinks            *bool               `yaml:"enableServiceLinks"`
	TerminationGracePeriodSeconds int                 `yaml:"terminationGracePeriodSeconds"`
	ImagePullSecrets              []map[string]string `yaml:"imagePullSecrets"`
	SecurityContext               podSecurity         `yaml:"securityContext"`
	Containers                    []container         `yaml:"containers"`
	Volumes                       []volume            `yaml:"volumes"`
	NodeSelector                  map[string]string   `yaml:"nodeSelector"`
	Tolerations                   []map[string]any    `yaml:"tolerations"`
	Affinity                      map[string]any      `yaml:"affinity"`
	TopologySpreadConstraints     []spread            `yaml:"topologySpreadConstraints"`
}

type spread struct {
	MaxSkew           int           `yaml:"maxSkew"`
	TopologyKey       string        `yaml:"topologyKey"`
	WhenUnsatisfiable string        `yaml:"whenUnsatisfiable"`
	LabelSelector     labelSelector `yaml:"labelSelector"`
}

type podSecurity struct {
	RunAsNonRoot        bool   `yaml:"runAsNonRoot"`
	RunAsUser           int    `yaml:"runAsUser"`
	RunAsGroup          int    `yaml:"runAsGroup"`
	FSGroup             int    `yaml:"fsGroup"`
	FSGroupChangePolicy string `yaml:"fsGroupChangePolicy"`
	SeccompProfile      struct {
		Type             string `yaml:"type"`
		LocalhostProfile string `yaml:"localhostProfile"`
	} `yaml:"seccompProfile"`
}

type container struct {
	Name            string   `yaml:"name"`
	Image           string   `yaml:"image"`
	ImagePullPolicy string   `yaml:"imagePullPolicy"`
	Args            []string `yaml:"args"`
	Env             []envVar `yaml:"env"`
	Ports           []port   `yaml:"ports"`
	StartupProbe    probe    `yaml:"startupProbe"`
	LivenessProbe   probe    `yaml:"livenessProbe"`
	ReadinessProbe  probe    `yaml:"readinessProbe"`
	Lifecycle       struct {
		PreStop struct {
			Exec struct {
				Command []string `yaml:"command"`
			} `yaml:"exec"`
		} `yaml:"preStop"`
	} `yaml:"lifecycle"`
	SecurityContext security      `yaml:"securityContext"`
	Resources       resources     `yaml:"resources"`
	VolumeMounts    []volumeMount `yaml:"volumeMounts"`
}

type envVar struct {
	Name      string `yaml:"name"`
	Value     string `yaml:"value"`
	ValueFrom *struct {
		SecretKeyRef struct {
			Name string `yaml:"name"`
			Key  string `yaml:"key"`
		} `yaml:"secretKeyRef"`
	} `yaml:"valueFrom"`
}

type port struct {
	Name          string `yaml:"name"`
	ContainerPort int    `yaml:"containerPort"`
	Port          any    `yaml:"port"` // a number, in a NetworkPolicy also a name
	TargetPort    string `yaml:"targetPort"`
	Protocol      string `yaml:"protocol"`
}

type probe struct {
	HTTPGet struct {
		Path string `yaml:"path"`
		Port string `yaml:"port"`
	} `yaml:"httpGet"`
	PeriodSeconds    int `yaml:"periodSeconds"`
	TimeoutSeconds   int `yaml:"timeoutSeconds"`
	FailureThreshold int `yaml:"failureThreshold"`
}

type security struct {
	AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
	ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
	Capabilities             struct {
		Drop []string `yaml:"drop"`
	} `yaml:"capabilities"`
}

type volumeMount struct {
	Name      string `yaml:"name"`
	MountPath string `yaml:"mountPath"`
	ReadOnly  bool   `yaml:"readOnly"`
}

type volume struct {
	Name     string `yaml:"name"`
	EmptyDir *struct {
		SizeLimit string `yaml:"sizeLimit"`
	} `yaml:"emptyDir"`
	ConfigMap *struct {
		Name string `yaml:"name"`
	} `yaml:"configMap"`
	Secret *struct {
		SecretName string `yaml:"secretName"`
	} `yaml:"secret"`
	PersistentVolumeClaim *struct {
		ClaimName string `yaml:"claimName"`
	} `yaml:"persistentVolumeClaim"`
}

type service struct {
	typeMeta `yaml:",inline"`
	Metadata metadata `yaml:"metadata"`
	Spec     struct {
		ClusterIP string            `yaml:"clusterIP"`
		Selector  map[string]string `yaml:"selector"`
		Ports     []port            `yaml:"ports"`
	} `yaml:"spec"`
}

type configMap struct {
	typeMeta `yaml:",inline"`
	Metadata metadata          `yaml:"metadata"`
	Data     map[string]string `yaml:"data"`
}

type serviceAccount struct {
	typeMeta                     `yaml:",inline"`
	Metadata                     metadata `yaml:"metadata"`
	AutomountServiceAccountToken *bool    `yaml:"automountServiceAccountToken"`
}

type networkPolicy struct {
	typeMeta `yaml:",inline"`
	Metadata metadata `yaml:"metadata"`
	Spec     struct {
		PodSelector labelSelector `yaml:"podSelector"`
		PolicyTypes []string      `yaml:"policyTypes"`
		Ingress     []networkRule `yaml:"ingress"`
		Egress      []networkRule `yaml:"egress"`
	} `yaml:"spec"`
}

type networkRule struct {
	Ports []port           `yaml:"ports"`
	From  []map[string]any `yaml:"from"`
	To    []map[string]any `yaml:"to"`
}
