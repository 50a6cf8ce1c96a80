package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-vram/vram/examples/internal/command"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	stop, cancelStop := context.WithCancel(context.Background())
	force, cancelForce := context.WithCancel(context.Background())
	go func() {
		<-signals
		cancelStop()
		<-signals
		cancelForce()
	}()
	os.Exit(run(stop, force, os.Args[1:], os.Stdout, os.Stderr))
}

// run serves until stop ends and shuts down, at once when force ends.
func run(stop, force context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if err == nil {
		err = serve(stop, force, o, stdout)
	}
	return command.Exit(context.Background(), "service", err, stderr) // a stop is no failure of a service
}

func serve(stop, force context.Context, o options, stdout io.Writer) error {
	sv, err := Open(o.settings)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(stop, "tcp", o.address)
	if err != nil {
		return errors.Join(err, sv.Close())
	}
	info := sv.device.Info()
	_, _ = fmt.Fprintf(stdout, "service: %s, driver %s, %d layers of %d in %v, steps of up to %d sequences, on http://%s\n",
		info.Name, info.Driver, sv.model.Layers, sv.model.Width, sv.model.Type, sv.decoder.Batch(), listener.Addr())
	if !o.loaded {
		err = errors.Join(sv.Serve(stop, force, listener, o.shutdown), sv.Close())
	} else {
		var seen outcome
		seen, err = sv.load(stop, force, listener, o.loading, o.shutdown)
		err = errors.Join(err, sv.Close(), seen.err())
		seen.print(stdout)
	}
	_, _ = fmt.Fprintf(stdout, "service: stopped; %d requests answered, %d refused\n", sv.answered.Load(), sv.refused.Load())
	return err
}
