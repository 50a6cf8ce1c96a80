package ptx

// Barriers, and instructions of a whole warp.
//
//nolint:gochecknoglobals // constant table of instructions
var warpRows = []row{
	{OpBarSync, "", "u32(0..15), u32(0..4294967264/32)?", ""},
	{OpBarArrive, "", "u32(0..15), u32(32..4294967264/32)", ""},
	{OpBarRed, ".popc.u32", "=T, u32(0..15), !pred", ""},
	{OpBarRed, ".popc.u32", "=T, u32(0..15), u32(0..4294967264/32), !pred", ""},
	{OpBarRed, ".<and|or>.pred", "=T, u32(0..15), !pred", ""},
	{OpBarRed, ".<and|or>.pred", "=T, u32(0..15), u32(0..4294967264/32), !pred", ""},
	{OpBarrierSync, "[.aligned]", "u32(0..15), u32(0..4294967264/32)?", "6.0 sm_30"},
	{OpBarrierArrive, "[.aligned]", "u32(0..15), u32(32..4294967264/32)", "6.0 sm_30"},
	{OpBarrierRed, "[.aligned].popc.u32", "=T, u32(0..15), !pred", "6.0 sm_30"},
	{OpBarrierRed, "[.aligned].popc.u32", "=T, u32(0..15), u32(0..4294967264/32), !pred", "6.0 sm_30"},
	{OpBarrierRed, "[.aligned].<and|or>.pred", "=T, u32(0..15), !pred", "6.0 sm_30"},
	{OpBarrierRed, "[.aligned].<and|or>.pred", "=T, u32(0..15), u32(0..4294967264/32), !pred", "6.0 sm_30"},
	{OpBarWarpSync, "", "u32", "6.0 sm_30"},
	{OpShfl, ".<shuffle>.b32", "=T|, T, b32, b32", "3.0 sm_30 gone"},
	{OpShflSync, ".<shuffle>.b32", "=T|, T, b32, b32, u32", "6.0 sm_30"},
	{OpVote, ".<all|any|uni>.pred", "=T, !T", "1.2 sm_20 gone"},
	{OpVote, ".ballot.b32", "=T, !pred", "2.0 sm_20 gone"},
	{OpVoteSync, ".<all|any|uni>.pred", "=T, !T, u32", "6.0 sm_30"},
	{OpVoteSync, ".ballot.b32", "=T, !pred, u32", "6.0 sm_30"},
	{OpActivemask, ".b32", "=T", "6.2 sm_30"},
	{OpMatch, ".any.sync.<b32|b64>", "=u32, T, u32", "6.0 sm_70"},
	{OpMatch, ".all.sync.<b32|b64>", "=u32|, T, u32", "6.0 sm_70"},
	{OpReduxSync, ".<add|min|max>.<u32|s32>", "=T, T, u32", "7.0 sm_80"},
	{OpReduxSync, ".<and|or|xor>.b32", "=u32, u32, u32", "7.0 sm_80"},
	{OpMma, ".sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "={4:f32}, {4:u32}, {2:u32}, {4:f32}", "7.0 sm_80"},
	{OpMma, ".sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "={2:u32}, {4:u32}, {2:u32}, {2:u32}", "7.0 sm_80"},
	{OpMma, ".sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "={4:f32}, {4:u32}, {2:u32}, {4:f32}", "7.0 sm_80"},
	{OpMma, ".sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "={4:f32}, {4:u32}, {2:u32}, {4:f32}", "7.0 sm_80"},
	{OpMma, ".sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", "={4:f32}, {2:u32}, {1:u32}, {4:f32}", "7.0 sm_80"},
	{OpMma, ".sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", "={4:f32}, {2:u32}, {1:u32}, {4:f32}", "7.0 sm_80"},
	{OpMma, ".sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "={4:f32}, {2:u32}, {1:u32}, {4:f32}", "6.5 sm_75"},
	{OpMma, ".sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", "={2:u32}, {2:u32}, {1:u32}, {2:u32}", "6.5 sm_75"},
	{OpLdmatrix, ".sync.aligned.m8n8.x1[.trans][.<shared|shared::cta>].b16", "={1:b32}, [shared]", "6.5 sm_75"},
	{OpLdmatrix, ".sync.aligned.m8n8.x2[.trans][.<shared|shared::cta>].b16", "={2:b32}, [shared]", "6.5 sm_75"},
	{OpLdmatrix, ".sync.aligned.m8n8.x4[.trans][.<shared|shared::cta>].b16", "={4:b32}, [shared]", "6.5 sm_75"},
}

// Products of matrices of a warpgroup: four warps whose first one's number is a multiple of four. D is in registers, A
// in registers or in shared memory, B in shared memory, where a 64-bit descriptor says how it lies. They are followed
// by a predicate, whether D is added, the signs of A and B, and whether each of them in shared memory is transposed.
//
//nolint:gochecknoglobals // constant table of instructions
var warpgroupRows = []row{
	{OpSetmaxnreg, ".<inc|dec>.sync.aligned.u32", "int(24|32|40|48|56|64|72|80|88|96|104|112|120|128|136|144|152|160|168|176|184|192|200|208|216|224|232|240|248|256)", "8.0 sm_90a"},
	{OpWgmmaFence, ".sync.aligned", "", "8.0 sm_90a"},
	{OpWgmmaCommitGroup, ".sync.aligned", "", "8.0 sm_90a"},
	{OpWgmmaWaitGroup, ".sync.aligned", "int(0..2147483647)", "8.0 sm_90a"},
	{OpWgmmaMmaAsync, ".sync.aligned.<m64k8>.f32.tf32.tf32", "+{n/2:f32}, {4:u32}, u64, !pred, int(-1|1), int(-1|1)", "8.0 sm_90a"},
	{OpWgmmaMmaAsync, ".sync.aligned.<m64k8>.f32.tf32.tf32", "+{n/2:f32}, u64, u64, !pred, int(-1|1), int(-1|1)", "8.0 sm_90a"},
	{OpWgmmaMmaAsync, ".sync.aligned.<m64k16>.f32.f16.f16", "+{n/2:f32}, {4:u32}, u64, !pred, int(-1|1), int(-1|1), int(0|1)", "8.0 sm_90a"},
	{OpWgmmaMmaAsync, ".sync.aligned.<m64k16>.f32.f16.f16", "+{n/2:f32}, u64, u64, !pred, int(-1|1), int(-1|1), int(0|1), int(0|1)", "8.0 sm_90a"},
	{OpWgmmaMmaAsync, ".sync.aligned.<m64k16>.f32.bf16.bf16", "+{n/2:f32}, {4:u32}, u64, !pred, int(-1|1), int(-1|1), int(0|1)", "8.0 sm_90a"},
	{OpWgmmaMmaAsync, ".sync.aligned.<m64k16>.f32.bf16.bf16", "+{n/2:f32}, u64, u64, !pred, int(-1|1), int(-1|1), int(0|1), int(0|1)", "8.0 sm_90a"},
}

// Branches, calls and the rest.
//
//nolint:gochecknoglobals // constant table of instructions
var controlRows = []row{
	{OpBra, "[.uni]", "label", ""},
	{OpCall, "[.uni]", "call", ""},
	{OpRet, "[.uni]", "", ""},
	{OpExit, "", "", ""},
	{OpTrap, "", "", ""},
	{OpBrkpt, "", "", ""},
	{OpNanosleep, ".u32", "u32", "6.3 sm_70"},
}
