package limits

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	mps  = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
	hami = "CUDA_DEVICE_MEMORY_LIMIT"
	gib  = int64(1) << 30
	gpu  = "0000:3b:00.0"
)

// of has variables and files.
func of(variables map[string]string, files map[string]string) Surroundings {
	s := Surroundings{Variable: func(name string) (string, bool) { v, ok := variables[name]; return v, ok }}
	if files != nil {
		f := fstest.MapFS{}
		for name, text := range files {
			f[name] = &fstest.MapFile{Data: []byte(text)}
		}
		s.Files = f
	}
	return s
}

func TestLeast(t *testing.T) {
	t.Parallel()
	type texts = map[string]string
	const own, up, root = "sys/fs/cgroup/a/b/", "sys/fs/cgroup/a/", "sys/fs/cgroup/"
	in := func(files texts) texts { files["proc/self/cgroup"] = "0::/a/b\n"; return files }
	line := func(bytes string) string {
		return "drm/0000:03:00.0/vram0 1\nnvidia/" + gpu + "/vidmem " + bytes + "\n"
	}
	for name, c := range map[string]struct {
		variables, files texts
		device           Device
		want             Limit
	}{
		"nothing":                            {want: Limit{}},
		"MPS":                                {variables: texts{mps: "0=8G,1=10GB"}, device: Device{Ordinal: 1}, want: Limit{10 * gib, mps}},
		"MPS, another device":                {variables: texts{mps: "0=8G"}, device: Device{Ordinal: 1}},
		"MPS, two digits":                    {variables: texts{mps: "9=8G,10=9G,11=10G"}, device: Device{Ordinal: 10}, want: Limit{9 * gib, mps}},
		"MPS, a device twice":                {variables: texts{mps: "0=8G,0=4096,0=1T"}, want: Limit{4096, mps}},
		"MPS, each unit":                     {variables: texts{mps: "1=2K"}, device: Device{Ordinal: 1}, want: Limit{2 << 10, mps}},
		"MPS, spaces and lower case":         {variables: texts{mps: " 0 = 512mb , 1=1g"}, want: Limit{512 << 20, mps}},
		"MPS, 0 is the least":                {variables: texts{mps: "0=0", hami: "1g"}, want: Limit{0, mps}},
		"HAMi, of the device, blank":         {variables: texts{hami: "1g", hami + "_2": " "}, device: Device{Ordinal: 2}, want: Limit{gib, hami}},
		"MPS, 0":                             {variables: texts{mps: "0=0"}, want: Limit{0, mps}},
		"an empty variable":                  {variables: texts{mps: " ", hami: ""}},
		"HAMi":                               {variables: texts{hami: "3000m"}, device: Device{Ordinal: 7}, want: Limit{3000 << 20, hami}},
		"HAMi, of the device":                {variables: texts{hami: "1g", hami + "_2": "3g"}, device: Device{Ordinal: 2}, want: Limit{3 * gib, hami + "_2"}},
		"HAMi, of another device":            {variables: texts{hami: "1g", hami + "_2": "3g"}, device: Device{Ordinal: 1}, want: Limit{gib, hami}},
		"HAMi, 0 is none":                    {variables: texts{hami: "0"}},
		"the least of two variables":         {variables: texts{mps: "0=2G", hami: "1g"}, want: Limit{gib, hami}},
		"the first of two that are equal":    {variables: texts{mps: "0=1G", hami: "1g"}, want: Limit{gib, mps}},
		"dmem":                               {files: in(texts{own + "dmem.max": line("77")}), device: Device{PCI: gpu}, want: Limit{77, "/" + own + "dmem.max"}},
		"dmem, letters in upper case":        {files: in(texts{own + "dmem.max": line("77")}), device: Device{PCI: strings.ToUpper(gpu)}, want: Limit{77, "/" + own + "dmem.max"}},
		"dmem, max":                          {files: in(texts{own + "dmem.max": line("max")}), device: Device{PCI: gpu}},
		"dmem, another device":               {files: in(texts{own + "dmem.max": line("77")}), device: Device{PCI: "0000:3c:00.0"}},
		"dmem, an address that is not known": {files: in(texts{own + "dmem.max": line("77")})},
		"dmem, a group above is lower":       {files: in(texts{own + "dmem.max": line("77"), up + "dmem.max": line("7")}), device: Device{PCI: gpu}, want: Limit{7, "/" + up + "dmem.max"}},
		"dmem, of the root":                  {files: in(texts{root + "dmem.max": line("5")}), device: Device{PCI: gpu}, want: Limit{5, "/" + root + "dmem.max"}},
		"dmem, a region of drm":              {files: in(texts{own + "dmem.max": "drm/" + gpu + "/stolen 1\ndrm/" + gpu + "/vram0 77\n"}), device: Device{PCI: gpu}, want: Limit{77, "/" + own + "dmem.max"}},
		"dmem, a file in upper case":         {files: in(texts{own + "dmem.max": strings.ToUpper("nvidia/"+gpu+"/vidmem") + " 77\n"}), device: Device{PCI: gpu}, want: Limit{77, "/" + own + "dmem.max"}},
		"dmem, other regions of drm":         {files: in(texts{own + "dmem.max": "drm/" + gpu + "/vramx 1\ndrm/" + gpu + "/vram0/x 1\ndrm/" + gpu + "/vram12 77\n"}), device: Device{PCI: gpu}, want: Limit{77, "/" + own + "dmem.max"}},
		"dmem, the second region is less":    {files: in(texts{own + "dmem.max": "drm/" + gpu + "/vram0 76\ndrm/" + gpu + "/vram1 75\n"}), device: Device{PCI: gpu}, want: Limit{75, "/" + own + "dmem.max"}},
		"dmem, as long as a file may be":     {files: in(texts{own + "dmem.max": line("77") + strings.Repeat("\n", 64<<10-len(line("77")))}), device: Device{PCI: gpu}, want: Limit{77, "/" + own + "dmem.max"}},
		"dmem, three regions":                {files: in(texts{own + "dmem.max": "drm/" + gpu + "/vram0 77\ndrm/" + gpu + "/vram1 max\ndrm/" + gpu + "/vram2 76\n"}), device: Device{PCI: gpu}, want: Limit{76, "/" + own + "dmem.max"}},
		"dmem, the capacity":                 {files: in(texts{own + "dmem.max": line("max"), root + "dmem.capacity": line("66")}), device: Device{PCI: gpu}, want: Limit{66, "/" + root + "dmem.capacity"}},
		"dmem, a limit below the capacity":   {files: in(texts{own + "dmem.max": line("77"), root + "dmem.capacity": line("88")}), device: Device{PCI: gpu}, want: Limit{77, "/" + own + "dmem.max"}},
		"dmem, a capacity of a group":        {files: in(texts{own + "dmem.capacity": line("66")}), device: Device{PCI: gpu}},
		"dmem, a capacity of another device": {files: in(texts{root + "dmem.capacity": line("66")}), device: Device{PCI: "0000:3c:00.0"}},
		"no group is known":                  {files: texts{root + "dmem.max": line("5")}, device: Device{PCI: gpu}, want: Limit{5, "/" + root + "dmem.max"}},
		"groups of version 1 alone":          {files: texts{"proc/self/cgroup": "4:memory:/x\n", root + "dmem.max": line("5")}, device: Device{PCI: gpu}, want: Limit{5, "/" + root + "dmem.max"}},
		"groups of both versions":            {files: texts{"proc/self/cgroup": "4:memory:/x\n1:name=systemd:/\n0::/a/b\n", own + "dmem.max": line("5")}, device: Device{PCI: gpu}, want: Limit{5, "/" + own + "dmem.max"}},
		"a group that climbs":                {files: texts{"proc/self/cgroup": "0::/../../etc\n", "sys/fs/cgroup/etc/dmem.max": line("5")}, device: Device{PCI: gpu}, want: Limit{5, "/sys/fs/cgroup/etc/dmem.max"}},
		"memory of the host":                 {files: in(texts{up + "memory.max": "123\n"}), device: Device{PCI: gpu, HostMemory: true}, want: Limit{123, "/" + up + "memory.max"}},
		"memory of the host, max":            {files: in(texts{up + "memory.max": "max\n"}), device: Device{HostMemory: true}},
		"memory of its own":                  {files: in(texts{up + "memory.max": "123\n"}), device: Device{PCI: gpu}},
		"an empty file":                      {files: in(texts{own + "dmem.max": "", own + "memory.max": ""}), device: Device{PCI: gpu, HostMemory: true}},
		"a file of 64 KiB":                   {files: in(texts{own + "dmem.max": line("77") + strings.Repeat("\n", 64<<10-len(line("77")))}), device: Device{PCI: gpu}, want: Limit{77, "/" + own + "dmem.max"}},
		"a file and a variable":              {variables: texts{hami: "1g"}, files: in(texts{own + "dmem.max": line("77")}), device: Device{PCI: gpu}, want: Limit{77, "/" + own + "dmem.max"}},
		"a number over all":                  {files: in(texts{own + "dmem.max": line("9223372036854775807")}), device: Device{PCI: gpu}, want: Limit{mostBytes, "/" + own + "dmem.max"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			least, problems := of(c.variables, c.files).Least(c.device)
			assert.Equal(t, c.want, least)
			assert.Empty(t, problems)
		})
	}
}

// A number with a unit is refused from the first one over 2^62 on, also where the bytes would not fit into 64 bits.
func TestSizesAtTheirBounds(t *testing.T) {
	t.Parallel()
	for unit, shift := range map[string]int{"K": 10, "M": 20, "G": 30, "T": 40} {
		most := int64(mostBytes) >> shift
		for _, n := range []int64{most - 1, most, most + 1, 2 * most, 4 * most, 4*most + 1, 5 * most} {
			text := strconv.FormatInt(n, 10) + unit
			least, problems := of(map[string]string{hami: text}, nil).Least(Device{})
			if n <= most {
				assert.Equal(t, Limit{n << shift, hami}, least, text)
				assert.Empty(t, problems, text)
			} else {
				assert.Equal(t, Limit{}, least, text)
				assert.Len(t, problems, 1, text)
			}
		}
	}
}

// A source that cannot be read is a problem with its name, and the others count.
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"8G", "0", "=8G", "0=", "x=8G", "-1=8G", "0=-8G", "0=8X", "0=8GG", "0=G", "0=1.5G", "0=8G,", "0=9223372036854775808", "0=4294967297G", "0=1G;1=2G",
		"0=2G,1=x", "1=x,0=2G",
		"2147483648=1G",
	} {
		least, problems := of(map[string]string{mps: text, hami: "1g"}, nil).Least(Device{})
		assert.Equal(t, Limit{gib, hami}, least, text)
		require.Len(t, problems, 1, text)
		assert.Equal(t, mps, problems[0].Source)
		assert.ErrorContains(t, problems[0], mps+": want ")
	}
	for _, text := range []string{"g", "b", "gb", " b ", "1bb", "-1", "1 2", "0x10", "1e9", "max"} {
		_, problems := of(map[string]string{hami + "_0": text, hami: "1g"}, nil).Least(Device{})
		require.Len(t, problems, 1, text)
		assert.Equal(t, hami+"_0", problems[0].Source)
		assert.ErrorIs(t, problems[0], errSize)
	}
	const name = "sys/fs/cgroup/dmem.max"
	for _, text := range []string{"x", "-1", "1 2", "", "max 1", "18446744073709551616", strings.Repeat("9", 100)} {
		least, problems := of(map[string]string{hami: "1g"}, map[string]string{name: "nvidia/" + gpu + "/vidmem " + text}).Least(Device{PCI: gpu})
		assert.Equal(t, Limit{gib, hami}, least, text)
		require.Len(t, problems, 1, text)
		assert.Equal(t, "/"+name, problems[0].Source)
		assert.Less(t, len(problems[0].Error()), 160)
		assert.ErrorContains(t, problems[0], `"nvidia/`+gpu+"/vidmem", "it has the line")
	}
	_, problems := of(nil, map[string]string{name: strings.Repeat("\n", 64<<10+1)}).Least(Device{PCI: gpu})
	require.Len(t, problems, 1)
	assert.ErrorIs(t, problems[0], errLong)
	broken := of(nil, nil)
	broken.Files = denied{}
	_, problems = broken.Least(Device{PCI: gpu, HostMemory: true})
	require.Len(t, problems, 3)
	assert.ErrorIs(t, problems[1], fs.ErrPermission)
}

type denied struct{}

func (denied) Open(string) (fs.File, error) { return nil, fs.ErrPermission }

// A limit is in bounds, or there is a problem.
func FuzzLeast(f *testing.F) {
	f.Add("0=8G", "1g", "nvidia/"+gpu+"/vidmem 77", "0::/a")
	f.Add("0=8G,1=x", "3000m", "nvidia/"+gpu+"/vidmem max\n", "1:x:/\n0::/a/../b\n")
	f.Fuzz(func(t *testing.T, one, other, lines, group string) {
		s := of(map[string]string{mps: one, hami: other}, map[string]string{
			"proc/self/cgroup": group, "sys/fs/cgroup/dmem.max": lines, "sys/fs/cgroup/memory.max": strconv.Quote(lines),
		})
		least, problems := s.Least(Device{PCI: gpu, HostMemory: true})
		assert.GreaterOrEqual(t, least.Bytes, int64(0))
		assert.LessOrEqual(t, least.Bytes, int64(mostBytes))
		for _, p := range problems {
			assert.NotEmpty(t, p.Source)
			assert.NotNil(t, errors.Unwrap(p))
		}
	})
}

// counting is a file system that counts the files that are open.
type counting struct {
	fs.FS
	open, opened int
}

func (c *counting) Open(name string) (fs.File, error) {
	f, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	c.open++
	c.opened++
	return &countedFile{f, c}, nil
}

type countedFile struct {
	fs.File
	of *counting
}

func (f *countedFile) Close() error {
	f.of.open--
	return f.File.Close()
}

// Files are closed: they are read once a second for as long as a process lives. A list of groups that is too long is read as if it
// were not there, whatever it begins with.
func TestFilesAreClosed(t *testing.T) {
	t.Parallel()
	line := "nvidia/" + gpu + "/vidmem 77\n"
	long := strings.Repeat("\n", 64<<10)
	for group, want := range map[string]Limit{
		"0::/a\n":        {7, "/sys/fs/cgroup/a/dmem.max"},
		"0::/a\n" + long: {77, "/sys/fs/cgroup/dmem.max"},
	} {
		s := of(nil, map[string]string{
			"proc/self/cgroup": group, "sys/fs/cgroup/dmem.max": line, "sys/fs/cgroup/a/dmem.max": "nvidia/" + gpu + "/vidmem 7\n",
			"sys/fs/cgroup/dmem.capacity": long + "\n",
		})
		files := &counting{FS: s.Files}
		s.Files = files
		least, problems := s.Least(Device{PCI: gpu})
		assert.Equal(t, want, least)
		assert.Len(t, problems, 1, "the capacity")
		assert.Positive(t, files.opened)
		assert.Zero(t, files.open)
	}
}
