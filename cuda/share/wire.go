package share

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/go-vram/vram/cudadrv"
)

// A greeting is one of the three messages that link two processes:
//
//	exporter                                      importer
//	offer: sizes, GPU, event, descriptor   -->
//	                                       <--    answer: the same sizes, GPU, event, offer's event opened or not
//	confirmation: answer's event opened or not -->
//
// Either may send a refusal instead of its next message, and closes the connection. Then come notes of 16 bytes each.
type greeting struct {
	kind         uint32
	flags        uint32
	reason       Refusal
	bytes        int64
	roundedBytes int64
	granularity  int64 // of the sender's device, in bytes
	gpu          cudadrv.UUID
	event        cudadrv.EventDescriptor
}

// Kinds of greetings and of notes; no number is used twice.
const (
	kindOffer uint32 = 1 + iota
	kindAnswer
	kindConfirmation
	kindRefusal
	kindFence    // a fence was published: its number, from 1 on
	kindGoodbye  // the sender's work has finished, and it has destroyed its name of the receiver's event
	kindReleased // the receiver of a goodbye has destroyed its name of the sender's event
)

// Flags of a greeting.
const (
	hasEvent    = 1 << iota // event is the descriptor of the sender's event
	openedEvent             // the sender has opened the receiver's event, and will wait for it
)

const (
	magic         = "vramshar"
	version       = 1
	greetingBytes = 128
	noteBytes     = 16
	noteMagic     = 0x6572_6168
)

func (g *greeting) encode() []byte {
	b := make([]byte, 0, greetingBytes)
	b = append(b, magic...)
	for _, word := range []uint32{version, g.kind, g.flags, uint32(g.reason)} {
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	for _, word := range []int64{g.bytes, g.roundedBytes, g.granularity} {
		b = binary.LittleEndian.AppendUint64(b, uint64(word)) //nolint:gosec // the same bits
	}
	b = append(b, g.gpu[:]...)
	return append(b, g.event[:]...)
}

// decode reads a greeting of one of the kinds. A refusal is a *RefusedError. Other errors: *ProtocolError,
// *VersionError.
func decode(b []byte, kind uint32) (g greeting, err error) {
	if !startsWithMagic(b) || len(b) != greetingBytes {
		return g, &ProtocolError{fmt.Sprintf("%d bytes that begin with %q", len(b), b[:min(len(b), len(magic))])}
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[len(magic)+4*i:]) }
	size := func(i int) int64 {
		return int64(binary.LittleEndian.Uint64(b[len(magic)+16+8*i:])) //nolint:gosec // the same bits
	}
	if theirs := word(0); theirs != version {
		return g, &VersionError{theirs, version}
	}
	g = greeting{kind: word(1), flags: word(2), reason: Refusal(word(3)), bytes: size(0), roundedBytes: size(1), granularity: size(2)}
	copy(g.gpu[:], b[48:])
	copy(g.event[:], b[64:])
	switch g.kind {
	case kind:
		return g, nil
	case kindRefusal:
		return g, &RefusedError{g.reason}
	}
	return g, &ProtocolError{fmt.Sprintf("a greeting of kind %d, not %d", g.kind, kind)}
}

// startsWithMagic reports whether bytes may be the begin of a greeting.
func startsWithMagic(b []byte) bool {
	n := min(len(b), len(magic))
	return string(b[:n]) == magic[:n]
}

// checkOffer returns the error of an offer that cannot be mapped on a device.
func checkOffer(offer greeting, info cudadrv.Info) (Refusal, error) {
	if offer.gpu != info.UUID || info.UUID == (cudadrv.UUID{}) {
		return RefusedGPU, &GPUError{offer.gpu, info.UUID}
	}
	rounded, err := round(offer.bytes, info)
	if err == nil && (rounded != offer.roundedBytes || offer.granularity != info.GranularityBytes) {
		err = &SizeError{offer.bytes, offer.roundedBytes, info.GranularityBytes, info.TotalBytes}
	}
	if err != nil {
		return RefusedSize, err
	}
	return 0, nil
}

// checkAnswer returns the error of an answer that is not one to the offer.
func checkAnswer(answer, offer greeting, info cudadrv.Info) (Refusal, error) {
	switch {
	case answer.gpu != offer.gpu:
		return RefusedGPU, &GPUError{answer.gpu, offer.gpu}
	case answer.bytes != offer.bytes || answer.roundedBytes != offer.roundedBytes || answer.granularity != offer.granularity:
		return RefusedSize, &SizeError{answer.bytes, answer.roundedBytes, info.GranularityBytes, info.TotalBytes}
	}
	return 0, nil
}

// round returns the size of a handle for the bytes.
func round(bytes int64, info cudadrv.Info) (int64, error) {
	step := info.GranularityBytes
	if bytes <= 0 || bytes > info.TotalBytes || bytes > math.MaxInt64-step {
		return 0, &SizeError{bytes, 0, step, info.TotalBytes}
	}
	rounded := (bytes + step - 1) / step * step
	if rounded > info.TotalBytes {
		return 0, &SizeError{bytes, rounded, step, info.TotalBytes}
	}
	return rounded, nil
}

// A note is a message between linked processes.
type note struct {
	kind   uint32
	number uint64 // of a fence
}

func (n note) encode() []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, noteBytes), n.kind)
	b = binary.LittleEndian.AppendUint32(b, noteMagic)
	return binary.LittleEndian.AppendUint64(b, n.number)
}

func decodeNote(b []byte) (note, error) {
	n := note{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[8:])}
	if binary.LittleEndian.Uint32(b[4:]) != noteMagic || !slices.Contains([]uint32{kindFence, kindGoodbye, kindReleased}, n.kind) {
		return n, &ProtocolError{fmt.Sprintf("a note %x", b)}
	}
	return n, nil
}
