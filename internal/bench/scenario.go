package bench

import (
	"fmt"
	"strings"
)

// scenario is a name and what takes turns under it.
type scenario struct {
	name   string
	about  string
	groups func(o Options) []group
}

// scenarios lists all of them in the order of the results.
func scenarios() []scenario {
	return []scenario{
		{"pair", "one size allocated and freed again and again", pairGroups},
		{"lifo", "1,000 allocated, then all freed, the last first", lifoGroups},
		{"varied", "sizes from 64 KiB to 64 MiB that practically never repeat, 500 live", variedGroups},
		{"own-streams", "goroutines with a stream each", ownStreamsGroups},
		{"one-stream", "goroutines on one stream", oneStreamGroups},
		{"handoff", "one goroutine allocates, another frees", handoffGroups},
		{"holes", "1,000 and 1,000,000 free ranges, sizes that no magazine serves", holesGroups},
		{"async", "futures: 4 KiB from the cache, and from completion to waiter", asyncGroups},
		{"batch", "64 and 1,000 buffers in a call, of one size and of eight, beside one by one", batchGroups},
		{"lane", "one size through a lane, beside the same through its stream", laneGroups},
		{"record", "one size, used on a second stream until it is freed (RecordStream)", recordGroups},
		{"use", "the same with the end of the use told (Use and Done)", useGroups},
		{"transfer", "one size, handed over to a second stream and freed there", transferGroups},
		{"fences", "a mark in a stream's order and so many looks at it, as events and as words", fencesGroups},
		{"paced", "single requests with 5 µs of other work between them", pacedGroups},
		{"warmup", "the first allocations of a device, cold and warmed up", warmupGroups},
	}
}

// Scenario is a name and a line about it.
type Scenario struct{ Name, About string }

// Scenarios lists what Options.Scenarios may name, in the order of the results.
func Scenarios() []Scenario {
	var list []Scenario
	for _, s := range scenarios() {
		list = append(list, Scenario{s.name, s.about})
	}
	return list
}

// UnknownScenarioError names a scenario that does not exist, and those that do.
type UnknownScenarioError struct{ Name string }

// Error is one line.
func (e *UnknownScenarioError) Error() string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return fmt.Sprintf("unknown scenario %q: want all or some of %s", e.Name, strings.Join(names, ", "))
}

// choose picks the named scenarios; none or "all" are all of them.
func choose(names []string) ([]scenario, error) {
	all := scenarios()
	picked := make([]bool, len(all))
	for _, name := range names {
		found := false
		for i, s := range all {
			if name == s.name || name == "all" {
				picked[i], found = true, true
			}
		}
		if !found {
			return nil, &UnknownScenarioError{Name: name}
		}
	}
	var chosen []scenario
	for i, s := range all {
		if picked[i] || len(names) == 0 {
			chosen = append(chosen, s)
		}
	}
	return chosen, nil
}
