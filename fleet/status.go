package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/go-vram/vram/fleet/core"
	"github.com/go-vram/vram/fleet/ledger"
)

// Status is the state of a fleet at one revision of its ledger.
type Status struct {
	Revision int64          `json:"revision"`
	Devices  []DeviceStatus `json:"devices"` // in the order of their names
	Holding  []GangStatus   `json:"holding"` // in the order of their tickets
	Waiting  []GangStatus   `json:"waiting"` // in the order of service
	// Unreadable are keys of the ledger whose records no member believes.
	Unreadable []string `json:"unreadable,omitempty"`
}

// DeviceStatus is a device.
type DeviceStatus struct {
	Name       string            `json:"name"`
	Host       string            `json:"host"`
	Ordinal    int               `json:"ordinal"`
	Owned      bool              `json:"owned"` // a member makes reservations of its holds
	Labels     map[string]string `json:"labels,omitempty"`
	OfferBytes int64             `json:"offer_bytes"`
	HeldBytes  int64             `json:"held_bytes"`
	Load       core.Load         `json:"load"` // of an owned device
}

// GangStatus is a gang that holds memory or waits.
type GangStatus struct {
	Ticket   string    `json:"ticket"`
	Holder   string    `json:"holder"`
	Since    time.Time `json:"since"` // when it was requested, by the requester's clock
	Priority int       `json:"priority"`
	Bytes    int64     `json:"bytes"` // of all wants
	Bypassed int       `json:"bypassed"`
	Devices  []string  `json:"devices,omitempty"` // of each want, of one that holds

	Reason  core.Reason `json:"reason,omitempty"`  // why it waits
	Before  []string    `json:"before,omitempty"`  // tickets that are served first
	Holders []string    `json:"holders,omitempty"` // tickets that hold memory of its devices
}

// Look reads the state of a fleet. Errors: ErrNilContext, *ArgumentError, the context's and the ledger's.
func Look(ctx context.Context, l Ledger) (Status, error) {
	if err := check(ctx, l, "Look"); err != nil {
		return Status{}, err
	}
	s, err := l.Read(ctx)
	if err != nil {
		return Status{}, err
	}
	var reader core.Reader
	b := reader.Read(s)
	status := Status{Revision: b.Revision, Unreadable: b.Unreadable}
	for _, d := range b.Devices {
		status.Devices = append(status.Devices, DeviceStatus{
			Name: d.Name, Host: d.Host, Ordinal: d.Ordinal, Owned: d.Owned, Labels: d.Labels,
			OfferBytes: d.OfferBytes, HeldBytes: d.OfferBytes - b.FreeBytes(d), Load: b.Loads[d.Name],
		})
	}
	for _, g := range b.Gangs {
		if !g.Waits() {
			status.Holding = append(status.Holding, statusOf(g))
		}
	}
	for _, g := range b.Queue() {
		waiting, v := statusOf(g), b.Plan(g)
		waiting.Reason, waiting.Before, waiting.Holders = v.Reason, v.Before, v.Holders
		status.Waiting = append(status.Waiting, waiting)
	}
	return status, nil
}

func statusOf(g *core.Gang) GangStatus {
	s := GangStatus{Ticket: g.Ticket, Holder: g.Holder, Since: time.Unix(g.Since, 0), Priority: g.Priority, Bypassed: g.Bypassed, Devices: g.Granted}
	for _, w := range g.Wants {
		s.Bytes += w.Bytes
	}
	return s
}

// Plain makes a device known that no process owns: its holds are counted, and its users obey them. It stays in the ledger. A
// device with an owner is left as it is. Errors: ErrNilContext, *ArgumentError, the context's and the ledger's.
func Plain(ctx context.Context, l Ledger, d core.Device) error {
	if err := check(ctx, l, "Plain"); err != nil {
		return err
	}
	if err := d.Check(); err != nil {
		return &ArgumentError{"Plain", err}
	}
	var reader core.Reader
	for {
		s, err := l.Read(ctx)
		if err != nil {
			return err
		}
		t := reader.Read(s).Announce(d)
		if t == nil {
			return nil
		}
		if _, err := l.Commit(ctx, *t); err == nil || !errors.Is(err, ledger.ErrConflict) {
			return err
		}
		pause(ctx, ledger.ErrConflict)
	}
}
