package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/lab/bench"
	"github.com/go-vram/vram/lab/compare"
	"github.com/go-vram/vram/monitor/gpus"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // while running
	exitUsage  = 2 // invalid flags or traces
	exitLate   = 3 // of wait: the time is over
)

// commandLine declares the commands and flags for kong.
type commandLine struct {
	Help    helpFlag    `short:"h" help:"Show help."`
	Asked   versionFlag `name:"version" short:"V" help:"Show the version."`
	Replay  replayCmd   `cmd:"" help:"Play traces on a device and print the cost of each operation and the memory held."`
	Analyze analyzeCmd  `cmd:"" help:"Describe traces, and recommend a configuration, with the gain and the price of each change."`
	Compare compareCmd  `cmd:"" help:"Play traces with two configurations in turns, and print their figures side by side."`
	Bench   benchCmd    `cmd:"" help:"Measure allocation and free in scenarios, with a calibration and a mutex for comparison."`
	Serve   serveCmd    `cmd:"" help:"Serve a live page of a device that plays a trace or a demonstration."`
	Top     topCmd      `cmd:"" help:"Show the same figures in the terminal, of a device of this process or of a running page."`
	Kernels kernelsCmd  `cmd:"" help:"Write a Go package with a typed method for each kernel of PTX or CUDA C++ files."`
	Sim     simCmd      `cmd:"" help:"Play the allocator from seeds, with failures, panics and cancellations, and check its promises."`
	Lease   leaseCmd    `cmd:"" help:"Wait for memory of a GPU in the host's queue, and run a command while the lease holds."`
	Fleet   fleetCmd    `cmd:"" help:"Show the devices of the host's ledger, and the gangs that hold memory or wait."`
	Info    infoCmd     `cmd:"" help:"Show the device, the processes on all GPUs, the configuration and the embedded traces."`
	Wait    waitCmd     `cmd:"" help:"Wait until a device has so much free memory."`
	Version versionCmd  `cmd:"" help:"Show the version."`
	Guard   guardCmd    `cmd:"" hidden:"" help:"Run the command of a lease, and end all processes that it starts."`
	Start   startCmd    `cmd:"" hidden:"" help:"Compile kernels, and print the time."`
	ForHelp helpCmd     `cmd:"" name:"help" help:"Show help for a command."`
}

// program has the context and the streams of all commands.
type program struct {
	ctx    context.Context //nolint:containedctx // kong calls Run with bound values only
	stdin  io.Reader       // nil: none
	stdout io.Writer
	stderr io.Writer
	reader *gpus.Reader // opens NVML when a command asks
}

// usageError reports a mistake on the command line, or in a file that it names.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// shownError ends parsing after help or the version was printed.
type shownError struct{ err error } // of printing

func (*shownError) Error() string { return "shown" }

// helpFlag prints help and ends parsing; kong's own exits the process.
type helpFlag bool

// IgnoreDefault keeps kong from showing a default.
func (helpFlag) IgnoreDefault() {}

// BeforeReset runs before anything is required.
func (helpFlag) BeforeReset(ctx *kong.Context) error {
	return &shownError{ctx.PrintUsage(false)}
}

// versionFlag prints the version and ends parsing.
type versionFlag bool

// IgnoreDefault keeps kong from showing a default.
func (versionFlag) IgnoreDefault() {}

// BeforeReset runs before anything is required.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	return &shownError{printVersion(app.Stdout)}
}

// helpCmd implements the command help.
type helpCmd struct {
	Command string `arg:"" optional:"" help:"The command. Default: list all commands."`
}

// Run prints the text of the flag -h.
func (c *helpCmd) Run(p *program) error {
	var args []string
	if c.Command != "" {
		args = append(args, c.Command)
	}
	return p.parseAndRun(append(args, "--help"))
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runWith(ctx, args, stdout, stderr, gpus.OnDemand(gpus.Config{}))
}

// runWith is run with a reader of the machine's GPUs, which it closes.
func runWith(ctx context.Context, args []string, stdout, stderr io.Writer, reader *gpus.Reader) int {
	p := &program{ctx: ctx, stdin: os.Stdin, stdout: stdout, stderr: stderr, reader: reader}
	err := p.parseAndRun(args)
	err = errors.Join(err, reader.Close())
	if _, exit := errors.AsType[*exitError](err); err != nil && !exit {
		_, _ = fmt.Fprintf(stderr, "vram: %s\n", oneLine(err))
	}
	return codeOf(err)
}

// codeOf returns the exit code of a command's error.
func codeOf(err error) int {
	if err == nil {
		return exitOK
	}
	if exit, ok := errors.AsType[*exitError](err); ok { // of the leased command
		return exit.code
	}
	_, usage := errors.AsType[*usageError](err)
	_, config := errors.AsType[*vram.ConfigError](err) // a flag or a variable set the field
	if usage || config {
		return exitUsage
	}
	if lease, ok := errors.AsType[*leaseError](err); ok {
		return lease.code
	}
	if _, late := errors.AsType[*lateError](err); late {
		return exitLate
	}
	return exitFailed
}

func (p *program) parseAndRun(args []string) error {
	var line commandLine
	parser, err := kong.New(&line,
		kong.Name("vram"),
		kong.Description("The GPU memory allocator for Go."),
		kong.NoDefaultHelp(),
		kong.Vars{"setups": strings.Join(compare.Keys(), ", "), "repetitions": strconv.Itoa(bench.DefaultRepetitions), "samples": strconv.Itoa(bench.DefaultSamples), "time": bench.DefaultRepetitionTime.String(), "scenarios": strings.Join(bench.ScenarioNames(), ", ")},
		kong.Writers(p.stdout, p.stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(doubleDashes(args))
	if shown, ok := errors.AsType[*shownError](err); ok {
		return shown.err
	}
	if err != nil {
		return &usageError{mistake(err)}
	}
	return parsed.Run(p)
}

// mistake rewords errors of the parser that mislead: the parser calls an unknown command an unexpected argument, and prints its
// token for the end of the line.
func mistake(err error) error {
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok || parse.Context == nil {
		return err
	}
	text := err.Error()
	flag, missing := strings.CutSuffix(text, `"EOL" (<EOL>)`)
	argument, unexpected := strings.CutPrefix(text, "unexpected argument ")
	switch commandless := parse.Context.Selected() == nil; {
	case missing:
		name, _, _ := strings.Cut(flag, ":")
		return fmt.Errorf("%s: a value is missing", name)
	case commandless && unexpected:
		return fmt.Errorf("there is no command %s (vram help lists them)", argument)
	case commandless && strings.HasPrefix(text, "expected one of "):
		return errors.New("a command is missing (vram help lists them)")
	}
	return err
}

// doubleDashes gives long flags with one dash (-rounds 5) a second one, which the parser requires. Flags of one letter and
// arguments after "--" stay.
func doubleDashes(args []string) []string {
	out := make([]string, 0, len(args))
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		name, _, _ := strings.Cut(arg, "=")
		if len(name) > 2 && name[0] == '-' && isLetter(name[1]) {
			arg = "-" + arg
		}
		out = append(out, arg)
	}
	return out
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// oneLine joins an error's text into one line, without the module's name, which run prints before it.
func oneLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(strings.TrimPrefix(line, "vram: "), ": vram: ", ": ")
	}
	return strings.Join(lines, "; ")
}
