package mutate

import "strings"

// users has the other packages whose tests run for a package, cheap ones first. A folder stands for all packages in it that
// have no line of their own.
func users() map[string][]string {
	return map[string][]string{
		"actors":                            {"pool", "lab/simulation"},
		"batch":                             {"streams"},
		"futures":                           {"streams", "lab/simulation"},
		"internal/effect":                   {"internal/pool/core", "pool", "streams"},
		"internal/fence":                    {"pool", "streams"},
		"internal/fence/line":               {"internal/fence", "internal/stream/core", "internal/stream/magazine", "streams"},
		"internal/heap":                     {"internal/pool/memory", "internal/pool/core", "internal/stream/core"},
		"internal/inventory":                {"pool", "streams", "internal/acceptance"},
		"internal/limits":                   {"."},
		"internal/memorymap":                {"monitor/history", "internal/stream/core", "streams"},
		"internal/jsonform":                 {"monitor/history", "internal/stream/magazine", "pool", "streams", "cuda"},
		"internal/pages":                    {"internal/stream/core", "internal/pool/core"},
		"internal/pickle":                   {"monitor/snapshot"},
		"internal/pool/admission":           {"internal/pool/core", "pool", "internal/acceptance", "lab/simulation"},
		"internal/pool/core":                {"pool", "internal/acceptance", "lab/simulation"},
		"internal/pool/memory":              {"internal/pool/core", "pool", "internal/acceptance", "lab/simulation"},
		"internal/pressure":                 {"internal/stream/core", "streams", "lab/simulation"},
		"internal/recovered":                {"actors", "internal/fence", "futures", "host", "pool", "streams"},
		"internal/region":                   {"monitor/regions", "futures", "pool"},
		"internal/sizeclass":                {"internal/stream/core", "internal/stream/magazine"},
		"internal/stream":                   {"internal/stream/core", "streams", "internal/acceptance", "lab/simulation"},
		"internal/stream/core":              {"streams", "internal/acceptance", "lab/simulation"},
		"internal/trace":                    {"warm", "internal/acceptance", "lab/replay"},
		"internal/units":                    {"monitor/history", "monitor/heapprofile", "host", "pool", "streams", "internal/acceptance"},
		"internal/watermark":                {"internal/pool/memory"},
		"pool":                              {"streams", "internal/acceptance", "lab/simulation"},
		"streams":                           {"cuda/sleep", "internal/acceptance", "cuda", "cuda/share", "lab/simulation"},
		".":                                 {"internal/acceptance"},
		"warm":                              {"internal/acceptance"},
		"vramtest":                          {"vramtest", "cuda", "compute/ops"},
		"host":                              {"cuda/sleep"},
		"internal/eachcall":                 {"host", "cuda"},
		"cuda":                              {"cuda/share", "cuda/sleep", "compute/kernel", "compute/tensor", "compute/ops"},
		"cuda/gemm":                         {"cuda/cublaslt", "compute/kernel/matmul", "compute/ops"},
		"cuda/cublaslt":                     {"compute/ops"},
		"cuda/nvrtc":                        {"compute/kernel"},
		"cuda/share":                        {},
		"cuda/sleep":                        {},
		"cudadrv":                           {"cudadrv/sim", "cudadrv/fault", "cudadrv/hazard", "cudadrv/dynamic"},
		"cudadrv/dynamic":                   {"cuda/share", "cuda"},
		"cudadrv/dynamic/library":           {"cuda/cublaslt", "cuda/nvrtc", "cudadrv/dynamic"},
		"cudadrv/fault":                     {"cuda", "streams"},
		"cudadrv/hazard":                    {"cudadrv/hazard", "cuda/sleep", "cuda", "internal/acceptance"},
		"cudadrv/internal":                  {"cudadrv/fault", "cudadrv/meter", "cudadrv/hazard"},
		"cudadrv/sim":                       {"streams", "cuda", "compute/ops"},
		"cudadrv/sim/ptxrun":                {"vramtest", "cuda", "compute/ops"},
		"cudadrv/site":                      {"internal/acceptance"},
		"compute/kernel":                    {"compute/kernel", "compute/ops"},
		"compute/kernel/expr":               {"compute/kernel/plan", "compute/kernel", "compute/ops"},
		"compute/kernel/internal":           {"compute/kernel/plan", "compute/kernel/routine", "compute/kernel/elementary", "compute/kernel"},
		"compute/kernel/internal/boxes":     {"compute/kernel/attention", "compute/kernel/matmul"},
		"compute/kernel/internal/packed":    {"compute/kernel/attention/internal/variant", "compute/kernel/matmul/internal/variant", "compute/kernel/attention"},
		"compute/kernel/internal/ptxtext":   {"compute/kernel/attention/compile", "compute/kernel/attention"},
		"compute/tensor/internal/reference": {"compute/tensor/layout", "compute/tensor"},
		"compute/kernel/attention":          {"compute/kernel/attention", "compute/ops"},
		"compute/kernel/matmul":             {"compute/kernel/matmul", "compute/ops"},
		"compute/ptx":                       {"compute/ptx/interp", "compute/kernel/plan", "compute/kernel", "compute/ops"},
		"compute/tensor":                    {"compute/kernel", "compute/ops"},
		"compute/tensor/half":               {"compute/tensor", "compute/kernel/expr", "compute/kernel/plan", "compute/ops"},
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
