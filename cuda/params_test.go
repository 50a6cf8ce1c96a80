package cuda

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

const paramText = `.version 7.0
.target sm_70
.address_size 64
// .entry one(.param .u64 x, .param .u64 y)
.visible .entry none() { ret; }
.visible .entry without { ret; }
.visible .entry two( // ), .param
	.param .u64 two_param_0, /* .param .u64 no, ) */
	.param .align 8 .b8 two_param_1[16]
)
.maxntid 128, 1, 1
{ .param .b64 in_the_body; ret; }
.weak .entry _Z3a$bPf(.param.u64 .ptr .global .align 4 p,.param .f32 q,.param .parameter_of_no_kind r)
{ ret; }
`

func TestCountsOfParametersInText(t *testing.T) {
	want := map[string]int{"one": 2, "none": 0, "without": 0, "two": 2, "_Z3a$bPf": 3}
	assert.Equal(t, want, paramCounts([]byte(paramText)))
	delete(want, "one")
	assert.Equal(t, want, paramCounts([]byte(paramText+".entry one(.param .u64 x) { ret; }\n")), "the comment says something else")
	assert.Empty(t, paramCounts([]byte(".entry cut(.param .u64 x")))
	assert.Empty(t, paramCounts([]byte(".entry")))
	assert.Empty(t, paramCounts(append([]byte{0x50, 0xed, 0x55, 0xba}, paramText...)))
}

// cubin is an ELF file with the attributes of kernels.
func cubin(kernels map[string][]byte) []byte {
	little := binary.LittleEndian
	names, data, sections := []byte{0}, make([]byte, 64), make([]byte, 64)
	add := func(name string, content []byte) {
		s := make([]byte, 64)
		little.PutUint32(s, uint32(len(names)))
		little.PutUint64(s[24:], uint64(len(data)))
		little.PutUint64(s[32:], uint64(len(content)))
		names, data, sections = append(append(names, name...), 0), append(data, content...), append(sections, s...)
	}
	for name, content := range kernels {
		add(".nv.info."+name, content)
	}
	add(".nv.info", []byte{4, 0x17, 0, 0})
	add(".shstrtab", nil)
	last := len(sections) - 64
	little.PutUint64(sections[last+24:], uint64(len(data)))
	little.PutUint64(sections[last+32:], uint64(len(names)))
	data = append(data, names...)
	copy(data, "\x7fELF\x02\x01\x01")
	little.PutUint64(data[40:], uint64(len(data)))
	little.PutUint16(data[60:], uint16(len(sections)/64))
	little.PutUint16(data[62:], uint16(last/64))
	return append(data, sections...)
}

func TestCountsOfParametersInCubins(t *testing.T) {
	info := []byte{4, 0x17, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x21, 0}
	size := func(n byte) []byte { return []byte{3, 0x19, n, 0} }
	image := cubin(map[string][]byte{
		"none":    size(0),
		"two":     append(append(append([]byte{1, 0x36, 0, 0}, info...), size(16)...), info...),
		"unknown": size(16), // as another version of the format may say it
		"cut":     append(append([]byte{}, info...), 4, 0x17, 12, 0, 1),
	})
	assert.Equal(t, map[string]int{"none": 0, "two": 2}, paramCounts(image))
	for n := range image {
		paramCounts(image[:n]) // a file that was cut off
	}
}

// The driver is asked for the parameters that there are, and for none beyond: that would be an error of the driver's.
func TestNoParameterIsAskedForThatIsNotThere(t *testing.T) {
	driver := fault.Wrap(sim.New(sim.Config{TimedKernels: true}))
	dev, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	c, err := NewContext(s)
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry none() { ret; }\n" +
		".visible .entry three(.param .u64 x, .param .u32 y, .param .f32 z) { ret; }\n"))
	require.NoError(t, err)
	for name, count := range map[string]int{"none": 0, "three": 3} {
		before := driver.Calls("cuFuncGetParamInfo")
		f, err := m.Function(name)
		require.NoError(t, err)
		assert.Equal(t, uint64(count), driver.Calls("cuFuncGetParamInfo")-before, name)
		err = c.Launch(f, Geometry{Grid: cudadrv.Dim3{X: 1}, Block: cudadrv.Dim3{X: 1}}, Value(uint64(1)))
		var wrong *ArgumentError
		require.ErrorAs(t, err, &wrong, "the arguments are held against them")
	}
	require.NoError(t, m.Unload())
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	require.NoError(t, dev.Close())
}
