package matmul

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/kernel/matmul/internal/variant"
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

// kernels are those of a device: each module is loaded on first use.
type kernels struct {
	on     *cuda.Context
	loaded atomic.Pointer[map[string]*cuda.Function] // by kernel; replaced, never changed
	plans  atomic.Pointer[map[planned]launch]        // of problems that were met; replaced, never changed

	mu      sync.Mutex // of loading
	modules map[string]*cuda.Module
	closed  bool
}

func newKernels(c *cuda.Context) *kernels {
	k := &kernels{on: c, modules: map[string]*cuda.Module{}}
	k.loaded.Store(&map[string]*cuda.Function{})
	k.plans.Store(&map[planned]launch{})
	return k
}

// planned is all that a plan depends on.
type planned struct {
	problem   Problem
	alignment alignment
}

// maxPlans is how many are kept: another one begins anew. To plan takes some microseconds and allocates names.
const maxPlans = 512

// plan is how a problem is computed. It allocates nothing for one that was met.
func (k *kernels) plan(p Problem, a alignment) (launch, error) {
	key := planned{p, a}
	if l, found := (*k.plans.Load())[key]; found {
		return l, nil
	}
	l, err := k.planAnew(p, a)
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

func (k *kernels) planAnew(p Problem, a alignment) (launch, error) {
	info := k.on.Info()
	have := 10*info.Compute.Major + info.Compute.Minor
	l, err := choose(p, a, processor{int64(info.Multiprocessors), have})
	if err != nil {
		return launch{}, err
	}
	if have < variants[l.variant].Capability {
		return launch{}, fmt.Errorf("%w: %v wants compute capability %d.%d, and the device has %d.%d", ErrUnsupported, p, variants[l.variant].Capability/10,
			variants[l.variant].Capability%10, info.Compute.Major, info.Compute.Minor)
	}
	return l, nil
}

// prepare loads the kernels of a product.
func (k *kernels) prepare(l launch, converts bool) error {
	if _, err := k.function(l.variant, l.kernel); err != nil {
		return err
	}
	if l.parts > 1 {
		sum := sumType(typeOf(l.variant))
		if _, err := k.function(vectorOf(sum), sumOf(sum)); err != nil {
			return err
		}
	}
	if converts {
		_, err := k.function(vectorOf(gemm.Float32), "narrow")
		return err
	}
	return nil
}

// typeOf is Float64 for the variants of that type.
func typeOf(name string) gemm.Type {
	if name == vectorOf(gemm.Float64) || strings.HasPrefix(name, "plain_f64") {
		return gemm.Float64
	}
	return gemm.Float32
}

// function is a loaded kernel.
func (k *kernels) function(name, kernel string) (*cuda.Function, error) {
	if f := (*k.loaded.Load())[kernel]; f != nil {
		return f, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if f := (*k.loaded.Load())[kernel]; f != nil {
		return f, nil
	}
	if k.closed {
		return nil, cuda.ErrNotOpen
	}
	module := k.modules[name]
	if module == nil {
		text, err := ptx(name)
		if err != nil {
			return nil, err
		}
		if module, err = k.on.LoadModule(text); err != nil {
			return nil, fmt.Errorf("matmul: %s: %w", name, err)
		}
		k.modules[name] = module
	}
	f, err := module.Function(kernel)
	if err != nil {
		return nil, err
	}
	const usual = 48 << 10 // of shared memory; for more a kernel is told
	if shared := variants[name].SharedBytes; shared > usual {
		if err := f.SetMaxSharedBytes(shared); err != nil {
			return nil, fmt.Errorf("matmul: %s: %w", name, err)
		}
	}
	now := maps.Clone(*k.loaded.Load())
	now[kernel] = f
	k.loaded.Store(&now)
	return f, nil
}

// ptx is the text of a variant.
func ptx(name string) ([]byte, error) {
	packed, err := compiled.ReadFile("ptx/" + name + ".ptx.gz")
	if err != nil {
		return nil, fmt.Errorf("matmul: %w", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("matmul: %s: %w", name, err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("matmul: %s: %w", name, err)
	}
	return append(text, 0), nil
}

func (k *kernels) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	var failed []error
	for name, m := range k.modules {
		if err := m.Unload(); err != nil {
			failed = append(failed, err)
			continue
		}
		delete(k.modules, name)
	}
	k.loaded.Store(&map[string]*cuda.Function{})
	return errors.Join(failed...)
}
