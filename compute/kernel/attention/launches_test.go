//go:build !gpu

package attention_test

import (
	"flag"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/attention"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/kept"
	"github.com/go-vram/vram/internal/launchlog"
)

var update = flag.Bool("update", false, "write testdata/launches.txt again")

// device opens a device of a driver.
func device(t *testing.T, driver cudadrv.Driver) *vram.Device {
	t.Helper()
	dev, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	return dev
}

// zero is an element of an operand that no kernel reads.
func zero() float64 { return 0 }

// operands makes the operands of both passes, of zeros.
func (r *rig) operands(p attention.Problem) *backward {
	r.Helper()
	p, err := p.Check()
	require.NoError(r, err)
	x := &forward{Problem: p}
	x.q = r.matrix(p.Type, p.Batch, p.Heads, p.Queries, p.Dim, true, zero)
	x.k = r.matrix(p.Type, p.Batch, p.KeyHeads, p.Keys, p.Dim, true, zero)
	x.v = r.matrix(p.Type, p.Batch, p.KeyHeads, p.Keys, p.Dim, true, zero)
	x.outputs(r, true)
	return r.backward(x, true)
}

// problems take each way through the package: few queries and many, keys in one part and in several, more and fewer rows than
// tiles have, and heads that share keys.
func problems() (all []attention.Problem) {
	for n, x := range [][5]int64{ // sequences, heads, heads of keys, queries, keys
		{1, 1, 1, 1, 1},
		{1, 1, 1, 1, 511},
		{1, 1, 1, 1, 512},
		{2, 4, 2, 16, 1100},
		{2, 8, 1, 8, 700},
		{1, 8, 1, 9, 300},
		{3, 2, 1, 32, 1024},
		{1, 1, 1, 64, 100},
		{1, 1, 1, 65, 64},
		{2, 2, 1, 128, 129},
		{1, 3, 3, 129, 256},
		{2, 4, 2, 257, 65},
		{1, 2, 2, 384, 385},
		{1, 1, 1, 70, 0},
		{1, 1, 1, 0, 70},
		{0, 1, 1, 5, 5},
	} {
		for _, dim := range []int64{64, 128} {
			all = append(all, attention.Problem{
				Batch: x[0], Heads: x[1], KeyHeads: x[2], Queries: x[3], Keys: x[4], Dim: dim, Type: types()[n%2], Causal: (n+int(dim/64))%2 == 0,
			})
		}
	}
	return all
}

// Each problem has the launches that testdata has for it, by warpgroups and without, on devices of many and few multiprocessors:
// a change of their number, geometry or kernels is seen.
func TestLaunches(t *testing.T) {
	const file = "testdata/launches.txt"
	driver, log := launchlog.New()
	r := newRigOn(t, device(t, driver))
	plain := r.withoutGroups()
	var text strings.Builder
	for _, p := range problems() {
		b := r.operands(p)
		for way, by := range []*rig{r, plain} {
			for _, multiprocessors := range []int64{132, 3} {
				attention.SetMultiprocessors(by.a, multiprocessors)
				log.Take()
				require.NoError(t, by.a.Forward(r.c, b.Problem, b.Operands), "%+v", p)
				require.NoError(t, r.c.Synchronize(t.Context()))
				forward := log.Take()
				require.NoError(t, by.a.Backward(r.c, b.Problem, b.Operands, b.Gradients), "%+v", p)
				require.NoError(t, r.c.Synchronize(t.Context()))
				fmt.Fprintf(&text, "%d sequences, %d heads of %d, %dx%d rows of %d, causal %t, warpgroups %t, %d multiprocessors: %s | %s\n",
					p.Batch, p.Heads, p.KeyHeads, p.Queries, p.Keys, p.Dim, p.Causal, way == 0, multiprocessors, forward, log.Take())
			}
		}
	}
	kept.Text(t, *update, file, text.String())
}

// Goroutines that prepare problems at the same time load each kernel once, as one of them does, and all have it.
func TestGoroutinesThatPrepare(t *testing.T) {
	all := problems()[4:6]
	loads := func(goroutines int) int64 {
		driver, _ := launchlog.New()
		faults := fault.Wrap(driver)
		var count atomic.Int64
		faults.SetBefore(func(function string) {
			if function == "cuModuleGetFunction" {
				count.Add(1)
			}
		})
		r := newRigOn(t, device(t, faults))
		var group sync.WaitGroup
		for n := range goroutines {
			group.Go(func() {
				for k := range all {
					assert.NoError(t, r.a.Prepare(all[(k+n*len(all)/goroutines)%len(all)], true))
				}
			})
		}
		group.Wait()
		return count.Load()
	}
	assert.Equal(t, loads(1), loads(3))
}

// Whichever call of the driver fails in the first run of a pass, or in a later one, the pass returns the driver's error; and it
// succeeds later.
func TestAFailedCallIsAnError(t *testing.T) {
	driver, _ := launchlog.New()
	faults := fault.Wrap(driver)
	r := newRigOn(t, device(t, faults))
	for name, x := range map[string]struct {
		groups bool
		p      attention.Problem
	}{
		"parts of keys": {true, attention.Problem{Batch: 1, Heads: 1, Queries: 1, Keys: 512, Dim: 64, Type: gemm.BFloat16}},
		"warpgroups":    {true, attention.Problem{Batch: 1, Heads: 2, KeyHeads: 1, Queries: 70, Keys: 70, Dim: 128, Type: gemm.Float16}},
		"small rows":    {true, attention.Problem{Batch: 1, Heads: 2, KeyHeads: 1, Queries: 70, Keys: 70, Dim: 64, Type: gemm.BFloat16, Causal: true}},
		"many queries":  {false, attention.Problem{Batch: 2, Heads: 1, Queries: 70, Keys: 70, Dim: 128, Type: gemm.Float16}},
	} {
		b := r.operands(x.p)
		for _, function := range []string{
			"cuLaunchKernel", "cuModuleLoadData", "cuModuleGetFunction", "cuFuncSetAttribute", "cuTensorMapEncodeTiled",
		} {
			for n, failed := uint64(1), true; failed; n++ {
				before := faults.Injected()
				k, err := kernel.NewCompiler(r.c)
				require.NoError(t, err)
				r.a = attention.New(r.c, k)
				attention.UseGroups(r.a, x.groups)
				require.NoError(t, faults.Add(fault.Rule{Func: function, First: n, Result: cudadrv.Unknown}))
				forward := r.a.Forward(r.c, b.Problem, b.Operands)
				inForward := faults.Injected() > before
				backward := r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients)
				faults.Clear()
				switch failed = faults.Injected() > before; {
				case inForward:
					require.ErrorIs(t, forward, cudadrv.Unknown, "%s, %s number %d", name, function, n)
				case failed:
					require.NoError(t, forward)
					require.ErrorIs(t, backward, cudadrv.Unknown, "%s, %s number %d", name, function, n)
				default:
					require.NoError(t, backward)
				}
				require.NoError(t, r.a.Forward(r.c, b.Problem, b.Operands), name)
				require.NoError(t, r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients), name)
				require.NoError(t, r.c.Synchronize(t.Context()))
				require.NoError(t, k.Close())
			}
		}
	}
}

// A problem of another type, or of another dimension, takes other kernels; one that is no problem takes none.
func TestNeeds(t *testing.T) {
	driver, log := launchlog.New()
	r := newRigOn(t, device(t, driver))
	p := attention.Problem{Batch: 1, Heads: 1, Queries: 70, Keys: 70, Dim: 64, Type: gemm.BFloat16}
	other := p
	other.Dim = 128
	few := p
	few.Queries = 1
	for _, x := range []struct {
		backward bool
		problems []attention.Problem
		want     int
	}{
		{false, []attention.Problem{p}, 2},
		{true, []attention.Problem{p}, 6},
		{true, []attention.Problem{p, p}, 6},
		{false, []attention.Problem{p, other}, 4},
		{false, []attention.Problem{few}, 1},
		{true, []attention.Problem{few}, 3},
		{true, nil, 0},
	} {
		needs, err := r.a.Needs(x.backward, x.problems...)
		require.NoError(t, err)
		assert.Len(t, needs, x.want, "%+v", x)
		for i, n := range needs {
			assert.NotEmpty(t, n.Text)
			for _, m := range needs[:i] {
				assert.NotEqual(t, m.Text, n.Text)
			}
		}
	}
	paged := p
	paged.PageRows, paged.Pages, paged.PagesPerSequence = 16, 5, 5
	needs, err := r.a.Needs(false, paged)
	require.NoError(t, err)
	assert.Len(t, needs, 1, "warpgroups take no table")
	p.Dim = 65
	var refused *attention.ProblemError
	_, err = r.a.Needs(true, few, p)
	require.ErrorAs(t, err, &refused)
	require.ErrorAs(t, r.a.Prepare(p, true), &refused)
	var none *attention.Attention
	_, err = none.Needs(true, few)
	require.ErrorIs(t, err, cuda.ErrNotOpen)
	assert.Empty(t, log.Take())
}

// Where there is no memory for parts, or for the numbers of rows, a pass is refused, and computed once there is.
func TestNoMemoryForAPass(t *testing.T) {
	for name, x := range map[string]struct {
		groups, backward bool
		p                attention.Problem
	}{
		"parts of keys":         {true, false, attention.Problem{Batch: 1, Heads: 64, Queries: 1, Keys: 512, Dim: 128, Type: gemm.BFloat16}},
		"numbers of warpgroups": {true, true, attention.Problem{Batch: 1, Heads: 64, Queries: 128, Keys: 70, Dim: 64, Type: gemm.Float16}},
		"sums of rows":          {false, true, attention.Problem{Batch: 64, Heads: 1, Queries: 128, Keys: 70, Dim: 64, Type: gemm.Float16}},
	} {
		driver, log := launchlog.New()
		dev, err := vram.Open(vram.Config{Driver: driver, LimitBytes: 64 << 20})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, dev.Close()) })
		r := newRigOn(t, dev)
		attention.UseGroups(r.a, x.groups)
		b := r.operands(x.p)
		pass := func() error { return r.a.Forward(r.c, b.Problem, b.Operands) }
		if x.backward {
			pass = func() error { return r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients) }
		}
		var all []cuda.Buffer
		for size := int64(32 << 20); size >= 512; size /= 2 {
			for {
				held, err := r.c.Alloc(size)
				if err != nil {
					break
				}
				all = append(all, held)
			}
		}
		var none *vram.OutOfMemoryError
		require.ErrorAs(t, pass(), &none, name)
		assert.Empty(t, log.Take(), name)
		for _, held := range all {
			require.NoError(t, held.Free())
		}
		require.NoError(t, pass(), name)
		require.NoError(t, r.c.Synchronize(t.Context()))
		assert.NotEmpty(t, log.Take(), name)
	}
}

// A device without the instructions refuses all, and says which it has.
func TestOlderDevices(t *testing.T) {
	driver, log := launchlog.New()
	r := newRigOn(t, device(t, driver))
	attention.UseGroups(r.a, false)
	attention.SetCapability(r.a, 75)
	for _, queries := range []int64{1, 100} {
		p := attention.Problem{Batch: 1, Heads: 1, Queries: queries, Keys: 70, Dim: 64, Type: gemm.BFloat16}
		b := r.operands(p)
		_, needs := r.a.Needs(true, p)
		for _, err := range []error{
			needs, r.a.Prepare(p, false), r.a.Forward(r.c, b.Problem, b.Operands), r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients),
		} {
			require.ErrorIs(t, err, attention.ErrUnsupported)
			require.ErrorContains(t, err, "the device has 7.5")
		}
	}
	assert.Empty(t, log.Take())
	attention.SetCapability(r.a, 80)
	require.NoError(t, r.a.Prepare(attention.Problem{Batch: 1, Heads: 1, Queries: 1, Keys: 70, Dim: 64, Type: gemm.BFloat16}, true))
}

// A kernel is read and loaded once.
func TestKernelsAreLoadedOnce(t *testing.T) {
	driver, _ := launchlog.New()
	r := newRigOn(t, device(t, driver))
	read := map[string]int{}
	attention.EditTexts(r.a, func(name, text string) string {
		read[name]++
		return text
	})
	b := r.operands(attention.Problem{Batch: 1, Heads: 1, Queries: 70, Keys: 70, Dim: 64, Type: gemm.BFloat16})
	for range 3 {
		require.NoError(t, r.a.Forward(r.c, b.Problem, b.Operands))
		require.NoError(t, r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients))
	}
	assert.Equal(t, map[string]int{"group_forward_bf16_64": 1, "group_queries_bf16_64": 2, "group_keys_bf16_64": 1}, read, "queries have two kernels")
	require.NoError(t, r.c.Synchronize(t.Context()))
}

// Prepare loads each kernel that a problem takes: no pass loads one later.
func TestPreparedKernelsAreLoaded(t *testing.T) {
	driver, _ := launchlog.New()
	for n, p := range problems() {
		if testing.Short() && n%3 > 0 {
			continue
		}
		r := newRigOn(t, device(t, driver))
		for _, by := range []*rig{r, r.withoutGroups()} {
			require.NoError(t, by.a.Prepare(p, true))
			attention.EditTexts(by.a, func(name, text string) string {
				assert.Fail(t, "loaded later", "%s of %+v", name, p)
				return text
			})
			b := r.operands(p)
			require.NoError(t, by.a.Forward(r.c, b.Problem, b.Operands))
			require.NoError(t, by.a.Backward(r.c, b.Problem, b.Operands, b.Gradients))
		}
		require.NoError(t, r.c.Synchronize(t.Context()))
	}
}

// Warpgroups take operands without offsets, lengths and tables, and of strides above 0; other kernels take the rest. Each change of
// one operand alone decides.
func TestWhichOperandsWarpgroupsTake(t *testing.T) {
	driver, log := launchlog.New()
	r := newRigOn(t, device(t, driver))
	for name, x := range map[string]struct {
		forward, backward bool // by warpgroups
		change            func(b *backward)
	}{
		"as they are":   {true, true, func(*backward) {}},
		"query offsets": {false, false, func(b *backward) { b.QueryOffsets, b.AllQueries = r.numbers(0, 70, 140), 140 }},
		"key offsets":   {false, false, func(b *backward) { b.KeyOffsets, b.AllKeys = r.numbers(0, 70, 140), 140 }},
		"key lengths":   {false, false, func(b *backward) { b.KeyLengths = r.numbers(70, 70) }},
		"a table": {false, false, func(b *backward) {
			b.Table, b.PageRows, b.Pages, b.PagesPerSequence = r.numbers(0, 0), 128, 1, 1
			b.Operands.K.At, b.Operands.V.At = b.Operands.Q.At, b.Operands.Q.At
		}},
		"one query for all":    {false, false, func(b *backward) { b.Operands.Q.Row = 0 }},
		"one head for all":     {false, false, func(b *backward) { b.Operands.K.Head = 0 }},
		"one sequence for all": {false, false, func(b *backward) { b.Operands.V.Batch = 0 }},
		"one gradient for all": {true, false, func(b *backward) { b.Gradients.O.Row = 0 }},
	} {
		b := r.operands(attention.Problem{Batch: 2, Heads: 2, KeyHeads: 2, Queries: 70, Keys: 70, Dim: 64, Type: gemm.BFloat16})
		x.change(b)
		log.Take()
		require.NoError(t, r.a.Forward(r.c, b.Problem, b.Operands), name)
		require.NoError(t, r.c.Synchronize(t.Context()))
		assert.Equal(t, x.forward, strings.HasPrefix(log.Take(), "group_forward"), "%s: forward", name)
		if b.KeyLengths != (cuda.Range{}) || b.Table != (cuda.Range{}) { // which have no backward pass
			continue
		}
		require.NoError(t, r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients), name)
		require.NoError(t, r.c.Synchronize(t.Context()))
		assert.Equal(t, x.backward, strings.Contains(log.Take(), "group_keys"), "%s: backward", name)
	}
	b := r.operands(attention.Problem{Batch: 1, Heads: 1, Queries: 70, Keys: 1, Dim: 64, Type: gemm.BFloat16})
	for _, m := range []*attention.Matrix{&b.Operands.Q, &b.Operands.K, &b.Operands.V, &b.Operands.O, &b.Gradients.O, &b.Gradients.K} {
		m.Batch, m.Head = 3, -5
	}
	b.Operands.K.Row, b.Operands.V.Row, b.Gradients.K.Row = 7, 0, math.MaxInt64
	require.NoError(t, r.a.Forward(r.c, b.Problem, b.Operands), "a stride of one may be any number")
	require.NoError(t, r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients))
	require.NoError(t, r.c.Synchronize(t.Context()))
	assert.Equal(t, 4, strings.Count(log.Take(), "group_"))
}

// A number of a problem has its bounds: each is allowed, and the next number is not.
func TestBoundsOfProblems(t *testing.T) {
	for _, x := range []struct {
		field       string
		least, most int64
		set         func(p *attention.Problem, n int64)
	}{
		{"Batch", 0, attention.MaxRows, func(p *attention.Problem, n int64) { p.Batch = n }},
		{"Heads", 1, 1 << 16, func(p *attention.Problem, n int64) { p.Heads, p.KeyHeads = n, 0 }},
		{"KeyHeads", 1, 4, func(p *attention.Problem, n int64) { p.Heads, p.KeyHeads = 4, n }},
		{"Queries", 0, attention.MaxRows, func(p *attention.Problem, n int64) { p.Queries = n }},
		{"Keys", 0, attention.MaxRows, func(p *attention.Problem, n int64) { p.Keys = n }},
		{"AllQueries", 0, attention.MaxRows, func(p *attention.Problem, n int64) { p.AllQueries = n }},
		{"AllKeys", 0, attention.MaxRows, func(p *attention.Problem, n int64) { p.AllKeys = n }},
		{"PageRows", 0, attention.MaxRows, func(p *attention.Problem, n int64) { p.PageRows, p.PagesPerSequence = n, 10 }},
		{"Pages", 0, math.MaxInt32, func(p *attention.Problem, n int64) { p.Pages = n }},
		{"PagesPerSequence", 0, math.MaxInt32, func(p *attention.Problem, n int64) { p.PagesPerSequence = n }},
	} {
		for n, allowed := range map[int64]bool{x.least - 1: false, x.least: true, x.most: true, x.most + 1: false} {
			if x.field == "KeyHeads" && n == 0 { // the default
				continue
			}
			p := attention.Problem{Batch: 1, Heads: 1, Queries: 5, Keys: 6, Dim: 64, Type: gemm.Float16}
			x.set(&p, n)
			_, err := p.Check()
			if allowed {
				require.NoError(t, err, "%s %d", x.field, n)
				continue
			}
			var refused *attention.ProblemError
			require.ErrorAs(t, err, &refused, "%s %d", x.field, n)
			assert.Equal(t, attention.ProblemError{Field: x.field, Value: n, Want: fmt.Sprintf("%d to %d", x.least, x.most)}, *refused)
		}
	}
	for scale, allowed := range map[float64]bool{
		0x1p-126: true, math.Nextafter(0x1p-126, 0): false, math.MaxFloat32: true, math.Nextafter(math.MaxFloat32, math.Inf(1)): false, -0x1p-126: false,
	} {
		p := attention.Problem{Batch: 1, Heads: 1, Queries: 5, Keys: 6, Dim: 64, Type: gemm.Float16, Scale: scale}
		_, err := p.Check()
		assert.Equal(t, allowed, err == nil, "%g: %v", scale, err)
	}
	p := attention.Problem{Batch: math.MaxInt32 / 2, Heads: 1, Queries: 15, Dim: 64, Type: gemm.Float16}
	p.Batch = attention.MaxRows
	p.Queries = 16 * 6
	_, err := p.Check()
	require.NoError(t, err, "7 blocks of each of 2^28 sequences")
	p.Queries = 16 * 7
	_, err = p.Check()
	require.ErrorContains(t, err, "less work than a grid has blocks")
	p.Queries, p.Keys = 1, 16*7
	_, err = p.Check()
	require.ErrorContains(t, err, "less work than a grid has blocks")
}

// Operands may touch each other, and not share a byte with one that is written.
func TestOperandsThatTouch(t *testing.T) {
	driver, _ := launchlog.New()
	r := newRigOn(t, device(t, driver))
	p := attention.Problem{Batch: 1, Heads: 1, Queries: 5, Keys: 5, Dim: 64, Type: gemm.Float16}
	const bytes = 5 * 64 * 2
	all, err := r.c.Alloc(5 * bytes)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, all.Free()) })
	at := func(offset int64) attention.Matrix {
		return attention.Matrix{At: cuda.Part(all, offset, bytes), Batch: 5 * 64, Head: 5 * 64, Row: 64}
	}
	for shared, allowed := range map[int64]bool{0: true, 16: false} {
		o := attention.Operands{Q: at(0), K: at(2*bytes - shared), V: at(3 * bytes), O: at(bytes)}
		err := r.a.Forward(r.c, p, o)
		assert.Equal(t, allowed, err == nil, "%v", err)
		if !allowed {
			require.ErrorIs(t, err, cuda.ErrOverlap)
		}
		o = attention.Operands{Q: at(0), K: at(2 * bytes), V: at(3 * bytes), O: at(bytes - shared)}
		err = r.a.Forward(r.c, p, o)
		assert.Equal(t, allowed, err == nil, "%v", err)
	}
	require.NoError(t, r.c.Synchronize(t.Context()))
}

// Gradients of keys and values may lie in one range as long as they share no element, wherever the one begins after the other.
func TestGradientsThatAlternate(t *testing.T) {
	driver, _ := launchlog.New()
	r := newRigOn(t, device(t, driver))
	const dim, heads, rows = 64, 2, 3
	accepted := 0
	b := r.operands(attention.Problem{Batch: 1, Heads: heads, Queries: rows, Keys: rows, Dim: dim, Type: gemm.Float16})
	buffer, err := r.c.Alloc(1 << 14)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, buffer.Free()) })
	for _, stride := range [][2]int64{{rows * dim, dim}, {3 * dim, 3 * heads * dim}, {2 * dim, 2 * heads * dim}, {rows * 2 * dim, 2 * dim}, {dim, heads * dim}} {
		elements := func(from int64) map[int64]bool {
			all := map[int64]bool{}
			for i := range int64(heads * rows * dim) {
				all[from+i/(rows*dim)*stride[0]+i/dim%rows*stride[1]+i%dim] = true
			}
			return all
		}
		begin := func(from int64) attention.Matrix {
			return attention.Matrix{At: cuda.Part(buffer, 2*from, 2*((heads-1)*stride[0]+(rows-1)*stride[1]+dim)), Head: stride[0], Row: stride[1]}
		}
		keys := elements(0)
		for shift := int64(0); shift <= 1000; shift += dim / 2 {
			apart := true
			for at := range elements(shift) {
				apart = apart && !keys[at]
			}
			for first, second := range map[int64]int64{0: shift, shift: 0} {
				g := b.Gradients
				g.K, g.V = begin(first), begin(second)
				switch err := r.a.Backward(r.c, b.Problem, b.Operands, g); {
				case !apart:
					require.ErrorIs(t, err, cuda.ErrOverlap, "%v, %d", stride, shift)
					require.ErrorContains(t, err, "attention: gradient of V is written and shares memory with gradient of K", "%v, %d", stride, shift)
				case shift < min(stride[0], stride[1]): // further apart some that share no element are refused, too
					require.NoError(t, err, "%v, %d", stride, shift)
					accepted++
				}
			}
		}
	}
	assert.Equal(t, 2*5, accepted)
	require.NoError(t, r.c.Synchronize(t.Context()))
}
