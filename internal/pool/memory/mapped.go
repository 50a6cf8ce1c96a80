package memory

import "github.com/go-vram/vram/internal/heap"

// Mapped are the pages that have a handle, as the last job that ended has left them, without those of lost handles, which
// may be mapped or not. The runs rise, and do not touch.
func (m *Memory) Mapped() (all []Run) {
	for at := range m.top() {
		if h := m.pages[at].handle; h == heap.None || m.handleOf[h].lost {
			continue
		}
		if last := len(all) - 1; last >= 0 && all[last].End() == at {
			all[last].Pages++
			continue
		}
		all = append(all, Run{First: at, Pages: 1})
	}
	return all
}
