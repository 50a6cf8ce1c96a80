package matmul

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/internal/boxes"
	"github.com/go-vram/vram/compute/kernel/internal/packed"
	"github.com/go-vram/vram/compute/kernel/matmul/internal/variant"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv"
)

//go:embed ptx
var compiled embed.FS

// variants are the compiled sources by name.
var variants = byName() //nolint:gochecknoglobals // a constant table

func byName() map[string]variant.Variant {
	all := map[string]variant.Variant{}
	for _, v := range variant.All() {
		all[v.Name] = v
	}
	return all
}

// kernels are the kernels of a device: the text of each is compiled on first use.
type kernels struct {
	on     *cuda.Context
	device processor
	loaded atomic.Pointer[map[string]*cuda.Function] // by kernel; replaced, never changed
	plans  atomic.Pointer[map[planned]launch]        // of known problems; replaced, never changed

	maps boxes.Cache

	mu       sync.Mutex       // of loading
	compiler *kernel.Compiler // nil until an own one is needed
	owned    bool             // it is closed with the kernels
	closed   bool
}

func newKernels(c *cuda.Context, compiler *kernel.Compiler) *kernels {
	info := c.Info()
	k := &kernels{on: c, compiler: compiler, device: processor{
		int64(info.Multiprocessors), 10*info.Compute.Major + info.Compute.Minor, info.Capabilities.Has(cudadrv.BulkTensors),
	}}
	k.loaded.Store(&map[string]*cuda.Function{})
	k.plans.Store(&map[planned]launch{})
	return k
}

// planned is the key of a plan.
type planned struct {
	problem   Problem
	alignment alignment
}

// maxPlans is how many plans are kept: one more drops them all. Planning takes some microseconds and allocates names.
const maxPlans = 512

// plan returns the launch of a problem. It allocates nothing for a known one.
func (k *kernels) plan(p Problem, a alignment) (launch, error) {
	key := planned{p, a}
	if l, found := (*k.plans.Load())[key]; found {
		return l, nil
	}
	l, err := k.newPlan(p, a)
	if err != nil {
		return launch{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := map[planned]launch{}
	if old := *k.plans.Load(); len(old) < maxPlans {
		now = maps.Clone(old)
	}
	now[key] = l
	k.plans.Store(&now)
	return l, nil
}

func (k *kernels) newPlan(p Problem, a alignment) (launch, error) {
	l, err := choose(p, a, k.device)
	if err != nil {
		return launch{}, err
	}
	if have, want := k.device.capability, variants[l.variant].Capability; have < want {
		return launch{}, fmt.Errorf("%w: %v wants compute capability %d.%d, and the device has %d.%d", ErrUnsupported, p, want/10, want%10, have/10, have%10)
	}
	return l, nil
}

// used is the name of a kernel and the variant whose text has it.
type used struct{ variant, kernel string }

// kernelsOf returns the kernels of a product.
func kernelsOf(l launch, converts bool) [3]used {
	all := [3]used{{l.variant, l.kernel}}
	if l.parts > 1 {
		sum := sumType(typeOf(l.variant))
		all[1] = used{vectorOf(sum), sumOf(sum)}
	}
	if converts {
		all[2] = used{vectorOf(gemm.Float32), "narrow"}
	}
	if l.turnedBytes > 0 {
		all[2] = used{vectorOf(gemm.Float32), "turn"}
	}
	return all
}

// prepare loads the kernels of a product. ahead: also where the compiler was made with kernel.Prepared.
func (k *kernels) prepare(l launch, converts, ahead bool) error {
	for _, u := range kernelsOf(l, converts) {
		if u.kernel == "" {
			continue
		}
		if _, err := k.functionOf(u.variant, u.kernel, ahead); err != nil {
			return err
		}
	}
	return nil
}

// typeOf returns Float64 for variants of that type, else Float32.
func typeOf(name string) gemm.Type {
	if name == vectorOf(gemm.Float64) || strings.HasPrefix(name, "plain_f64") {
		return gemm.Float64
	}
	return gemm.Float32
}

// function returns a kernel for a launch.
func (k *kernels) function(name, kernel string) (*cuda.Function, error) {
	return k.functionOf(name, kernel, false)
}

// functionOf returns a kernel. The compiler loads it from its store, or compiles it.
func (k *kernels) functionOf(name, kernel string, ahead bool) (*cuda.Function, error) {
	if f := (*k.loaded.Load())[kernel]; f != nil {
		return f, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if f := (*k.loaded.Load())[kernel]; f != nil {
		return f, nil
	}
	f, err := k.compiled(name, kernel, ahead)
	if err != nil {
		return nil, err
	}
	const usual = 48 << 10 // of shared memory; more must be requested
	if shared := variants[name].SharedBytes; shared > usual {
		if err := f.SetMaxSharedBytes(int64(shared)); err != nil {
			return nil, fmt.Errorf("matmul: %s: %w", name, err)
		}
	}
	now := maps.Clone(*k.loaded.Load())
	now[kernel] = f
	k.loaded.Store(&now)
	return f, nil
}

// compiled asks the compiler for a kernel, under the mutex.
func (k *kernels) compiled(name, entry string, ahead bool) (f *cuda.Function, err error) {
	if k.closed {
		return nil, cuda.ErrNotOpen
	}
	text, err := ptx(name)
	if err != nil {
		return nil, err
	}
	if k.compiler == nil {
		if k.compiler, err = kernel.NewCompiler(k.on); err != nil {
			return nil, err
		}
		k.owned = true
	}
	if ahead {
		f, err = k.compiler.RawPTX(text, entry).Await(context.Background())
	} else {
		f, err = k.compiler.Function(text, entry)
	}
	if err != nil {
		return nil, fmt.Errorf("matmul: %s: %w", name, err)
	}
	return f, nil
}

// ptx returns the text of a variant.
func ptx(name string) (string, error) {
	text, err := packed.Text(compiled, name)
	if err != nil {
		return "", fmt.Errorf("matmul: %w", err)
	}
	return text, nil
}

func (k *kernels) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	k.loaded.Store(&map[string]*cuda.Function{})
	if !k.owned {
		return nil
	}
	return k.compiler.Close()
}
