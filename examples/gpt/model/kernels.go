package model

import (
	"embed"
	"encoding/binary"
	"math"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

//go:embed kernels/*.ptx
var texts embed.FS

// pageKernels are the kernels of kernels/decode.cu for a type.
type pageKernels struct {
	module                       *cuda.Module
	embed, store, attend, sample *cuda.Function
}

// load loads the kernels on the device of a context. After an error close unloads them.
func (k *pageKernels) load(c *cuda.Context, of tensor.Type) error {
	text, err := texts.ReadFile("kernels/decode_" + of.String() + ".ptx")
	if err != nil {
		return err
	}
	if k.module, err = c.LoadModule(text); err != nil {
		return err
	}
	for name, to := range map[string]**cuda.Function{"embed": &k.embed, "store": &k.store, "attend": &k.attend, "sample": &k.sample} {
		if *to, err = k.module.Function(name); err != nil {
			return err
		}
	}
	return nil
}

func (k *pageKernels) close() error {
	if k.module == nil {
		return nil
	}
	return k.module.Unload()
}

// call collects the parameters of a launch, and the buffers that it touches: these kernels find pages by addresses in memory.
// Parameters of 8 bytes come before others, so that none needs padding.
type call struct {
	packed  []byte
	buffers []cuda.Arg
	err     error
}

// reads adds the address of a tensor that the kernel reads.
func (k *call) reads(t *tensor.Tensor) {
	r, err := t.Range()
	if k.err == nil {
		k.err = err
	}
	k.at(r, cuda.In)
}

// writes adds the address of a tensor that the kernel writes.
func (k *call) writes(t *tensor.Tensor) {
	r, err := t.Range()
	if k.err == nil {
		k.err = err
	}
	k.at(r, cuda.Out)
}

// at adds the address of a range.
func (k *call) at(r cuda.Range, mark func(cuda.Buffer) cuda.Arg) {
	if k.err != nil {
		return
	}
	k.long(uint64(r.Ptr()))
	k.buffers = append(k.buffers, mark(r.Buffer).Of(r.Offset, r.Bytes))
}

func (k *call) long(v uint64) { k.packed = binary.LittleEndian.AppendUint64(k.packed, v) }
func (k *call) word(v int)    { k.packed = binary.LittleEndian.AppendUint32(k.packed, uint32(v)) } //nolint:gosec // sizes are checked
func (k *call) number(v float32) {
	k.packed = binary.LittleEndian.AppendUint32(k.packed, math.Float32bits(v))
}
func (k *call) also(b ...cuda.Arg) { k.buffers = append(k.buffers, b...) }

// launch submits the launch of blocks.
func (k *call) launch(c *cuda.Context, f *cuda.Function, blocksX, blocksY, threads int) error {
	if k.err != nil {
		return k.err
	}
	g := cuda.Geometry{Grid: cuda.Dim3{X: uint32(blocksX), Y: uint32(blocksY), Z: 1}, Block: cuda.Dim3{X: uint32(threads), Y: 1, Z: 1}} //nolint:gosec // sizes are checked
	return c.LaunchPacked(f, g, k.packed, k.buffers...)
}
