package sim

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Every text is read or refused, and the kernels of a text that was read can be called.
func TestNoTextBreaksTheReader(t *testing.T) {
	words := []string{
		".version", "7", ".0", ".entry", "name", "(", ")", ",", "{", "}", "[", "]", ".param", ".align", "8", ".b8", ".u64", ".ptr", ".global",
		".maxntid", "1024", "/*", "*/", "//", "\n", "\"", ";", "-", "é",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := ".version 7.0 " + strings.Join(rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "words"), " ")
		p, err := parse([]byte(text))
		if err != nil {
			return
		}
		for name, k := range p.kernels {
			assert.Equal(t, name, k.name)
			end := int64(0)
			for _, param := range k.params {
				assert.GreaterOrEqual(t, param.offsetBytes, end)
				end = param.offsetBytes + param.bytes
			}
			assert.Equal(t, end, k.paramBytes)
			assert.Positive(t, k.maxThreads)
		}
	})
}

// A quotation that does not end is refused with the line on which it begins.
func TestAQuotationWithoutAnEnd(t *testing.T) {
	_, err := parse([]byte(".version 7.0\n.version\n\"ends\nnowhere"))
	require.ErrorContains(t, err, "line 3: ")
}

func TestWordsOfPTX(t *testing.T) {
	require.Equal(t, []string{"ld", ".param", ".u64", "%rd1", ",", "[", "a_b$", "+", "4", "]", ";", `"`, ".x"},
		newReader("ld.param.u64 %rd1,[a_b$+4];/**/\"quoted .entry\" // .entry\n.x/*/ */").words)
}
