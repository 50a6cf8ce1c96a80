package kernel_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

const double = `.version 7.0
.target sm_70
.address_size 64
.visible .entry twice(.param .u64 x, .param .u32 n)
{
	.reg .pred %p;
	.reg .b32 %r<4>;
	.reg .b64 %d<3>;
	ld.param.u64 %d0, [x];
	ld.param.u32 %r0, [n];
	mov.u32 %r1, %tid.x;
	setp.ge.u32 %p, %r1, %r0;
	@%p ret;
	mul.wide.u32 %d1, %r1, 4;
	add.s64 %d2, %d0, %d1;
	ld.global.b32 %r2, [%d2];
	add.rn.f32 %r3, %r2, %r2;
	st.global.b32 [%d2], %r3;
	ret;
}
`

// twice launches the kernel.
func (r *rig) twice(f *cuda.Function) {
	r.Helper()
	x, err := tensor.From(r.c, []float32{1, 2, 3})
	require.NoError(r, err)
	at, err := x.InOut()
	require.NoError(r, err)
	require.NoError(r, r.c.Launch(f, cuda.Cover(3, 32), at, cuda.Value(uint32(3))))
	got, err := tensor.Read[float32](x)
	require.NoError(r, err)
	assert.Equal(r, []float32{2, 4, 6}, got)
	require.NoError(r, x.Free())
}

func TestRawPTX(t *testing.T) {
	r := newRig(t)
	f, err := r.kernels.RawPTX(double, "twice").Await(t.Context())
	require.NoError(t, err)
	r.twice(f)
	_, err = r.kernels.RawPTX(double, "thrice").Await(t.Context())
	require.ErrorIs(t, err, cudadrv.NotFound)

	_, err = r.kernels.RawPTX(".version 7.0\n.target sm_70\nnonsense\n", "f").Await(t.Context())
	var source *kernel.SourceError
	require.ErrorAs(t, err, &source)
	assert.Contains(t, err.Error(), "3  nonsense")
}

// A text with an instruction that the driver's compiler refuses is refused when it is loaded, with its line, and not when it is launched.
func TestRawPTXOfWrongForms(t *testing.T) {
	r := newRig(t)
	for _, wrong := range []string{
		"add.rz.u32 %r1, %r1, %r1;", "redux.sync.add.u32 %r1, %r1, 0xffffffff;", "wgmma.fence.sync.aligned;", "foo.u32 %r1;",
	} {
		_, err := r.kernels.RawPTX(".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry f()\n{ .reg .b32 %r<2>; mov.u32 %r1, 0;\n"+
			wrong+"\nret; }\n", "f").Await(t.Context())
		require.ErrorIs(t, err, cudadrv.InvalidPTX, wrong)
		var source *kernel.SourceError
		require.ErrorAs(t, err, &source, wrong)
		assert.Equal(t, []int{6}, source.Lines(), "%s: %v", wrong, err)
	}
}

// With Prepared a text is found for a launch where it was compiled ahead, and else refused; without, Function compiles it.
func TestFunctionsOfPreparedTexts(t *testing.T) {
	r := newRig(t, kernel.Prepared())
	_, err := r.kernels.Function(double, "twice")
	require.ErrorIs(t, err, kernel.ErrNotPrepared)
	var origins []kernel.Origin
	needs := []kernel.Need{{Text: double}, {Text: "nonsense"}}
	err = r.kernels.WarmUp(t.Context(), needs, func(p kernel.Progress) {
		if p.Need == 0 {
			origins = append(origins, p.Origin)
		}
	})
	var failed *kernel.NeedError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, 1, failed.Need)
	assert.Equal(t, []kernel.Origin{kernel.Compiled}, origins)
	f, err := r.kernels.Function(double, "twice")
	require.NoError(t, err)
	r.twice(f)
	_, err = r.kernels.Function(double, "thrice")
	require.ErrorIs(t, err, cudadrv.NotFound)
	_, err = (*kernel.Compiler)(nil).Function(double, "twice")
	require.ErrorIs(t, err, kernel.ErrNotOpen)

	other := newRig(t)
	f, err = other.kernels.Function(double, "twice")
	require.NoError(t, err)
	other.twice(f)
	require.NoError(t, other.c.Synchronize(t.Context()))
	require.NoError(t, other.kernels.Close())
	_, err = other.kernels.Function(double, "twice")
	require.ErrorIs(t, err, kernel.ErrClosed)
}

// shelf is a store for one goroutine.
type shelf map[string][]byte

func (s shelf) Get(text string) ([]byte, bool) { image, ok := s[text]; return image, ok }
func (s shelf) Put(text string, image []byte)  { s[text] = slices.Clone(image) }

// Text whose registers move between warps is compiled by loading it, and the store gets the text: an assembler that links ignores
// the instruction. A process that may not compile loads it from the store.
func TestTextThatMovesRegistersIsNotLinked(t *testing.T) {
	store := shelf{}
	r := newRig(t, kernel.WithStore(store))
	for range 2 {
		f, err := r.kernels.RawPTX(double+"// setmaxnreg", "twice").Await(t.Context())
		require.NoError(t, err)
		r.twice(f)
	}
	assert.Equal(t, int64(1), r.kernels.Stats().Compiled)
	assert.Equal(t, shelf{double + "// setmaxnreg": []byte(double + "// setmaxnreg")}, store)
	other := newRig(t, kernel.WithStore(store), kernel.Prepared())
	f, err := other.kernels.Function(double+"// setmaxnreg", "twice")
	require.NoError(t, err)
	other.twice(f)
	assert.Equal(t, int64(1), other.kernels.Stats().Stored)
}
