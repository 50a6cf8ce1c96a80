package sim

import (
	"bytes"
	"errors"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var _ cudadrv.Kernels = (*Device)(nil)

// module is loaded PTX text.
type module struct {
	program   program
	functions map[string]*function
	variables map[string]*region
	drained   time.Duration // when all launches of its kernels so far have finished
	unloaded  bool          // graphs may still name its kernels

	executable Program // nil without an executor
}

// function is a kernel of a module.
type function struct {
	*kernelText
	id                 cudadrv.Function // 0 before ModuleGetFunction
	module             *module
	dynamicSharedBytes int // the most of a launch
	carveout           int
}

func (g *gpu) moduleNamed(c call.Call, m cudadrv.Module) (*module, error) {
	mod, ok := g.modules[m]
	if !ok {
		return nil, fail(c, cudadrv.InvalidHandle, "no module %#x", uint64(m))
	}
	return mod, nil
}

func (g *gpu) functionNamed(c call.Call, f cudadrv.Function) (*function, error) {
	fn, ok := g.functions[f]
	if !ok {
		return nil, fail(c, cudadrv.InvalidHandle, "no function %#x", uint64(f))
	}
	return fn, nil
}

// ModuleLoadData reads the declarations of PTX text, and takes memory for its variables.
func (d *Device) ModuleLoadData(image []byte) (cudadrv.Module, error) {
	const c = call.ModuleLoadData
	p, wrong := parse(image) // outside of the lock: a text may be long
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := d.enterWith(c, cudadrv.KernelLaunches); err != nil {
		return 0, err
	}
	if wrong != nil {
		return 0, fail(c, imageResult(wrong), "%v", wrong)
	}
	mod := &module{program: p, functions: map[string]*function{}, variables: map[string]*region{}}
	for name, bytes := range p.variables {
		r, err := g.allocate(c, bytes)
		if err != nil {
			return 0, errors.Join(err, g.forgetVariables(c, mod))
		}
		r.variable = true
		mod.variables[name] = r
	}
	for name, k := range p.kernels {
		mod.functions[name] = &function{kernelText: k, module: mod, dynamicSharedBytes: defaultSharedBytes, carveout: -1}
	}
	if err := g.loaded(c, image, mod); err != nil {
		return 0, errors.Join(err, g.forgetVariables(c, mod))
	}
	id := cudadrv.Module(g.driver.id(firstModule, &g.driver.modules))
	g.modules[id] = mod
	g.charge(c)
	return id, nil
}

// ModuleUnload ends a module and its functions. It is refused while launches of them have not finished; on hardware that is
// undefined.
func (d *Device) ModuleUnload(m cudadrv.Module) error {
	const c = call.ModuleUnload
	return d.do(c, cudadrv.KernelLaunches, func(g *gpu) error {
		mod, err := g.moduleNamed(c, m)
		if err != nil {
			return err
		}
		if mod.drained > g.time() {
			return fail(c, cudadrv.IllegalState, "launches of the module's kernels have not finished")
		}
		for _, fn := range mod.functions {
			delete(g.functions, fn.id)
		}
		mod.unloaded = true
		delete(g.modules, m)
		return g.forgetVariables(c, mod)
	})
}

// forgetVariables frees the memory of a module's variables.
func (g *gpu) forgetVariables(c call.Call, mod *module) (err error) {
	for _, r := range mod.variables {
		err = errors.Join(err, g.release(c, r))
	}
	return err
}

// ModuleGetFunction finds a kernel of the module's text.
func (d *Device) ModuleGetFunction(m cudadrv.Module, name string) (cudadrv.Function, error) {
	const c = call.ModuleGetFunction
	return value(d, c, cudadrv.KernelLaunches, func(g *gpu) (cudadrv.Function, error) {
		mod, err := g.moduleNamed(c, m)
		if err != nil {
			return 0, err
		}
		fn, ok := mod.functions[name]
		if name == "" {
			return 0, fail(c, cudadrv.InvalidValue, "no name")
		}
		if !ok {
			return 0, fail(c, cudadrv.NotFound, "no kernel %q", name)
		}
		if fn.id == 0 {
			fn.id = cudadrv.Function(g.driver.id(firstFunction, &g.driver.functions))
			g.functions[fn.id] = fn
		}
		return fn.id, nil
	})
}

// ModuleGetGlobal finds a variable that the module's text declares at its top and does not only announce.
func (d *Device) ModuleGetGlobal(m cudadrv.Module, name string) (cudadrv.Ptr, int64, error) {
	const c = call.ModuleGetGlobal
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := d.enterWith(c, cudadrv.KernelLaunches); err != nil {
		return 0, 0, err
	}
	mod, err := g.moduleNamed(c, m)
	if err != nil {
		return 0, 0, err
	}
	r, ok := mod.variables[name]
	if name == "" || mod.functions[name] != nil {
		return 0, 0, fail(c, cudadrv.InvalidValue, "%q is no name of a variable", name)
	}
	if !ok {
		return 0, 0, fail(c, cudadrv.NotFound, "no variable %q", name)
	}
	return r.start, r.bytes, nil
}

// linkedMark begins a linked text. The lines of the first text keep their numbers.
const linkedMark = "/* linked */ "

// LinkImages concatenates PTX texts under one header. The result is text that ModuleLoadData takes and LinkImages does not: as on hardware,
// linked images are not relocatable.
func (d *Device) LinkImages(images ...[]byte) ([]byte, error) {
	const c = call.LinkComplete
	return value(d, c, cudadrv.KernelLaunches, func(g *gpu) ([]byte, error) {
		if len(images) == 0 {
			return nil, fail(c, cudadrv.InvalidValue, "no images")
		}
		var texts []string
		for i, image := range images {
			if bytes.HasPrefix(image, []byte(linkedMark)) {
				return nil, &cudadrv.CallError{Func: "cuLinkAddData", Result: cudadrv.NoBinaryForGPU, Detail: "the image was linked"}
			}
			if _, err := parse(image); err != nil {
				return nil, fail(c, imageResult(err), "image %d: %v", i, err)
			}
			texts = append(texts, string(bytes.TrimRight(image, "\x00")))
		}
		linked := []byte(linkedMark + joined(texts))
		if _, err := parse(linked); err != nil {
			return nil, fail(c, imageResult(err), "%v", err)
		}
		g.charge(c)
		return linked, nil
	})
}
