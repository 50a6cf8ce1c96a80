//go:build gpu

package ops_test

import (
	"testing"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// library is the driver of a GPU.
func library(testing.TB) cudadrv.Driver { return dynamic.New(dynamic.Config{}) }

// launching is the same driver, for tests that look at launches alone.
func launching(tb testing.TB) cudadrv.Driver { tb.Helper(); return library(tb) }

// bookkeeping is the same driver, for tests that count allocations.
func bookkeeping(tb testing.TB) cudadrv.Driver { tb.Helper(); return library(tb) }
