package ptxrun

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// oneOwner is a Reach with one part.
type oneOwner struct{ part Part }

func (r oneOwner) Part(cudadrv.Ptr, cudadrv.Ptr, int64) (Part, error) { return r.part, nil }

func (oneOwner) Buffer(cudadrv.Ptr) (Buffer, bool) { return Buffer{}, false }

// A kernel reaches the bytes that are both in the mapping and in the buffer around an address: a buffer may begin in the mapping before, go on
// in the next one, or both.
func TestRangesOfBuffersAcrossMappings(t *testing.T) {
	t.Parallel()
	const word, start, length = 64, 4096, 4 * 64 // the mapping
	mapping := make([]byte, length)
	for from := start - 2*word; from < start+length; from += word {
		for end := max(from, start) + 1; end <= start+length+2*word; end += word - 1 {
			m := memory{
				extent: func(cudadrv.Ptr) (cudadrv.Ptr, []byte, bool) { return start, mapping, true },
				reach:  oneOwner{Part{Start: cudadrv.Ptr(from), Bytes: int64(end - from), Written: make([]uint64, (end-from+word-1)/word)}},
			}
			first, last := max(from, start), min(end, start+length)-1
			for _, at := range []int{first, last} {
				r, err := m.Range(uint64(at), 1, false) //nolint:gosec // not negative
				require.NoError(t, err)
				require.EqualValues(t, first, r.Start, "buffer [%d, %d)", from, end)
				require.Len(t, r.Bytes, last+1-first, "buffer [%d, %d)", from, end)
				assert.Same(t, &mapping[first-start], &r.Bytes[0])
				assert.Len(t, r.Initialised, (end-first+word-1)/word, "the bits from its first byte on")
			}
		}
	}
}

// A module is refused for its mistakes alone. Instructions that package ptx does not know, and the remark on an old architecture that is made
// with other findings, are no mistakes.
func TestMistakesOfModules(t *testing.T) {
	t.Parallel()
	const unknown, mistake, remark = "unheard.of.u32 %r1, %r1;", "add.u32 %r1, %r1, %r9;", "is older than sm_70"
	for _, target := range []string{"sm_60", "sm_70"} {
		for _, body := range []string{"", unknown, mistake, unknown + "\n" + mistake} {
			_, err := New(Config{}).Load([]byte(".version 7.0\n.target "+target+"\n.address_size 64\n.entry k() {\n.reg .u32 %r<2>;\n"+body+"\nret;\n}"), nil)
			if body == "" || body == unknown {
				require.NoError(t, err, "%s: %s", target, body)
				continue
			}
			require.ErrorContains(t, err, "%r9", "%s: %s", target, body)
			assert.NotContains(t, err.Error(), "unheard")
			if target == "sm_60" {
				assert.Contains(t, err.Error(), remark)
			} else {
				assert.NotContains(t, err.Error(), remark)
			}
		}
	}
}
