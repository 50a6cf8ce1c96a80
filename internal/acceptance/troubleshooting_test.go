package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// logged says why a request was refused, as docs/troubleshooting.md has it.
func logged(err error) {
	var short *vram.OutOfMemoryError
	if errors.As(err, &short) {
		log.Print(short.Report())
	}
}

// whoHolds prints the live buffers, as docs/troubleshooting.md has it.
func whoHolds(ctx context.Context, dev *vram.Device, out io.Writer) error {
	list, err := dev.LiveBuffers(ctx)
	if err != nil {
		return err
	}
	fmt.Fprint(out, list) // a table
	for _, g := range list.ByTag() {
		fmt.Fprintln(out, g.Name, g.Count, g.Bytes)
	}
	return nil
}

// sampling switches sampling on, as docs/troubleshooting.md has it.
func sampling(dev *vram.Device) error {
	share := int64(vram.DefaultSampleBytes)
	err := dev.Reconfigure(vram.Settings{SampleBytes: &share})
	return err
}

// leaking is a program that loses a buffer, and not the error that says so.
func leaking(driver *sim.Driver) (err error) {
	dev, err := vram.Open(vram.Config{Driver: driver})
	if err != nil {
		return err
	}
	defer vram.CloseInto(&err, dev)
	s, err := dev.NewStream()
	if err != nil {
		return err
	}
	_, err = s.AllocFor(context.Background(), vram.Request{Bytes: 64 << 20, Tag: "activations"})
	return err
}

// leakReport is the report of a leak, or nothing.
func leakReport(err error) string {
	var leak *vram.InUseError
	if errors.As(err, &leak) {
		return leak.Report()
	}
	return ""
}

// watching opens a device that describes all waits once one lasts for a second.
func watching(cfg vram.Config, say func(string)) (*vram.Device, error) {
	var dev *vram.Device
	cfg.Events.LongWait = func(vram.LongWaitEvent) {
		if w, err := dev.Waiters(context.Background()); err == nil {
			say(w.String())
		}
	}
	dev, err := vram.Open(cfg)
	return dev, err
}

// The texts on docs/troubleshooting.md equal the reports.
func TestTheReportsOfTheTroubleshootingPage(t *testing.T) {
	page := pages(t)["docs/troubleshooting.md"]
	assert.Contains(t, page, leakReport(leaking(sim.New(sim.Config{})))[:70])
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.stream(), h.stream()
		x, err := a.AllocFor(t.Context(), vram.Request{Bytes: 40 * mib, Tag: "weights"})
		require.NoError(t, err)
		y := must(t, b, 16*mib)
		<-time.After(90 * time.Second) // virtual
		_, err = b.Alloc(32 * mib)
		logged(errors.Unwrap(err)) // nothing
		var short *vram.OutOfMemoryError
		require.ErrorAs(t, err, &short)
		assert.Contains(t, page, short.Report())
		assert.Contains(t, page, short.Error())
		var text writer
		require.NoError(t, whoHolds(t.Context(), h.Device, &text))
		assert.Contains(t, page, string(text[:len(text)-len("weights 1 41943040\n 1 16777216\n")]))
		freeAll(t, x, y)
	})
	synctest.Test(t, func(t *testing.T) {
		texts := make(chan string, 1)
		dev, err := watching(vram.Config{Driver: sim.New(sim.Config{}), LimitBytes: 64 << 20}, func(text string) { texts <- text })
		require.NoError(t, err)
		a, err := dev.NewStream()
		require.NoError(t, err)
		b, err := dev.NewStream()
		require.NoError(t, err)
		x, y := must(t, a, 32*mib), must(t, b, 16*mib)
		first, second := waitFor(a, vram.Request{Bytes: 40 * mib, Tag: "batch"}), waitFor(b, vram.Request{Bytes: 32 * mib})
		text := <-texts
		assert.Contains(t, text, " wait for each other\n")
		waits(t, first, second)
		freeAll(t, x, y)
		for range 2 { // one may have to wait for the other
			var a served
			select {
			case a = <-first:
			case a = <-second:
			}
			require.NoError(t, a.err)
			require.NoError(t, a.Free())
		}
		require.NoError(t, dev.Close())
	})
}

// writer keeps the written bytes.
type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}
