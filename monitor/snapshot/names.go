package snapshot

import (
	"fmt"
	"slices"
)

// stateNames and actionNames are the words of the format.
var (
	stateNames  = []string{Free: "inactive", Live: "active_allocated", Pending: "active_pending_free"} //nolint:gochecknoglobals // constant table
	actionNames = []string{                                                                            //nolint:gochecknoglobals // constant table
		Alloc: "alloc", FreeRequested: "free_requested", FreeCompleted: "free_completed", Reserve: "segment_alloc", Release: "segment_free",
		Map: "segment_map", Unmap: "segment_unmap", OutOfMemory: "oom", Mark: "snapshot",
	}
)

// String returns the format's word for the state.
func (s State) String() string { return nameOf(stateNames, int(s), "State") }

// MarshalText implements encoding.TextMarshaler: String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *State) UnmarshalText(text []byte) error { return read(s, stateNames, text) }

// String returns the format's word for the action.
func (a Action) String() string { return nameOf(actionNames, int(a), "Action") }

// MarshalText implements encoding.TextMarshaler: String.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Action) UnmarshalText(text []byte) error { return read(a, actionNames, text) }

func nameOf(names []string, i int, of string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", of, i)
}

func read[T ~uint8](to *T, names []string, text []byte) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("snapshot: %q is none of %q", text, names)
	}
	*to = T(i) //nolint:gosec // one of a short table
	return nil
}
