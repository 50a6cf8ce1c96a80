package ptx

import "fmt"

// Special is a register that the hardware sets: %tid.x, %laneid.
type Special uint8

// The special registers.
const (
	NoSpecial Special = iota
	TidX
	TidY
	TidZ
	NtidX
	NtidY
	NtidZ
	CtaidX
	CtaidY
	CtaidZ
	NctaidX
	NctaidY
	NctaidZ
	Laneid
	Warpid
	Nwarpid
	Smid
	Nsmid
	Gridid
	LanemaskEq
	LanemaskLe
	LanemaskLt
	LanemaskGe
	LanemaskGt
	Clock
	ClockHi
	Clock64
	Globaltimer
	GlobaltimerLo
	GlobaltimerHi
	DynamicSmemSize
	TotalSmemSize
	WarpSize
	Envreg0      // %envreg1 is Envreg0+1, and so on up to %envreg31
	Envreg31     = Envreg0 + envregs - 1
	specialCount = Envreg31 + 1
)

// envregs is the number of registers that the driver fills with values of its own.
const envregs = 32

type specialEntry struct {
	name string
	typ  Type
}

//nolint:gochecknoglobals // constant table of special registers
var specialTable = withEnvregs([specialCount]specialEntry{
	TidX: {"%tid.x", U32}, TidY: {"%tid.y", U32}, TidZ: {"%tid.z", U32},
	NtidX: {"%ntid.x", U32}, NtidY: {"%ntid.y", U32}, NtidZ: {"%ntid.z", U32},
	CtaidX: {"%ctaid.x", U32}, CtaidY: {"%ctaid.y", U32}, CtaidZ: {"%ctaid.z", U32},
	NctaidX: {"%nctaid.x", U32}, NctaidY: {"%nctaid.y", U32}, NctaidZ: {"%nctaid.z", U32},
	Laneid: {"%laneid", U32}, Warpid: {"%warpid", U32}, Nwarpid: {"%nwarpid", U32},
	Smid: {"%smid", U32}, Nsmid: {"%nsmid", U32}, Gridid: {"%gridid", U64},
	LanemaskEq: {"%lanemask_eq", U32}, LanemaskLe: {"%lanemask_le", U32}, LanemaskLt: {"%lanemask_lt", U32},
	LanemaskGe: {"%lanemask_ge", U32}, LanemaskGt: {"%lanemask_gt", U32},
	Clock: {"%clock", U32}, ClockHi: {"%clock_hi", U32}, Clock64: {"%clock64", U64},
	Globaltimer: {"%globaltimer", U64}, GlobaltimerLo: {"%globaltimer_lo", U32}, GlobaltimerHi: {"%globaltimer_hi", U32},
	DynamicSmemSize: {"%dynamic_smem_size", U32}, TotalSmemSize: {"%total_smem_size", U32},
	WarpSize: {"WARP_SZ", U32},
})

// withEnvregs adds the registers of the driver.
func withEnvregs(table [specialCount]specialEntry) [specialCount]specialEntry {
	for n := range Special(envregs) {
		table[Envreg0+n] = specialEntry{fmt.Sprintf("%%envreg%d", n), B32}
	}
	return table
}

//nolint:gochecknoglobals // constant table of special registers by name
var specialByName = func() map[string]Special {
	byName := map[string]Special{}
	for s := NoSpecial + 1; s < specialCount; s++ {
		byName[specialTable[s].name] = s
	}
	return byName
}()

// String returns the register as PTX writes it: %tid.x, or WARP_SZ of WarpSize.
func (s Special) String() string {
	if s >= specialCount {
		return ""
	}
	return specialTable[s].name
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (s Special) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Type is U32, U64 of the counters that are so wide, or B32 of a register of the driver.
func (s Special) Type() Type {
	if s >= specialCount {
		return NoType
	}
	return specialTable[s].typ
}
