package cuda_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
)

// travelled is a buffer with the device that it is on and the bytes that it has to have.
type travelled struct {
	shadow
	device int
}

// traveller plays a random program on several devices, and does each piece of work to shadows on the host at once.
type traveller struct {
	*several
	random   *rand.Rand
	contexts [][]*cuda.Context // by device
	live     []*travelled
}

func (p *traveller) on(device int) *cuda.Context {
	return p.contexts[device][p.random.IntN(len(p.contexts[device]))]
}

func (p *traveller) one() *travelled { return p.live[p.random.IntN(len(p.live))] }

func (p *traveller) elsewhere(device int) int {
	return (device + 1 + p.random.IntN(len(p.devices)-1)) % len(p.devices)
}

func (p *traveller) alloc() {
	device := p.random.IntN(len(p.devices))
	n := int64(1) << p.random.IntN(20)
	b, err := p.on(device).AllocZeroed(n)
	require.NoError(p, err)
	p.live = append(p.live, &travelled{shadow{b, make([]byte, n)}, device})
}

// copy copies some bytes of a buffer to another one, of its device or of another.
func (p *traveller) copy(to, from *travelled) {
	n := 1 + p.random.Int64N(min(to.buffer.Bytes(), from.buffer.Bytes()))
	dst, src := p.random.Int64N(to.buffer.Bytes()-n+1), p.random.Int64N(from.buffer.Bytes()-n+1)
	into, out := cuda.Part(to.buffer, dst, n), cuda.Part(from.buffer, src, n)
	if to.device == from.device {
		require.NoError(p, p.on(to.device).Copy(into, out))
	} else {
		require.NoError(p, p.on(to.device).CopyPeer(into, p.on(from.device), out))
	}
	copy(to.bytes[dst:dst+n], from.bytes[src:src+n])
}

func (p *traveller) check(s *travelled) {
	got := make([]byte, len(s.bytes))
	require.NoError(p, p.on(s.device).CopyOutAt(got, s.buffer, 0))
	if !bytes.Equal(s.bytes, got) {
		require.FailNow(p, "bytes differ", "%v of device %d", s.buffer, s.device)
	}
}

func (p *traveller) step() {
	switch n := p.random.IntN(100); {
	case n < 15 || len(p.live) < 4:
		p.alloc()
	case n < 27:
		i := p.random.IntN(len(p.live))
		require.NoError(p, p.live[i].buffer.Free())
		p.live = append(p.live[:i], p.live[i+1:]...)
	case n < 40:
		s, value := p.one(), byte(p.random.Uint32())
		require.NoError(p, p.on(s.device).Fill8(cuda.Whole(s.buffer), value))
		for i := range s.bytes {
			s.bytes[i] = value
		}
	case n < 65:
		if to, from := p.one(), p.one(); to != from {
			p.copy(to, from)
		}
	case n < 80:
		s := p.one()
		to := p.elsewhere(s.device)
		b, err := p.on(to).TransferPeer(p.on(s.device), s.buffer)
		require.NoError(p, err)
		s.buffer, s.device = b, to
	case n < 86:
		p.busy(p.on(p.random.IntN(len(p.devices))))
	case n < 89:
		_, err := p.devices[p.random.IntN(len(p.devices))].Trim(p.Context(), 0)
		require.NoError(p, err)
	case n < 97:
		p.check(p.one())
	default:
		require.NoError(p, p.on(p.random.IntN(len(p.devices))).Synchronize(p.Context()))
	}
}

// A random program on several devices leaves the bytes that the same work leaves which is done at once, in the order of the
// calls.
func TestProgramsOnSeveralDevicesDoWhatTheirWorkDoes(t *testing.T) {
	for seed := range 2 * programs() {
		devices := 2 + int(seed%3)
		t.Run(fmt.Sprintf("seed %d, %d devices", seed, devices), func(t *testing.T) {
			p := &traveller{several: newSeveral(t, sim.Config{Devices: devices}, vram.Config{}), random: rand.New(rand.NewPCG(seed, 2))}
			for device := range devices {
				p.contexts = append(p.contexts, []*cuda.Context{p.context(device), p.context(device), p.context(device)})
			}
			for range 300 {
				p.step()
			}
			for _, s := range p.live {
				p.check(s)
				require.NoError(t, s.buffer.Free())
			}
			for device, dev := range p.devices {
				for _, c := range p.contexts[device] {
					require.NoError(t, c.Synchronize(t.Context()))
				}
				_, err := dev.Trim(t.Context(), 0)
				require.NoError(t, err)
				require.Zero(t, dev.Stats().ReservedBytes, "%v", dev.Stats())
			}
		})
	}
}
