package streams

import "time"

// longWaitAfter is how long a request waits for memory until it is told of. Not less: such waits are what Request.Wait is for. Not
// more: whoever looks for a standstill should not have to guess.
const longWaitAfter = time.Second

// LongWait is a request that has waited for memory for a second, or a little longer: it is seen at a tick, once.
type LongWait struct {
	Stream   uint32
	Bytes    int64         // that are wanted; of a batch, all
	Waited   time.Duration // so far
	Priority int
	Tag      string // of the request
	Tenant   string // "": none
	ForQuota bool   // for its tenant's own frees, and not yet for memory
}

// longWaits are those of which nobody has been told yet. It runs in a turn.
func (s *Stream) longWaits() []LongWait {
	if s.longWait == nil || len(s.parked) == 0 {
		return nil
	}
	var found []LongWait
	now := time.Now()
	for _, c := range s.parked {
		p := c.patient()
		waited := now.Sub(p.since)
		if p.told || waited < longWaitAfter || !c.pending() {
			continue
		}
		p.told = true
		w := LongWait{Stream: s.ID(), Bytes: c.wantedBytes(), Waited: waited, Priority: p.priority, ForQuota: p.owes()}
		if p.tenant != nil {
			w.Tenant = p.tenant.Name()
		}
		if r, ok := c.(*request); ok {
			w.Tag = r.Tag
		}
		found = append(found, w)
	}
	return found
}
