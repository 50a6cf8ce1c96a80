package mutate

import "strings"

// users has the other packages whose tests run for a package, cheap ones first. A folder stands for all packages in it that
// have no line of their own.
func users() map[string][]string {
	return map[string][]string{
		"actors":                  {"pool", "lab/simulation"},
		"batch":                   {"streams"},
		"futures":                 {"streams", "lab/simulation"},
		"internal/fence":          {"pool", "streams"},
		"internal/heap":           {"internal/pool/memory", "internal/pool/core", "internal/stream/core"},
		"internal/pages":          {"internal/stream/core", "internal/pool/core"},
		"internal/pickle":         {"monitor/snapshot"},
		"internal/pool/admission": {"internal/pool/core", "pool", "internal/acceptance", "lab/simulation"},
		"internal/pool/core":      {"pool", "internal/acceptance", "lab/simulation"},
		"internal/pool/memory":    {"internal/pool/core", "pool", "internal/acceptance", "lab/simulation"},
		"internal/pressure":       {"streams"},
		"internal/sizeclass":      {"internal/stream/core", "internal/stream/magazine"},
		"internal/stream":         {"internal/stream/core", "streams", "internal/acceptance", "lab/simulation"},
		"internal/stream/core":    {"streams", "internal/acceptance", "lab/simulation"},
		"internal/watermark":      {"internal/pool/memory"},
		"pool":                    {"streams", "internal/acceptance", "lab/simulation"},
		"streams":                 {"internal/acceptance", "lab/simulation"},
		".":                       {"internal/acceptance"},
		"cuda":                    {"cuda/share", "cuda/sleep", "compute/tensor", "compute/ops"},
		"cuda/gemm":               {"cuda/cublaslt"},
		"cuda/cublaslt":           {},
		"cuda/share":              {},
		"cuda/sleep":              {},
		"host":                    {"cuda/sleep"},
		"warm":                    {"internal/acceptance"},
		"internal/eachcall":       {"host", "cuda"},
		"cudadrv":                 {"cudadrv/sim", "cudadrv/fault"},
		"cudadrv/internal":        {"cudadrv/fault", "cudadrv/meter", "cudadrv/hazard"},
		"cudadrv/drivertest":      {"cudadrv/sim", "cudadrv/dynamic"},
		"cudadrv/sim":             {"streams", "cuda"},
		"compute/kernel":          {"compute/kernel", "compute/ops"},
		"compute/ptx":             {"compute/ptx/interp", "compute/kernel"},
		"compute/tensor":          {"compute/ops"},
	}
}

// Users returns the packages of this repository whose tests run for the package in a folder, without that package.
func Users(dir string) []string {
	table := users()
	for at := dir; ; {
		if of, ok := table[at]; ok {
			return without(of, dir)
		}
		i := strings.LastIndex(at, "/")
		if i < 0 {
			return nil
		}
		at = at[:i]
	}
}

func without(all []string, dir string) (rest []string) {
	for _, of := range all {
		if of != dir {
			rest = append(rest, of)
		}
	}
	return rest
}
