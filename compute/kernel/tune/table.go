package tune

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"time"
)

// Device is a kind of device.
type Device struct {
	Name         string
	Major, Minor int // of the compute capability
}

// Key is a kind of work.
type Key struct {
	Kernel     string // the whole computation
	Layouts    string // the kind of the operands' layouts
	Rows, Cols int    // size classes: see SizeClass
}

// SizeClass returns the class of a number: 0 for 0, and n for numbers of n bits.
func SizeClass(n int) int { return bits.Len(uint(max(n, 0))) }

// State says whether a variant may be taken.
type State uint8

// The states.
const (
	Verified State = iota // it computed the results of the reference
	Wrong                 // it computed something else
	Failed                // it was not compiled, or not launched
)

// String names the state.
func (s State) String() string {
	switch s {
	case Verified:
		return "verified"
	case Wrong:
		return "wrong"
	case Failed:
		return "failed"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Row is a variant of a kernel that was measured.
type Row struct {
	Variant   string // its schedule
	Code      string // hash of its text
	Reference bool   // it is taken without a table
	State     State
	Why       string        // of a Wrong or Failed one
	Median    time.Duration // of one launch
	Spread    time.Duration // the middle half of the times lies within it
	Rounds    int           // times; 0: it was not timed
}

// Table has measured variants. The zero value is empty.
type Table struct {
	devices map[Device]map[Key][]Row
}

// Rows returns the rows of a key on a device. The caller must not change them.
func (t *Table) Rows(on Device, of Key) []Row {
	if t == nil {
		return nil
	}
	return t.devices[on][of]
}

// Set replaces the rows of a key on a device.
func (t *Table) Set(on Device, of Key, rows []Row) {
	if t == nil {
		return
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, byVariant)
	t.place(on, of, rows)
}

func byVariant(a, b Row) int { return cmp.Compare(a.Variant, b.Variant) }

// place keeps rows that are in order, and do not change any more.
func (t *Table) place(on Device, of Key, rows []Row) {
	if t.devices == nil {
		t.devices = map[Device]map[Key][]Row{}
	}
	if t.devices[on] == nil {
		t.devices[on] = map[Key][]Row{}
	}
	t.devices[on][of] = rows
}

// Merge sets all rows of another table.
func (t *Table) Merge(other *Table) {
	for on := range other.all() {
		for of, rows := range other.devices[on] {
			t.place(on, of, rows)
		}
	}
}

func (t *Table) all() map[Device]map[Key][]Row {
	if t == nil {
		return nil
	}
	return t.devices
}

// Devices are those that have rows, in order.
func (t *Table) Devices() []Device {
	return slices.SortedFunc(maps.Keys(t.all()), func(a, b Device) int {
		return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor), cmp.Compare(a.Name, b.Name))
	})
}

// Keys returns the keys of a device, in order.
func (t *Table) Keys(on Device) []Key {
	return slices.SortedFunc(maps.Keys(t.all()[on]), func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.Layouts, b.Layouts), cmp.Compare(a.Rows, b.Rows), cmp.Compare(a.Cols, b.Cols))
	})
}
