package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/core"
	"github.com/go-vram/vram/fleet/directory"
)

const (
	rounds = 2                // of gangs of each member
	steps  = 4                // of a gang's parts
	most   = 20 * time.Second // of the program, which takes a tenth of it
)

// demonstration is the program that starts the members.
type demonstration struct {
	ledger  *directory.Ledger
	members []*member
	bytes   int64 // of a gang on each device
	began   time.Time
	lock    sync.Mutex // of out
	out     io.Writer
}

// member is a process of the fleet.
type member struct {
	name   string
	cmd    *exec.Cmd
	client *rpc.Client
	killed bool
}

// demonstrate starts the members, and ends them.
func demonstrate(ctx context.Context, o options, args []string, stdout, stderr io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	folder, err := os.MkdirTemp("", "vram-fleet-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	d := &demonstration{bytes: o.config.LimitBytes / 4 * 3, began: time.Now(), out: stdout}
	if d.ledger, err = directory.Open(folder); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.ledger.Close()) }()
	for _, letter := range letters {
		if err == nil {
			err = d.start(ctx, string(letter), append(slices.Clone(args), "-member", string(letter), "-ledger", folder), stderr)
		}
	}
	if err == nil {
		err = d.play(ctx, o.config.LimitBytes/8)
	}
	for _, m := range d.members {
		if !m.killed {
			err = errors.Join(err, m.client.Close(), m.cmd.Wait()) // the member's own check
		}
	}
	s, failed := fleet.Look(ctx, d.ledger)
	if err = errors.Join(err, failed); err == nil && len(s.Devices)+len(s.Holding)+len(s.Waiting) > 0 {
		return fmt.Errorf("the ledger is not empty at the end: %+v", s)
	}
	return err
}

// start starts this program again as a member.
func (d *demonstration) start(ctx context.Context, name string, args []string, stderr io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, args...) //nolint:gosec // this program
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Cancel, cmd.WaitDelay = in.Close, most/4 // the member gives all back
	if err := cmd.Start(); err != nil {
		return err
	}
	d.members = append(d.members, &member{name: name, cmd: cmd, client: rpc.NewClient(connection{out, in, in.Close})})
	return nil
}

// call calls a method of a member.
func (m *member) call(ctx context.Context, method string, argument, reply any) error {
	call := m.client.Go("Member."+method, argument, reply, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		if call.Error != nil {
			return fmt.Errorf("member %s: %s: %w", m.name, method, call.Error)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// log prints an event of a gang's parts.
func (d *demonstration) log(m *member, event, gang string, parts ...Part) {
	var devices []string
	var bytes int64
	for _, p := range parts {
		devices, bytes = append(devices, p.Device), bytes+p.Bytes
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	_, _ = fmt.Fprintf(d.out, "%5.2f s  member %s  %-9s  gang %-7s  %-15s  %s\n",
		time.Since(d.began).Seconds(), m.name, event, gang, strings.Join(devices, " "), humanize.IBytes(uint64(bytes)))
}

// owner returns the member that has a device.
func (d *demonstration) owner(device string) *member {
	return d.members[strings.Index(letters, device[:1])]
}

// other returns the member so many places after another.
func (d *demonstration) other(m *member, places int) *member {
	return d.members[(slices.Index(d.members, m)+places)%len(d.members)]
}

// until waits until a condition of the ledger holds.
func (d *demonstration) until(ctx context.Context, holds func(fleet.Status) bool) error {
	for {
		s, err := fleet.Look(ctx, d.ledger)
		if err != nil || holds(s) {
			return err
		}
		if err := d.ledger.Wait(ctx, s.Revision); err != nil {
			return err
		}
	}
}

// together makes calls at once, and returns all errors.
func together[E any](elements []E, call func(E) error) error {
	errs := make([]error, len(elements))
	var calls sync.WaitGroup
	for i, e := range elements {
		calls.Go(func() { errs[i] = call(e) })
	}
	calls.Wait()
	return errors.Join(errs...)
}

// play has a service run while gangs come and go, and kills a member.
func (d *demonstration) play(ctx context.Context, serviceBytes int64) error {
	if err := d.until(ctx, func(s fleet.Status) bool { return len(s.Devices) == devicesEach*len(letters) }); err != nil {
		return err
	}
	var placed fleet.Placement
	if err := d.members[0].call(ctx, "Place", serviceBytes, &placed); err != nil {
		return err
	}
	host := d.owner(placed.Device)
	d.log(d.members[0], "places", "service", Part{Device: placed.Device, Bytes: serviceBytes})
	err := d.gang(ctx, host, "service", []fleet.Want{{Bytes: serviceBytes, Device: placed.Device}}, func([]Part) error {
		return errors.Join(together(d.members, func(m *member) error { return d.jobs(ctx, m) }), d.kill(ctx, host))
	})
	return errors.Join(err, d.until(ctx, func(s fleet.Status) bool {
		held := slices.ContainsFunc(s.Devices, func(device fleet.DeviceStatus) bool { return device.HeldBytes > 0 })
		return !held && len(s.Holding)+len(s.Waiting) == 0
	}))
}

// jobs runs gangs of a member, each on two to four devices of others.
func (d *demonstration) jobs(ctx context.Context, m *member) error {
	for round := range rounds {
		var places []int
		for i := range 2 + (slices.Index(d.members, m)+round)%3 {
			places = append(places, 1+i%3)
		}
		if err := d.gang(ctx, m, fmt.Sprint(m.name, round+1), d.wants(m, places...), nil); err != nil {
			return err
		}
	}
	return nil
}

// wants returns wants on any devices of the members at some places after another.
func (d *demonstration) wants(m *member, places ...int) (wants []fleet.Want) {
	for _, p := range places {
		wants = append(wants, fleet.Want{Bytes: d.bytes, Labels: map[string]string{"member": d.other(m, p).name}})
	}
	return wants
}

// gang reserves memory, and has its parts run: for some steps, or while a function runs. Then it releases the memory.
func (d *demonstration) gang(ctx context.Context, m *member, name string, wants []fleet.Want, during func([]Part) error) error {
	var parts []Part
	for _, w := range wants {
		parts = append(parts, Part{Device: cmp.Or(w.Device, w.Labels["member"]+"-?"), Bytes: w.Bytes})
	}
	d.log(m, "asks", name, parts...)
	parts = nil
	if err := m.call(ctx, "Reserve", fleet.Request{Wants: wants, Policy: fleet.Spread}, &parts); err != nil {
		return err
	}
	d.log(m, "begins", name, parts...)
	release := func() error {
		if m.killed {
			return nil
		}
		d.log(m, "releases", name, parts...)
		var held bool
		return m.call(ctx, "Release", parts[0].Ticket, &held)
	}
	if during == nil {
		return errors.Join(d.work(ctx, name, parts, steps), release())
	}
	working := make(chan error, 1)
	go func() { working <- d.work(ctx, name, parts, 0) }()
	return errors.Join(during(parts), release(), <-working)
}

// work runs the parts of a gang to their ends after so many steps; with 0 steps they stop when its grant has ended.
func (d *demonstration) work(ctx context.Context, name string, parts []Part, steps int) error {
	return together(parts, func(p Part) error {
		owner, ended := d.owner(p.Device), false
		p.Steps = steps
		if err := owner.call(ctx, "Run", p, &ended); err != nil {
			return err
		}
		if ended != (steps == 0) {
			return fmt.Errorf("gang %s on %s: the grant has ended: %v", name, p.Device, ended)
		}
		if ended {
			d.log(owner, "stops", name, p)
		} else {
			d.log(owner, "ends", name, p)
		}
		return nil
	})
}

// kill kills a member whose gang runs on four devices, while another gang waits for three of them. The service's member lives.
func (d *demonstration) kill(ctx context.Context, host *member) error {
	victim, heir := d.other(host, 1), d.other(host, 2)
	return d.gang(ctx, victim, "doomed", d.wants(victim, 2, 2, 3, 3), func(parts []Part) error {
		return together([]func() error{
			func() error { return d.gang(ctx, heir, "heir", d.wants(heir, 1, 2, 2), nil) },
			func() error {
				err := d.until(ctx, func(s fleet.Status) bool { return len(s.Waiting) == 1 && s.Waiting[0].Reason == core.Memory })
				if err != nil {
					return err
				}
				d.log(victim, "is killed", "doomed", parts...)
				victim.killed = true
				err = victim.cmd.Process.Kill()
				_, _ = victim.client.Close(), victim.cmd.Wait() // the state says more
				if state := victim.cmd.ProcessState.String(); state != "signal: killed" {
					err = errors.Join(err, fmt.Errorf("member %s was killed, and ended with %s", victim.name, state))
				}
				return err
			},
		}, func(task func() error) error { return task() })
	})
}
