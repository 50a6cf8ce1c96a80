package main

import (
	"context"
	"reflect"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/attention"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/share"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/host"
	"github.com/go-vram/vram/monitor/gpus"
	"github.com/go-vram/vram/monitor/history"
	"github.com/go-vram/vram/monitor/metrics"
	"github.com/go-vram/vram/monitor/page"
)

// world has open values, on simulated devices.
type world struct {
	values []any
	ends   []func()
}

// kernelText has a kernel that does nothing, and a variable.
const kernelText = `.version 7.0
.target sm_70
.address_size 64
.global .b32 v;
.visible .entry k(.param .u64 x)
{
	ret;
}
`

// newWorld opens the values. A world that a test has spoiled is not used again.
func newWorld() *world {
	w := &world{}
	w.allocator()
	w.compute()
	return w
}

// add adds values.
func (w *world) add(values ...any) { w.values = append(w.values, values...) }

// allocator adds values of the root, and of the packages of its devices.
func (w *world) allocator() {
	ctx := context.Background()
	driver := newDriver()
	view := must(driver.Open(0))
	dev, set := must(vram.Open(vram.Config{Driver: driver})), must(vram.OpenAll(vram.Config{Driver: newDriver()}))
	recorder := must(history.Start(dev, history.Options{}))
	live := page.New(page.Options{}, dev)
	w.ends = append(w.ends, live.Close, func() { _ = dev.Close() }, func() { _ = set.Close() }, func() { _ = view.Close() })
	s, other := must(dev.NewStream()), must(dev.NewStream())
	tenant, b := must(dev.Tenant("tenant", vram.Quota{})), must(s.Alloc(1<<12))
	blocks := host.NewAligned()
	w.add(dev, set, s, tenant, must(dev.Reserve(ctx, 1<<21)), b, must(b.Use(other)), must(s.AllocBatchFor(ctx, vram.BatchRequest{Bytes: []int64{8, 8}})),
		vram.NewHandover[float32](s, other, 1), vram.Config{Driver: driver}, vram.Request{Bytes: 8, Tenant: tenant},
		vram.BatchRequest{Bytes: []int64{8}, Tenant: tenant}, driver, view, fault.Wrap(driver), hazard.Wrap(driver),
		futures.NewPromise[float32](nil), futures.Done[float32](1), recorder, live, metrics.New(dev), gpus.OnDemand(gpus.Config{}),
		blocks, must(blocks.Alloc(64, 0)), must(host.Pooled(host.NewAligned(), host.PoolConfig{})), must(host.NewPageLocked(view, host.PoolConfig{})),
		must(host.OfStream(s)))
}

// compute adds values of the packages that submit work.
func (w *world) compute() {
	c := must(cuda.Open(vram.Config{Driver: newDriver()}))
	w.ends = append(w.ends, func() { _ = c.Device().Close() })
	b, m := must(c.Alloc(1<<12)), must(c.LoadModule([]byte(kernelText)))
	f := must(m.Function("k"))
	x, y := must(tensor.Zeros(c, tensor.Float32, 4, 4)), expr.Input(0, tensor.Float32)
	compiler, o := must(kernel.NewCompiler(c)), must(ops.New(c))
	graph := must(c.Capture(func() error { return c.Launch(f, cuda.Cover(1), cuda.In(b)) }))
	w.add(c, m, f, must(m.Variable("v")), must(c.Record()), c.NewQueue(), must(c.NewPool()), graph, cuda.Whole(b), cuda.In(b),
		x, must(tensor.NewScope(c)), must(layout.Of(4, 4)), y, compiler, must(compiler.Elementwise(y.Neg())), attention.New(c, compiler), matmul.New(c),
		must(sleep.New(c, sleep.Options{})), o, o.Arithmetic, o.Comparisons, o.Activations, o.Makers, o.Reductions, o.Rows, o.Products, o.Gradients,
		o.Optimizers, o.Indexing, o.Randoms, o.Attentions)
	text := must(ptx.Parse(kernelText))
	w.add(must(plan.New(nil, y.Neg())), text, must(interp.Compile(text, "k")), ptx.NewKernel("k"))
	if memory, err := share.New(c, 1<<21); err == nil { // the simulated device has none
		w.add(memory)
	}
}

func newDriver() *cpu.Driver { return cpu.New(cpu.Config{TotalBytes: 1 << 28}) }

// must returns the value of a call that succeeds.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// close closes the devices.
func (w *world) close() {
	for _, end := range w.ends {
		end()
	}
}

// open returns an open value that is an argument of a type; the zero Value if there is none.
func (w *world) open(t reflect.Type) reflect.Value {
	if t.Kind() == reflect.Interface && (t.NumMethod() == 0 || t.Implements(reflect.TypeFor[error]()) || t == reflect.TypeFor[context.Context]()) {
		return reflect.Value{}
	}
	for _, v := range w.values {
		if of := reflect.TypeOf(v); of == t || t.Kind() == reflect.Interface && of.Implements(t) {
			return reflect.ValueOf(v)
		}
	}
	return reflect.Value{}
}
