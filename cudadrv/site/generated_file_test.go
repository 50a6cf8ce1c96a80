package site_test

import "github.com/go-vram/vram/cudadrv/site"

// load stands for Load of a generated package: this file is such a one.
func load() { site.Generated(0) }

// method and inlinedMethod stand for methods of a generated package.
//
//go:noinline
func method(f func() site.Stack) site.Stack { return f() }

func inlinedMethod(h *site.Helpers) site.Stack { return h.Here(0) }
