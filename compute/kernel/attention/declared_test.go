//go:build !gpu

package attention_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/attention"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// together moves all operands into one buffer, in which the checker finds each access to a part that a launch does not declare.
func (r *rig) together(b *backward) {
	r.Helper()
	const apart = 256
	var all []*cuda.Range
	bytes := int64(0)
	for _, x := range ranges(b) {
		if x.Bytes > 0 {
			all = append(all, x)
			bytes += (x.Bytes + apart - 1) / apart * apart
		}
	}
	buffer, err := r.c.Alloc(bytes)
	require.NoError(r, err)
	r.Cleanup(func() { assert.NoError(r, buffer.Free()) })
	at := int64(0)
	for _, x := range all {
		to := cuda.Part(buffer, at, x.Bytes)
		require.NoError(r, r.c.Copy(to, *x))
		*x = to
		at += (x.Bytes + apart - 1) / apart * apart
	}
}

// Each pass declares all operands that its kernels read and write: the checker looks.
func TestPassesDeclareTheirAccesses(t *testing.T) {
	r := newRig(t)
	offsets, pages := sequences()
	whole := attention.Problem{Batch: 1, Heads: 2, KeyHeads: 1, Queries: 66, Keys: 70, Dim: 64, Type: gemm.BFloat16, Causal: true}
	few := attention.Problem{Batch: 1, Heads: 1, Queries: 2, Keys: 520, Dim: 64, Type: gemm.Float16}
	plain := r.withoutGroups()
	for _, x := range []struct {
		by *rig
		b  *backward
	}{
		{r, r.backward(r.forward(whole, true), true)},
		{plain, r.backward(r.forward(whole, true), true)},
		{r, r.backward(r.forward(few, true), true)},
		{r, r.sequences(offsets)},
		{r, r.sequences(pages)},
	} {
		r.together(x.b)
		if x.b.Pages > 0 {
			require.NoError(t, r.a.Forward(r.c, x.b.Problem, x.b.Operands))
			continue
		}
		x.b.run(x.by)
	}
	assert.NoError(t, r.c.Synchronize(t.Context()))
}
