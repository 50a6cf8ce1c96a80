package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"strings"
	"sync"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/examples/internal/kernels"
	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/directory"
)

// stepTime is how long a kernel of a part takes. The part asks for its grant between two kernels.
const stepTime = 20 * time.Millisecond

// Part is the part of a gang on one device.
type Part struct {
	Ticket fleet.Ticket
	Device string
	Bytes  int64
	Steps  int // of its work; 0: until its grant ends
}

// connection is the input and the output of a process. The end of one ends the other.
type connection struct {
	io.Reader
	io.Writer

	end func() error
}

func (c connection) Read(b []byte) (n int, err error) {
	if n, err = c.Reader.Read(b); err != nil {
		_ = c.end() // the error is the reader's
	}
	return n, err
}

// Close implements io.Closer.
func (c connection) Close() error { return c.end() }

// server is a member of the fleet in its own process. The program calls its exported methods.
type server struct {
	ctx     context.Context //nolint:containedctx // the program's end ends all calls
	member  *fleet.Member
	devices map[string]*vram.Device
	views   map[string]*kernels.View
	grants  sync.Map // of *fleet.Grant, by the names of tickets
}

// serve joins the fleet with the devices of a member, and serves calls until the input ends. Then it gives all back.
func serve(ctx context.Context, o options, in io.Reader, out io.Writer) (err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	s := &server{ctx: ctx, devices: map[string]*vram.Device{}, views: map[string]*kernels.View{}}
	defer func() { err = s.close(err) }()
	var own []fleet.Device
	for i := range devicesEach {
		c, name := o.config, fmt.Sprintf("%s-%d", o.member, i)
		c.Ordinal = (c.Ordinal + devicesEach*strings.Index(letters, o.member) + i) % o.count
		if s.views[name], err = kernels.OpenView(c.Driver, c.Ordinal); err != nil {
			return err
		}
		if s.devices[name], err = vram.Open(c); err != nil {
			return err
		}
		own = append(own, fleet.Device{Device: s.devices[name], Name: name, Labels: map[string]string{"member": o.member}})
	}
	l, err := directory.Open(o.ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if s.member, err = fleet.Join(ctx, l, own...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.member.Close()) }()
	calls := rpc.NewServer()
	err = calls.RegisterName("Member", s)
	calls.ServeConn(connection{in, out, func() error { end(); return nil }}) // returns when all calls have
	return err
}

// close closes the devices. It fails if memory of one is in use.
func (s *server) close(err error) error {
	for name, d := range s.devices {
		if n := d.Stats().SetAsideBytes; n > 0 {
			err = errors.Join(err, fmt.Errorf("%d bytes of %s are set aside", n, name))
		}
		err = errors.Join(err, d.Close()) // an *InUseError has live buffers
	}
	for _, v := range s.views {
		err = errors.Join(err, v.Close())
	}
	return err
}

// Place names the device that serves a request soonest.
func (s *server) Place(bytes int64, placed *fleet.Placement) (err error) {
	*placed, err = s.member.Place(s.ctx, bytes, "service")
	return err
}

// Reserve waits for the memory of a gang.
func (s *server) Reserve(r fleet.Request, parts *[]Part) error {
	grant, err := s.member.Reserve(s.ctx, r)
	if err != nil {
		return err
	}
	s.grants.Store(grant.Ticket().Name, grant)
	for _, p := range grant.Parts() {
		*parts = append(*parts, Part{Ticket: grant.Ticket(), Device: p.Device, Bytes: p.Bytes})
	}
	return nil
}

// Release ends a grant of this member.
func (s *server) Release(t fleet.Ticket, held *bool) error {
	grant, _ := s.grants.LoadAndDelete(t.Name)
	g, ok := grant.(*fleet.Grant)
	if *held = ok; !ok {
		return fmt.Errorf("no grant %v", t)
	}
	return errors.Join(g.Err(), g.Release())
}

// Run draws the memory of a part from the gang's reservation on a device of this member, launches kernels, and frees it. It ends early
// where the grant has ended.
func (s *server) Run(p Part, ended *bool) error {
	stream, err := s.devices[p.Device].NewStream()
	if err != nil {
		return err
	}
	var buffer vram.Buffer
	memory, err := s.member.Claim(s.ctx, p.Device, p.Ticket)
	if err == nil {
		buffer, err = stream.AllocFor(s.ctx, vram.Request{Bytes: p.Bytes, Reservation: memory})
	}
	view := s.views[p.Device]
	for step := 0; err == nil && (p.Steps == 0 || step < p.Steps); step++ {
		err = view.Write(stream.Handle(), stepTime, buffer)
		if err == nil {
			err = view.StreamSynchronize(stream.Handle())
		}
		if err == nil {
			_, err = s.member.Claim(s.ctx, p.Device, p.Ticket)
		}
	}
	if *ended = errors.Is(err, fleet.ErrFenced); *ended {
		err = nil
	}
	if buffer != (vram.Buffer{}) {
		err = errors.Join(err, buffer.Free())
	}
	return errors.Join(err, stream.Close())
}
