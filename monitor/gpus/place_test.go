package gpus

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	id    = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	inner = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
	uid   = "6f1c2d3e-4a5b-6c7d-8e9f-0a1b2c3d4e5f"
	under = "6f1c2d3e_4a5b_6c7d_8e9f_0a1b2c3d4e5f"
)

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want Place
	}{
		"docker, systemd":                 {"0::/system.slice/docker-" + id + ".scope\n", Place{Runtime: "docker", Container: id}},
		"docker, cgroupfs":                {"0::/docker/" + id + "\n", Place{Runtime: "docker", Container: id}},
		"docker, version 1":               {"12:memory:/docker/" + id + "\n11:cpu,cpuacct:/docker/" + id + "\n1:name=systemd:/docker/" + id + "\n0::/system.slice/containerd.service\n", Place{Runtime: "docker", Container: id}},
		"docker, rootless":                {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/docker-" + id + ".scope\n", Place{Runtime: "docker", Container: id}},
		"containerd, systemd":             {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + under + ".slice/cri-containerd-" + id + ".scope\n", Place{"containerd", id, uid, ""}},
		"containerd, guaranteed":          {"0::/kubepods.slice/kubepods-pod" + under + ".slice/cri-containerd-" + id + ".scope", Place{"containerd", id, uid, ""}},
		"containerd, cgroupfs":            {"0::/kubepods/besteffort/pod" + uid + "/" + id + "\n", Place{"", id, uid, ""}},
		"containerd, version 1":           {"9:devices:/kubepods/burstable/pod" + uid + "/" + id + "\n", Place{"", id, uid, ""}},
		"containerd, a slice with colons": {"0::/system.slice/containerd.service/kubepods-burstable-pod" + under + ".slice:cri-containerd:" + id + "\n", Place{"containerd", id, uid, ""}},
		"cri-o":                           {"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + under + ".slice/crio-" + id + ".scope/container\n", Place{"cri-o", id, uid, ""}},
		"cri-o, cgroupfs":                 {"4:memory:/kubepods/besteffort/pod" + uid + "/crio-" + id + "\n", Place{"cri-o", id, uid, ""}},
		"cri-o, conmon":                   {"0::/kubepods.slice/kubepods-pod" + under + ".slice/crio-conmon-" + id + ".scope\n", Place{"cri-o", id, uid, ""}},
		"podman":                          {"0::/machine.slice/libpod-" + id + ".scope/container\n", Place{Runtime: "podman", Container: id}},
		"podman, rootless":                {"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope\n", Place{Runtime: "podman", Container: id}},
		"podman, cgroupfs":                {"0::/libpod_parent/libpod-" + id + "\n", Place{Runtime: "podman", Container: id}},
		"nerdctl":                         {"0::/system.slice/nerdctl-" + id + ".scope\n", Place{Runtime: "containerd", Container: id}},
		"a node in a container":           {"0::/docker/" + inner + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" + under + ".slice/cri-containerd-" + id + ".scope\n", Place{"containerd", id, uid, ""}},
		"a container in a container":      {"0::/docker/" + id + "/docker/" + inner + "\n", Place{Runtime: "docker", Container: id}},
		"a static pod":                    {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0123456789abcdef0123456789abcdef.slice/cri-containerd-" + id + ".scope", Place{"containerd", id, "0123456789abcdef0123456789abcdef", ""}},
		"a pod's own group":               {"0::/kubepods.slice/kubepods-pod" + under + ".slice\n", Place{Pod: uid}},
		"seen from a container":           {"0::/../cri-containerd-" + id + ".scope\n", Place{Runtime: "containerd", Container: id}},
		"a task of ECS":                   {"0::/ecs/0123456789abcdef0123456789abcdef/" + id + "\n", Place{Container: id}},
		"a service":                       {"0::/system.slice/ollama.service\n", Place{Unit: "ollama.service"}},
		"a session":                       {"0::/user.slice/user-1000.slice/session-3.scope\n", Place{Unit: "session-3.scope"}},
		"a service of a user":             {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service\n", Place{Unit: "jupyter.service"}},
		"a container, after a service":    {"1:name=systemd:/system.slice/ollama.service\n2:cpu:/kubepods/pod" + uid + "\n0::/docker/" + id + "\n", Place{Runtime: "docker", Container: id}},
		"a service, version 1":            {"5:cpuset:/\n1:name=systemd:/system.slice/ollama.service\n", Place{Unit: "ollama.service"}},
		"a unit with control characters":  {"0::/system.slice/a\x1b[31mb.service\n", Place{Unit: "a[31mb.service"}},
		"a container under a service":     {"0::/system.slice/podman.service/libpod-" + id + ".scope\n", Place{Runtime: "podman", Container: id}},
		"a group under a service":         {"0::/system.slice/ollama.service/worker\n", Place{Unit: "ollama.service"}},
		"a node in one with colons":       {"0::/system.slice:docker:" + inner + "/kubepods-pod" + under + ".slice/cri-containerd-" + id + ".scope\n", Place{"containerd", id, uid, ""}},
		"the root":                        {"0::/\n", Place{}},
		"an ID that is too short":         {"0::/docker/" + id[:63] + "\n", Place{}},
		"an ID in capitals":               {"0::/docker/" + strings.ToUpper(id) + "\n", Place{}},
		"a container's name for itself":   {"0::/docker/" + id + "/kubepods-evil.service\n", Place{Runtime: "docker", Container: id}},
		"no lines":                        {"", Place{}},
		"no path":                         {"0::\n7\n:\n", Place{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, placeOf(c.text))
		})
	}
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		title, comm string
		want        string
	}{
		"a path":             {"/opt/conda/bin/python3\x00-m\x00x\x00", "python3\n", "python3"},
		"a title":            {"vllm::worker 0\x00", "python3\n", "vllm::worker 0"},
		"no title":           {"", "kworker/0:1\n", "kworker/0:1"},
		"control characters": {"\x1b]0;x\x07evil\x00", "", "]0;xevil"},
		"no UTF-8":           {"a\xffb\x00", "", "ab"},
		"a long title":       {strings.Repeat("ä", 100), "", strings.Repeat("ä", 32)},
		"an odd long title":  {"x" + strings.Repeat("ä", 100), "", "x" + strings.Repeat("ä", 31)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Process{PID: 7}
			identify(fstest.MapFS{
				"proc/7/cmdline": {Data: []byte(c.title)}, "proc/7/comm": {Data: []byte(c.comm)}, "proc/7/cgroup": {Data: []byte("0::/a.service")},
			}, &p)
			assert.Equal(t, Process{PID: 7, Command: c.want, Place: Place{Unit: "a.service"}}, p)
		})
	}
	p := Process{PID: 7}
	identify(denied{}, &p)
	assert.Equal(t, Process{PID: 7}, p)
}

// opening is a file system that keeps the files that it has opened.
type opening struct {
	fs.FS

	files []fs.File
}

func (o *opening) Open(name string) (fs.File, error) {
	f, err := o.FS.Open(name)
	if err == nil {
		o.files = append(o.files, f)
	}
	return f, err
}

// Files of the operating system are read before they are closed, and each is closed.
func TestFilesAreReadAndClosed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "proc", "7"), 0o700))
	for name, text := range map[string]string{"cmdline": "", "comm": "python3\n", "cgroup": "0::/a.service"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "proc", "7", name), []byte(text), 0o600))
	}
	files, p := &opening{FS: os.DirFS(folder)}, Process{PID: 7}
	identify(files, &p)
	assert.Equal(t, Process{PID: 7, Command: "python3", Place: Place{Unit: "a.service"}}, p)
	assert.Len(t, files.files, 3)
	for _, f := range files.files {
		require.ErrorIs(t, f.Close(), fs.ErrClosed)
	}
}

type denied struct{}

func (denied) Open(string) (fs.File, error) { return nil, fs.ErrPermission }

// Each field of a place is printable and short, for any text.
func FuzzPlaceOf(f *testing.F) {
	f.Add("0::/docker/" + id + "\n4:memory:/kubepods/burstable/pod" + uid + "/" + id)
	f.Add("0::/system.slice/containerd.service/kubepods-burstable-pod" + under + ".slice:cri-containerd:" + id)
	f.Fuzz(func(t *testing.T, text string) {
		p := placeOf(text)
		for _, field := range []string{p.Runtime, p.Container, p.Pod, p.Unit} {
			assert.LessOrEqual(t, len(field), longestName)
			assert.Equal(t, printable(field, longestName), field)
		}
		_ = p.String()
	})
}

// Processes with most bytes come first, of the same bytes by their numbers, and of unknown bytes last.
func TestTheOrderOfProcesses(t *testing.T) {
	t.Parallel()
	all := []Process{{PID: 9}, {PID: 5, Bytes: 7, BytesKnown: true}, {PID: 2}, {PID: 4, Bytes: 7, BytesKnown: true, Instance: 1}, {PID: 4, Bytes: 7, BytesKnown: true}, {PID: 6, Bytes: 8, BytesKnown: true}, {PID: 1, BytesKnown: true}}
	sortProcesses(all)
	var order []int
	for _, p := range all {
		order = append(order, 10*p.PID+p.Instance)
	}
	assert.Equal(t, []int{60, 40, 41, 50, 10, 20, 90}, order)
}
