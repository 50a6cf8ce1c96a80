package cuda_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
)

// Work that was submitted counts as work on its own device's buffers although the other device's stream could neither be made to
// wait for it nor did the host's wait work: streams that use, or overwrite after a free, one of the buffers wait for it. The
// checker sees the accesses, and the clock the waits.
func TestWorkWithALateErrorIsOrderedOnItsDevice(t *testing.T) {
	for name, one := range map[string]struct {
		submit func(r *reaching, c *cuda.Context, own, other cuda.Buffer, far *cuda.Context, foreign cuda.Buffer) error
	}{
		"Launch": {func(r *reaching, c *cuda.Context, own, other cuda.Buffer, _ *cuda.Context, foreign cuda.Buffer) error {
			return c.Launch(r.add, oneThread, cuda.In(foreign), cuda.InOut(own), cuda.InOut(other), cuda.Value(uint32(1)))
		}},
		"CopyPeer": {func(r *reaching, c *cuda.Context, _, other cuda.Buffer, far *cuda.Context, foreign cuda.Buffer) error {
			r.busy(c)
			return c.CopyPeer(cuda.Whole(other), far, cuda.Whole(foreign))
		}},
	} {
		for _, waits := range []bool{true, false} { // whether the host's wait works
			for user, use := range map[string]func(r *reaching, home *cuda.Context, other cuda.Buffer) error{
				"a fill of another stream": func(r *reaching, _ *cuda.Context, other cuda.Buffer) error {
					third := r.context(1)
					return third.Fill8(cuda.Whole(other), 3)
				},
				"a fill of the owner": func(_ *reaching, home *cuda.Context, other cuda.Buffer) error {
					return home.Fill8(cuda.Whole(other), 3)
				},
			} {
				t.Run(name+", "+user, func(t *testing.T) {
					r := newReaching(t)
					far, home, c := r.context(0), r.context(1), r.context(1)
					foreign, own, other := r.filled(far, mib, 1), r.filled(c, mib, 1), r.filled(home, mib, 1)
					r.after(far)
					began := max(r.after(home), r.after(c))
					submitted := false
					r.faults.SetBefore(func(function string) {
						if submitted || function != "cuLaunchKernel" && function != "cuMemcpyPeerAsync" {
							return
						}
						submitted = true
						for _, refused := range []string{"cuStreamWaitEvent", "cuEventSynchronize", "cuStreamSynchronize"} {
							if refused == "cuStreamWaitEvent" || !waits {
								assert.NoError(t, r.faults.Add(fault.Rule{Func: refused, Result: cudadrv.Unknown}))
							}
						}
					})
					var late *cuda.OrderError
					require.ErrorAs(t, one.submit(r, c, own, other, far, foreign), &late)
					require.Equal(t, waits, late.Waited)
					r.faults.SetBefore(nil)
					r.faults.Clear()
					require.NoError(t, use(r, home, other))
					require.NoError(t, home.Synchronize(t.Context()))
					_, err := r.devices[1].Trim(t.Context(), 0)
					require.NoError(t, err)
					assert.GreaterOrEqual(t, r.after(c)-began, time.Second)
					got := make([]byte, mib)
					require.NoError(t, home.CopyOutAt(got, other, 0))
					assert.Equal(t, byte(3), got[mib-1], "the later work was done first")
					require.NoError(t, c.Synchronize(t.Context()))
					r.free(foreign, own, other)
				})
			}
		}
	}
}
