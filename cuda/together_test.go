package cuda_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

// zeroedMemory are the calls that allocate and fill.
var zeroedMemory = map[string]func(c *cuda.Context) (cuda.Buffer, error){
	"AllocZeroed": func(c *cuda.Context) (cuda.Buffer, error) { return c.AllocZeroed(32 * mib) },
	"AllocFor": func(c *cuda.Context) (cuda.Buffer, error) {
		return c.AllocFor(context.Background(), vram.Request{Bytes: 32 * mib, Zero: true})
	},
}

// A capture that begins, or ends, between an allocation and its fill: the graph has both or neither.
func TestZeroedMemoryIsOfOneCapture(t *testing.T) {
	for name, allocate := range zeroedMemory {
		t.Run(name+" as a capture begins", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				c := p.on[0]
				entered, resume := p.holdUp("cuMemCreate")
				called, captured, finish := make(chan error, 1), make(chan error, 1), make(chan struct{})
				go func() {
					b, err := allocate(c)
					assert.Zero(t, b)
					called <- err
				}()
				<-entered
				var g *cuda.Graph
				go func() {
					var err error
					g, err = c.Capture(func() error { <-finish; return nil })
					captured <- err
				}()
				synctest.Wait()
				require.Equal(t, cudadrv.CaptureActive, p.status(c))
				resume()
				require.ErrorIs(t, <-called, vram.ErrCapturing)
				close(finish)
				require.NoError(t, <-captured)
				require.NoError(t, g.Close())
				p.close() // nothing is lost
			})
		})
		t.Run(name+" as a capture ends", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				c := p.on[0]
				called, resume := make(chan error, 1), func() {}
				g, err := c.Capture(func() error {
					var entered <-chan struct{}
					entered, resume = p.holdUp("cuMemCreate")
					go func() {
						b, err := allocate(c)
						assert.Zero(t, b)
						called <- err
					}()
					<-entered
					return nil
				})
				resume()
				require.NoError(t, err)
				require.ErrorIs(t, <-called, vram.ErrCapturing)
				require.NoError(t, g.Close())
				p.close()
			})
		})
	}
}

// The works of a call of Together are of one capture, or of none.
func TestWorksTogetherAreOfOneCapture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c := p.on[0]
		fill := func(value uint8) error { return c.Fill8(cuda.Whole(p.of[0]), value) }
		begun, resume, captured := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		var g *cuda.Graph
		go func() {
			var err error
			g, err = c.Capture(func() error {
				close(begun)
				<-resume
				return cuda.Together(c, func(captured bool) error {
					assert.True(t, captured)
					return fill(3)
				})
			})
			captured <- err
		}()
		<-begun
		require.NoError(t, cuda.Together(c, func(is bool) error {
			assert.True(t, is)
			require.NoError(t, fill(4))
			close(resume)
			synctest.Wait()
			assert.Empty(t, captured, "it ends after the call")
			require.ErrorIs(t, fill(5), vram.ErrCapturing, "further work is refused")
			return nil
		}))
		require.NoError(t, <-captured)
		require.NoError(t, g.Close())

		require.NoError(t, cuda.Together(c, func(is bool) error {
			assert.False(t, is)
			require.NoError(t, fill(6))
			go func() {
				_, err := c.Capture(func() error { return errPlanned })
				captured <- err
			}()
			synctest.Wait()
			assert.Equal(t, cudadrv.CaptureNone, p.status(c), "it begins after the call")
			require.ErrorIs(t, fill(7), vram.ErrCapturing)
			return nil
		}))
		require.ErrorIs(t, <-captured, errPlanned)
		require.NoError(t, cuda.Together(c, func(bool) error {
			go func() {
				_, err := c.Capture(func() error { return errPlanned })
				captured <- err
			}()
			synctest.Wait()
			require.ErrorIs(t, cuda.Together(c, func(bool) error { return errPlanned }), vram.ErrCapturing)
			return nil
		}))
		require.ErrorIs(t, <-captured, errPlanned)
		got := make([]byte, 1)
		require.NoError(t, c.CopyOutAt(got, p.of[0], 0))
		assert.Equal(t, byte(6), got[0])
		require.ErrorIs(t, cuda.Together(c, func(bool) error { return errPlanned }), errPlanned)
		p.close()
		require.ErrorIs(t, cuda.Together(c, func(bool) error { return nil }), cuda.ErrNotOpen)
		require.ErrorIs(t, cuda.Together(nil, func(bool) error { return nil }), cuda.ErrNotOpen)
	})
}
