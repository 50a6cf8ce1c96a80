package kernel_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/futures"
)

// needs are kernels that add numbers, one a number.
func (r *rig) needs(count int) (all []kernel.Need) {
	r.Helper()
	l, err := layout.Of(64)
	require.NoError(r, err)
	for i := range count {
		k, err := r.kernels.Elementwise(expr.Input(0, tensor.Float32).Add(expr.Number(float64(i))))
		require.NoError(r, err)
		all = append(all, kernel.Need{Kernel: k, Layouts: []layout.Layout{l, l}})
	}
	return all
}

func TestAListIsPrepared(t *testing.T) {
	r := newRig(t, kernel.Prepared())
	needs := r.needs(6)
	needs = append(needs, needs[0], kernel.Need{}, kernel.Need{Kernel: needs[0].Kernel})
	var seen []kernel.Progress
	err := r.kernels.WarmUp(t.Context(), needs, func(p kernel.Progress) { seen = append(seen, p) })
	var failed *kernel.NeedError
	require.ErrorAs(t, err, &failed)
	require.ErrorIs(t, err, kernel.ErrNotOpen)
	var count *kernel.CountError
	require.ErrorAs(t, err, &count)
	origins, errors := map[kernel.Origin]int{}, 0
	for i, p := range seen {
		assert.Equal(t, [2]int{i + 1, 9}, [2]int{p.Done, p.Of})
		if p.Err != nil {
			errors++
			continue
		}
		origins[p.Origin]++
		assert.Positive(t, p.Took)
	}
	assert.Equal(t, 2, errors)
	assert.Equal(t, map[kernel.Origin]int{kernel.Compiled: 6, kernel.Known: 1}, origins)
	x, y := r.normal(1, 64), r.made(tensor.Float32, 64)
	for _, n := range needs[:7] {
		require.NoError(t, n.Kernel.Run(r.c, outs(y), x), "it is prepared")
	}
	stats := r.kernels.Stats()
	assert.Equal(t, [2]int64{6, 6}, [2]int64{stats.Misses, stats.Compiled})
	assert.Positive(t, stats.CompileTime)
	require.NoError(t, r.kernels.WarmUp(t.Context(), needs[:6], nil))
	assert.Equal(t, "known compiled stored Origin(9)", fmt.Sprint(kernel.Known, " ", kernel.Compiled, " ", kernel.Stored, " ", kernel.Origin(9)))
	text := stats.String()
	for _, part := range []string{"hits 0", "misses 6", "compiled 6 (", "stored 0 (0s)", "disqualified 0", "tuned 0 (0s)"} {
		if part != "hits 0" { // a need that is there twice may be asked for before or after the first is loaded
			assert.Contains(t, text, part)
		}
	}
	var none *kernel.Compiler
	require.ErrorIs(t, none.WarmUp(t.Context(), nil, nil), kernel.ErrNotOpen)
	require.ErrorIs(t, r.kernels.WarmUp(nil, nil, nil), cuda.ErrNilContext) //nolint:staticcheck // the test is about this
	_, err = needs[0].Kernel.PrepareFor().Await(t.Context())
	require.ErrorAs(t, err, &count)
}

// gate is a store whose Get waits.
type gate struct {
	inside, most atomic.Int64
	entered      chan struct{}
	open         chan struct{}
}

func (g *gate) Get(string) ([]byte, bool) {
	n := g.inside.Add(1)
	for {
		most := g.most.Load()
		if n <= most || g.most.CompareAndSwap(most, n) {
			break
		}
	}
	g.entered <- struct{}{}
	<-g.open
	g.inside.Add(-1)
	return nil, false
}

func (g *gate) Put(string, []byte) {}

// So many texts are compiled at a time as the compiler has threads: no fewer, and no more.
func TestThreadsOfTheCompiler(t *testing.T) {
	for _, threads := range []int{1, 3} {
		g := &gate{entered: make(chan struct{}, 10), open: make(chan struct{})}
		r := newRig(t, kernel.WithStore(g), kernel.Threads(threads))
		needs := r.needs(8)
		var all []futures.Future[*kernel.Kernel]
		for _, n := range needs {
			all = append(all, n.Kernel.PrepareFor(n.Layouts...))
		}
		assert.Equal(t, threads, r.kernels.Workers())
		for range threads {
			<-g.entered // they are inside together, or this waits for ever
		}
		close(g.open)
		for _, f := range all {
			_, err := f.Await(t.Context())
			require.NoError(t, err)
		}
		assert.Equal(t, int64(threads), g.most.Load())
		assert.Equal(t, int64(8), r.kernels.Stats().Compiled)
	}
}

// leaving is a store whose functions end their goroutine, as FailNow of a test does.
type leaving struct{ get, put bool }

func (l leaving) Get(string) ([]byte, bool) {
	if l.get {
		runtime.Goexit()
	}
	return nil, false
}

func (l leaving) Put(string, []byte) {
	if l.put {
		runtime.Goexit()
	}
}

// A store that ends a goroutine of the compiler fails the kernel that is compiled there. Others have an answer, too, and Close
// waits for none.
func TestAStoreThatEndsItsGoroutine(t *testing.T) {
	for _, store := range []leaving{{get: true}, {put: true}} {
		r := newRig(t, kernel.WithStore(store), kernel.Threads(2))
		needs := r.needs(5)
		var all []futures.Future[*kernel.Kernel]
		for _, n := range needs[:3] {
			all = append(all, n.Kernel.PrepareFor(n.Layouts...))
		}
		seen := 0
		err := r.kernels.WarmUp(t.Context(), needs[3:], func(p kernel.Progress) {
			assert.Error(t, p.Err)
			seen++
		})
		require.ErrorContains(t, err, "kernel: the work ended its goroutine")
		assert.Equal(t, 2, seen)
		for _, f := range all {
			_, err := f.Await(t.Context())
			require.ErrorContains(t, err, "kernel: the work ended its goroutine")
		}
		assert.EqualValues(t, 5, r.kernels.Stats().Failed)
		require.NoError(t, r.kernels.Close())
	}
}

// Where the context ends, texts that were not begun are not compiled.
func TestAWarmUpIsCancelled(t *testing.T) {
	g := &gate{entered: make(chan struct{}, 10), open: make(chan struct{})}
	r := newRig(t, kernel.WithStore(g), kernel.Threads(2))
	needs := r.needs(8)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.kernels.WarmUp(ctx, needs, nil) }()
	<-g.entered
	<-g.entered
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	close(g.open)
	_, err := needs[0].Kernel.PrepareFor(needs[0].Layouts...).Await(t.Context())
	require.NoError(t, err)
	assert.LessOrEqual(t, r.kernels.Stats().Misses, int64(2))
}

// asked is a store without entries: it tells which texts are asked for, and waits with each.
type asked struct{ texts, next chan string }

func (a asked) Get(text string) ([]byte, bool) {
	a.texts <- text
	<-a.next
	return nil, false
}

func (a asked) Put(string, []byte) {}

// soon receives from a channel.
func soon[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(time.Minute):
		require.FailNow(t, "nothing came")
	}
	return v
}

// A kernel that a caller waits for is compiled before the rest of a list that is warmed up; jobs of the list that wait when the
// compiler is closed end with ErrClosed.
func TestAPreparedKernelGoesBeforeAList(t *testing.T) {
	store := asked{make(chan string, 4), make(chan string, 4)}
	r := newRig(t, kernel.Threads(1), kernel.WithStore(store))
	defer close(store.next)
	needs := r.needs(4)
	warmed := make(chan error, 1)
	told := make(chan kernel.Progress, 3)
	go func() {
		warmed <- r.kernels.WarmUp(context.Background(), needs[:3], func(p kernel.Progress) { told <- p })
	}()
	texts := make([]string, 4)
	for i, n := range needs {
		var err error
		texts[i], err = n.Kernel.Text(n.Layouts...)
		require.NoError(t, err)
	}
	require.Equal(t, texts[0], soon(t, store.texts))
	prepared := needs[3].Kernel.PrepareFor(needs[3].Layouts...)
	store.next <- ""
	require.Equal(t, texts[3], soon(t, store.texts))
	store.next <- ""
	_, err := prepared.Await(t.Context())
	require.NoError(t, err)
	require.Equal(t, texts[1], soon(t, store.texts))
	closed := make(chan error, 1)
	go func() { closed <- r.kernels.Close() }()
	require.Equal(t, 0, soon(t, told).Need)
	require.Equal(t, 2, soon(t, told).Need, "it is refused while the one before it is compiled")
	store.next <- ""
	require.NoError(t, soon(t, closed))
	err = soon(t, warmed)
	var failed *kernel.NeedError
	require.ErrorAs(t, err, &failed)
	require.ErrorIs(t, err, kernel.ErrClosed)
	assert.Equal(t, 2, failed.Need)
}

// A list is refused by a compiler that is closed: each of it, in their order.
func TestAClosedCompilerWarmsNothingUp(t *testing.T) {
	r := newRig(t)
	needs := append(r.needs(2), kernel.Need{Text: double})
	require.NoError(t, r.kernels.Close())
	var seen []kernel.Progress
	err := r.kernels.WarmUp(t.Context(), needs, func(p kernel.Progress) { seen = append(seen, p) })
	require.ErrorIs(t, err, kernel.ErrClosed)
	require.Len(t, seen, 3)
	for i, p := range seen {
		assert.Equal(t, kernel.Progress{Done: i + 1, Of: 3, Need: i, Err: kernel.ErrClosed}, p)
	}
}

// A text that another caller compiles is done, or has failed, when that caller has it, and not before.
func TestAListWaitsForTextsOfOthers(t *testing.T) {
	for text, good := range map[string]bool{double: true, "nonsense": false} {
		store := &gate{entered: make(chan struct{}, 10), open: make(chan struct{})}
		r := newRig(t, kernel.WithStore(store), kernel.Threads(2))
		compiled := r.kernels.RawPTX(text, "twice")
		<-store.entered
		seen := make(chan kernel.Progress, 2)
		warmed := make(chan error, 1)
		go func() {
			// The second need fails at once: the worker has begun with the first one by then.
			warmed <- r.kernels.WarmUp(context.Background(), []kernel.Need{{Text: text}, {}}, func(p kernel.Progress) { seen <- p })
		}()
		assert.Equal(t, 1, soon(t, seen).Need)
		close(store.open)
		p := soon(t, seen)
		assert.Equal(t, kernel.Known, p.Origin)
		assert.Equal(t, good, p.Err == nil, "%s: %v", text, p.Err)
		require.Error(t, soon(t, warmed))
		_, err := compiled.Await(t.Context())
		assert.Equal(t, good, err == nil, "%s: %v", text, err)
	}
}

func TestStatsOfCode(t *testing.T) {
	r := newRig(t)
	for range 3 {
		_, err := r.kernels.RawPTX(double, "twice").Await(t.Context())
		require.NoError(t, err)
	}
	_, err := r.kernels.RawPTX("nonsense", "twice").Await(t.Context())
	require.Error(t, err)
	stats := r.kernels.Stats()
	assert.Equal(t, [4]int64{2, 2, 1, 1}, [4]int64{stats.Hits, stats.Misses, stats.Compiled, stats.Failed})
	stored := newRig(t, kernel.WithStore(lied(func(text string) (string, bool) { return text, true })))
	_, err = stored.kernels.RawPTX(double, "twice").Await(t.Context())
	require.NoError(t, err)
	stats = stored.kernels.Stats()
	assert.Equal(t, [2]int64{0, 1}, [2]int64{stats.Compiled, stats.Stored})
	assert.Positive(t, stats.LoadTime)
	assert.Zero(t, stats.CompileTime)
}

// A long text that is refused is shown where it is wrong.
func TestARefusedTextShowsItsLine(t *testing.T) {
	r := newRig(t)
	text := strings.Replace(double, "ld.param.u32 %r0, [n];", "ld.param.u32 %r0 [n];", 1)
	_, err := r.kernels.RawPTX(text, "twice").Await(t.Context())
	var refused *kernel.SourceError
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, err, cudadrv.InvalidPTX)
	assert.Contains(t, refused.Lines(), 10)
	assert.Contains(t, err.Error(), "10  \tld.param.u32 %r0 [n];")
	assert.NotContains(t, err.Error(), "st.global", "lines that have nothing to do with it")

	log := &cudadrv.CallError{Func: "cuModuleLoadDataEx", Result: cudadrv.InvalidPTX, Detail: "ptxas application ptx input, line 7; error   : Unknown symbol 'x'\nptxas fatal   : Ptx assembly aborted due to errors"}
	named := &kernel.SourceError{Source: double, Err: log}
	assert.Equal(t, []int{7}, named.Lines())
	assert.Contains(t, named.Error(), " 7  \t.reg .b32 %r<4>;\n")
	assert.NotContains(t, named.Error(), "ret;")
	beyond := &kernel.SourceError{Source: double, Err: &cudadrv.CallError{Detail: "line 99; error"}}
	assert.Contains(t, beyond.Error(), "ret;", "the driver's last line may be behind the end")
}

// A text that a kernel made is no exception; a lack of memory is no mistake of the text.
func TestARefusedKernelIsNamed(t *testing.T) {
	driver := fault.Wrap(launching(t))
	r := newRigOn(t, driver)
	k, err := r.kernels.Elementwise(fused())
	require.NoError(t, err)
	x, y, z := r.normal(1, 64), r.normal(2, 64), r.made(tensor.Float32, 64)
	for result, source := range map[cudadrv.Result]bool{cudadrv.InvalidPTX: true, cudadrv.OutOfMemory: false} {
		for name, call := range map[string]func() error{
			"Run":     func() error { return k.Run(r.c, outs(z), x, y) },
			"Prepare": func() error { _, err := k.Prepare(outs(z), x, y).Await(t.Context()); return err },
		} {
			require.NoError(t, driver.Add(fault.Rule{Func: "cuModuleLoadData", First: 1, Count: 1, Result: result}))
			err := call()
			require.ErrorIs(t, err, result, name)
			var refused *kernel.SourceError
			require.Equal(t, source, assert.ErrorAs(&ignored{}, err, &refused), name)
			if source {
				assert.Equal(t, k.String(), refused.Kernel)
				assert.Contains(t, err.Error(), k.String())
				assert.Contains(t, err.Error(), ".visible .entry vram_")
			}
			driver.Clear()
		}
	}
	require.NoError(t, k.Run(r.c, outs(z), x, y), "it is tried again")
}

// ignored is a test whose failures do not count.
type ignored struct{}

func (*ignored) Errorf(string, ...any) {}
