package interp

import "github.com/go-vram/vram/compute/ptx"

// The processor that the interpreter plays.
const (
	multiprocessors = 132
	granule         = 16
)

// fillSpecial writes a special register that does not change in a block.
func (w *warp) fillSpecial(to *lanes, s ptx.Special) {
	l := w.block.run.launch
	for n := range to {
		thread := uint64(w.index*warpThreads + n) //nolint:gosec // not negative
		to[n] = w.specialOf(s, l, thread)
	}
}

func (w *warp) specialOf(s ptx.Special, l *Launch, thread uint64) uint64 {
	tid := l.Block.at(thread % l.Block.count())
	lane := thread % warpThreads
	switch s {
	case ptx.TidX, ptx.TidY, ptx.TidZ:
		return tid.part(s - ptx.TidX)
	case ptx.NtidX, ptx.NtidY, ptx.NtidZ:
		return l.Block.part(s - ptx.NtidX)
	case ptx.CtaidX, ptx.CtaidY, ptx.CtaidZ:
		return w.block.index.part(s - ptx.CtaidX)
	case ptx.NctaidX, ptx.NctaidY, ptx.NctaidZ:
		return l.Grid.part(s - ptx.NctaidX)
	case ptx.Laneid:
		return lane
	case ptx.Warpid:
		return uint64(w.index) //nolint:gosec // not negative
	case ptx.Nwarpid:
		return uint64(len(w.block.warps))
	case ptx.Smid:
		return w.block.number % multiprocessors
	case ptx.Nsmid:
		return multiprocessors
	case ptx.LanemaskEq:
		return 1 << lane
	case ptx.LanemaskLe:
		return 1<<(lane+1) - 1
	case ptx.LanemaskLt:
		return 1<<lane - 1
	case ptx.LanemaskGe:
		return full &^ (1<<lane - 1)
	case ptx.LanemaskGt:
		return full &^ (1<<(lane+1) - 1)
	case ptx.DynamicSmemSize:
		return uint64(l.SharedBytes) //nolint:gosec // not negative
	case ptx.TotalSmemSize:
		return uint64(len(w.block.shared))
	default: // gridid, and those that the driver fills
		return l.environment(s)
	}
}

// part is one direction, counted from X.
func (d Dim3) part(n ptx.Special) uint64 {
	switch n {
	case 0:
		return uint64(d.X)
	case 1:
		return uint64(d.Y)
	default:
		return uint64(d.Z)
	}
}
