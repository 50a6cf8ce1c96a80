package streams

import "github.com/go-vram/vram/streams/tape"

// packLooks is how much of a plan is packed at a tick: some milliseconds. Not more: the ticks of other streams wait for it.
// Not less: a plan of thirty thousand requests takes two hundred million looks.
const packLooks = 4 << 20

// pack works at the stream's plan for a while, outside the turn. It returns the plan once it is packed. One that panics
// is never packed: the stream goes on without.
func (s *Stream) pack() (packed *tape.Packer) {
	job := s.job.Swap(nil)
	if job == nil {
		return nil
	}
	defer func() {
		if value := recover(); value != nil {
			s.panics.Here("planner", value)
		}
	}()
	if job.Run(packLooks) {
		return job
	}
	s.job.Store(job)
	return nil
}

// exchangeJob gives the core a plan that was packed and takes the next one to be packed, in the turn of a tick.
func (s *Stream) exchangeJob() {
	if s.packing != nil {
		s.core.Planned(s.packing)
		s.packing = nil
	}
	if job := s.core.PlanJob(); job != nil {
		s.job.Store(job)
	}
}
