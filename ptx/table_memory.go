package ptx

// Loads, stores, copies and hints to caches.
//
//nolint:gochecknoglobals // constant table of instructions
var memoryRows = []row{
	{OpLd, "[.weak][.<space>][.<ca|cg|cs|lu|cv>][.<v2|v4>].<memory>", "=T~*, []", ""},
	{OpLd, "[.weak][.<space>][.<evict>][.<fetch>][.<v2|v4>].<memory>", "=T~*, []", "7.4 sm_70"},
	{OpLd, "[.weak][.<space>][.<evict>].L2::cache_hint[.<fetch>][.<v2|v4>].<memory>", "=T~*, [], b64", "7.4 sm_80"},
	{OpLd, ".volatile[.<space>][.<v2|v4>].<memory>", "=T~*, []", ""},
	{OpLd, ".<relaxed|acquire>.<scope>[.<space>][.<evict>][.<fetch>][.<v2|v4>].<memory>", "=T~*, []", "6.0 sm_70"},
	{OpLd, "[.weak].global[.<ca|cg|cs>].nc[.<evict>][.<fetch>][.<v2|v4>].<memory>", "=T~*, []", "3.1 sm_32"},
	{OpLd, "[.weak].global[.<ca|cg|cs>].nc[.<evict>].L2::cache_hint[.<fetch>][.<v2|v4>].<memory>", "=T~*, [], b64", "7.4 sm_80"},
	{OpSt, "[.weak][.<stored>][.<wb|cg|cs|wt>][.<v2|v4>].<memory>", "[], T~*", ""},
	{OpSt, "[.weak][.<stored>][.<evict>][.<v2|v4>].<memory>", "[], T~*", "7.4 sm_70"},
	{OpSt, "[.weak][.<stored>][.<evict>].L2::cache_hint[.<v2|v4>].<memory>", "[], T~*, b64", "7.4 sm_80"},
	{OpSt, ".volatile[.<stored>][.<v2|v4>].<memory>", "[], T~*", ""},
	{OpSt, ".<relaxed|release>.<scope>[.<stored>][.<evict>][.<v2|v4>].<memory>", "[], T~*", "6.0 sm_70"},
	{OpPrefetch, "[.<global|local>].<L1|L2>", "[]", ""},
	{OpPrefetch, ".global.<L2::evict_last|L2::evict_normal>", "[]", "7.4 sm_80"},
	{OpPrefetchu, ".L1", "[]", ""},
	{
		OpCreatepolicy,
		".fractional.<L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged>[.<L2::evict_first|L2::evict_unchanged>].b64",
		"=T, f32?", "7.4 sm_80",
	},
	{OpCpAsync, ".ca.<shared|shared::cta>.global[.<fetch>]", "[shared], [global], int(4|8|16), b32?", "7.0 sm_80"},
	{OpCpAsync, ".cg.<shared|shared::cta>.global[.<fetch>]", "[shared], [global], int(16), b32?", "7.0 sm_80"},
	{OpCpAsyncCommitGroup, "", "", "7.0 sm_80"},
	{OpCpAsyncWaitGroup, "", "int(0..2147483647)", "7.0 sm_80"},
	{OpCpAsyncWaitAll, "", "", "7.0 sm_80"},
}

// Atomic operations and the order of memory.
//
//nolint:gochecknoglobals // constant table of instructions
var atomicRows = []row{
	{OpAtom, "[.<sem>][.<scope>][.<global|shared|shared::cta>].add.<u32|u64|s32|f32>", "=T, [], T", ""},
	{OpAtom, "[.<sem>][.<scope>][.<global|shared|shared::cta>].add.f64", "=T, [], T", "5.0 sm_60"},
	{OpAtom, "[.<sem>][.<scope>][.<global|shared|shared::cta>].add.noftz.f16x2", "=T, [], T", "6.2 sm_60"},
	{OpAtom, "[.<sem>][.<scope>][.<global|shared|shared::cta>].add.noftz.f16", "=T, [], T", "6.3 sm_70"},
	{OpAtom, "[.<sem>][.<scope>][.<global|shared|shared::cta>].add.noftz.<bf16|bf16x2>", "=T, [], T", "7.8 sm_90"},
	{OpAtom, "[.<sem>][.<scope>][.<global|shared|shared::cta>].<min|max>.<u32|u64|s32|s64>", "=T, [], T", ""},
	{OpAtom, "[.<sem>][.<scope>][.<global|shared|shared::cta>].<inc|dec>.u32", "=T, [], T", ""},
	{OpAtom, "[.<sem>][.<scope>][.<global|shared|shared::cta>].<and|or|xor|exch>.<b32|b64>", "=T, [], T", ""},
	{OpAtom, "[.<sem>][.<scope>][.<global|shared|shared::cta>].cas.<b32|b64>", "=T, [], T, T", ""},
	{OpAtom, "[.<sem>][.<scope>][.<global|shared|shared::cta>].cas.b16", "=T, [], T, T", "6.3 sm_70"},
	{OpRed, "[.<relaxed|release>][.<scope>][.<global|shared|shared::cta>].add.<u32|u64|s32|f32>", "[], T", ""},
	{OpRed, "[.<relaxed|release>][.<scope>][.<global|shared|shared::cta>].add.f64", "[], T", "5.0 sm_60"},
	{OpRed, "[.<relaxed|release>][.<scope>][.<global|shared|shared::cta>].add.noftz.f16x2", "[], T", "6.2 sm_60"},
	{OpRed, "[.<relaxed|release>][.<scope>][.<global|shared|shared::cta>].add.noftz.f16", "[], T", "6.3 sm_70"},
	{OpRed, "[.<relaxed|release>][.<scope>][.<global|shared|shared::cta>].add.noftz.<bf16|bf16x2>", "[], T", "7.8 sm_90"},
	{OpRed, "[.<relaxed|release>][.<scope>][.<global|shared|shared::cta>].<min|max>.<u32|u64|s32|s64>", "[], T", ""},
	{OpRed, "[.<relaxed|release>][.<scope>][.<global|shared|shared::cta>].<inc|dec>.u32", "[], T", ""},
	{OpRed, "[.<relaxed|release>][.<scope>][.<global|shared|shared::cta>].<and|or|xor>.<b32|b64>", "[], T", ""},
	{OpMembar, ".<cta|gl|sys>", "", ""},
	{OpFence, "[.<sc|acq_rel>].<scope>", "", "6.0 sm_70"},
}
