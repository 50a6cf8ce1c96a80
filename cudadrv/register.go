package cudadrv

import (
	"fmt"
	"slices"
	"sync"
)

// registered are the drivers of Register by name.
var registered struct { //nolint:gochecknoglobals // made on first use: importing a driver's package gives it a name and starts nothing
	sync.Mutex
	drivers map[string]func() Driver // nil functions: names that were registered twice
}

// Register gives a driver a name for callers of Named, such as vram.DriverNamed. A driver's package calls it when it is
// imported; newDriver makes the driver and touches no GPU. It does not panic: Named refuses a name that was registered twice, and
// a registration without a name or without newDriver changes nothing.
func Register(name string, newDriver func() Driver) {
	if name == "" || newDriver == nil {
		return
	}
	registered.Lock()
	defer registered.Unlock()
	if registered.drivers == nil {
		registered.drivers = map[string]func() Driver{}
	}
	if _, taken := registered.drivers[name]; taken {
		newDriver = nil
	}
	registered.drivers[name] = newDriver
}

// Named makes the driver that is registered by a name; nil if there is none. It fails with ErrNoDriver for a name that was
// registered twice.
func Named(name string) (Driver, error) {
	registered.Lock()
	newDriver, known := registered.drivers[name]
	registered.Unlock()
	switch {
	case !known:
		return nil, nil // the caller has names of its own
	case newDriver == nil:
		return nil, fmt.Errorf("%w: the name %q was registered twice", ErrNoDriver, name)
	}
	return newDriver(), nil
}

// Names returns the registered names in alphabetical order.
func Names() []string {
	registered.Lock()
	defer registered.Unlock()
	names := make([]string, 0, len(registered.drivers))
	for name := range registered.drivers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
