package gpus

import (
	"regexp"
	"strings"
)

// Place is where a process runs, by its control groups. Empty fields are not known, or there is none.
type Place struct {
	Runtime   string `json:"runtime"`   // of the container: "docker", "containerd", "cri-o", "podman"; "": another, or not known
	Container string `json:"container"` // its ID, of 64 hexadecimal digits mostly
	Pod       string `json:"pod"`       // the UID of the pod of Kubernetes
	Unit      string `json:"unit"`      // of systemd: a service, or a scope, as a session has
}

// String returns the place in words, with the first twelve digits of the container's ID, as "pod 6f1c…, containerd 0123456789ab".
func (p Place) String() string {
	var parts []string
	if p.Pod != "" {
		parts = append(parts, "pod "+p.Pod)
	}
	if p.Container != "" {
		runtime := p.Runtime
		if runtime == "" {
			runtime = "container"
		}
		parts = append(parts, runtime+" "+p.Container[:min(12, len(p.Container))])
	}
	if len(parts) == 0 && p.Unit != "" {
		parts = append(parts, p.Unit)
	}
	return strings.Join(parts, ", ")
}

// The names of control groups that runtimes give. An ID has 64 hexadecimal digits, a pod's UID 32, with dashes or underscores.
var (
	// "docker-ID.scope", "cri-containerd-ID.scope", "crio-ID.scope", "libpod-ID.scope", and "crio-ID" of cgroupfs.
	namedContainer = regexp.MustCompile(`^(docker|cri-containerd|containerd|nerdctl|crio|libpod)-(?:conmon-)?([0-9a-f]{64})(?:\.scope)?$`)
	// "kubepods-burstable-podUID.slice:cri-containerd:ID": a slice's path with the driver cgroupfs.
	colonContainer = regexp.MustCompile(`^(.*):(docker|cri-containerd|crio|libpod):([0-9a-f]{64})$`)
	bareContainer  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	// "podUID", and "kubepods-burstable-podUID.slice", also with a prefix of the kubelet.
	pod  = regexp.MustCompile(`^(?:[a-z-]*kubepods(?:-burstable|-besteffort)?-)?pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?$`)
	unit = regexp.MustCompile(`^[^/]+\.(?:service|scope)$`)
)

// runtimeOf returns the runtime that gives such names.
func runtimeOf(prefix string) string {
	switch prefix {
	case "cri-containerd", "containerd", "nerdctl":
		return "containerd"
	case "crio":
		return "cri-o"
	case "libpod":
		return "podman"
	}
	return prefix
}

// placeOf reads the text of /proc/PID/cgroup, of either version: lines as "0::/PATH" and "4:memory:/PATH". The line that names a
// container, or else a pod, or else a unit, decides.
func placeOf(text string) (best Place) {
	rank := func(p Place) int {
		switch {
		case p.Container != "":
			return 3
		case p.Pod != "":
			return 2
		case p.Unit != "":
			return 1
		}
		return 0
	}
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(fields) != 3 {
			continue
		}
		if p := placeOfPath(fields[2]); rank(p) > rank(best) {
			best = p
		}
	}
	return best
}

// placeOfPath reads the path of a control group. The outermost container counts, since a container names the groups inside
// itself; of a pod, the first inside the pod.
func placeOfPath(path string) (p Place) {
	parent := ""
	for name := range strings.SplitSeq(path, "/") {
		if p.Pod == "" {
			if at := colonContainer.FindStringSubmatch(name); at != nil {
				if uid := podOf(at[1]); uid != "" {
					return Place{Runtime: runtimeOf(at[2]), Container: at[3], Pod: uid}
				}
			}
			if uid := podOf(name); uid != "" {
				p.Pod, p.Container, p.Runtime = uid, "", ""
			}
		}
		if p.Container == "" {
			if p.Runtime, p.Container = containerOf(name, parent); p.Container != "" {
				p.Unit = "" // of the container's manager
			}
		}
		if p.Container == "" && unit.MatchString(name) {
			p.Unit = printable(name, longestName)
		}
		parent = name
	}
	return p
}

// podOf returns the UID of a pod's group, with dashes.
func podOf(name string) string {
	if at := pod.FindStringSubmatch(name); at != nil {
		return strings.ReplaceAll(at[1], "_", "-")
	}
	return ""
}

// containerOf reads a group's name. The group above it names the runtime of an ID alone.
func containerOf(name, parent string) (runtime, id string) {
	if at := namedContainer.FindStringSubmatch(name); at != nil {
		return runtimeOf(at[1]), at[2]
	}
	if at := colonContainer.FindStringSubmatch(name); at != nil {
		return runtimeOf(at[2]), at[3]
	}
	if bareContainer.MatchString(name) {
		if parent == "docker" {
			return parent, name
		}
		return "", name
	}
	return "", ""
}
