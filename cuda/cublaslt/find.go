package cublaslt

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/go-vram/vram/cudadrv/dynamic/library"
)

// Variable is the environment variable that names the library, or forbids it.
const Variable = "VRAM_CUBLASLT"

// functions of the library, by number.
type function int

const (
	create function = iota
	destroy
	version
	descCreate
	descDestroy
	descSet
	layoutCreate
	layoutDestroy
	layoutSet
	preferenceCreate
	preferenceDestroy
	preferenceSet
	heuristic
	matmul

	functionCount
)

var names = [functionCount]string{ //nolint:gochecknoglobals // a constant table
	create:            "cublasLtCreate",
	destroy:           "cublasLtDestroy",
	version:           "cublasLtGetVersion",
	descCreate:        "cublasLtMatmulDescCreate",
	descDestroy:       "cublasLtMatmulDescDestroy",
	descSet:           "cublasLtMatmulDescSetAttribute",
	layoutCreate:      "cublasLtMatrixLayoutCreate",
	layoutDestroy:     "cublasLtMatrixLayoutDestroy",
	layoutSet:         "cublasLtMatrixLayoutSetAttribute",
	preferenceCreate:  "cublasLtMatmulPreferenceCreate",
	preferenceDestroy: "cublasLtMatmulPreferenceDestroy",
	preferenceSet:     "cublasLtMatmulPreferenceSetAttribute",
	heuristic:         "cublasLtMatmulAlgoGetHeuristic",
	matmul:            "cublasLtMatmul",
}

// lib is an opened library.
type lib struct {
	path      string
	functions [functionCount]library.Function
}

// opened are the libraries of the process, by path: dlopen gives one library for each.
var opened struct { //nolint:gochecknoglobals // made on first use: a process has one of each library
	sync.Mutex
	byPath map[string]*lib
}

// load opens a library, once in the process.
func load(path string) (*lib, error) {
	opened.Lock()
	defer opened.Unlock()
	if l := opened.byPath[path]; l != nil {
		return l, nil
	}
	from, err := library.Open(path)
	if err != nil {
		return nil, err
	}
	l := &lib{path: path}
	for i, name := range names {
		if l.functions[i], err = from.Function(name); err != nil {
			return nil, err
		}
	}
	if opened.byPath == nil {
		opened.byPath = map[string]*lib{}
	}
	opened.byPath[path] = l
	return l, nil
}

// find opens the first library that is there, for a driver of that version of CUDA.
func find(driverVersion int) (*lib, error) {
	named := os.Getenv(Variable)
	if named == "off" {
		return nil, &AbsentError{Errs: []error{ErrForbidden}}
	}
	tried := []string{named}
	if named == "" {
		tried = candidates(driverVersion, os.Getenv, filepath.Glob)
	}
	failure := &AbsentError{Tried: tried}
	for _, path := range tried {
		l, err := load(path)
		if err == nil {
			return l, nil
		}
		failure.Errs = append(failure.Errs, err)
	}
	return nil, failure
}

// candidates returns the names of libraries to try, best first.
func candidates(driverVersion int, env func(string) string, glob func(string) ([]string, error)) []string {
	files := []string{"libcublasLt.so.13", "libcublasLt.so.12"}
	if driverVersion > 0 && driverVersion < 13000 {
		files = files[1:]
	}
	return library.Candidates(files, env, glob)
}
