package attention

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/attention/internal/variant"
	"github.com/go-vram/vram/compute/kernel/internal/boxes"
	"github.com/go-vram/vram/compute/kernel/internal/packed"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

//go:embed ptx
var compiled embed.FS

// ErrUnsupported refuses attention on a device without the instructions for it: they need compute capability 8.0.
var ErrUnsupported = errors.New("attention: the device cannot compute this")

// Attention has the loaded kernels of a device. Make one with New.
type Attention struct {
	compiler        *kernel.Compiler
	capability      int  // 80 is 8.0
	groups          bool // warpgroups, and bulk copies of tensors
	multiprocessors int64
	variants        map[variant.Key]variant.Variant
	text            func(name string) (string, error) // of a variant

	maps   boxes.Cache
	loaded atomic.Pointer[map[string]*cuda.Function] // by kernel; replaced, never changed
	mu     sync.Mutex                                // of loading
}

// New returns the kernels for the device of a context, for all contexts of it. The compiler, which is of the same device, has
// their code, and is closed after the last call. New makes no driver call.
func New(c *cuda.Context, k *kernel.Compiler) *Attention {
	info := c.Info()
	a := &Attention{
		compiler: k, capability: 10*info.Compute.Major + info.Compute.Minor, multiprocessors: max(int64(info.Multiprocessors), 1),
		variants: map[variant.Key]variant.Variant{}, text: ptx, groups: info.Capabilities.Has(cudadrv.BulkTensors),
	}
	a.groups = a.groups && a.capability == variant.GroupCapability
	for _, v := range variant.All() {
		a.variants[v.Key] = v
	}
	a.loaded.Store(&map[string]*cuda.Function{})
	return a
}

// Prepare loads the kernels that a problem takes, with the backward pass if it is asked for. Nothing is computed. It
// blocks: a program that does not want to wait calls it from a goroutine. Errors: *ProblemError, ErrUnsupported, errors of
// kernel.Compiler.RawPTX.
func (a *Attention) Prepare(p Problem, backward bool) error {
	all, err := a.needs(p, backward)
	if err != nil {
		return err
	}
	for _, v := range all {
		for _, k := range v.Kernels() {
			if _, err := a.function(v, k, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// Needs lists the texts of the kernels that problems take, each once, for kernel.Compiler.WarmUp. Errors: *ProblemError,
// ErrUnsupported.
func (a *Attention) Needs(backward bool, problems ...Problem) ([]kernel.Need, error) {
	var all []kernel.Need
	listed := map[string]bool{}
	for _, p := range problems {
		variants, err := a.needs(p, backward)
		if err != nil {
			return nil, err
		}
		for _, v := range variants {
			if listed[v.Name] {
				continue
			}
			text, err := a.text(v.Name)
			if err != nil {
				return nil, err
			}
			listed[v.Name] = true
			all = append(all, kernel.Need{Text: text})
		}
	}
	return all, nil
}

// needs returns the variants for a problem, whatever its operands are.
func (a *Attention) needs(p Problem, backward bool) (all []variant.Variant, err error) {
	if a == nil {
		return nil, cuda.ErrNotOpen
	}
	if p, err = p.Check(); err != nil {
		return nil, err
	}
	passes := []variant.Pass{a.plan(p).pass}
	groups := a.groups && passes[0] == variant.Forward && p.PageRows == 0
	if groups {
		passes = append(passes, variant.GroupForward)
	}
	if backward {
		passes = append(passes, variant.Queries, variant.Keys)
	}
	if backward && groups {
		passes = append(passes, variant.GroupQueries, variant.GroupKeys)
	}
	for _, pass := range passes {
		v, err := a.variant(pass, p)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// variant returns the variant of a pass. Errors: ErrUnsupported.
func (a *Attention) variant(pass variant.Pass, p Problem) (variant.Variant, error) {
	if a.capability < variant.Capability {
		return variant.Variant{}, fmt.Errorf("%w: it needs compute capability 8.0, and the device has %d.%d", ErrUnsupported, a.capability/10, a.capability%10)
	}
	return a.variants[variant.Key{Pass: pass, Type: p.Type.String(), Dim: int(p.Dim)}], nil
}

// function returns a kernel of a variant. ahead: also where the compiler was made with kernel.Prepared.
func (a *Attention) function(v variant.Variant, entry string, ahead bool) (*cuda.Function, error) {
	if f := (*a.loaded.Load())[entry]; f != nil {
		return f, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if f := (*a.loaded.Load())[entry]; f != nil {
		return f, nil
	}
	text, err := a.text(v.Name)
	if err != nil {
		return nil, err
	}
	f, err := a.load(text, entry, ahead)
	if err != nil {
		return nil, fmt.Errorf("attention: %s: %w", entry, err)
	}
	const usual = 48 << 10 // of shared memory; more must be requested
	if v.SharedBytes > usual && entry == v.Name {
		if err := f.SetMaxSharedBytes(int64(v.SharedBytes)); err != nil {
			return nil, fmt.Errorf("attention: %s: %w", entry, err)
		}
	}
	now := maps.Clone(*a.loaded.Load())
	now[entry] = f
	a.loaded.Store(&now)
	return f, nil
}

// load takes a kernel from the compiler.
func (a *Attention) load(text, entry string, ahead bool) (*cuda.Function, error) {
	if ahead {
		return a.compiler.RawPTX(text, entry).Await(context.Background())
	}
	return a.compiler.Function(text, entry)
}

// ptx returns the text of a variant.
func ptx(name string) (string, error) {
	text, err := packed.Text(compiled, name)
	if err != nil {
		return "", fmt.Errorf("attention: %w", err)
	}
	return text, nil
}
