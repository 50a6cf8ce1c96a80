package model_test

import (
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/examples/gpt/model"
	"github.com/go-vram/vram/monitor/heapprofile"
	"github.com/go-vram/vram/monitor/page"
)

// tagged returns the bytes of a sample type by tag.
func tagged(p *profile.Profile, of string) map[string]int64 {
	bytes := map[string]int64{}
	for i, t := range p.SampleType {
		for _, s := range p.Sample {
			if t.Type == of && s.Value[i] > 0 {
				bytes[strings.Join(s.Label["tag"], "")] += s.Value[i]
			}
		}
	}
	return bytes
}

// The heap profile and the memory map have the memory of each layer and part: weights, gradients and moments as the parameters are, and
// the activations of all layers. All memory of the stages is named.
func TestProfile(t *testing.T) {
	c, err := cuda.Open(vram.Config{Driver: cpu.New(cpu.Config{}), SampleBytes: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	before := tagged(heapprofile.Of(c.Device()), "inuse_space")[""]
	p, err := model.NewPipeline(t.Context(), []model.Place{placed(t, c)}, deep, staged, 1, 1, 2)
	require.NoError(t, err)
	want := map[string]int64{}
	for _, x := range p.Parameters() {
		part, _, _ := strings.Cut(x.Name, ".")
		if names := strings.Split(x.Name, "."); len(names) > 2 {
			part = strings.Join(names[:2], ".") + "/" + names[2]
		}
		value := x.Value.Bytes()
		want[part+"/weights"] += value
		want[part+"/gradients"] += value
		want[part+"/moments"] += 2 * value
	}
	require.Len(t, want, 3*(2+4*deep.Layers+1))
	live, ever := tagged(heapprofile.Of(c.Device()), "inuse_space"), tagged(heapprofile.Of(c.Device()), "alloc_space")
	for tag, bytes := range want {
		assert.Equal(t, bytes, live[tag], tag)
	}
	assert.Less(t, live[""]-before, int64(1024), "operations have scratch memory")
	for _, part := range []string{"wte", "h.0/attn", "h.0/mlp", "h.3/attn", "h.3/mlp", "ln_f", "head"} {
		assert.Positive(t, ever[part+"/activations"], part)
	}
	m, err := page.ReadMap(t.Context(), c.Device(), 0)
	require.NoError(t, err)
	var shown []string
	for _, s := range m.Segments {
		for _, r := range s.Ranges {
			shown = append(shown, r.Tag)
		}
	}
	assert.Regexp(t, `h\.\d/(attn|mlp|ln_1|ln_2)/(weights|gradients|moments)`, strings.Join(shown, " "), "small buffers next to each other are one range")
	require.NoError(t, p.Close())
}
