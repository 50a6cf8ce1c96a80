package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-vram/vram/cuda/nvrtc"
	"github.com/go-vram/vram/cudadrv"

	"github.com/go-vram/vram/cmd/vram/internal/binding"
)

// kernelsCmd implements the command kernels. It needs no GPU.
type kernelsCmd struct {
	Package string   `required:"" placeholder:"NAME" help:"Name of the Go package."`
	Out     string   `name:"out" short:"o" placeholder:"FILE" help:"Write the Go file there. Default: standard output."`
	Arch    string   `default:"sm_70" help:"Architecture that CUDA C++ is compiled for; PTX also runs on later ones."`
	NVRTC   string   `name:"nvrtc" placeholder:"PATH" help:"Library of NVIDIA's run-time compiler. Default: where loaders, toolkits, wheels and conda have it; else clang."`
	Source  []string `short:"s" placeholder:"FILE" help:"CUDA C++ that declares kernels of .ptx files: their parameters get its names and types. Repeatable."`
	Files   []string `arg:"" name:"file" help:"PTX (.ptx) or CUDA C++ (.cu)."`
}

// errNoCompiler refuses CUDA C++ on a machine without a compiler.
var errNoCompiler = errors.New("CUDA C++ needs NVIDIA's run-time compiler (libnvrtc) or clang, and there is neither: compile the file to .ptx elsewhere")

var architecture = regexp.MustCompile(`^sm_([1-9][0-9]?)([0-9])$`)

// Validate reports invalid flags.
func (c *kernelsCmd) Validate() error {
	if !architecture.MatchString(c.Arch) {
		return fmt.Errorf("--arch %s: want sm_70 or another architecture without a letter", c.Arch)
	}
	return nil
}

// Run reads the files, compiles CUDA C++, and writes the package. It writes nothing if a file is wrong.
func (c *kernelsCmd) Run(p *program) error {
	var sources strings.Builder
	for _, path := range c.Source {
		source, err := os.ReadFile(path)
		if err != nil {
			return &usageError{err}
		}
		sources.Write(source)
		sources.WriteByte('\n')
	}
	var texts []binding.Text
	for _, path := range c.Files {
		text, err := c.read(p.ctx, path, sources.String())
		if err != nil {
			return &usageError{err}
		}
		texts = append(texts, text)
	}
	source, err := binding.Generate(c.Package, texts)
	if err != nil {
		return &usageError{err}
	}
	if c.Out == "" {
		_, err = p.stdout.Write(source)
		return err
	}
	if err := os.WriteFile(c.Out, source, 0o644); err != nil { //nolint:gosec // source text is for all to read
		return &usageError{err}
	}
	return nil
}

// read returns the text of a file, with the sources of its kernels: the file itself if it is CUDA C++.
func (c *kernelsCmd) read(ctx context.Context, path, sources string) (t binding.Text, err error) {
	t = binding.Text{Name: filepath.Base(path), Source: sources}
	switch filepath.Ext(path) {
	case ".ptx", ".cu":
	default:
		return t, fmt.Errorf("%s: want a file .ptx or .cu", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return t, err
	}
	if t.PTX = string(text); filepath.Ext(path) == ".ptx" {
		return t, nil
	}
	t.Source = t.PTX + "\n" + sources
	t.PTX, err = c.compile(ctx, path, t.PTX, nvrtc.Find)
	return t, err
}

// compile returns the PTX of CUDA C++. find looks for NVIDIA's compiler.
func (c *kernelsCmd) compile(ctx context.Context, path, text string, find func(paths ...string) (*nvrtc.Library, error)) (string, error) {
	var paths []string
	if c.NVRTC != "" {
		paths = append(paths, c.NVRTC)
	}
	compiler, err := find(paths...)
	switch {
	case err == nil:
		parts := architecture.FindStringSubmatch(c.Arch)
		major, _ := strconv.Atoi(parts[1]) // digits
		minor, _ := strconv.Atoi(parts[2])
		compiled, err := compiler.PTX(path, text, cudadrv.ComputeCapability{Major: major, Minor: minor})
		return string(bytes.TrimRight(compiled, "\x00")), err
	case c.NVRTC != "":
		return "", err
	}
	return clang(ctx, path, c.Arch)
}

// clang compiles a file with clang: with the headers of the toolkit, or without any where there is no toolkit.
func clang(ctx context.Context, path, arch string) (string, error) {
	program, err := exec.LookPath("clang")
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, errNoCompiler)
	}
	compile := func(more ...string) (out, log bytes.Buffer, err error) {
		arguments := append([]string{"-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=" + arch, "-O3", "-S", "-o", "-"}, more...)
		command := exec.CommandContext(ctx, program, append(arguments, "--", path)...) //nolint:gosec // the compiler that the caller has
		command.Stdout, command.Stderr = &out, &log
		err = command.Run()
		return out, log, err
	}
	out, log, err := compile()
	if err != nil && bytes.Contains(log.Bytes(), []byte("CUDA installation")) {
		out, log, err = compile("-nocudainc", "-nocudalib")
	}
	if err != nil {
		return "", fmt.Errorf("%s: clang: %w: %s", path, err, bytes.TrimSpace(log.Bytes()))
	}
	return out.String(), nil
}
