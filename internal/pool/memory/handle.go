package memory

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/watermark"
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
	// asleep: of a client whose memory was given back while its pages stay lent. live and mapd are how far that has come.
	asleep bool
}

// handles are all that were had from the driver, by number.
type handles struct {
	pageBytes int64
	handleOf  []handle
	unused    []int32 // numbers

	reservedBytes int64
	reservedPeak  watermark.Mark
	lostBytes     int64 // of handles that the driver would not take back
	sleepingBytes int64 // of handles that are asleep and have no memory
	outsideBytes  int64 // no handles: memory of the driver that others hold, see Outside
}

// addHandle makes a number for a handle that is to be created.
func (hs *handles) addHandle(pages uint32) int32 {
	h := handle{run: Run{Pages: pages}}
	if n := len(hs.unused); n > 0 {
		id := hs.unused[n-1]
		hs.unused = hs.unused[:n-1]
		hs.handleOf[id] = h
		return id
	}
	hs.handleOf = append(hs.handleOf, h)
	return int32(len(hs.handleOf) - 1)
}

// dropHandle gives a number back.
func (hs *handles) dropHandle(id int32) {
	hs.handleOf[id] = handle{}
	hs.unused = append(hs.unused, id)
}

// madeHandle counts the bytes of a handle that the driver has made.
func (hs *handles) madeHandle(pages uint32) {
	hs.reservedBytes += hs.Bytes(pages)
	hs.reservedPeak.Raise(hs.held())
}

// releasedHandle drops a handle that the driver has taken back.
func (hs *handles) releasedHandle(id int32) {
	bytes := hs.Bytes(hs.handleOf[id].run.Pages)
	hs.reservedBytes -= bytes
	if hs.handleOf[id].lost {
		hs.lostBytes -= bytes
	}
	hs.dropHandle(id)
}

// loseHandle counts a handle that the driver would not take back.
func (hs *handles) loseHandle(id int32) {
	if h := &hs.handleOf[id]; !h.lost {
		h.lost = true
		hs.lostBytes += hs.Bytes(h.run.Pages)
	}
}

// held returns the bytes held from the driver.
func (hs *handles) held() int64 { return hs.reservedBytes + hs.outsideBytes }

// Outside adds memory of the driver outside the arena to the peak of reserved bytes; a negative number subtracts.
func (hs *handles) Outside(bytes int64) {
	hs.outsideBytes += bytes
	hs.reservedPeak.Raise(hs.held())
}

// OutsideBytes returns the sum of the calls of Outside.
func (hs *handles) OutsideBytes() int64 { return hs.outsideBytes }

// PageBytes returns the length of a page.
func (hs *handles) PageBytes() int64 { return hs.pageBytes }

// Bytes returns the length of so many pages.
func (hs *handles) Bytes(pages uint32) int64 { return int64(pages) * hs.pageBytes }

// ReservedBytes returns the bytes of all handles, mapped or not.
func (hs *handles) ReservedBytes() int64 { return hs.reservedBytes }

// LostBytes returns the bytes of handles that the driver refused to take back.
func (hs *handles) LostBytes() int64 { return hs.lostBytes }

// Handle describes a handle or a plain segment.
type Handle struct {
	ID      cudadrv.Handle
	Address cudadrv.Ptr // of a plain segment
	Run     Run         // where it is mapped, if it is
}

// Handle returns the handle with that number.
func (hs *handles) Handle(number int32) Handle {
	h := &hs.handleOf[number]
	return Handle{h.id, h.at, h.run}
}
