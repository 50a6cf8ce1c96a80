package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// A layer is a set of folders, each with all its subfolders, that do not import each other. A package imports packages of its
// own folder and of lower layers.
type layer struct {
	folders []string
	why     string // why it may not look further
}

// houseLayers returns the layers, the lowest first.
func houseLayers() []layer {
	return []layer{
		{
			[]string{"internal/recovered"},
			"every layer that recovers from a panic reports it",
		},
		{
			[]string{"internal/units"},
			"the format of a figure does not depend on its owner",
		},
		{
			[]string{"internal/pickle", "lab/plot"},
			"an encoder or a plot does not depend on the meaning of its values",
		},
		{
			[]string{"monitor/snapshot"},
			"a file format does not depend on the allocator",
		},
		{
			[]string{"internal/jsonform", "internal/watermark", "internal/region", "internal/limits", "internal/leaks", "internal/together"},
			"writing a value, keeping its maximum, marking a slow path, looking for goroutines and starting them do not depend on the owner",
		},
		{
			[]string{"compute/ptx"},
			"PTX is parsed, checked and executed without a device",
		},
		{
			[]string{"actors", "futures", "cudadrv", "internal/transcript", "internal/fakecuda"},
			"a foundation does not depend on the allocator, nor on another foundation",
		},
		{
			[]string{"internal/fakecublaslt", "internal/fakenvml"},
			"a fake of a library uses the compiler as the fake of the driver does, and does not depend on its callers",
		},
		{
			[]string{"internal/sizeclass", "internal/heap", "internal/pressure", "internal/pages", "internal/effect", "internal/memorymap", "internal/inventory"},
			"a data structure does not depend on its users",
		},
		{
			[]string{"batch"},
			"a plan has sizes, and does not depend on streams",
		},
		{
			[]string{"internal/fence"},
			"stream and pool use fences, which depend on neither",
		},
		{
			[]string{"internal/pool"},
			"the core of the pool decides; its actor performs",
		},
		{
			[]string{"pool"},
			"streams calls pool; for calls in the other direction pool declares an interface",
		},
		{
			[]string{"internal/stream"},
			"the core of a stream decides; its actor performs",
		},
		{
			[]string{"streams"},
			"a stream serves requests one by one; plans and public names are made above it",
		},
		{
			[]string{"lab/simulation"},
			"the simulation runs streams and pool from one seed, and only a program needs it",
		},
		{
			[]string{rootDir},
			"callers import the root; tools and programs are callers",
		},
		{
			[]string{"internal/recoveredtest", "internal/eachcall", "internal/launchlog", "internal/kept", "internal/acceptance"},
			"support for tests is imported by tests only",
		},
		{
			[]string{"vramtest", "host", "cuda", "monitor"},
			"support for callers' tests, host memory, work on streams and monitors use the root as callers do",
		},
		{
			[]string{"compute/tensor"},
			"tensors need memory and copies; operations that compute with them stand above",
		},
		{
			[]string{"cuda/sleep"},
			"sleeping memory is saved to host memory by copies on streams",
		},
		{
			[]string{"compute/kernel"},
			"kernels are chosen and compiled for operations, which are above",
		},
		{
			[]string{"compute/ops"},
			"operations compute on tensors by kernels; models that are made of them stand above",
		},
		{
			[]string{"bridge/gorgonia"},
			"a bridge to another module computes by operations; only programs need it",
		},
		{
			[]string{"fleet/ledger"},
			"a ledger keeps pairs, and does not depend on their meaning",
		},
		{
			[]string{"fleet/core"},
			"the core of a fleet decides; the fleet performs",
		},
		{
			[]string{"fleet"},
			"a fleet reserves through the interface for callers; only programs need it",
		},
		{
			[]string{"fleet/directory", "fleet/etcd", "fleet/internal/ledgertest"},
			"a ledger implements the fleet's interface",
		},
		{
			[]string{"internal/trace"},
			"the format of a trace does not depend on its users",
		},
		{
			[]string{"lab/analysis", "lab/baseline"},
			"the analysis of a trace, and its play without an allocator, do not depend on an allocator",
		},
		{
			[]string{"warm"},
			"a prediction is given to a device through the interface for callers",
		},
		{
			[]string{"monitor"},
			"a monitor uses the interface for callers; only programs need it",
		},
		{
			[]string{"lab/replay"},
			"replay is a caller like any other, and no program",
		},
		{
			[]string{"lab/bench", "lab/kernelbench", "lab/advice", "lab/compare"},
			"a benchmark is a caller like any other, and no program",
		},
		{
			[]string{"lab/bytecheck"},
			"the checker is a caller like any other, and no program",
		},
		{
			[]string{"lab/trial"},
			"tests of changed source are built and run for several programs",
		},
		{
			[]string{"cmd", "examples", "internal/archtest", "lab/planted", "lab/mutate", "lab/soak", "lab/browser", "lab/supply"},
			"nothing imports a program",
		},
	}
}

// berth finds a package's layer and its folder there: the innermost of several.
func berth(layers []layer, dir string) (level int, folder string, found bool) {
	for i, l := range layers {
		for _, f := range l.folders {
			if (dir == f || f != rootDir && within(dir, f)) && (!found || len(f) > len(folder)) {
				level, folder, found = i, f, true
			}
		}
	}
	return level, folder, found
}

func checkDirection(t *tree) []finding {
	layers := houseLayers()
	var found []finding
	lost := map[string]bool{}
	for _, s := range t.shipped() {
		level, folder, ok := berth(layers, s.dir)
		if !ok {
			if !lost[s.dir] {
				lost[s.dir] = true
				found = append(found, finding{s.dir, "the package has no place in the table of layers (houseLayers)"})
			}
			continue
		}
		imports := t.house(s)
		for _, dir := range slices.Sorted(maps.Keys(imports)) {
			theirLevel, theirFolder, ok := berth(layers, dir)
			if !ok || theirFolder == folder || theirLevel < level {
				continue // reported as a package without a place
			}
			found = append(found, finding{
				t.place(imports[dir]),
				fmt.Sprintf("%s imports %s, which is not below it: %s", called(s.dir), called(dir), layers[level].why),
			})
		}
	}
	return found
}

// called returns a package's name in a message.
func called(dir string) string {
	if dir == rootDir {
		return "the root"
	}
	return dir
}

// checkLaboratory finds imports of the laboratory in the product and its tests, which are one module.
func checkLaboratory(t *tree) []finding {
	const laboratory = "lab"
	var found []finding
	for _, s := range t.sources {
		if within(s.dir, laboratory) || within(s.dir, "cmd") || within(s.dir, "examples") {
			continue
		}
		for dir, place := range t.house(s) {
			if within(dir, laboratory) {
				found = append(found, finding{t.place(place), called(s.dir) + " imports " + dir})
			}
		}
	}
	return found
}

func checkRootWithoutGorgonia(t *tree) []finding {
	const driver = "cudadrv/gorgonia"
	chain := t.reach(rootDir, func(dir string) bool { return within(dir, driver) })
	var found []finding
	for _, dir := range slices.Sorted(maps.Keys(chain)) {
		if within(dir, driver) {
			found = append(found, finding{rootDir, "the root reaches " + driver + ": vram" + strings.Join(chain[dir], " > ")[1:]})
		}
	}
	return found
}

// confined is a dependency that only one folder may import.
type confined struct {
	importPath string // with all subpackages
	owner      string // "" for nobody
	why        string
	examples   []string // programs that show both
}

func confinements() []confined {
	return []confined{
		{"github.com/asynkron/protoactor-go", "actors", "actors wraps the framework, so that its traps are met once", nil},
		{"gorgonia.org/cu", "cudadrv/gorgonia", "cgo bindings are one driver among several", []string{"examples/gorgonia", "examples/port/old"}},
		{"github.com/ebitengine/purego", "cudadrv/dynamic", "loading libcuda is one driver among several", nil},
		{"github.com/x448/float16", "compute/tensor/half", "numbers of 16 bits are converted in one place", nil},
		{"golang.org/x/sync", "", "its packages lock a shared mutex", nil},
	}
}

func checkForeign(t *tree) []finding {
	var found []finding
	for _, s := range t.shipped() {
		for _, spec := range s.file.Imports {
			for _, c := range confinements() {
				if within(importPath(spec), c.importPath) && !c.allows(s.dir) {
					found = append(found, finding{t.place(spec), c.describe(s.dir)})
				}
			}
		}
	}
	return found
}

// allows reports whether a folder may import it.
func (c confined) allows(dir string) bool {
	return c.owner != "" && within(dir, c.owner) || slices.ContainsFunc(c.examples, func(program string) bool { return within(dir, program) })
}

func (c confined) describe(dir string) string {
	allowed := "only " + c.owner + " may"
	if c.owner == "" {
		allowed = "nobody may"
	}
	return fmt.Sprintf("%s imports %s, %s: %s", called(dir), c.importPath, allowed, c.why)
}

func checkCgo(t *tree) []finding {
	const tag = "gorgonia"
	var found []finding
	for _, s := range t.shipped() {
		i := slices.IndexFunc(s.file.Imports, func(spec *ast.ImportSpec) bool { return importPath(spec) == "C" })
		if i >= 0 && !needsTag(s.file, tag) {
			found = append(found, finding{t.place(s.file.Imports[i]), `import "C" in a file that is built without the tag ` + tag})
		}
	}
	return found
}
