package ptx_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
)

var update = flag.Bool("update", false, "write the golden texts and docs/ptx.md again")

// golden compares a text with a file of testdata, or writes the file.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test ./compute/ptx -update writes it")
	assert.Equal(t, string(want), text)
}

// add is c = a + b with a loop over the grid.
func add() *ptx.Kernel {
	k := ptx.NewKernel("add")
	a, b, c := k.Buffer("a"), k.Buffer("b"), k.Buffer("c")
	n := k.Value("n", ptx.U32)
	k.For(ptx.U32, k.Thread(), n, k.Threads(), func(i ptx.Operand) {
		x := k.Let("ld.global.f32", k.Element(a, i, 4))
		y := k.Let("ld.global.f32", k.Element(b, i, 4))
		k.Do("st.global.f32", k.Element(c, i, 4), k.Let("add.f32", x, y))
	})
	return k
}

// blockSum adds the numbers of a block into one of the output: shuffles in a warp, shared memory between warps.
func blockSum() *ptx.Kernel {
	k := ptx.NewKernel("blockSum")
	k.MaxThreads(1024)
	in, out := k.Buffer("in"), k.Buffer("out")
	partial := k.Shared("partial", ptx.F32, 32)
	sum := k.Let("ld.global.nc.f32", k.Element(in, k.Thread(), 4))
	warpSum := func() {
		for distance := int64(16); distance > 0; distance /= 2 {
			other := k.Let("shfl.sync.bfly.b32", sum, ptx.Integer(distance), ptx.Integer(31), ptx.Integer(-1))
			k.Do("add.f32", sum, sum, other)
		}
	}
	thread, lane := k.Special(ptx.TidX), k.Special(ptx.Laneid)
	warp := k.Let("shr.u32", thread, ptx.Integer(5))
	isFirstLane := k.Let("setp.eq.u32", lane, ptx.Integer(0))
	warpSum()
	k.If(isFirstLane, func() { k.Do("st.shared.f32", k.SharedElement(partial, warp), sum) })
	k.Sync()
	k.If(k.Let("setp.eq.u32", warp, ptx.Integer(0)), func() {
		warps := k.Let("shr.u32", k.Special(ptx.NtidX), ptx.Integer(5))
		k.Set(ptx.F32, sum, ptx.Float32(0))
		k.DoIf(k.Let("setp.lt.u32", lane, warps), "ld.shared.f32", sum, k.SharedElement(partial, lane))
		warpSum()
		k.DoIf(isFirstLane, "red.global.add.f32", k.At(out, 0), sum)
	})
	return k
}

// matrixStep is one tile of a product in bf16: asynchronous copies, ldmatrix, mma.
func matrixStep() *ptx.Kernel {
	k := ptx.NewKernel("matrixStep")
	a, c := k.Buffer("a"), k.Buffer("c")
	tile := k.DynamicShared("tile")
	lane := k.Special(ptx.Laneid)
	at := k.Let("mad.lo.u32", lane, ptx.Integer(16), k.Let("mov.u32", ptx.AddressOf(tile)))
	k.Do("cp.async.cg.shared.global", k.At(at, 0), k.Element(a, lane, 16), ptx.Integer(16))
	k.Do("cp.async.commit_group")
	k.Do("cp.async.wait_group", ptx.Integer(0))
	k.Sync()
	left := k.Let("ldmatrix.sync.aligned.m8n8.x4.shared.b16", k.At(at, 0))
	right := k.Let("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", k.At(at, 0))
	zero := k.Let("mov.f32", ptx.Float32(0))
	product := k.Let("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", left, right, ptx.Vector(zero, zero, zero, zero))
	k.Do("st.global.v4.f32", k.Element(c, lane, 16), product)
	return k
}

// dynamicReverse turns the elements of a block round, in shared memory that the launch sizes.
func dynamicReverse() *ptx.Kernel {
	k := ptx.NewKernel("dynamicReverse")
	data, tile := k.Buffer("data"), k.DynamicShared("tile")
	thread := k.Special(ptx.TidX)
	base := k.Let("mov.u32", ptx.AddressOf(tile))
	element := k.Element(data, thread, 4)
	k.Do("st.shared.b32", k.At(k.Let("mad.lo.u32", thread, ptx.Integer(4), base), 0), k.Let("ld.global.b32", element))
	k.Sync()
	last := k.Let("sub.u32", k.Special(ptx.NtidX), ptx.Integer(1))
	mirrored := k.Let("sub.u32", last, thread)
	k.Do("st.global.b32", element, k.Let("ld.shared.b32", k.At(k.Let("mad.lo.u32", mirrored, ptx.Integer(4), base), 0)))
	return k
}

// Kernels come out as the golden texts have them; these are read as the same trees.
func TestKernels(t *testing.T) {
	for name, kernels := range map[string][]*ptx.Kernel{
		"add": {add()}, "blocksum": {blockSum()}, "matrixstep": {matrixStep()}, "two": {matrixStep(), dynamicReverse()},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := ptx.Build(kernels...)
			require.NoError(t, err)
			golden(t, filepath.Join("built", name+".ptx"), m.String())
			again, err := ptx.Parse(m.String())
			require.NoError(t, err)
			require.NoError(t, ptx.Check(again))
			assert.Equal(t, m.String(), again.String())
		})
	}
}

// Kernels of one module share the memory that the launch sizes, and a kernel is built as often as one likes.
func TestKernelsShareDynamicMemory(t *testing.T) {
	k := dynamicReverse()
	m, err := ptx.Build(matrixStep(), k)
	require.NoError(t, err)
	require.Len(t, m.Variables, 1)
	for _, i := range instructions(m) {
		for _, o := range i.Operands {
			assert.True(t, o.Kind != ptx.OperandVariable || o.Variable == m.Variables[0], "%v", i)
		}
	}
	alone, err := k.Build()
	require.NoError(t, err)
	assert.NotSame(t, m.Variables[0], alone.Variables[0])
	assert.NotSame(t, m.Function("dynamicReverse").Code().Instructions[0], alone.Functions[0].Code().Instructions[0])
}

// The header names the oldest version and architecture that have the instructions.
func TestTheHeaderFollowsTheInstructions(t *testing.T) {
	for _, c := range []struct{ instruction, version, target string }{
		{"add.f32", "7.0", "sm_70"},
		{"min.NaN.f32", "7.0", "sm_80"},
		{"min.xorsign.abs.f32", "7.2", "sm_86"},
		{"add.bf16x2", "7.8", "sm_90"},
	} {
		k := ptx.NewKernel("k")
		x := k.Reg(map[bool]ptx.Type{true: ptx.B32, false: ptx.F32}[c.instruction == "add.bf16x2"])
		k.Let(c.instruction, x, x)
		m, err := k.Build()
		require.NoError(t, err)
		assert.Equal(t, c.version, m.Version.String(), c.instruction)
		assert.Equal(t, c.target, m.Target.String(), c.instruction)
	}
}

// An instruction of one architecture makes that the header's.
func TestTheHeaderFollowsAVariant(t *testing.T) {
	k := ptx.NewKernel("k")
	k.Do("wgmma.fence.sync.aligned")
	m, err := k.Build()
	require.NoError(t, err)
	assert.Equal(t, "8.0", m.Version.String())
	assert.Equal(t, "sm_90a", m.Target.String())
}

// Each mistake is reported with the line that made it, also where a method added the instruction.
func TestMistakesInKernels(t *testing.T) {
	other := ptx.NewKernel("other").Reg(ptx.F32)
	for name, c := range map[string]struct {
		build func(k *ptx.Kernel)
		want  string
	}{
		"type":           {func(k *ptx.Kernel) { k.Let("add.f32", k.Reg(ptx.F32), k.Reg(ptx.F64)) }, `add\.f32 %f1, %f0, %d0: operand 3, %d0, is a register of \.f64, which is no \.f32`},
		"name":           {func(k *ptx.Kernel) { k.Let("plus.f32", k.Reg(ptx.F32)) }, `plus\.f32 %r0, %f0: the instruction is not known`},
		"count":          {func(k *ptx.Kernel) { k.Let("add.f32", k.Reg(ptx.F32)) }, `2 operands, and 3 are expected`},
		"other kernel":   {func(k *ptx.Kernel) { k.Let("neg.f32", other) }, `operand 2, %f0, is no register of the function`},
		"no operand":     {func(k *ptx.Kernel) { k.Let("neg.f32", ptx.Operand{}) }, `operand 2, , is no \.f32`},
		"element":        {func(k *ptx.Kernel) { k.Element(k.Reg(ptx.F32), k.Reg(ptx.U32), 4) }, `add\.u64 %rd1, %f0, %rd0: operand 2`},
		"address":        {func(k *ptx.Kernel) { k.At(ptx.Integer(7), 0) }, `address 7 is no register`},
		"label":          {func(k *ptx.Kernel) { k.Branch(k.NewLabel()) }, `operand 1, \$L1, is no label of this body`},
		"label twice":    {func(k *ptx.Kernel) { l := k.NewLabel(); k.Place(l); k.Place(l) }, `label \$L1 is placed twice`},
		"no label":       {func(k *ptx.Kernel) { k.Place(ptx.Integer(7)) }, `7 is no label`},
		"no memory":      {func(k *ptx.Kernel) { k.Let("ld.shared.f32", ptx.MemoryOf(nil, 0)) }, `operand 2, \[0\], has no base`},
		"no variable":    {func(k *ptx.Kernel) { k.Let("mov.u32", ptx.AddressOf(nil)) }, `is no variable of the module or the function`},
		"other's array":  {func(k *ptx.Kernel) { k.SharedElement(ptx.NewKernel("x").Shared("s", ptx.F32, 1), k.Reg(ptx.U32)) }, `operand 2, s, is no variable of the module or the function`},
		"no array":       {func(k *ptx.Kernel) { k.SharedElement(nil, k.Reg(ptx.U32)) }, `there is no array`},
		"empty array":    {func(k *ptx.Kernel) { k.Shared("s", ptx.F32, 0) }, `shared memory s has 0 elements`},
		"float counter":  {func(k *ptx.Kernel) { k.For(ptx.F32, other, other, other, nil) }, `a counter of \.f32 is no integer`},
		"no predicate":   {func(k *ptx.Kernel) { k.If(k.Reg(ptx.U32), nil) }, `guard !%r0 is no predicate`},
		"kernel's name":  {func(k *ptx.Kernel) { k.Value("my value", ptx.U32) }, `"my value" is no name`},
		"special":        {func(k *ptx.Kernel) { k.Special(ptx.NoSpecial) }, `mov has no form`},
		"kind of result": {func(k *ptx.Kernel) { k.Let("st.global.f32", k.At(k.Reg(ptx.U64), 0)) }, `operand 1, %r0, is no address`},
	} {
		t.Run(name, func(t *testing.T) {
			k := ptx.NewKernel("k")
			c.build(k)
			m, err := k.Build()
			assert.Nil(t, m)
			require.Error(t, err)
			var finding *ptx.CheckError
			require.True(t, errors.As(err, &finding))
			_, file, _, _ := runtime.Caller(0)
			assert.Equal(t, file, finding.File)
			assert.Positive(t, finding.Line)
			assert.Regexp(t, regexp.MustCompile(`^ptx: \S+kernel_test\.go:\d+: k: .*`+c.want), err.Error())
		})
	}
}

// A kernel that is nil takes everything and has nothing, and Build reports it with its number.
func TestKernelsThatAreNil(t *testing.T) {
	var k *ptx.Kernel
	some := ptx.NewKernel("some")
	x, array := some.Reg(ptx.U32), some.Shared("array", ptx.F32, 1)
	for _, o := range []ptx.Operand{
		k.Reg(ptx.U32), k.Let("add.u32", x, x), k.NewLabel(), k.Value("x", ptx.U32), k.Buffer("x"), k.Special(ptx.TidX), k.Thread(), k.Threads(),
	} {
		assert.Equal(t, ptx.Operand{}, o)
	}
	assert.Nil(t, k.Shared("array", ptx.F32, 0))
	assert.Nil(t, k.DynamicShared("array"))
	k.Do("ret")
	k.DoIf(x, "ret")
	k.Set(ptx.U32, x, x)
	k.Place(x)
	k.Branch(x)
	k.BranchIf(x, x)
	k.If(x, func() {})
	k.For(ptx.U32, x, x, x, func(ptx.Operand) {})
	k.For(ptx.F32, x, x, x, nil)
	k.Sync()
	k.MaxThreads(1)
	k.Element(x, x, 4)
	k.SharedElement(array, x)
	k.SharedElement(nil, x)
	k.At(x, 0)
	m, err := k.Build()
	assert.Nil(t, m)
	require.EqualError(t, err, "ptx: kernel 0 is nil")
	m, err = ptx.Build(add(), nil, blockSum(), nil)
	assert.Nil(t, m)
	require.EqualError(t, err, "ptx: kernel 1 is nil\nptx: kernel 3 is nil")
}

// Instructions have their operands as they were in the call: the caller may change its own after it, and elements of vectors.
func TestAKernelKeepsItsOperands(t *testing.T) {
	text := func(change bool) string {
		k := ptx.NewKernel("k")
		out := k.Buffer("out")
		pair := k.Let("ld.global.v2.u32", k.At(out, 0))
		vector := ptx.Vector(pair.Elements[0], pair.Elements[1])
		operands := []ptx.Operand{k.Reg(ptx.U32), ptx.Integer(1)}
		stored := []ptx.Operand{k.At(out, 8), vector}
		k.Do("mov.u32", operands...)
		k.Do("st.global.v2.u32", stored...)
		k.DoIf(k.Let("setp.eq.u32", operands...), "mov.u32", operands...)
		if change {
			operands[1] = ptx.Integer(2)
			pair.Elements[0], vector.Elements[1] = pair.Elements[1], ptx.Integer(3)
			stored[0] = k.At(out, 0)
		}
		m, err := k.Build()
		require.NoError(t, err)
		return m.String()
	}
	assert.Equal(t, text(false), text(true))
}

// A kernel that NewKernel did not make lacks a name alone.
func TestAKernelOfItsZeroValue(t *testing.T) {
	var k ptx.Kernel
	k.Do("add.u32", k.Reg(ptx.U32), k.Thread(), ptx.Integer(1))
	_, err := k.Build()
	require.EqualError(t, err, `ptx: "" is no name`)
}

// Values of 16 bits are loaded and copied as bits.
func TestValuesOfSixteenBits(t *testing.T) {
	k := ptx.NewKernel("k")
	k.Set(ptx.F16, k.Reg(ptx.F16), k.Let("fma.rn.f16", k.Value("x", ptx.F16), k.Value("y", ptx.F16), k.Value("z", ptx.F16)))
	k.Set(ptx.BF16x2, k.Reg(ptx.BF16x2), k.Value("packed", ptx.BF16x2))
	_, err := k.Build()
	require.NoError(t, err)
}

// A loop or a condition without a body is an empty one.
func TestEmptyBodies(t *testing.T) {
	k := ptx.NewKernel("k")
	n := k.Value("n", ptx.U32)
	k.For(ptx.U32, ptx.Integer(0), n, ptx.Integer(1), nil)
	k.If(k.Let("setp.eq.u32", n, n), nil)
	_, err := k.Build()
	require.NoError(t, err)
}
