package vramtest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/vramtest"
)

// A fault is read once: the test's failure has its text, and errors of calls refer to it.
func TestAFaultIsToldOnce(t *testing.T) {
	log := &sheet{}
	dev := vramtest.Open(log, vramtest.Kernels())
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(ptxOfCopy))
	require.NoError(t, err)
	f, err := m.Function("copy")
	require.NoError(t, err)
	from, to := buffer(t, c, 1024), buffer(t, c, 512)
	require.NoError(t, c.Fill32(cuda.Whole(from), 1))
	require.NoError(t, c.Launch(f, cuda.Cover(256, 256), cuda.Out(to), cuda.In(from), cuda.Value(uint32(129))))
	texts := make([]string, 0, 4)
	for range 2 {
		err = c.Synchronize(t.Context())
		require.ErrorContains(t, err, "CUDA_ERROR_ILLEGAL_ADDRESS: kernel copy: the test reports its fault")
		texts = append(texts, err.Error())
	}
	log.end()
	require.Len(t, log.failures, 1)
	assert.Equal(t, 1, strings.Count(strings.Join(append(texts, log.failures...), "\n"), "out of bounds"))
	assert.Contains(t, log.failures[0], "0 bytes past the end of the buffer of 512 bytes allocated at")
}

// The error of a call names the kernel once where the test expects faults.
func TestAnExpectedFaultNamesItsKernelOnce(t *testing.T) {
	_, c, f := kernels(t, vramtest.Kernels())
	x := buffer(t, c, 4)
	require.NoError(t, c.Launch(f, cuda.Cover(2, 2), cuda.Out(x), cuda.In(x), cuda.Value(uint32(2))))
	err := c.Synchronize(t.Context())
	require.Error(t, err)
	assert.Equal(t, 1, strings.Count(err.Error(), "kernel copy"), err.Error())
}

// ptxOfRace is two kernels with a race in global memory: in a buffer, and in a variable of the module.
const ptxOfRace = `.version 7.0
.target sm_70
.address_size 64
.global .u32 counter;
.visible .entry inbuffer(.param .u64 x) {
	.reg .b32 %r<3>; .reg .b64 %d<3>;
	ld.param.u64 %d1, [x];
	mov.u32 %r1, %tid.x;
	st.global.u32 [%d1+8], %r1;
	ret;
}
.visible .entry invariable() {
	.reg .b32 %r<3>;
	mov.u32 %r1, %tid.x;
	st.global.u32 [counter], %r1;
	ret;
}`

// A race names the buffer, as an access out of bounds does, or the variable.
func TestARaceNamesTheBuffer(t *testing.T) {
	for name, texts := range map[string][]string{
		"inbuffer":   {"byte 8 of the buffer of 64 bytes \"weights\" allocated at", "faults_test.go:"},
		"invariable": {"byte 0 of variable counter"},
	} {
		log := &sheet{}
		dev := vramtest.Open(log, vramtest.Kernels(), vramtest.Expected())
		c, err := cuda.NewContext(dev.Stream())
		require.NoError(t, err)
		m, err := c.LoadModule([]byte(ptxOfRace))
		require.NoError(t, err)
		f, err := m.Function(name)
		require.NoError(t, err)
		x, err := c.Stream().AllocFor(t.Context(), vram.Request{Bytes: 64, Tag: "weights"})
		require.NoError(t, err)
		if name == "inbuffer" {
			require.NoError(t, c.Launch(f, cuda.Cover(2, 2), cuda.Out(x)))
		} else {
			require.NoError(t, c.Launch(f, cuda.Cover(2, 2)))
		}
		require.Error(t, c.Synchronize(t.Context()))
		require.Len(t, dev.Faults(), 1)
		require.ErrorIs(t, dev.Faults()[0], interp.GlobalRace)
		for _, text := range texts {
			assert.Contains(t, dev.Faults()[0].Error(), text)
		}
		log.end()
	}
}
