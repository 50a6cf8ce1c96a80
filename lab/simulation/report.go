package simulation

import (
	"fmt"
	"strings"
)

// Report counts the events of a run, so that a reader can see that it met something.
type Report struct {
	Digest  uint64 // of all that was decided and answered: equal seeds, equal digests
	Steps   uint64
	Actions [kindCount]uint64 // by kind
	Resumes uint64            // of tasks

	Allocs, Frees, Batches            uint64 // of callers
	Refused, OutOfMemory, Cancelled   uint64
	MagazineHits, RangeHits, PoolHits uint64
	Shared                            uint64 // buffers on memory that another stream had before
	DriverCalls                       uint64 // maps, unmaps and the like
	Injected                          uint64 // failures of the driver
	TurnPanics, CallPanics            uint64
	Waits                             uint64 // on the device, of one stream for another
	Streams                           uint64 // opened
	Shares, Transfers                 uint64 // uses that were announced, buffers that were handed over
	Found                             uint64 // buffers that an address led to
	Captures, AdoptedCaptures         uint64 // begun, and the part on adopted streams
	AnnouncedCaptures, LostRecords    uint64 // of captures; fences that were recorded as one began that was not announced
	FoundInGraph                      uint64 // queries of a fence in a graph: that capture had ended when the allocator asked for one
	Crossings                         uint64 // works on buffers of other streams, ordered after their streams
	Uncapturable                      uint64 // refused for a capture
	Exclusions                        uint64 // of streams from waits, and ends of them
	Awaited                           uint64 // buffers seen to wait for a use that had not passed
	Devices                           uint64 // closed
	Waited, Deadlocks                 uint64 // requests that waited for memory; that were refused as deadlocks
	Handled                           uint64 // shortages that callers' handlers were asked about
	Reserved                          uint64 // reservations
	OverQuota, Charged                uint64 // requests that a quota refused; bytes that tenants had
	Rehearsed                         uint64 // steps that were played alone
	Settled, Whole, Fitted            uint64 // times that all had settled; that a request had to be served then
	Occupied                          uint64 // times that another process had a part of the device then
	Pipelines, Handovers              uint64 // pairs of callers; values that they passed
	Standstills                       uint64 // times that everybody had to be refused or to stand still
	Progressed                        uint64 // requests that waited while others freed, without a tick
	Rests                             uint64 // times that all free memory had to be released for its age
}

// counts returns the numbers with their names.
func (r *Report) counts() []count {
	return []count{
		{"buffers", &r.Allocs},
		{"frees", &r.Frees},
		{"batches", &r.Batches},
		{"refused", &r.Refused},
		{"out of memory", &r.OutOfMemory},
		{"cancelled", &r.Cancelled},
		{"magazine hits", &r.MagazineHits},
		{"range hits", &r.RangeHits},
		{"pool hits", &r.PoolHits},
		{"on others' memory", &r.Shared},
		{"driver calls", &r.DriverCalls},
		{"failed driver calls", &r.Injected},
		{"panics in turns", &r.TurnPanics},
		{"panics in calls", &r.CallPanics},
		{"waits on the device", &r.Waits},
		{"waits for memory", &r.Waited},
		{"deadlocks", &r.Deadlocks},
		{"handlers", &r.Handled},
		{"reservations", &r.Reserved},
		{"over a quota", &r.OverQuota},
		{"bytes of tenants", &r.Charged},
		{"streams", &r.Streams},
		{"announced uses", &r.Shares},
		{"transfers", &r.Transfers},
		{"found by address", &r.Found},
		{"captures", &r.Captures},
		{"of adopted streams", &r.AdoptedCaptures},
		{"announced", &r.AnnouncedCaptures},
		{"fences lost as one began", &r.LostRecords},
		{"fences found in a graph", &r.FoundInGraph},
		{"works on other streams' buffers", &r.Crossings},
		{"refused for a capture", &r.Uncapturable},
		{"exclusions", &r.Exclusions},
		{"buffers that waited", &r.Awaited},
		{"rehearsals", &r.Rehearsed},
		{"devices", &r.Devices},
		{"standstills", &r.Standstills},
		{"pipelines", &r.Pipelines},
		{"values handed over", &r.Handovers},
		{"settled", &r.Settled},
		{"asked for all", &r.Whole},
		{"requested all available memory", &r.Fitted},
		{"while others have a part", &r.Occupied},
		{"waits without a tick", &r.Progressed},
		{"rests", &r.Rests},
	}
}

type count struct {
	name  string
	value *uint64
}

// Add sums reports up. The digest stays.
func (r *Report) Add(o Report) {
	r.Steps += o.Steps
	r.Resumes += o.Resumes
	for k := range r.Actions {
		r.Actions[k] += o.Actions[k]
	}
	mine, others := r.counts(), o.counts()
	for i := range mine {
		*mine[i].value += *others[i].value
	}
}

// String returns a paragraph: actions by kind, and events.
func (r Report) String() string {
	var b strings.Builder
	b.WriteString("actions:")
	for k, n := range r.Actions {
		fmt.Fprintf(&b, " %v %d,", kind(k), n)
	}
	text := strings.TrimSuffix(b.String(), ",")
	b.Reset()
	b.WriteString(text + "\nmet:")
	for _, c := range r.counts() {
		fmt.Fprintf(&b, " %s %d,", c.name, *c.value)
	}
	return strings.TrimSuffix(b.String(), ",")
}
