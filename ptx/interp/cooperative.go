package interp

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/ptx"
)

// cooperative reports instructions that read what the driver gives to kernels of a cooperative launch: blocks of a grid run one after the
// other here, so that none can wait for all.
func (c *compiler) cooperative() (err error) {
	for _, fn := range c.order {
		for _, i := range fn.source.Code().Instructions {
			if slices.ContainsFunc(i.Operands, func(o ptx.Operand) bool {
				return o.Kind == ptx.OperandSpecial && o.Special >= ptx.Envreg0 && o.Special <= ptx.Envreg31
			}) {
				err = errors.Join(err, &ptx.CheckError{
					Pos: i.Pos, Function: fn.name, Instruction: i.String(), Lacking: true,
					Message: "cooperative launches are not simulated: the blocks of a grid run one after the other, and grid.sync would wait for ever",
				})
			}
		}
	}
	return err
}
