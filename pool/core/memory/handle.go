package memory

import (
	"github.com/go-vram/vram/cudadrv"
)

// handle is a physical allocation, or a plain segment.
type handle struct {
	id    cudadrv.Handle
	at    cudadrv.Ptr // of a plain segment
	run   Run         // where it is mapped; First is meaningless if not mapped
	live  bool
	mapd  bool
	fresh bool // created or moved by the job in flight
	lost  bool // the driver would not take it back; Close tries again
}

// handles are all that were had from the driver, by number.
type handles struct {
	pageBytes int64
	all       []handle
	unused    []int32 // numbers

	reservedBytes, peakReservedBytes int64
	lostBytes                        int64 // of handles that the driver would not take back
}

// add makes a number for a handle that is to be created.
func (hs *handles) add(pages uint32) int32 {
	h := handle{run: Run{Pages: pages}}
	if n := len(hs.unused); n > 0 {
		id := hs.unused[n-1]
		hs.unused = hs.unused[:n-1]
		hs.all[id] = h
		return id
	}
	hs.all = append(hs.all, h)
	return int32(len(hs.all) - 1)
}

// drop gives a number back.
func (hs *handles) drop(id int32) {
	hs.all[id] = handle{}
	hs.unused = append(hs.unused, id)
}

// made counts the bytes of a handle that the driver has made.
func (hs *handles) made(pages uint32) {
	hs.reservedBytes += hs.Bytes(pages)
	hs.peakReservedBytes = max(hs.peakReservedBytes, hs.reservedBytes)
}

// released drops a handle that the driver has taken back.
func (hs *handles) released(id int32) {
	bytes := hs.Bytes(hs.all[id].run.Pages)
	hs.reservedBytes -= bytes
	if hs.all[id].lost {
		hs.lostBytes -= bytes
	}
	hs.drop(id)
}

// lose counts a handle that the driver would not take back.
func (hs *handles) lose(id int32) {
	if h := &hs.all[id]; !h.lost {
		h.lost = true
		hs.lostBytes += hs.Bytes(h.run.Pages)
	}
}

// PageBytes is the length of a page.
func (hs *handles) PageBytes() int64 { return hs.pageBytes }

// Bytes are those of that many pages.
func (hs *handles) Bytes(pages uint32) int64 { return int64(pages) * hs.pageBytes }

// ReservedBytes are those of all handles, mapped or not.
func (hs *handles) ReservedBytes() int64 { return hs.reservedBytes }

// ReservedPages are those of all handles.
func (hs *handles) ReservedPages() uint64 { return uint64(hs.reservedBytes / hs.PageBytes()) } //nolint:gosec // not negative

// PeakReservedBytes is the most that was reserved since New or ResetPeak.
func (hs *handles) PeakReservedBytes() int64 { return hs.peakReservedBytes }

// ResetPeak restarts the peak at what is reserved now.
func (hs *handles) ResetPeak() { hs.peakReservedBytes = hs.reservedBytes }

// LostBytes are those of handles that the driver refused to take back.
func (hs *handles) LostBytes() int64 { return hs.lostBytes }

// Handle is what the books say of a handle or a plain segment.
type Handle struct {
	ID      cudadrv.Handle
	Address cudadrv.Ptr // of a plain segment
	Run     Run         // where it is mapped, if it is
}

// Handle is what the books say of the handle with that number.
func (hs *handles) Handle(number int32) Handle {
	h := &hs.all[number]
	return Handle{h.id, h.at, h.run}
}
