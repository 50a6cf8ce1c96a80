package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// A layer is a set of folders, each with everything below it, that know nothing of each other. A
// package imports its own folder's packages and those of lower layers.
type layer struct {
	folders []string
	why     string // why it may not look further
}

// houseLayers is the house, from the ground up.
func houseLayers() []layer {
	return []layer{
		{
			[]string{"internal/recovered"},
			"whoever recovers from a panic reports it, from the ground up",
		},
		{
			[]string{"internal/units"},
			"how a figure is written does not depend on whose it is",
		},
		{
			[]string{"internal/pickle", "lab/plot"},
			"how a value is written or drawn does not depend on what it says",
		},
		{
			[]string{"monitor/snapshot"},
			"a format knows nothing of the memory that is shown in it",
		},
		{
			[]string{"internal/jsonform", "internal/watermark", "internal/region"},
			"how a value is written, its maximum kept or a slow path marked does not depend on whose it is",
		},
		{
			[]string{"compute/ptx"},
			"a text of PTX is read, checked and executed the same way, with or without a device",
		},
		{
			[]string{"actors", "futures", "cudadrv", "internal/transcript", "internal/fakecuda"},
			"a foundation knows nothing of the house, nor of the other foundations",
		},
		{
			[]string{"internal/fakecublaslt"},
			"a fake of a library stands on the fake of the driver, and knows nothing of those who call it",
		},
		{
			[]string{"internal/sizeclass", "internal/heap", "internal/pressure", "internal/pages", "internal/effect", "internal/memorymap", "internal/inventory"},
			"a data structure knows nothing of those who use it",
		},
		{
			[]string{"batch"},
			"a plan knows lengths, not the streams that carry it out",
		},
		{
			[]string{"internal/fence"},
			"fences serve stream and pool alike and know neither",
		},
		{
			[]string{"internal/pool"},
			"the books of the pool perform nothing; the actor around them does",
		},
		{
			[]string{"pool"},
			"streams speaks to pool; what the pool says upwards it declares as an interface of its own",
		},
		{
			[]string{"internal/stream"},
			"the books of a stream perform nothing; the actor around them does",
		},
		{
			[]string{"streams"},
			"a stream serves requests one by one; plans and public names are made above it",
		},
		{
			[]string{"lab/simulation"},
			"the simulation plays streams and pool from one seed, and only a program shows it",
		},
		{
			[]string{rootDir},
			"the root is what callers import: tools and programs stand on it, not under it",
		},
		{
			[]string{"internal/recoveredtest", "internal/eachcall", "internal/acceptance"},
			"a watcher of hidden panics, and what has driver calls fail, stand beside the tests and below none of the house",
		},
		{
			[]string{"vramtest", "host", "cuda", "monitor"},
			"tests of callers, memory of the host, work on streams and what shows figures stand on the root as callers do",
		},
		{
			[]string{"compute/tensor"},
			"tensors need memory and copies; operations that compute with them stand above",
		},
		{
			[]string{"cuda/sleep"},
			"memory that sleeps is saved on the host, behind work on streams",
		},
		{
			[]string{"compute/kernel"},
			"kernels are chosen and compiled for those who put them on streams, whatever they store",
		},
		{
			[]string{"compute/ops"},
			"operations compute on tensors by kernels; models that are made of them stand above",
		},
		{
			[]string{"internal/trace"},
			"a trace is read the same way whoever replays it",
		},
		{
			[]string{"lab/analysis"},
			"what a trace does does not depend on an allocator",
		},
		{
			[]string{"warm"},
			"what a program will need is told to the device as callers tell it",
		},
		{
			[]string{"monitor"},
			"a monitor shows a device to people as any caller can; nothing but programs needs it",
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
			[]string{"cmd", "examples", "internal/archtest", "lab/planted", "lab/soak", "lab/browser", "lab/supply"},
			"programs are the roof and know nothing of each other",
		},
	}
}

// berth finds a package's layer and the folder it belongs to there: of several the innermost.
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
				continue // a package without a place is found by itself
			}
			found = append(found, finding{
				t.place(imports[dir]),
				fmt.Sprintf("%s imports %s, which is not below it: %s", called(s.dir), called(dir), layers[level].why),
			})
		}
	}
	return found
}

// called is a package's name in a message.
func called(dir string) string {
	if dir == rootDir {
		return "the root"
	}
	return dir
}

// checkLaboratory finds imports of the laboratory in the product, its tests included: they are one module.
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

// confined is code of others that one folder of ours may import.
type confined struct {
	importPath string // with everything below it
	owner      string // "" for nobody
	why        string
	example    string // a program that shows both together; may be ""
}

func confinements() []confined {
	return []confined{
		{"github.com/asynkron/protoactor-go", "actors", "actors wraps the framework, so that its traps are met once", ""},
		{"gorgonia.org/cu", "cudadrv/gorgonia", "cgo bindings are one driver among several", "examples/gorgonia"},
		{"github.com/ebitengine/purego", "cudadrv/dynamic", "loading libcuda is one driver among several", ""},
		{"github.com/x448/float16", "compute/tensor/half", "numbers of 16 bits are converted in one place", ""},
		{"golang.org/x/sync", "", "its packages lock a shared mutex", ""},
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
	return c.owner != "" && within(dir, c.owner) || c.example != "" && within(dir, c.example)
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
