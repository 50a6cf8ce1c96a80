package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/fleet/core"
	"github.com/go-vram/vram/fleet/ledger"
)

// LeaseTime is how long a lease lasts after its holder's last sign of life, where the ledger does not see the holder's end. Not shorter: a
// process may be slow for seconds. Not longer: the memory of a dead one comes back no earlier.
const LeaseTime = 10 * time.Second

// Device is a device that Join makes known.
type Device struct {
	Device *vram.Device // which the caller keeps open until Member.Close has returned
	Name   string       // in the fleet; "": the host's name and the ordinal, as "node1-0"
	Labels map[string]string
	// LimitBytes bounds the memory that gangs may hold, as does the device's own limit; 0: only the latter.
	LimitBytes int64
}

// Member is a process of a fleet. Join makes one. It is safe for concurrent use.
type Member struct {
	ledger Ledger
	host   string
	owned  []*owned // never changed

	running context.Context //nolint:containedctx // its end is Close's
	stop    context.CancelFunc
	tasks   sync.WaitGroup // owners, grants, and calls that have begun

	lock sync.Mutex // of the field below, and of the first task of a call
	over bool       // Close was called: no call begins
}

// Join makes devices known to the fleet of a ledger, and returns when the ledger has them. Without devices the process can only request. It
// blocks while another living process has a device of the same name, until the context ends. The member keeps goroutines until Close.
// Should its lease end, as after a long pause, it gives back the gangs' memory and joins again by itself. The caller keeps the ledger open
// until Close has returned. Errors: ErrNilContext, *ArgumentError, the context's, the errors of the devices' first use, and ErrClosed.
func Join(ctx context.Context, l Ledger, devices ...Device) (*Member, error) {
	if err := check(ctx, l, "Join"); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	m := &Member{ledger: l, host: host[:min(len(host), core.MostName)]}
	for _, d := range devices {
		o, err := m.own(d) //nolint:contextcheck // the first use is not this caller's alone
		if err == nil && slices.ContainsFunc(m.owned, func(other *owned) bool { return other.record.Name == o.record.Name }) {
			err = &ArgumentError{"Join", fmt.Errorf("device %s is named twice", o.record.Name)}
		}
		if err != nil {
			return nil, err
		}
		m.owned = append(m.owned, o)
	}
	m.running, m.stop = context.WithCancel(context.WithoutCancel(ctx))
	for _, o := range m.owned {
		m.tasks.Go(o.run)
	}
	for _, o := range m.owned {
		select {
		case <-o.joined:
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("fleet: device %s: %w", o.record.Name, cmp.Or(o.failure(), ctx.Err())), ctx.Err(), m.Close())
		}
	}
	return m, nil
}

// own checks a device and makes its owner.
func (m *Member) own(d Device) (*owned, error) {
	info := d.Device.Info() // the first use
	record := core.Device{Name: d.Name, Host: m.host, Ordinal: info.Ordinal, Labels: maps.Clone(d.Labels), PageBytes: info.GranularityBytes}
	if record.Name == "" {
		record.Name = fmt.Sprintf("%s-%d", m.host, info.Ordinal)
	}
	if d.LimitBytes < 0 {
		return nil, &ArgumentError{"Join", fmt.Errorf("a limit of %d bytes: want 0 or more", d.LimitBytes)}
	}
	if err := record.Check(); err != nil {
		return nil, &ArgumentError{"Join", err}
	}
	if _, err := d.Device.GPUMemory(); err != nil {
		return nil, err
	}
	return &owned{member: m, device: d.Device, limit: d.LimitBytes, record: record, joined: make(chan struct{}), grants: map[string]reservation{}}, nil
}

// Close leaves the fleet: the devices' gangs lose their grants, and waiting calls fail with ErrClosed. It waits until all reservations are
// released, and until the calls have ended. Idempotent. Error: ErrNotOpen.
func (m *Member) Close() error {
	if !m.made() {
		return ErrNotOpen
	}
	m.lock.Lock()
	m.over = true
	m.lock.Unlock()
	m.stop()
	m.tasks.Wait()
	return nil
}

// made reports whether Join has made the member.
func (m *Member) made() bool { return m != nil && m.running != nil }

// begin counts a call, for which Close waits. The context ends with the member, too. The caller calls end once. Errors: ErrNotOpen,
// ErrNilContext and ErrClosed.
func (m *Member) begin(ctx context.Context) (running context.Context, end func(), err error) {
	if !m.made() {
		return nil, nil, ErrNotOpen
	}
	if ctx == nil {
		return nil, nil, ErrNilContext
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.over {
		return nil, nil, ErrClosed
	}
	m.tasks.Add(1)
	running, cancel := context.WithCancel(ctx)
	left := context.AfterFunc(m.running, cancel)
	return running, func() {
		left()
		cancel()
		m.tasks.Done()
	}, nil
}

// Claim returns the reservation that a gang has on a device of this process, for a part of the gang that runs here and was given the
// ticket. It asks the ledger whether the grant lives. The reservation is the grant's: the caller does not release it. Errors: ErrFenced,
// *ArgumentError for a device that is not of this process, the context's, ErrNotOpen, ErrNilContext, ErrClosed and the ledger's.
func (m *Member) Claim(ctx context.Context, device string, t Ticket) (*vram.Reservation, error) {
	ctx, end, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	o := m.find(device)
	if o == nil {
		return nil, &ArgumentError{"Claim", fmt.Errorf("device %.40q is not of this process", device)}
	}
	s, err := m.ledger.Read(ctx, core.HoldKey(device, t.Name))
	if err != nil {
		return nil, m.closedOr(err)
	}
	var reader core.Reader
	if h := reader.Read(s).Hold(device, t.Name); h == nil || h.Fence != t.Fence {
		return nil, ErrFenced
	}
	r := o.reservation(t.Name, t.Fence)
	if r == nil {
		return nil, ErrFenced
	}
	return r, nil
}

func (m *Member) find(device string) *owned {
	i := slices.IndexFunc(m.owned, func(o *owned) bool { return o.record.Name == device })
	if i < 0 {
		return nil
	}
	return m.owned[i]
}

// Placement is a device that Place chose.
type Placement struct {
	Device  string
	Host    string
	Ordinal int
	HasRoom bool // for the bytes, at that moment; else a request there waits
}

// Place names the device that will serve a request of so many bytes soonest: one with room, without a queue and under low pressure. Among
// equals each tenant has an order of its own, so that tenants spread and each finds its caches. It reserves nothing, and reads the ledger
// once. Errors: ErrNoDevice, *ArgumentError, the context's, ErrNotOpen, ErrNilContext, ErrClosed and the ledger's.
func (m *Member) Place(ctx context.Context, bytes int64, tenant string) (Placement, error) {
	ctx, end, err := m.begin(ctx)
	if err != nil {
		return Placement{}, err
	}
	defer end()
	if bytes < 1 {
		return Placement{}, &ArgumentError{"Place", fmt.Errorf("%d bytes: want 1 or more", bytes)}
	}
	s, err := m.ledger.Read(ctx)
	if err != nil {
		return Placement{}, m.closedOr(err)
	}
	var reader core.Reader
	d, now := reader.Read(s).Place(bytes, tenant)
	if d == nil {
		return Placement{}, ErrNoDevice
	}
	return Placement{d.Name, d.Host, d.Ordinal, now}, nil
}

// Pauses at most: after a conflict for others to finish, after a failure of the ledger longer. Not longer: a ledger that serves again would wait for
// its callers. Not shorter: one that fails at once would be asked all the time.
const (
	pauseAfterConflict = 20 * time.Millisecond
	pauseAfterFailure  = 250 * time.Millisecond
)

// pause waits for a short random time.
func pause(ctx context.Context, err error) {
	most := pauseAfterConflict
	if err != nil && !errors.Is(err, ledger.ErrConflict) {
		most = pauseAfterFailure
	}
	timer := time.NewTimer(rand.N(most)) //nolint:gosec // so that processes do not meet again
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
