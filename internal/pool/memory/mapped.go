package memory

import "github.com/go-vram/vram/internal/heap"

// Mapped returns the runs of pages that have a handle since the last job ended, without lost handles, which may be mapped or
// not. The runs ascend and do not touch.
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
