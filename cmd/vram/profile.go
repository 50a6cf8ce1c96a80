package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
)

// profiles writes the runtime's profiles of a command, as go test does.
type profiles struct {
	cpu   *os.File            // nil: not requested
	atEnd map[string]*os.File // by the name of the profile in the runtime
}

// startProfiles creates the requested files, so that a wrong path fails before the run, and starts sampling. An empty path
// requests no profile.
func startProfiles(cpuPath, mutexPath, blockPath string) (*profiles, error) {
	p := &profiles{atEnd: map[string]*os.File{}}
	create := func(path string) (*os.File, error) {
		if path == "" {
			return nil, nil
		}
		return os.Create(path)
	}
	for name, path := range map[string]string{"mutex": mutexPath, "block": blockPath} {
		file, err := create(path)
		if err != nil {
			return nil, errors.Join(err, p.closeAll())
		}
		if file != nil {
			p.atEnd[name] = file
		}
	}
	var err error
	if p.cpu, err = create(cpuPath); err != nil {
		return nil, errors.Join(err, p.closeAll())
	}
	if p.cpu != nil {
		if err := pprof.StartCPUProfile(p.cpu); err != nil {
			return nil, errors.Join(err, p.closeAll())
		}
	}
	return p, nil
}

// begin and end switch the profiles of mutexes and blocking on and off around a measurement, which excludes set-up and
// goroutines that are idle between requests.
func (p *profiles) begin() {
	if p.atEnd["mutex"] != nil {
		runtime.SetMutexProfileFraction(1)
	}
	if p.atEnd["block"] != nil {
		runtime.SetBlockProfileRate(1)
	}
}

func (p *profiles) end() {
	if p.atEnd["mutex"] != nil {
		runtime.SetMutexProfileFraction(0)
	}
	if p.atEnd["block"] != nil {
		runtime.SetBlockProfileRate(0)
	}
}

// stop ends sampling and writes the files.
func (p *profiles) stop() error {
	var errs []error
	if p.cpu != nil {
		pprof.StopCPUProfile()
	}
	for name, file := range p.atEnd {
		if err := pprof.Lookup(name).WriteTo(file, 0); err != nil {
			errs = append(errs, fmt.Errorf("%s profile: %w", name, err))
		}
	}
	return errors.Join(append(errs, p.closeAll())...)
}

func (p *profiles) closeAll() error {
	var errs []error
	if p.cpu != nil {
		errs = append(errs, p.cpu.Close())
	}
	for _, file := range p.atEnd {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
