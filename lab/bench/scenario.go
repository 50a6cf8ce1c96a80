package bench

import (
	"fmt"
	"slices"
	"strings"
)

// scenario is a name and its groups.
type scenario struct {
	name   string
	groups func(o Options) []group
}

// scenarios lists all of them in the order of the results.
func scenarios() []scenario {
	return []scenario{
		{"pair", pairGroups},              // one size allocated and freed again and again
		{"lifo", lifoGroups},              // 1,000 allocated, then all freed, the last first
		{"varied", variedGroups},          // sizes from 64 KiB to 64 MiB that practically never repeat, 500 live
		{"own-streams", ownStreamsGroups}, // goroutines with a stream each
		{"one-stream", oneStreamGroups},   // goroutines on one stream
		{"holes", holesGroups},            // 1,000 and 1,000,000 free ranges, sizes that no magazine serves
		{"batch", batchGroups},            // 64 and 1,000 buffers in a call and one by one, of one size and of eight
		{"record", recordGroups},          // one size, used on a second stream until it is freed (RecordStream)
		{"use", useGroups},                // the same with the end of the use told (Use and Done)
		{"transfer", transferGroups},      // one size, handed over to a second stream and freed there
		{"paced", pacedGroups},            // single requests with 5 µs of other work between them
		{"warmup", warmupGroups},          // the first allocations of a device, cold and warmed up
	}
}

// ScenarioNames lists the valid Options.Scenarios, in the order of the results.
func ScenarioNames() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

// UnknownScenarioError names a scenario that does not exist, and those that do.
type UnknownScenarioError struct{ Name string }

// Error returns one line.
func (e *UnknownScenarioError) Error() string {
	return fmt.Sprintf("unknown scenario %q: want all or some of %s", e.Name, strings.Join(ScenarioNames(), ", "))
}

// choose picks the named scenarios; none or "all" are all of them.
func choose(names []string) ([]scenario, error) {
	all := scenarios()
	for _, name := range names {
		if name != "all" && !slices.Contains(ScenarioNames(), name) {
			return nil, &UnknownScenarioError{Name: name}
		}
	}
	if len(names) == 0 || slices.Contains(names, "all") {
		return all, nil
	}
	return slices.DeleteFunc(all, func(s scenario) bool { return !slices.Contains(names, s.name) }), nil
}
