package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-vram/vram/fleet/ledger"
)

// Bounds of texts and counts, also from outside.
const (
	// MostName bounds names, tickets and labels in bytes: a key stays short.
	MostName = 128
	// MostWants bounds the wants of a gang: a transaction of etcd has at most 128 operations, and a grant compares and writes each want, up
	// to mostPassed other gangs, and two pairs more.
	MostWants = 64
	// MostRequestBytes bounds the record of a request, most of which is labels: a transaction of etcd has at most 1.5 MiB, and writes up
	// to mostPassed+1 of them.
	MostRequestBytes = 16 << 10
	// MostLabels bounds the labels of a device or a want.
	MostLabels = 64
	// MostBytes bounds sizes, so that sums of them fit an int64.
	MostBytes = 1 << 50
	// MostPageBytes bounds the pages of a device.
	MostPageBytes = 1 << 30
	// MostPriority bounds priorities in both directions.
	MostPriority = 1 << 20
)

// Policy says which devices a gang prefers among those that fit.
type Policy string

// The policies.
const (
	Pack   Policy = "pack"   // few hosts, and the devices with the least free memory
	Spread Policy = "spread" // many hosts, and the devices with the most free memory
)

// Device is a device's offer to gangs.
type Device struct {
	Name       string            `json:"-"`
	Host       string            `json:"host"`
	Ordinal    int               `json:"ordinal"` // with its driver, on its host
	OfferBytes int64             `json:"offer_bytes"`
	PageBytes  int64             `json:"page_bytes,omitempty"` // holds are whole pages; 0: single bytes
	Owned      bool              `json:"owned"`                // a process makes a reservation of each hold
	Labels     map[string]string `json:"labels,omitempty"`

	Incarnation int64 `json:"-"` // the revision that made the key: the owner's present life
	written     int64 // OfferBytes of the record, also of a device that is granted to no gang
	mod, lease  int64
}

// pages returns the bytes that a want of so many bytes takes of the device: whole pages.
func (d *Device) pages(bytes int64) int64 {
	page := max(d.PageBytes, 1)
	return (bytes + page - 1) / page * page
}

// Load is a device's figures, for placement.
type Load struct {
	FreeBytes int64 `json:"free_bytes"` // that its process could still use
	Pressure  int   `json:"pressure"`   // 0: low; 1: high; 2: critical
	Waiting   int   `json:"waiting"`    // requests that wait for memory

	mod int64
}

// Want is memory on one device.
type Want struct {
	Bytes  int64             `json:"bytes"`
	Device string            `json:"device,omitempty"` // its name; "": any with the labels
	Labels map[string]string `json:"labels,omitempty"` // that the device must have
}

// Request has the wants of a gang: each on a device of its own, all or nothing.
type Request struct {
	Wants    []Want `json:"wants"`
	Priority int    `json:"priority"` // higher is served first
	Policy   Policy `json:"policy"`
	Holder   string `json:"holder"` // a text for people: the process
	Since    int64  `json:"since"`  // seconds of the Unix epoch on the requester's clock, for people
}

// Gang is a request in the books.
type Gang struct {
	Ticket   string   `json:"-"`
	Request           // as it was made
	Bypassed int      `json:"bypassed"`          // how often a younger gang took memory that this one could use
	Granted  []string `json:"granted,omitempty"` // the device of each want; none: it waits
	Avoid    []string `json:"avoid,omitempty"`   // devices whose owners did not answer in time

	Age        int64 `json:"-"` // the revision that made its key
	mod, lease int64
}

// Waits reports whether the gang has no grant.
func (g *Gang) Waits() bool { return len(g.Granted) == 0 }

// Hold is bytes of a device for a gang.
type Hold struct {
	Device      string `json:"-"`
	Ticket      string `json:"-"`
	Bytes       int64  `json:"bytes"`
	Incarnation int64  `json:"incarnation"` // of the device that it was granted on
	Fence       int64  `json:"-"`           // the revision of the grant
	Ready       bool   `json:"-"`           // the owner has made the reservation
}

// readyMark is the value of a ready key.
type readyMark struct {
	Fence int64 `json:"fence"`
}

// The families of keys.
const (
	devicePrefix = "device/"
	gangPrefix   = "gang/"
	holdPrefix   = "hold/"
	loadPrefix   = "load/"
	readyPrefix  = "ready/"
)

// HoldKey is the key of a gang's hold of a device.
func HoldKey(device, ticket string) string { return holdPrefix + device + "/" + ticket }

func readyKey(device, ticket string) string { return readyPrefix + device + "/" + ticket }

// value encodes a record: their types have nothing that cannot be encoded.
func value(record any) []byte {
	text, err := json.Marshal(record)
	if err != nil {
		panic(err) // a type of this package that cannot be encoded
	}
	return text
}

// CheckName returns the error of a name of a device, a host or a ticket: it must be short, and of letters, digits and . _ - : alone.
func CheckName(name string) error {
	valid := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-:", c)
	}
	if name == "" || len(name) > MostName || strings.ContainsFunc(name, func(c rune) bool { return !valid(c) }) {
		return fmt.Errorf("name %.40q: want 1 to %d of . _ - : letters and digits", name, MostName)
	}
	return nil
}

func checkLabels(labels map[string]string) error {
	if len(labels) > MostLabels {
		return fmt.Errorf("%d labels: want at most %d", len(labels), MostLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if name == "" || len(name) > MostName || len(labels[name]) > MostName {
			return fmt.Errorf("label %.40q: want a name, and at most %d bytes for it and its value", name, MostName)
		}
	}
	return nil
}

// Check returns the error of a device that cannot be in the books.
func (d *Device) Check() error {
	if d == nil {
		return errors.New("the device is nil")
	}
	if d.OfferBytes < 0 || d.OfferBytes > MostBytes {
		return fmt.Errorf("device %s offers %d bytes: want 0 to 2^50", d.Name, d.OfferBytes)
	}
	if d.PageBytes < 0 || d.PageBytes > MostPageBytes {
		return fmt.Errorf("device %s has pages of %d bytes: want 0 to 2^30", d.Name, d.PageBytes)
	}
	if len(d.Host) > MostName {
		return fmt.Errorf("device %s has a host of %d bytes: want at most %d", d.Name, len(d.Host), MostName)
	}
	return errors.Join(CheckName(d.Name), checkLabels(d.Labels))
}

// Check returns the error of a request that cannot be in the books.
func (r *Request) Check() error {
	switch {
	case r == nil:
		return errors.New("the request is nil")
	case len(r.Wants) == 0 || len(r.Wants) > MostWants:
		return fmt.Errorf("%d wants: want 1 to %d", len(r.Wants), MostWants)
	case r.Policy != Pack && r.Policy != Spread:
		return fmt.Errorf("policy %.20q: want pack or spread", r.Policy)
	case r.Priority < -MostPriority || r.Priority > MostPriority:
		return fmt.Errorf("priority %d: want -2^20 to 2^20", r.Priority)
	case len(r.Holder) > MostName:
		return fmt.Errorf("a holder of %d bytes: want at most %d", len(r.Holder), MostName)
	}
	for i, w := range r.Wants {
		if w.Bytes < 1 || w.Bytes > MostBytes {
			return fmt.Errorf("want %d is of %d bytes: want 1 to 2^50", i, w.Bytes)
		}
		if err := checkLabels(w.Labels); err != nil {
			return fmt.Errorf("want %d: %w", i, err)
		}
		if w.Device == "" {
			continue
		}
		if err := CheckName(w.Device); err != nil {
			return fmt.Errorf("want %d: %w", i, err)
		}
		if slices.ContainsFunc(r.Wants[:i], func(other Want) bool { return other.Device == w.Device }) {
			return fmt.Errorf("device %s is wanted twice: want each device once", w.Device)
		}
	}
	if record := len(value(r)); record > MostRequestBytes {
		return fmt.Errorf("a request with a record of %d bytes: want at most %d: fewer labels", record, MostRequestBytes)
	}
	return nil
}

// put makes the write of a gang, under the lease that it has.
func (g *Gang) put() ledger.Put {
	return ledger.Put{Key: gangPrefix + g.Ticket, Value: value(g), Lease: g.lease}
}

func (d *Device) put() ledger.Put {
	return ledger.Put{Key: devicePrefix + d.Name, Value: value(d), Lease: d.lease}
}
