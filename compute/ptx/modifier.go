package ptx

import "fmt"

// Modifier is a dotted part of an instruction's name that is neither opcode nor type: .wide, .rn, .global, .v4.
type Modifier uint8

// ModifierKind groups modifiers that exclude each other in most instructions.
type ModifierKind uint8

// The kinds of modifiers. .lo and .hi are comparisons of setp and halves of a product of mul and mad; their kind is
// KindCompare.
const (
	KindFlag      ModifierKind = iota // by itself: .ftz, .sat, .uni
	KindSpace                         // .global
	KindRound                         // .rn, .rzi
	KindCompare                       // .lt
	KindOperation                     // of atom, red, redux, bar.red, and the Boolean operation of set and setp: .add, .and
	KindVector                        // .v2
	KindOrder                         // .relaxed
	KindScope                         // .gpu
	KindCache                         // .ca, .nc, .L2::128B
	KindShuffle                       // .bfly
	KindVote                          // .ballot
	KindShape                         // .m16n8k16
	KindMatrices                      // .x4
	KindLayout                        // .row
	KindTest                          // .finite
	KindPermute                       // .f4e, after the type
	KindRank                          // .3d
)

// The modifiers.
const (
	NoModifier Modifier = iota
	ModGlobal
	ModShared
	ModSharedCTA
	ModLocal
	ModConst
	ModParam
	ModRn
	ModRz
	ModRm
	ModRp
	ModRna
	ModRni
	ModRzi
	ModRmi
	ModRpi
	ModEq
	ModNe
	ModLt
	ModLe
	ModGt
	ModGe
	ModLo
	ModLs
	ModHi
	ModHs
	ModEqu
	ModNeu
	ModLtu
	ModLeu
	ModGtu
	ModGeu
	ModNum
	ModNan
	ModAdd
	ModMin
	ModMax
	ModInc
	ModDec
	ModAnd
	ModOr
	ModXor
	ModExch
	ModCas
	ModPopc
	ModV2
	ModV4
	ModWeak
	ModVolatile
	ModRelaxed
	ModAcquire
	ModRelease
	ModAcqRel
	ModSc
	ModCTA
	ModGPU
	ModSys
	ModGl
	ModCa
	ModCg
	ModCs
	ModLu
	ModCv
	ModWb
	ModWt
	ModNc
	ModL1
	ModL2
	ModL1EvictNormal
	ModL1EvictUnchanged
	ModL1EvictFirst
	ModL1EvictLast
	ModL1NoAllocate
	ModL2EvictNormal
	ModL2EvictUnchanged
	ModL2EvictFirst
	ModL2EvictLast
	ModL2CacheHint
	ModL2Bytes64
	ModL2Bytes128
	ModL2Bytes256
	ModIdx
	ModUp
	ModDown
	ModBfly
	ModAll
	ModAny
	ModUni // of bra, ret and call; and of vote
	ModBallot
	ModM8n8
	ModM16n8k4
	ModM16n8k8
	ModM16n8k16
	ModM16n16k16
	ModM16n16k8
	ModM8n32k16
	ModM32n8k16
	ModX1
	ModX2
	ModX4
	ModRow
	ModCol
	ModFinite
	ModInfinite
	ModNumber
	ModNotanumber
	ModNormal
	ModSubnormal
	ModF4e
	ModB4e
	ModRc8
	ModEcl
	ModEcr
	ModRc16
	ModWide
	ModApprox
	ModFull
	ModFtz
	ModNoftz
	ModSat
	ModRelu
	ModNaN
	ModXorsign
	ModAbs
	ModTo
	ModSync
	ModAligned
	ModTrans
	ModL
	ModR
	ModWrap
	ModClamp
	ModShiftamt
	ModFractional
	ModAsync
	ModSharedCluster
	ModCC
	ModSatfinite
	ModNoComplete
	ModExpectTx
	ModParity
	ModNoinc
	Mod1D // the dimensions of a tensor
	Mod2D
	Mod3D
	Mod4D
	Mod5D
	ModMbarrierBytes
	ModM64n8k8    // .m64n16k8 is ModM64n8k8+1, and so on up to .m64n256k8
	ModM64n256k8  = ModM64n8k8 + warpgroupShapes - 1
	ModM64n8k16   = ModM64n256k8 + 1 // likewise
	ModM64n256k16 = ModM64n8k16 + warpgroupShapes - 1
	modifierCount = ModM64n256k16 + 1
)

// warpgroupShapes is the number of shapes of wgmma of one depth: 8, 16, … 256 columns.
const warpgroupShapes = 32

type modifierEntry struct {
	name string
	kind ModifierKind
}

//nolint:gochecknoglobals // constant table of modifiers
var modifierTable = withWarpgroupShapes([modifierCount]modifierEntry{
	ModGlobal: {"global", KindSpace}, ModShared: {"shared", KindSpace}, ModSharedCTA: {"shared::cta", KindSpace},
	ModLocal: {"local", KindSpace}, ModConst: {"const", KindSpace}, ModParam: {"param", KindSpace},

	ModRn: {"rn", KindRound}, ModRz: {"rz", KindRound}, ModRm: {"rm", KindRound}, ModRp: {"rp", KindRound}, ModRna: {"rna", KindRound},
	ModRni: {"rni", KindRound}, ModRzi: {"rzi", KindRound}, ModRmi: {"rmi", KindRound}, ModRpi: {"rpi", KindRound},

	ModEq: {"eq", KindCompare}, ModNe: {"ne", KindCompare}, ModLt: {"lt", KindCompare}, ModLe: {"le", KindCompare},
	ModGt: {"gt", KindCompare}, ModGe: {"ge", KindCompare}, ModLo: {"lo", KindCompare}, ModLs: {"ls", KindCompare},
	ModHi: {"hi", KindCompare}, ModHs: {"hs", KindCompare}, ModEqu: {"equ", KindCompare}, ModNeu: {"neu", KindCompare},
	ModLtu: {"ltu", KindCompare}, ModLeu: {"leu", KindCompare}, ModGtu: {"gtu", KindCompare}, ModGeu: {"geu", KindCompare},
	ModNum: {"num", KindCompare}, ModNan: {"nan", KindCompare},

	ModAdd: {"add", KindOperation}, ModMin: {"min", KindOperation}, ModMax: {"max", KindOperation}, ModInc: {"inc", KindOperation},
	ModDec: {"dec", KindOperation}, ModAnd: {"and", KindOperation}, ModOr: {"or", KindOperation}, ModXor: {"xor", KindOperation},
	ModExch: {"exch", KindOperation}, ModCas: {"cas", KindOperation}, ModPopc: {"popc", KindOperation},

	ModV2: {"v2", KindVector}, ModV4: {"v4", KindVector},

	ModWeak: {"weak", KindOrder}, ModVolatile: {"volatile", KindOrder}, ModRelaxed: {"relaxed", KindOrder},
	ModAcquire: {"acquire", KindOrder}, ModRelease: {"release", KindOrder}, ModAcqRel: {"acq_rel", KindOrder}, ModSc: {"sc", KindOrder},

	ModCTA: {"cta", KindScope}, ModGPU: {"gpu", KindScope}, ModSys: {"sys", KindScope}, ModGl: {"gl", KindScope},

	ModCa: {"ca", KindCache}, ModCg: {"cg", KindCache}, ModCs: {"cs", KindCache}, ModLu: {"lu", KindCache}, ModCv: {"cv", KindCache},
	ModWb: {"wb", KindCache}, ModWt: {"wt", KindCache}, ModNc: {"nc", KindCache}, ModL1: {"L1", KindCache}, ModL2: {"L2", KindCache},
	ModL1EvictNormal: {"L1::evict_normal", KindCache}, ModL1EvictUnchanged: {"L1::evict_unchanged", KindCache},
	ModL1EvictFirst: {"L1::evict_first", KindCache}, ModL1EvictLast: {"L1::evict_last", KindCache},
	ModL1NoAllocate: {"L1::no_allocate", KindCache}, ModL2EvictNormal: {"L2::evict_normal", KindCache},
	ModL2EvictUnchanged: {"L2::evict_unchanged", KindCache}, ModL2EvictFirst: {"L2::evict_first", KindCache},
	ModL2EvictLast: {"L2::evict_last", KindCache}, ModL2CacheHint: {"L2::cache_hint", KindCache}, ModL2Bytes64: {"L2::64B", KindCache},
	ModL2Bytes128: {"L2::128B", KindCache}, ModL2Bytes256: {"L2::256B", KindCache},

	ModIdx: {"idx", KindShuffle}, ModUp: {"up", KindShuffle}, ModDown: {"down", KindShuffle}, ModBfly: {"bfly", KindShuffle},
	ModAll: {"all", KindVote}, ModAny: {"any", KindVote}, ModUni: {"uni", KindVote}, ModBallot: {"ballot", KindVote},

	ModM8n8: {"m8n8", KindShape}, ModM16n8k4: {"m16n8k4", KindShape}, ModM16n8k8: {"m16n8k8", KindShape},
	ModM16n8k16: {"m16n8k16", KindShape}, ModM16n16k16: {"m16n16k16", KindShape}, ModM16n16k8: {"m16n16k8", KindShape},
	ModM8n32k16: {"m8n32k16", KindShape}, ModM32n8k16: {"m32n8k16", KindShape},
	ModX1: {"x1", KindMatrices}, ModX2: {"x2", KindMatrices}, ModX4: {"x4", KindMatrices},
	ModRow: {"row", KindLayout}, ModCol: {"col", KindLayout},

	ModFinite: {"finite", KindTest}, ModInfinite: {"infinite", KindTest}, ModNumber: {"number", KindTest},
	ModNotanumber: {"notanumber", KindTest}, ModNormal: {"normal", KindTest}, ModSubnormal: {"subnormal", KindTest},

	ModF4e: {"f4e", KindPermute}, ModB4e: {"b4e", KindPermute}, ModRc8: {"rc8", KindPermute}, ModEcl: {"ecl", KindPermute},
	ModEcr: {"ecr", KindPermute}, ModRc16: {"rc16", KindPermute},

	ModWide: {name: "wide"}, ModApprox: {name: "approx"}, ModFull: {name: "full"}, ModFtz: {name: "ftz"}, ModNoftz: {name: "noftz"},
	ModSat: {name: "sat"}, ModRelu: {name: "relu"}, ModNaN: {name: "NaN"}, ModXorsign: {name: "xorsign"}, ModAbs: {name: "abs"}, ModTo: {name: "to"},
	ModSync: {name: "sync"}, ModAligned: {name: "aligned"}, ModTrans: {name: "trans"}, ModL: {name: "l"}, ModR: {name: "r"},
	ModWrap: {name: "wrap"}, ModClamp: {name: "clamp"}, ModShiftamt: {name: "shiftamt"}, ModFractional: {name: "fractional"},
	ModAsync: {name: "async"}, ModSharedCluster: {"shared::cluster", KindSpace}, ModCC: {name: "cc"}, ModSatfinite: {name: "satfinite"},
	ModNoComplete: {name: "noComplete"}, ModExpectTx: {name: "expect_tx"}, ModParity: {name: "parity"}, ModNoinc: {name: "noinc"},
	Mod1D: {"1d", KindRank}, Mod2D: {"2d", KindRank}, Mod3D: {"3d", KindRank}, Mod4D: {"4d", KindRank}, Mod5D: {"5d", KindRank},
	ModMbarrierBytes: {name: "mbarrier::complete_tx::bytes"},
})

// withWarpgroupShapes adds the shapes of wgmma.
func withWarpgroupShapes(table [modifierCount]modifierEntry) [modifierCount]modifierEntry {
	for n := range Modifier(warpgroupShapes) {
		columns := 8 * (int(n) + 1) // 256 is no Modifier
		table[ModM64n8k8+n] = modifierEntry{fmt.Sprintf("m64n%dk8", columns), KindShape}
		table[ModM64n8k16+n] = modifierEntry{fmt.Sprintf("m64n%dk16", columns), KindShape}
	}
	return table
}

//nolint:gochecknoglobals // constant table of modifiers by name
var modifierByName = func() map[string]Modifier {
	byName := map[string]Modifier{}
	for m := NoModifier + 1; m < modifierCount; m++ {
		byName[modifierTable[m].name] = m
	}
	return byName
}()

// String returns the name of the modifier without its dot.
func (m Modifier) String() string {
	if m >= modifierCount {
		return ""
	}
	return modifierTable[m].name
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (m Modifier) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Kind returns the group of the modifier.
func (m Modifier) Kind() ModifierKind {
	if m >= modifierCount {
		return KindFlag
	}
	return modifierTable[m].kind
}

// Shape returns the sizes that a modifier of KindShape names: 64, 8 and 16 of .m64n8k16. depth is 0 of .m8n8, and all are
// of other kinds.
func (m Modifier) Shape() (rows, columns, depth int) {
	if m.Kind() == KindShape {
		_, _ = fmt.Sscanf(m.String(), "m%dn%dk%d", &rows, &columns, &depth) // m8n8 ends early
	}
	return rows, columns, depth
}

// Rank returns the number of dimensions that an instruction names: 3 of .3d, 0 where it names none.
func (i *Instruction) Rank() int {
	if m := i.Mod(KindRank); m != NoModifier {
		return int(m-Mod1D) + 1
	}
	return 0
}
