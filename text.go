package vram

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/go-vram/vram/internal/units"
)

// String has the device's name, state and limit, and its number of streams. It touches no driver
// and takes no turn.
func (d *Device) String() string {
	if !d.opened() {
		return "no device"
	}
	c := d.config.Load()
	var text string
	switch e := d.engine.Load(); {
	case d.closed.Load():
		return fmt.Sprintf("device %d of the driver %s, closed", c.Ordinal, c.Driver.Name())
	case e == nil:
		return fmt.Sprintf("device %d of the driver %s, not used yet", c.Ordinal, c.Driver.Name())
	default:
		info := e.driver.Info()
		text = fmt.Sprintf("device %d, %s, driver %s", info.Ordinal, info.Name, info.Driver)
	}
	return text + fmt.Sprintf(", limit %s, %s", units.Bytes(d.limit.Load()), units.Count(len(d.streams.Load().open), "stream"))
}

// String is a number and a size.
func (d Demand) String() string { return fmt.Sprintf("%d × %s", d.Count, units.Bytes(d.Bytes)) }

// String names the fields that are changed.
func (s Settings) String() string {
	var changed []string
	fields := reflect.ValueOf(s)
	for i := range fields.NumField() {
		if f := fields.Field(i); !f.IsNil() {
			changed = append(changed, printed(fields.Type().Field(i).Name, f.Elem()))
		}
	}
	if len(changed) == 0 {
		return "no change"
	}
	return strings.Join(changed, ", ")
}

// String names the fields that are set, and their values except for functions and interfaces.
func (c Config) String() string {
	var set []string
	fields := reflect.ValueOf(c)
	for i := range fields.NumField() {
		f, name := fields.Field(i), fields.Type().Field(i).Name
		switch {
		case f.IsZero():
		case name == "Driver":
			set = append(set, "Driver: "+c.Driver.Name())
		case f.Kind() == reflect.Func, f.Kind() == reflect.Interface, name == "Events", name == "Observer":
			set = append(set, name+": set")
		default:
			set = append(set, printed(name, f))
		}
	}
	if len(set) == 0 {
		return "the zero Config"
	}
	return strings.Join(set, ", ")
}

// MarshalText implements encoding.TextMarshaler: the text of String. encoding/json, and so slog's handler, refuses functions, which a Config has.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// printed is a field as text.
func printed(name string, value reflect.Value) string {
	return fmt.Sprintf("%s: %v", name, value.Interface())
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (d *Device) MarshalText() ([]byte, error) { return []byte(d.String()), nil }
