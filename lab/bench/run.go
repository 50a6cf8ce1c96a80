package bench

import (
	"context"
)

// Run measures the scenarios one after the other and returns their rows, the calibration first. It ends early, with an error,
// where an allocation or free fails or ctx ends. It keeps all processors busy, and closes all devices that it opened before it
// returns.
func Run(ctx context.Context, o Options) ([]Row, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	chosen, err := choose(o.Scenarios)
	if err != nil {
		return nil, err
	}
	m := newMeter(o)
	rows := []Row{{}} // the calibration's place
	for _, s := range chosen {
		for _, g := range s.groups(o) {
			for i := range g {
				g[i].row.Scenario = s.name
			}
			measured, err := m.measure(ctx, g)
			if err != nil {
				return nil, err
			}
			rows = append(rows, measured...)
		}
	}
	rows[0] = m.calibrationRow()
	return rows, nil
}
