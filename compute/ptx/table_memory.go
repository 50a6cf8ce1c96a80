package ptx

// Loads, stores, copies and hints to caches.
//
//nolint:gochecknoglobals // constant table of instructions
var memoryRows = []row{
	{OpLd, "[.weak][.<space>][.<ca|cg|cs|lu|cv>][.<v2|v4>].<memory>", "=T~*, []", ""},
	{OpLd, "[.weak][.global][.<evict>][.<fetch>][.<v2|v4>].<memory>", "=T~*, []", "7.4 sm_70"},
	{OpLd, "[.weak][.global][.<evict>].L2::cache_hint[.<fetch>][.<v2|v4>].<memory>", "=T~*, [], u64", "7.4 sm_80"},
	{OpLd, ".volatile[.<coherent>][.<v2|v4>].<memory>", "=T~*, []", ""},
	{OpLd, ".<relaxed|acquire>.<scope>[.<coherent>][.<v2|v4>].<memory>", "=T~*, []", "6.0 sm_70"},
	{OpLd, ".<relaxed|acquire>.<scope>[.global][.<evict>][.<fetch>][.<v2|v4>].<memory>", "=T~*, []", "7.4 sm_70"},
	{OpLd, ".global[.<ca|cg|cs>].nc[.<v2|v4>].<memory>", "=T~*, []", "3.1 sm_32"},
	{OpLd, ".global.nc[.<evict>][.<fetch>][.<v2|v4>].<memory>", "=T~*, []", "7.4 sm_70"},
	{OpLd, ".global.nc[.<evict>].L2::cache_hint[.<fetch>][.<v2|v4>].<memory>", "=T~*, [], u64", "7.4 sm_80"},
	{OpLdu, "[.global][.<v2|v4>].<memory>", "=T~*, []", ""},
	{OpSt, "[.weak][.<stored>][.<wb|cg|cs|wt>][.<v2|v4>].<memory>", "[], T~*", ""},
	{OpSt, "[.weak][.global][.<evict>][.<v2|v4>].<memory>", "[], T~*", "7.4 sm_70"},
	{OpSt, "[.weak][.global][.<evict>].L2::cache_hint[.<v2|v4>].<memory>", "[], T~*, u64", "7.4 sm_80"},
	{OpSt, ".volatile[.<coherent>][.<v2|v4>].<memory>", "[], T~*", ""},
	{OpSt, ".<relaxed|release>.<scope>[.<coherent>][.<v2|v4>].<memory>", "[], T~*", "6.0 sm_70"},
	{OpSt, ".<relaxed|release>.<scope>[.global][.<evict>][.<v2|v4>].<memory>", "[], T~*", "7.4 sm_70"},
	{OpPrefetch, "[.<global|local>].<L1|L2>", "[]", ""},
	{OpPrefetch, ".global.<L2::evict_last|L2::evict_normal>", "[]", "7.4 sm_80"},
	{OpPrefetchu, ".L1", "[]", ""},
	{
		OpCreatepolicy,
		".fractional.<L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged>[.<L2::evict_first|L2::evict_unchanged>].b64",
		"=u64, f32(fraction)?", "7.4 sm_80",
	},
	{OpCpAsync, ".ca.<shared|shared::cta>.global[.<fetch>]", "[shared], [global], int(4|8|16), u32(0..@3)?", "7.0 sm_80"},
	{OpCpAsync, ".cg.<shared|shared::cta>.global[.<fetch>]", "[shared], [global], int(16), u32(0..@3)?", "7.0 sm_80"},
	{
		OpCpAsyncBulkTensor, ".<1d|2d|3d|4d|5d>.shared::cluster.global.mbarrier::complete_tx::bytes", "[shared], [tensor], [shared]",
		"8.0 sm_90",
	},
	{OpCpAsyncCommitGroup, "", "", "7.0 sm_80"},
	{OpCpAsyncWaitGroup, "", "int(0..2147483647)", "7.0 sm_80"},
	{OpCpAsyncWaitAll, "", "", "7.0 sm_80"},
}

// Atomic operations and the order of memory.
//
//nolint:gochecknoglobals // constant table of instructions
var atomicRows = []row{
	{OpAtom, "[.<sem>][.<scope>][.<coherent>].add.<u32|u64|s32|f32>", "=_T, [], T", ""},
	{OpAtom, "[.<sem>][.<scope>][.<coherent>].add.f64", "=_T, [], T", "5.0 sm_60"},
	{OpAtom, "[.<sem>][.<scope>][.<coherent>].add.noftz.f16x2", "=_T, [], T", "6.2 sm_60"},
	{OpAtom, "[.<sem>][.<scope>][.<coherent>].add.noftz.f16", "=_T, [], T", "6.3 sm_70"},
	{OpAtom, "[.<sem>][.<scope>][.<coherent>].add.noftz.<bf16|bf16x2>", "=_T, [], T", "7.8 sm_90"},
	{OpAtom, "[.<sem>][.<scope>][.<coherent>].<min|max>.<u32|u64|s32|s64>", "=_T, [], T", ""},
	{OpAtom, "[.<sem>][.<scope>][.<coherent>].<inc|dec>.u32", "=_T, [], T", ""},
	{OpAtom, "[.<sem>][.<scope>][.<coherent>].<and|or|xor|exch>.<b32|b64>", "=_T, [], T", ""},
	{OpAtom, "[.<sem>][.<scope>][.<coherent>].cas.<b32|b64>", "=_T, [], T, T", ""},
	{OpAtom, "[.<sem>][.<scope>][.<coherent>].cas.b16", "=_T, [], T, T", "6.3 sm_70"},
	{OpRed, "[.<relaxed|release>][.<scope>][.<coherent>].add.<u32|u64|s32|f32>", "[], T", ""},
	{OpRed, "[.<relaxed|release>][.<scope>][.<coherent>].add.f64", "[], T", "5.0 sm_60"},
	{OpRed, "[.<relaxed|release>][.<scope>][.<coherent>].add.noftz.f16x2", "[], T", "6.2 sm_60"},
	{OpRed, "[.<relaxed|release>][.<scope>][.<coherent>].add.noftz.f16", "[], T", "6.3 sm_70"},
	{OpRed, "[.<relaxed|release>][.<scope>][.<coherent>].add.noftz.<bf16|bf16x2>", "[], T", "7.8 sm_90"},
	{OpRed, "[.<relaxed|release>][.<scope>][.<coherent>].<min|max>.<u32|u64|s32|s64>", "[], T", ""},
	{OpRed, "[.<relaxed|release>][.<scope>][.<coherent>].<inc|dec>.u32", "[], T", ""},
	{OpRed, "[.<relaxed|release>][.<scope>][.<coherent>].<and|or|xor>.<b32|b64>", "[], T", ""},
	{OpMembar, ".<cta|gl|sys>", "", ""},
	{OpFence, "[.<sc|acq_rel>].<scope>", "", "6.0 sm_70"},
	{OpFenceProxy, ".async[.<global|shared::cta|shared::cluster>]", "", "8.0 sm_90"},
}
