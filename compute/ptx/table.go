package ptx

import "strings"

// row is a form of an instruction that Check accepts. docs/ptx.md lists the rows as they stand here.
//
// The form is the name after the opcode: .x is required, [.x] may be left out, <x|y> is one of several, and a word between the
// angle brackets that is a set of namedSets stands for its members.
//
// Operands: T, U, V and W are the first to the fourth type of the name, 2T the integer of twice the width; = marks a
// result, ? an operand that may be left out, ! a predicate that may be negated, | a result that a predicate may follow.
// _ a result that may be dropped; b32(0..15) has limits for a constant, see cutLimits. + marks an operand that is read
// and written; T~ is also a wider register; T* is a vector where the name has .v2 or .v4; T& is also a special register
// or the address of a variable; {4:b32} is a vector of four, {n/2:f32} one of half as many as the shape has columns;
// {}T a vector whose elements are as wide as T together; [] is memory in the space of the name, [shared] memory in that
// space, [tensor] a tensor map at a generic address with as many coordinates as the name says; int(0..255) and int(4|8|16) are constants.
type row struct {
	op       Opcode
	form     string
	operands string
	// needs is "7.0 sm_80", "8.0 sm_90a", or nothing where any version and target do. "gone" after it: PTX 6.4 and later
	// does not have the form for sm_70 and later.
	needs string
}

// namedSets are the sets of modifiers and types that several rows name.
//
//nolint:gochecknoglobals // constant table of sets
var namedSets = map[string]string{
	"int":       "u16|u32|u64|s16|s32|s64",
	"int8":      "u8|u16|u32|u64|s8|s16|s32|s64",
	"bits":      "b16|b32|b64",
	"memory":    "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
	"rnd":       "rn|rz|rm|rp",
	"rndi":      "rni|rzi|rmi|rpi",
	"cmp":       "eq|ne|lt|le|gt|ge",
	"unsigned":  "lo|ls|hi|hs",
	"unordered": "equ|neu|ltu|leu|gtu|geu|num|nan",
	"bool":      "and|or|xor",
	"space":     "global|shared|shared::cta|local|const|param",
	"stored":    "global|shared|shared::cta|local|param",
	"coherent":  "global|shared|shared::cta",
	"scope":     "cta|gpu|sys",
	"sem":       "relaxed|acquire|release|acq_rel",
	"evict":     "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
	"fetch":     "L2::64B|L2::128B|L2::256B",
	"permute":   "f4e|b4e|rc8|ecl|ecr|rc16",
	"test":      "finite|infinite|number|notanumber|normal|subnormal",
	"shuffle":   "idx|up|down|bfly",
	"m64k8":     warpgroupShapeSet(ModM64n8k8),
	"m64k16":    warpgroupShapeSet(ModM64n8k16),
}

// needs is the oldest version and target that have a feature.
type needs struct {
	version Version
	sm      int
	variant string // "a": that architecture alone
	gone    bool   // from PTX 6.4 and sm_70 on: an instruction of a warp without .sync
}

// modifierNeeds are the needs of modifiers in any instruction.
//
//nolint:gochecknoglobals // constant table of needs
var modifierNeeds = map[Modifier]needs{
	ModRelaxed: {version: Version{6, 0}, sm: 70}, ModAcquire: {version: Version{6, 0}, sm: 70}, ModRelease: {version: Version{6, 0}, sm: 70}, ModAcqRel: {version: Version{6, 0}, sm: 70},
	ModRelu: {version: Version{7, 0}, sm: 80}, ModNaN: {version: Version{7, 0}, sm: 80}, ModXorsign: {version: Version{7, 2}, sm: 86}, ModSharedCTA: {version: Version{7, 8}, sm: 30},
	ModL1EvictNormal: {version: Version{7, 4}, sm: 70}, ModL1EvictUnchanged: {version: Version{7, 4}, sm: 70}, ModL1EvictFirst: {version: Version{7, 4}, sm: 70},
	ModL1EvictLast: {version: Version{7, 4}, sm: 70}, ModL1NoAllocate: {version: Version{7, 4}, sm: 70}, ModL2Bytes64: {version: Version{7, 4}, sm: 75},
	ModL2Bytes128: {version: Version{7, 4}, sm: 75}, ModL2Bytes256: {version: Version{7, 4}, sm: 80}, ModL2CacheHint: {version: Version{7, 4}, sm: 80},
}

// oldest are the version and the architecture with which the table begins.
//
//nolint:gochecknoglobals // constant
var oldest = needs{version: Version{2, 0}, sm: 20}

// volta is the first architecture whose warps do not run in lockstep, and the version that dropped instructions of a warp
// without .sync for it.
//
//nolint:gochecknoglobals // constant
var volta = needs{version: Version{6, 4}, sm: 70}

// lastMinors are the last versions of PTX with a major number, up to CUDA 13.0.
//
//nolint:gochecknoglobals // constant table of versions
var lastMinors = map[int]int{2: 3, 3: 2, 4: 3, 5: 0, 6: 5, 7: 8, 8: 8, 9: 0}

// targetVersions are the versions that know an architecture first.
//
//nolint:gochecknoglobals // constant table of architectures
var targetVersions = map[int]Version{
	20: {2, 0}, 21: {2, 0}, 30: {3, 0}, 32: {4, 0}, 35: {3, 1}, 37: {4, 1}, 50: {4, 0}, 52: {4, 1}, 53: {4, 2}, 60: {5, 0}, 61: {5, 0}, 62: {5, 0},
	70: {6, 0}, 72: {6, 1}, 75: {6, 3}, 80: {7, 0}, 86: {7, 1}, 87: {7, 4}, 88: {9, 0}, 89: {7, 8}, 90: {7, 8}, 100: {8, 6}, 101: {8, 6},
	103: {8, 8}, 110: {9, 0}, 120: {8, 7}, 121: {8, 8},
}

// sharedLimits are the most bytes of static shared memory that ptxas 12.4 takes for an architecture.
//
//nolint:gochecknoglobals // constant table of architectures
var sharedLimits = map[int]int{
	50: 64 << 10, 52: 96 << 10, 53: 64 << 10, 60: 64 << 10, 61: 96 << 10, 62: 64 << 10, 70: 96 << 10, 72: 64 << 10, 75: 64 << 10,
	80: 164 << 10, 86: 100 << 10, 87: 164 << 10, 89: 164 << 10, 90: 228 << 10,
}

// variantVersions are the versions that know the variant of an architecture first.
//
//nolint:gochecknoglobals // constant table of architectures
var variantVersions = map[string]Version{
	"sm_90a": {8, 0}, "sm_100a": {8, 6}, "sm_101a": {8, 6}, "sm_103a": {8, 8}, "sm_110a": {9, 0}, "sm_120a": {8, 7}, "sm_121a": {8, 8},
}

// Every architecture from firstFamily on has a variant f, which familyVersion knows first.
const firstFamily = 100

//nolint:gochecknoglobals // constant
var familyVersion = Version{8, 8}

// warpgroupShapeSet returns the shapes of wgmma of one depth, from the first one on.
func warpgroupShapeSet(first Modifier) string {
	var names []string
	for n := range Modifier(warpgroupShapes) {
		names = append(names, (first + n).String())
	}
	return strings.Join(names, "|")
}
