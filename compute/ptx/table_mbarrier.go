package ptx

// Barriers in shared memory, whose threads arrive and wait separately. Barriers of other blocks of a cluster are missing.
//
//nolint:gochecknoglobals // constant table of instructions
var mbarrierRows = []row{
	{OpMbarrierInit, "[.<shared|shared::cta>].b64", "[], u32", "7.0 sm_80"},
	{OpMbarrierInval, "[.<shared|shared::cta>].b64", "[]", "7.0 sm_80"},
	{OpMbarrierArrive, "[.<shared|shared::cta>].b64", "=_u64, []", "7.0 sm_80"},
	{OpMbarrierArrive, "[.<shared|shared::cta>].b64", "=_u64, [], u32(1..4294967295)", "7.8 sm_90"},
	{OpMbarrierArrive, ".noComplete[.<shared|shared::cta>].b64", "=_u64, [], u32(1..4294967295)", "7.0 sm_80"},
	{OpMbarrierArrive, ".release.cta[.<shared|shared::cta>].b64", "=_u64, []", "8.0 sm_80"},
	{OpMbarrierArrive, ".release.cta[.<shared|shared::cta>].b64", "=_u64, [], u32(1..4294967295)", "8.0 sm_90"},
	{OpMbarrierArrive, ".expect_tx[.<shared|shared::cta>].b64", "=_u64, [], u32", "8.0 sm_90"},
	{OpMbarrierArrive, ".expect_tx.release.cta[.<shared|shared::cta>].b64", "=_u64, [], u32", "8.0 sm_90"},
	{OpMbarrierArriveDrop, "[.<shared|shared::cta>].b64", "=_u64, []", "7.0 sm_80"},
	{OpMbarrierArriveDrop, "[.<shared|shared::cta>].b64", "=_u64, [], u32(1..4294967295)", "7.8 sm_90"},
	{OpMbarrierArriveDrop, ".noComplete[.<shared|shared::cta>].b64", "=_u64, [], u32(1..4294967295)", "7.0 sm_80"},
	{OpMbarrierArriveDrop, ".release.cta[.<shared|shared::cta>].b64", "=_u64, []", "8.0 sm_80"},
	{OpMbarrierArriveDrop, ".release.cta[.<shared|shared::cta>].b64", "=_u64, [], u32(1..4294967295)", "8.0 sm_90"},
	{OpMbarrierArriveDrop, ".expect_tx[.<shared|shared::cta>].b64", "=_u64, [], u32", "8.0 sm_90"},
	{OpMbarrierArriveDrop, ".expect_tx.release.cta[.<shared|shared::cta>].b64", "=_u64, [], u32", "8.0 sm_90"},
	{OpMbarrierExpectTx, "[.<shared|shared::cta>].b64", "[], u32", "8.0 sm_90"},
	{OpMbarrierExpectTx, ".relaxed.cta[.<shared|shared::cta>].b64", "[], u32", "8.0 sm_90"},
	{OpMbarrierCompleteTx, "[.<shared|shared::cta>].b64", "[], u32", "8.0 sm_90"},
	{OpMbarrierCompleteTx, ".relaxed.cta[.<shared|shared::cta>].b64", "[], u32", "8.0 sm_90"},
	{OpMbarrierTestWait, "[.<shared|shared::cta>].b64", "=pred, [], u64", "7.0 sm_80"},
	{OpMbarrierTestWait, ".acquire.cta[.<shared|shared::cta>].b64", "=pred, [], u64", "8.0 sm_80"},
	{OpMbarrierTestWait, ".parity[.<shared|shared::cta>].b64", "=pred, [], u32(0..1)", "7.1 sm_80"},
	{OpMbarrierTestWait, ".parity.acquire.cta[.<shared|shared::cta>].b64", "=pred, [], u32(0..1)", "8.0 sm_80"},
	{OpMbarrierTryWait, "[.<shared|shared::cta>].b64", "=pred, [], u64, u32?", "7.8 sm_90"},
	{OpMbarrierTryWait, ".acquire.cta[.<shared|shared::cta>].b64", "=pred, [], u64, u32?", "8.0 sm_90"},
	{OpMbarrierTryWait, ".parity[.<shared|shared::cta>].b64", "=pred, [], u32(0..1), u32?", "7.8 sm_90"},
	{OpMbarrierTryWait, ".parity.acquire.cta[.<shared|shared::cta>].b64", "=pred, [], u32(0..1), u32?", "8.0 sm_90"},
	{OpMbarrierPendingCount, ".b64", "=u32, u64", "7.0 sm_80"},
	{OpCpAsyncMbarrierArrive, "[.noinc][.<shared|shared::cta>].b64", "[]", "7.0 sm_80"},
}
