package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-vram/vram"
)

// checkFolders says before the work which of the folders is none. Empty paths name none.
func checkFolders(paths ...string) error {
	for _, path := range paths {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s: not a folder", path)
		}
	}
	return nil
}

// planFile is where the plan of a trace's stream lies.
func planFile(dir, trace string, stream int) string {
	return filepath.Join(dir, fmt.Sprintf("%s.%d.plan", trace, stream))
}

// readPlans reads those that there are. Without a folder there are none.
func readPlans(dir, trace string, streamCount int) ([]vram.Plan, error) {
	if dir == "" {
		return nil, nil
	}
	plans := make([]vram.Plan, streamCount)
	for i := range plans {
		file, err := os.Open(planFile(dir, trace, i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		plans[i], err = vram.ReadPlan(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
	return plans, nil
}

// savePlans writes those that were learned. Without a folder it writes none.
func savePlans(dir, trace string, plans []vram.Plan) error {
	if dir == "" {
		return nil
	}
	for i, p := range plans {
		if len(p) == 0 {
			continue
		}
		file, err := os.Create(planFile(dir, trace, i))
		if err != nil {
			return err
		}
		if err := errors.Join(p.Write(file), file.Close()); err != nil {
			return err
		}
	}
	return nil
}
