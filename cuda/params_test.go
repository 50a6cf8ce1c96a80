package cuda

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

const paramText = `.version 7.0
.target sm_70
.address_size 64
// .entry one(.param .u64 x, .param .u64 y)
.visible .entry none() { ret; }
.visible .entry without { ret; }
.visible .entry two( // ), .param
	.param .u64 two_param_0, /* .param .u64 no, ) */
	.param .align 8 .b8 two_param_1[16]
)
.maxntid 128, 1, 1
{ .param .b64 in_the_body; ret; }
.weak .entry _Z3a$bPf(.param.u64 .ptr .global .align 4 p,.param .f32 q,.param .parameter_of_no_kind r)
{ ret; }
`

// paramCounts returns the numbers of parameters of an image's kernels.
func paramCounts(image []byte) map[string]int {
	counts := map[string]int{}
	for kernel, s := range signatures(image) {
		counts[kernel] = s.count
	}
	return counts
}

func TestCountsOfParametersInText(t *testing.T) {
	want := map[string]int{"none": 0, "without": 0, "two": 2, "_Z3a$bPf": 3}
	assert.Equal(t, want, paramCounts([]byte(paramText)))
	want["one"] = 1
	assert.Equal(t, want, paramCounts([]byte(paramText+".entry one(.param .u64 x) { ret; }\n")), "the comment differs")
	assert.Empty(t, paramCounts([]byte(".entry cut(.param .u64 x")))
	assert.Empty(t, paramCounts([]byte(".entry")))
}

// cubin returns an ELF file with the attributes of kernels.
func cubin(kernels map[string][]byte) []byte {
	little := binary.LittleEndian
	names, data, sections := []byte{0}, make([]byte, 64), make([]byte, 64)
	add := func(name string, content []byte) {
		s := make([]byte, 64)
		little.PutUint32(s, uint32(len(names)))
		little.PutUint64(s[24:], uint64(len(data)))
		little.PutUint64(s[32:], uint64(len(content)))
		names, data, sections = append(append(names, name...), 0), append(data, content...), append(sections, s...)
	}
	for name, content := range kernels {
		add(".nv.info."+name, content)
	}
	add(".nv.info", []byte{4, 0x17, 0, 0})
	add(".shstrtab", nil)
	last := len(sections) - 64
	little.PutUint64(sections[last+24:], uint64(len(data)))
	little.PutUint64(sections[last+32:], uint64(len(names)))
	data = append(data, names...)
	copy(data, "\x7fELF\x02\x01\x01")
	little.PutUint64(data[40:], uint64(len(data)))
	little.PutUint16(data[60:], uint16(len(sections)/64))
	little.PutUint16(data[62:], uint16(last/64))
	return append(data, sections...)
}

// Attributes of a kernel: one parameter, and the bytes of all.
var oneParam = []byte{4, 0x17, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x21, 0}

func paramBytes(n byte) []byte { return []byte{3, 0x19, n, 0} }

func testCubin() []byte {
	return cubin(map[string][]byte{
		"none":    paramBytes(0),
		"two":     slices.Concat([]byte{1, 0x36, 0, 0}, oneParam, paramBytes(16), oneParam),
		"unknown": paramBytes(16), // as with an attribute of another version for each parameter
		"cut":     slices.Concat(oneParam, []byte{4, 0x17, 12, 0, 1}),
	})
}

func TestCountsOfParametersInCubins(t *testing.T) {
	image := testCubin()
	assert.Equal(t, map[string]int{"none": 0, "two": 2}, paramCounts(image))
	for n := range image {
		paramCounts(image[:n]) // a truncated file
	}
}

// moved returns a cubin whose sections have another order, and whose table of sections is at the begin or at the end.
func moved(image []byte, order []int, tableFirst bool) []byte {
	little := binary.LittleEndian
	table := image[little.Uint64(image[40:]):]
	to, sections := slices.Clone(image[:64]), make([]byte, len(table))
	if tableFirst {
		to = append(to, sections...)
	}
	for i, old := range order {
		s := sections[64*i:][:64]
		copy(s, table[64*old:])
		offset, size := little.Uint64(s[24:]), little.Uint64(s[32:])
		little.PutUint64(s[24:], uint64(len(to)))
		to = append(to, image[offset:][:size]...)
	}
	at := 64
	if tableFirst {
		copy(to[at:], sections)
	} else {
		at, to = len(to), append(to, sections...)
	}
	little.PutUint64(to[40:], uint64(at))
	little.PutUint16(to[62:], uint16(slices.Index(order, int(little.Uint16(image[62:])))))
	return to
}

// Sections may have any order, and the last one, of names or of attributes, may end with the image.
func TestSectionsOfCubinsInEachOrder(t *testing.T) {
	image := testCubin()
	number := int(binary.LittleEndian.Uint16(image[60:]))
	var order []int
	for i := range number {
		order = append(order, i)
	}
	for range number {
		order = append(order[1:], order[0])
		for _, tableFirst := range []bool{false, true} {
			assert.Equal(t, map[string]int{"none": 0, "two": 2}, paramCounts(moved(image, order, tableFirst)), "%v, %t", order, tableFirst)
		}
	}
}

// A section that ends after its image, or begins there, is not read, and the others are.
func TestSectionsOfCubinsEndInThem(t *testing.T) {
	little := binary.LittleEndian
	image := testCubin()
	first, number := int(little.Uint64(image[40:])), int(little.Uint16(image[60:]))
	require.Greater(t, number, 4)
	for i := range number {
		header := first + 64*i
		for _, offset := range []uint64{uint64(len(image)) + 1, 1 << 32, 1 << 63, ^uint64(0)} {
			changed := slices.Clone(image)
			little.PutUint64(changed[header+24:], offset)
			assert.LessOrEqual(t, len(paramCounts(changed)), 2, "section %d at %d", i, offset)
		}
		for _, size := range []uint64{uint64(len(image)), 1 << 32, 1 << 63, ^uint64(0)} { // from an offset above 0 on
			changed := slices.Clone(image)
			if little.Uint64(changed[header+24:]) == 0 {
				continue
			}
			little.PutUint64(changed[header+32:], size)
			assert.LessOrEqual(t, len(paramCounts(changed)), 2, "section %d of %d bytes", i, size)
		}
		changed := slices.Clone(image)
		little.PutUint64(changed[header+24:], uint64(len(image))-little.Uint64(changed[header+32:])+1)
		assert.LessOrEqual(t, len(paramCounts(changed)), 2, "section %d ends a byte too late", i)
	}
}

// A fatPart is an image in a fat binary.
type fatPart struct {
	kind  uint16
	flags uint64
	image []byte
}

// fatBinary returns a fat binary. Headers of parts have headerBytes.
func fatBinary(headerBytes int, parts ...fatPart) []byte {
	little := binary.LittleEndian
	var body []byte
	for _, p := range parts {
		h := make([]byte, headerBytes)
		little.PutUint16(h, p.kind)
		little.PutUint16(h[2:], 0x0101)
		little.PutUint32(h[4:], uint32(headerBytes))
		padded := append(slices.Clone(p.image), make([]byte, -len(p.image)&7)...)
		little.PutUint64(h[8:], uint64(len(padded)))
		little.PutUint32(h[28:], 90)
		little.PutUint64(h[40:], p.flags)
		body = append(append(body, h...), padded...)
	}
	header := append([]byte(fatMagic), 1, 0, 16, 0)
	return append(little.AppendUint64(header, uint64(len(body))), body...)
}

const linux64 = 0x11 // flags of every part

func TestCountsOfParametersInFatBinaries(t *testing.T) {
	text := fatPart{textPart, linux64, []byte(paramText)}
	code := fatPart{cubinPart, linux64, cubin(map[string][]byte{"two": slices.Concat(oneParam, oneParam), "three": slices.Concat(oneParam, oneParam, oneParam)})}
	differs := fatPart{cubinPart, linux64, cubin(map[string][]byte{"two": oneParam})}
	packed := func(p fatPart, flag uint64) fatPart { p.flags |= flag; return p }
	inText := map[string]int{"none": 0, "without": 0, "two": 2, "_Z3a$bPf": 3}
	inCode := map[string]int{"two": 2, "three": 3}
	inBoth := maps.Clone(inText)
	maps.Copy(inBoth, inCode)
	unsure := maps.Clone(inText)
	delete(unsure, "two")
	unpackedBytes := fatBinary(64, code)
	unpackedBytes[16+56] = 1
	tests := []struct {
		name  string
		image []byte
		want  map[string]int
	}{
		{"text", fatBinary(64, text), inText},
		{"cubin with a longer header", fatBinary(112, code), inCode},
		{"both", fatBinary(80, code, text), inBoth},
		{"parts that disagree", fatBinary(64, text, differs), unsure},
		{"compressed text", fatBinary(64, packed(text, 0x2000), code), inCode},
		{"compressed cubin", fatBinary(64, packed(code, 0x8000), text), inText},
		{"all compressed", fatBinary(64, packed(code, 0x1000), packed(text, 0x2000)), nil},
		{"a size before compression", unpackedBytes, nil},
		{"another kind", fatBinary(64, fatPart{8, linux64, []byte(paramText)}), nil},
		{"text as a cubin", fatBinary(64, fatPart{cubinPart, linux64, []byte(paramText)}), nil},
		{"no part", fatBinary(64), nil},
		{"an empty part at the end", fatBinary(64, text, fatPart{kind: textPart, flags: linux64}), inText},
		{"bytes after the end", append(fatBinary(64, code), 1, 2, 3), inCode},
	}
	for _, test := range tests {
		if test.want == nil {
			assert.Empty(t, paramCounts(test.image), test.name)
		} else {
			assert.Equal(t, test.want, paramCounts(test.image), test.name)
		}
	}
	whole := fatBinary(64, text, code)
	for n := range whole {
		assert.Empty(t, paramCounts(whole[:n]), "truncated to %d bytes", n)
	}
	for more := range 63 { // bytes after the last part that are no part, and belong to the body
		image := append(slices.Clone(whole), make([]byte, more+1)...)
		binary.LittleEndian.PutUint64(image[8:], uint64(len(image)-fatHeaderBytes))
		assert.Empty(t, paramCounts(image), "%d bytes more", more+1)
	}
	bits := map[int]int{6: 16, 8: 64, 16 + 4: 32, 16 + 8: 64} // of the sizes of the headers, the body and the part
	for at, width := range bits {
		for more := range uint64(128) { // sums that overflow
			image := fatBinary(64, code)
			little := binary.LittleEndian
			switch width {
			case 64:
				little.PutUint64(image[at:], -more)
			case 32:
				little.PutUint32(image[at:], uint32(-more)) //nolint:gosec // the low bits
			}
			assert.NotPanics(t, func() { paramCounts(image) }, "%d of %d bits at %d", -int64(more), width, at) //nolint:gosec // small
		}
		for bit := range width {
			image := fatBinary(64, code)
			image[at+bit/8] ^= 1 << (bit % 8)
			counts := paramCounts(image)
			delete(counts, "two")
			delete(counts, "three")
			assert.Empty(t, counts, "bit %d at %d", bit, at)
		}
	}
}

func FuzzParamCounts(f *testing.F) {
	f.Add([]byte(paramText))
	f.Add(testCubin())
	f.Add(fatBinary(64, fatPart{textPart, linux64, []byte(paramText)}, fatPart{cubinPart, linux64, testCubin()}))
	f.Add(fatBinary(112, fatPart{cubinPart, linux64 | 0x8000, testCubin()}))
	f.Fuzz(func(t *testing.T, image []byte) {
		for kernel, count := range paramCounts(image) {
			if count < 0 || count > len(image)/4 {
				t.Errorf("%q has %d parameters in %d bytes", kernel, count, len(image))
			}
		}
	})
}

// Function asks the driver for the parameters of the kernel, and for no further one: that call would fail.
func TestFunctionAsksForNoParameterTooMany(t *testing.T) {
	driver := fault.Wrap(sim.New(sim.Config{TimedKernels: true}))
	dev, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	c, err := NewContext(s)
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry none() { ret; }\n" +
		".visible .entry three(.param .u64 x, .param .u32 y, .param .f32 z) { ret; }\n"))
	require.NoError(t, err)
	for name, count := range map[string]int{"none": 0, "three": 3} {
		before := driver.Calls("cuFuncGetParamInfo")
		f, err := m.Function(name)
		require.NoError(t, err)
		assert.Equal(t, uint64(count), driver.Calls("cuFuncGetParamInfo")-before, name)
		err = c.Launch(f, Geometry{Grid: cudadrv.Dim3{X: 1}, Block: cudadrv.Dim3{X: 1}}, Value(uint64(1)))
		var wrong *ArgumentError
		require.ErrorAs(t, err, &wrong, "the arguments are held against them")
	}
	require.NoError(t, m.Unload())
	// Without a text the driver alone tells the parameters; so it does where it disagrees with the text.
	for name, text := range map[string]string{
		"none": "", "more bytes": ".entry k(.param .u64 x, .param .u64 y)", "more parameters": ".entry k(.param .u64 x, .param .u32 y, .param .u32 z)",
	} {
		m, err := c.LoadModule([]byte(".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 x, .param .u32 y) { ret; }\n"))
		require.NoError(t, err)
		if m.signatures = signatures([]byte(text)); name == "more parameters" {
			m.signatures = map[string]signature{"k": {count: 2, params: m.signatures["k"].params}}
		}
		f, err := m.Function("k")
		require.NoError(t, err, name)
		all, known := f.Parameters()
		assert.True(t, known, name)
		assert.Equal(t, []Parameter{{Bytes: 8}, {Offset: 8, Bytes: 4}}, all, name)
		require.NoError(t, m.Unload())
	}
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	require.NoError(t, dev.Close())
}
