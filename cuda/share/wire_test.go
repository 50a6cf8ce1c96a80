//go:build linux && (amd64 || arm64)

package share

import (
	"encoding"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// The sizes, versions and reasons of errors are those that a reader looks for.
func TestTexts(t *testing.T) {
	one, two := cudadrv.UUID{1}, cudadrv.UUID{2}
	for want, err := range map[string]error{
		"share: the peer speaks version 3, not 1":                                           &VersionError{3, 1},
		"share: 5 bytes in a handle of 6 cannot be, with a granularity of 7 and a GPU of 8": &SizeError{5, 6, 7, 8},
		"share: the peer is on " + one.String() + ", this context on " + two.String():       &GPUError{one, two},
		"share: 2 file descriptors came with the header, not 1":                             &DescriptorError{2},
		"share: not this protocol: a detail":                                                &ProtocolError{"a detail"},
		"share: close: not this protocol: a detail":                                         &PeerError{"close", &ProtocolError{"a detail"}},
		"share: close: the connection broke":                                                &PeerError{"close", errors.New("the connection broke")},
		"share: the peer refused: limit":                                                    &RefusedError{RefusedLimit},
	} {
		require.EqualError(t, err, want)
	}
	for want, word := range map[string]encoding.TextMarshaler{
		"version": RefusedVersion, "size": RefusedSize, "GPU": RefusedGPU, "descriptor": RefusedDescriptor, "driver": RefusedDriver,
		"limit": RefusedLimit, "reason 7": RefusedLimit + 1, "none": NoWay, "event": ByEvent, "host": ByHost,
	} {
		text, err := word.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}

// The error of a device that lacks something names the call and what is missing.
func TestTheErrorOfAMissingAbility(t *testing.T) {
	s := newSide(t, sim.New(sim.Config{Bytes: true}))
	_, made := New(s.c, bytes)
	conn, _ := connection(t)
	_, imported := Import(s.c, conn)
	for want, err := range map[string]error{"cuMemCreate": made, "cuMemImportFromShareableHandle": imported} {
		var failed *cudadrv.CallError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, want, failed.Func)
		assert.Equal(t, "the device has no "+cudadrv.ShareableHandles.String(), failed.Detail, "it has the other")
	}
}

// A handle has whole granules, and no more bytes than the GPU.
func TestSizesAreRounded(t *testing.T) {
	for _, one := range []struct {
		bytes, total int64
		want         int64 // 0: refused
		rounded      int64 // of the refusal
	}{
		{bytes: 1, total: 40, want: 10},
		{bytes: 10, total: 40, want: 10},
		{bytes: 11, total: 40, want: 20},
		{bytes: 40, total: 40, want: 40},
		{bytes: 31, total: 40, want: 40},
		{bytes: 41, total: 40},
		{bytes: 0, total: 40},
		{bytes: -1, total: 40},
		{bytes: 41, total: 45, rounded: 50},
		{bytes: 45, total: 45, rounded: 50},
		{bytes: 40, total: 45, want: 40},
		{bytes: math.MaxInt64 - 9, total: math.MaxInt64},
		{bytes: math.MaxInt64 - 10, total: math.MaxInt64, want: math.MaxInt64 - 7},
	} {
		info := cudadrv.Info{GranularityBytes: 10, TotalBytes: one.total}
		got, err := round(one.bytes, info)
		assert.Equal(t, one.want, got, "%+v", one)
		if one.want > 0 {
			require.NoError(t, err)
			continue
		}
		var refused *SizeError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, SizeError{one.bytes, one.rounded, 10, one.total}, *refused)
	}
}

// A greeting comes out as it went in, each field in its place; a message of another length or kind is refused.
func TestGreetingsComeOutAsTheyWentIn(t *testing.T) {
	g := greeting{kind: kindAnswer, flags: 3, reason: 4, bytes: 5 << 32, roundedBytes: 6 << 33, granularity: 7 << 34}
	for i := range g.gpu {
		g.gpu[i] = byte(100 + i)
	}
	for i := range g.event {
		g.event[i] = byte(1 + i)
	}
	message := g.encode()
	require.Len(t, message, greetingBytes)
	got, err := decode(message, kindAnswer)
	require.NoError(t, err)
	assert.Equal(t, g, got)
	for _, wrong := range [][]byte{message[:greetingBytes-1], append(message[:greetingBytes:greetingBytes], 0), nil} {
		_, err := decode(wrong, kindAnswer)
		as[*ProtocolError](t, err)
	}
	_, err = decode(message, kindOffer)
	require.EqualError(t, err, "share: not this protocol: a greeting of kind 2, not 1")
	g.kind = kindRefusal
	_, err = decode(g.encode(), kindAnswer)
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	assert.EqualValues(t, 4, refused.Reason)

	for kind := range uint32(10) {
		n := note{kind, 8 << 35}
		got, err := decodeNote(n.encode())
		assert.Equal(t, n, got)
		assert.Equal(t, kind >= kindFence && kind <= kindReleased, err == nil, "kind %d", kind)
	}
}

// Every part of an answer is compared with the offer, and the error has the answer's sizes.
func TestEveryPartOfAnAnswerIsCompared(t *testing.T) {
	info := cudadrv.Info{GranularityBytes: 10, TotalBytes: 40}
	offer := greeting{bytes: 15, roundedBytes: 20, granularity: 10, gpu: cudadrv.UUID{1}}
	refusal, err := checkAnswer(offer, offer, info)
	require.NoError(t, err)
	assert.Zero(t, refusal)
	for _, change := range []func(*greeting){
		func(g *greeting) { g.bytes++ }, func(g *greeting) { g.roundedBytes++ }, func(g *greeting) { g.granularity++ },
	} {
		answer := offer
		change(&answer)
		refusal, err := checkAnswer(answer, offer, info)
		assert.Equal(t, RefusedSize, refusal)
		var size *SizeError
		require.ErrorAs(t, err, &size)
		assert.Equal(t, SizeError{answer.bytes, answer.roundedBytes, 10, 40}, *size)
	}
	answer := offer
	answer.gpu = cudadrv.UUID{2}
	refusal, err = checkAnswer(answer, offer, info)
	assert.Equal(t, RefusedGPU, refusal)
	var other *GPUError
	require.ErrorAs(t, err, &other)
	assert.Equal(t, GPUError{answer.gpu, offer.gpu}, *other)
}

// Parts end within the memory; an empty one may begin at its end.
func TestPartsAreWithinTheMemory(t *testing.T) {
	m := &Memory{bytes: 10}
	for _, part := range [][2]int64{{0, 0}, {0, 10}, {3, 7}, {10, 0}} {
		assert.NoError(t, m.within(part[0], part[1]), part)
	}
	for _, part := range [][2]int64{{-1, 5}, {0, -1}, {0, 11}, {3, 8}, {10, 1}, {11, 0}, {1, math.MaxInt64}, {10, math.MaxInt64 - 9}, {math.MaxInt64, math.MaxInt64}} {
		var refused *cuda.RangeError
		require.ErrorAs(t, m.within(part[0], part[1]), &refused)
		assert.Equal(t, cuda.RangeError{Offset: part[0], Bytes: part[1], BufferBytes: 10}, *refused)
	}
}

// An Export of no memory closes the connection, so that the peer learns of it.
func TestAnExportOfNoMemory(t *testing.T) {
	for _, m := range []*Memory{nil, {}} {
		conn, peer := connection(t)
		require.ErrorIs(t, m.Export(conn), cuda.ErrNotOpen)
		_, err := peer.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	publish, await := (*Memory)(nil).Ways()
	assert.Equal(t, [2]Way{}, [2]Way{publish, await})
}
