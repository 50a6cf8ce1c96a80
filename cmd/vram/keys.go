package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/term"
)

// The keys that end the command: q, Q, Ctrl-C and Ctrl-D. A terminal in raw mode sends the latter two as bytes, and no signal.
const (
	ctrlC = 3
	ctrlD = 4
)

// keyboard reads a terminal in raw mode, until restore: each key arrives at once, and is not echoed.
type keyboard struct {
	read    bool   // false: stdin is no terminal, and there are none
	restore func() // ends the context and restores the terminal; idempotent
}

// keysOf reads the keys of stdin if stdin is a terminal. Keys that quit end the returned context. Signals that would end the
// process end it, too, so that the caller restores the terminal.
func keysOf(ctx context.Context, stdin io.Reader) (context.Context, *keyboard, error) {
	file, ok := stdin.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) { //nolint:gosec // a small number
		return ctx, &keyboard{restore: func() {}}, nil
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	before, err := term.MakeRaw(int(file.Fd())) //nolint:gosec // as above
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("raw mode of the terminal: %w", err)
	}
	restore := sync.OnceFunc(func() {
		cancel()
		_ = term.Restore(int(file.Fd()), before) //nolint:gosec // as above
	})
	go func() { // the read ends with the process: nothing cancels a read of a terminal
		awaitQuit(file)
		cancel()
	}()
	return ctx, &keyboard{read: true, restore: restore}, nil
}

// awaitQuit reads until a key that quits, or until nothing more can be read.
func awaitQuit(from io.Reader) {
	pressed := make([]byte, 64)
	for {
		n, err := from.Read(pressed)
		for _, key := range pressed[:n] {
			switch key {
			case 'q', 'Q', ctrlC, ctrlD:
				return
			}
		}
		if err != nil {
			return
		}
	}
}
