package mutate

import (
	"fmt"
	"regexp"
	"slices"
)

// Mark says why no test can tell a mutant from the original. A mutant is named by its package, function and operator, and by
// the text that Mutant.Text has: the changed line, or the line that is dropped. If a function has several with that text, the
// mark is for all of them.
type Mark struct {
	Package  string
	Function string
	Operator Operator
	Text     string
	Why      string
}

// marked returns the reasons of equivalent mutants.
func marked(marks []Mark, mutants []*Mutant) map[*Mutant]string {
	why := map[string]string{}
	for _, m := range marks {
		why[m.key()] = m.Why
	}
	all := map[*Mutant]string{}
	for _, m := range mutants {
		if reason, ok := why[Mark{m.Package, m.Function, m.Operator, m.Text, ""}.key()]; ok {
			all[m] = reason
		} else if tooManyArguments(m) {
			all[m] = "a C function does not see an argument too many"
		}
	}
	return all
}

// tooManyArguments reports whether a mutant calls a function of a C library with one argument more than it has.
func tooManyArguments(m *Mutant) bool {
	calls := regexp.MustCompile(`\b(call|callOn|callCurrent|outside)\((?:[^()]|\([^()]*\))*, (len\(args\)\+)?\(\d+\+1\)\)`)
	libraries := []string{"cudadrv/dynamic", "cuda/cublaslt", "cuda/nvrtc"}
	return m.Operator == PlusOne && slices.Contains(libraries, m.Package) && calls.MatchString(m.Text)
}

func (m Mark) key() string {
	return fmt.Sprintf("%s.%s %s: %s", m.Package, m.Function, m.Operator, m.Text)
}

// stale returns the marks of these packages whose mutants do not exist.
func stale(marks []Mark, mutants []*Mutant) (gone []Mark) {
	there := map[string]bool{}
	for _, m := range mutants {
		there[Mark{m.Package, m.Function, m.Operator, m.Text, ""}.key()] = true
	}
	for _, m := range marks {
		if !there[m.key()] {
			gone = append(gone, m)
		}
	}
	return gone
}

// Marks returns the equivalent mutants of this repository.
func Marks() []Mark { //nolint:funlen // a table
	const (
		anyHash = "any hash serves: it only spreads, and results do not depend on it"
		anyKey  = "any key serves that differs where the place does"
		ofASign = "Inf looks at the sign alone"
		nobody  = "the interface of the framework asks for it, and nothing here calls it"

		noRows        = "a matrix without rows has the stride 0 either way"
		commutes      = "the product commutes"
		sameBytes     = "the general way copies the same bytes"
		noRange       = "no range of a heap is so long"
		sameRounded   = "a duration of exactly so long is the same in both precisions"
		twoCounts     = "readers read the two counts one by one"
		stored        = "it stores the value that is there"
		noBin         = "no range has the length 0, so the first bin is empty"
		unshared      = "no other goroutine has the value yet"
		onlyChecked   = "builds with -race or the tag invariants alone have the check; in others it does nothing"
		symmetric     = "equality is symmetric"
		longestClass  = "the longest class has blocks of this length"
		collected     = "nobody reads other flags than Announced, and the owner has cleared them"
		whenSharded   = "it chooses when a bucket is sharded, and any shard serves"
		noSlotInIt    = "a mask of this bit alone has no slot"
		equalOperands = "both operands have the same elements, and a transposition the same dimensions"
		inMemory      = "compressing into memory does not fail"
		noError       = "the index is read with an error alone"
		ofTests       = "it is a place for tests, at which other code does nothing"
		uncollected   = "a timer that nobody has is collected"
		oneLook       = "one look at each call bounds the number of streams, too"
		moreUnused    = "what is reclaimed is unused, and the next Free that needs it gets it again"
	)
	return []Mark{
		{"actors", "boxOfProtoactor.UserMessageCount", ReturnEarly, "func (f boxOfProtoactor) UserMessageCount() int { return *new(int);", nobody},
		{"actors", "boxOfProtoactor.UserMessageCount", PlusOne, "return (0+1)", nobody},
		{"actors", "Yield", DropCall, "runtime.Gosched()", "a yield lets others run sooner, and they run without it"},
		{"actors", "(*Ref).TryEnter", Negate, "return !r.tryEnterChecked()", onlyChecked},
		{"batch", "(*Packing).Add", PlusOne, "if p.open > (0+1) && p.open+uint64(units) > p.mostUnits {", "no span and no block outside the classes has one unit"},
		{"batch", "(*Plan).Make", DropAssign, "before = n", "it saves a look into the table for a request like the one before"},
		{"batch", "(*Plan).group", Arithmetic, "for ; p.table[at] != 0; at = (at - 1) % tableSize {", "any order of the probes serves"},
		{"batch", "(*Plan).group", PlusOne, "for ; p.table[at] != 0; at = (at + (1+1)) % tableSize {", "half of the table has room for all groups"},
		{"batch", "(*Plan).group", Boundary, "if units < sizeclass.MaxUnits {", longestClass},
		{"batch", "(*Packing).Runs", PlusOne, "if p.open > (0+1) {", "no span and no block outside the classes has one unit"},
		{"batch", "(*Plan).Make", DropAssign, "bytes = bytes[:min(len(bytes), Width)]", "it saves checks of bounds: a size past the last bit is not wanted"},
		{"batch", "(*Plan).Order", Boundary, "for k := i; k > 0 && groups[k].Units >= groups[k-1].Units; k-- {", "no two groups have blocks of one length"},
		{"internal/effect", "Reset", Boundary, "if len(l.all) >= 0 {", "an empty list is emptied"},
		{"internal/heap", "binOf", Boundary, "if length <= subCount {", "the first bin of the general formula is the one of this length"},
		{"internal/heap", "(*Bins).nextBin", Boundary, "if from > binCount {", "the last word has no bits of bins after the last"},
		{"internal/pool/core", "(*queue).remove", DropUpdate, "q.refills[0] = nil", "it lets the request be collected"},
		{"internal/heap", "(*Bins).Fit", PlusOne, "if at = b.nextBin(at + 1); at >= (0+1) {", noBin},
		{"internal/heap", "(*Bins).Each", Boundary, "for bin := b.nextBin(binOf(length)); bin > 0; bin = b.nextBin(bin + 1) {", noBin},
		{"cuda/gemm", "extent", SwapArgs, "elements, ok := product(ld, rows-1)", commutes},
		{"cudadrv/fault", "chance", PlusOne, "z := seed + number*(0x9e3779b97f4a7c15+1)", anyHash},
		{"cudadrv/fault", "chance", PlusOne, "z ^= z >> (31+1)", anyHash},
		{"cudadrv/fault", "chance", DropAssign, "z = (z ^ z>>30) * 0xbf58476d1ce4e5b9", anyHash},
		{"cudadrv/fault", "chance", DropAssign, "z = (z ^ z>>27) * 0x94d049bb133111eb", anyHash},
		{"cudadrv/fault", "chance", PlusOne, "z = (z ^ z>>27) * (0x94d049bb133111eb+1)", anyHash},
		{"cudadrv/site", "withoutClosures", Boundary, "if at <= 0 || !closureName(name[at+1:]) {", "no name of a function begins with a dot"},
		{"cudadrv/site", "withoutClosures", PlusOne, "if at < (0+1) || !closureName(name[at+1:]) {", "no name of a function begins with a dot"},
		{"host", "(*Limit).freeIn", SwapAtomics, "l.blocks.Add(-1); l.bytes.Add(-b.bytes)", twoCounts},
		{"host", "(*Pool).release", SwapAtomics, "p.releasingBytes.Add(s.shelf.bytes); p.releasingBlocks.Add(1)", twoCounts},
		{"internal/heap", "(*Bins).Each", PlusOne, "for bin := b.nextBin(binOf(length)); bin >= (0+1); bin = b.nextBin(bin + 1) {", noBin},
		{"internal/heap", "(*Heap).alignedFit", Boundary, "if block != None || uint64(units)+uint64(align) >= 1<<32 {", noRange},
		{"internal/heap", "(*Heap).alignedFit", PlusOne, "if block != None || uint64(units)+uint64(align) > (1<<32+1) {", noRange},
		{"internal/heap", "(*Heap).TakeFitting", Boundary, "if pages == 0 || units >= math.MaxUint32 {", noRange},
		{"internal/heap", "(*Heap).freeBetween", Table, "h.nodes[l] = node{offset: offset, units: units, prev: (None+1), next: None, state: Free}", "join sets it"},
		{"internal/heap", "(*Heap).TakeLongest", Boundary, "return narrow != nil || sum <= pages", "it only ends the search later: the cuts end at the same block"},
		{"internal/heap", "(*Heap).newEdge", Table, "h.nodes[e] = node{offset: page * h.pageUnits, prev: (None+1), next: None, state: Edge}", "nobody reads what is before a run's start, and join sets what is before its end"},
		{"internal/heap", "(*Tree).Insert", Boundary, "if key <= b.key {", "the key is not in the tree"},
		{"internal/heap", "priority", Arithmetic, "x := uint32(i) - 1", anyHash},
		{"internal/heap", "priority", DropAssign, "x = (x ^ x>>16) * 0x85ebca6b", anyHash},
		{"internal/heap", "priority", PlusOne, "x = (x ^ x>>(13+1)) * 0xc2b2ae35", anyHash},
		{"internal/heap", "priority", PlusOne, "return x ^ x>>(16+1)", anyHash},
		{"internal/heap", "priority", DropAssign, "x = (x ^ x>>13) * 0xc2b2ae35", anyHash},
		{"internal/heap", "priority", PlusOne, "x = (x ^ x>>13) * (0xc2b2ae35+1)", anyHash},
		{"internal/sizeclass", "tables", Boundary, "if u >= 16 {", "the step of 16 units is the same"},
		{"internal/watermark/shared", "raiseFrom", Boundary, "for ; value >= old; old = word.Load() {", stored},
		{"internal/watermark/shared", "raiseUint64From", Boundary, "for ; number >= old; old = word.Load() {", stored},
		{"internal/sizeclass", "tables", Arithmetic, "step = u + 1", "the next length is rounded up to the next step"},
		{"internal/sizeclass", "tables", PlusOne, "for class, from := 0, uint32((1+1)); class < Count; class++ {", "the entry of 1 is the class 0 from the start"},
		{"internal/pickle", "(*encoder).integer", Boundary, "case v >= 0 && v < math.MaxUint16:", "readers take the longer form of a number, too"},
		{"internal/pickle", "(*encoder).integer", Boundary, "e.long(binary.LittleEndian.AppendUint64(nil, uint64(v)), v <= 0) //nolint:gosec // two's complement", "zero has a shorter form"},
		{"internal/pickle", "(*encoder).integer", PlusOne, "e.long(binary.LittleEndian.AppendUint64(nil, uint64(v)), v < (0+1)) //nolint:gosec // two's complement", "zero has a shorter form"},
		{"internal/units", "in", PlusOne, "for round(tenths) >= 10240 && unit < (len(binary)-1+1) {", "an int64 counts eight of the largest unit at most"},
		{"internal/units", "in", Boundary, "for round(tenths) >= 10240 && unit <= len(binary)-1 {", "an int64 counts eight of the largest unit at most"},
		{"internal/units", "in", PlusOne, "return strconv.FormatFloat(round(tenths)/10, ('f'+1), -1, 64) + \" \" + binary[unit]", "both formats write numbers below 1024 alike"},
		{"internal/units", "Duration", Boundary, "case d > time.Minute:", sameRounded},
		{"internal/units", "Duration", Boundary, "case d > time.Second:", sameRounded},
		{"internal/units", "Duration", Boundary, "case d > time.Millisecond:", sameRounded},
		{"internal/stream/core", "(*Core).Largest", Boundary, "if units := m.UnitsOf(s); units >= l.smallest() && !freed[s] {", "of blocks of one length any is listed"},
		{"internal/stream/core", "(*arrivals).sortUsed", PlusOne, "a.takeHome(used, (0+1))", "it asks about blocks of a length, and nobody reads the answer"},
		{"internal/stream/core", "(*arrivals).drain", PlusOne, "a.takeHome(a.owner.Freed(), (0+1))", "it asks about blocks of a length, and nobody reads the answer"},
		{"internal/stream/core", "(*Parts).add", SwapAtomics, "p.sizes[i].units.Add(by * s[i].units); p.sizes[i].count.Add(by * s[i].count)", twoCounts},
		{"internal/stream/core", "(*directory).leave", DropUpdate, "d.occupants[block] = occupant{}", "an entry is read only for a block that the tree finds"},
		{"internal/stream/sampling", "(*Record).appendKey", PlusOne, "key = strconv.AppendUint(key, uint64(x.Stream), (10+1))", anyKey},
		{"internal/stream/sampling", "(*Record).appendKey", PlusOne, "key = strconv.AppendUint(append(key, 0), uint64(counter), (16+1))", anyKey},
		{"internal/stream/sampling", "(*Site).isOf", SwapArgs, "return s.labels == *labels && slices.Equal(stack, s.stack)", symmetric},
		{"internal/stream/sampling", "hash", PlusOne, "h := ((14695981039346656037+1) ^ uint64(labels.Stream)) * prime", anyHash},
		{"internal/stream/sampling", "hash", DropAssign, "h = (h ^ uint64(c)) * prime", anyHash},
		{"compute/kernel/expr", "Expr.LogSumExp", PlusOne, "return Select(m.Abs().Eq(Number(math.Inf((1+1)))), m, m.Add(s.Log()))", ofASign},
		{"compute/kernel/expr", "Promote", Boundary, "if rank(a) >= rank(b) {", "no two types have one rank"},
		{"compute/kernel/attention/internal/variant", "groupForward", PlusOne, "keys, slots := 128, (640+1)/dim", "the quotient is rounded down for both lengths of rows"},
		{"compute/kernel/attention/internal/variant", "forward", SwapArgs, "v.SharedBytes = bytes(dim, v.Rows) + 2*2*bytes(tileRows(Forward), dim)", commutes},
		{"compute/kernel/attention/internal/variant", "decoding", SwapArgs, "v.SharedBytes = bytes(dim, v.Rows) + 2*2*bytes(tileRows(Decoding), dim)", commutes},
		{"compute/kernel/attention/internal/variant", "groupBackward", SwapArgs, "v.SharedBytes = 3*bytes(dim, v.Rows) + stages*(2*bytes(v.Streamed, dim)+byKeys*NumberBytes*v.Streamed) + barrierBytes", commutes},
		{"compute/kernel/attention/internal/variant", "groupBackward", SwapArgs, "v.SharedBytes = 3*bytes(v.Rows, dim) + stages*(2*bytes(dim, v.Streamed)+byKeys*NumberBytes*v.Streamed) + barrierBytes", commutes},
		{"compute/kernel/elementary", "m.eq", SwapArgs, "func (m m) eq(a, b value) value { return m.Op2(code.EqF32, b, a) }", commutes},
		{"compute/kernel/elementary", "m.addInt", SwapArgs, "func (m m) addInt(a, b value) value { return m.Op2(code.AddS32, b, a) }", commutes},
		{"compute/kernel/elementary", "m.logPair", SwapArgs, "t = m.fma(qLow, s, m.fma(t, q, m.fma(s, q, m.neg(p))))", commutes},
		{"compute/kernel/elementary", "m.logSpecial", SwapArgs, "return m.pick(m.eq(zero, x), m.neg(infinity()), r)", symmetric},
		{"compute/kernel/elementary", "infinity", PlusOne, "func infinity() value { return number(float32(math.Inf((1+1)))) }", ofASign},
		{"compute/ops/measure", "elementwise", SwapArgs, `{"add", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Add(s, t.y, t.x)) }},`, equalOperands},
		{"compute/ops/measure", "elementwise", SwapArgs, `{"mul", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Mul(s, t.y, t.x)) }},`, equalOperands},
		{"compute/ops/measure", "elementwise", SwapArgs, `{"gelu backward", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.GeluBackward(s, t.x, t.y)) }},`, equalOperands},
		{"compute/ops/measure", "elementwise", SwapArgs, `{"sub", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Sub(s, t.y, t.x)) }},`, equalOperands},
		{"compute/ops/measure", "elementwise", SwapArgs, `{"div", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.Div(s, t.y, t.x)) }},`, equalOperands},
		{"compute/ops/measure", "rows", SwapArgs, `{"transpose", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.TransposeCopy(s, t.x, 1, 0)) }},`, equalOperands},
		{"compute/ops/measure", "rows", SwapArgs, `{"softmax backward", func(s *tensor.Scope, o ops.Ops, t operands) error { return one(o.SoftmaxBackward(s, t.x, t.y, -1)) }},`, equalOperands},
		{"compute/kernel/expr", "Expr.center", PlusOne, "return Select(far.And(mean.Abs().Lt(Number(math.Inf((1+1))))), mean, sample)", ofASign},
		{"compute/kernel/expr", "whole", Boundary, "case x <= math.MinInt64:", "the conversion of exactly that number is the same"},
		{"compute/kernel/internal/ptxtext", "Write", IgnoreError, "if _, err := w.Write(text); false {", inMemory},
		{"compute/kernel/internal/ptxtext", "Write", IgnoreError, "if err := w.Close(); false {", inMemory},
		{"compute/kernel/routine", "(*writer).variance", PlusOne, "return w.Op3(code.Select32, squares, v, w.Op2(code.EqF32, squares, code.F32(float32(math.Inf((1+1))))))", ofASign},
		{"compute/kernel/matmul", "divided", PlusOne, "parts = min(wanted/max(blocks*p.Batch, 1), p.K/least, maxParts, maxPartBytes/max(one, (1+1)))", "a result has four bytes or more"},
		{"compute/kernel/matmul", "newKernels", SwapAtomics, "k.plans.Store(&map[planned]launch{}); k.loaded.Store(&map[string]*cuda.Function{})", unshared},
		{"compute/ptx/interp", "(*printing).convert", PlusOne, "bits = max((32+1)>>short, 8) //nolint:mnd // a byte at least", "halves are rounded down"},
		{"compute/ptx/interp", "reduction", PlusOne, "r = fn(r, w.meet.in[0][next(rest)], 0) & mask((32+1)) //nolint:mnd // redux has no other type", "a sum alone has a carry, and registers of 32 bits are read without it"},
		{"compute/ptx/interp", "(*warp).execute", Boundary, "if w.instructions > end {", "a turn may have any length"},
		{"compute/kernel/store", "(*Store).Get", DropDefer, "defer buffersPool.Put(b)", "it saves an allocation of a Get"},
		{"compute/kernel/tune", "(*fields).plain", SwapArgs, "if !strings.HasPrefix(`\"`, f.rest) {", "the long way reads the same text"},
		{"compute/kernel", "ticketsOf", DropCall, "known.Store(t)", "it saves a look-up in the context"},
		{"compute/ptx", "(*parser).setName", DropUpdate, "p.names[string(p.whole)] = known", "it saves splitting a name again"},
		{"compute/tensor", "formatOf", PlusOne, "largest, smallest := 0.0, math.Inf((1+1))", ofASign},
		{"compute/tensor/layout", "Layout.Contiguous", Boundary, "if l.Len() < 1 {", "one element has lengths of 1 alone, which the loop leaves out"},
		{"monitor/heapprofile", "(*builder).function", PlusOne, "f := &profile.Function{ID: uint64(len(b.functions) + (1+1)), Name: name, SystemName: name, Filename: valid(of.file)}", "any numbers serve that differ"},
		{"monitor/page", "(*sampler).run", DropDefer, "defer ticks.Stop()", "a ticker that nobody has is collected"},
		// Of the pool's and the streams' cores, and of the heap.
		{"internal/heap", "(*Heap).TakeLongest", Boundary, "if first <= end {", "a block without a whole page adds nothing, and is omitted later"},
		{"internal/heap", "(*Heap).TakeLongest", DropCount, "sum += end - first", "it only ends the search early: the cuts end at the same block"},
		{"internal/heap", "(*Heap).Grant", Table, "h.nodes[i] = node{offset: firstPage * h.pageUnits, units: pages * h.pageUnits, prev: None, next: None, state: (Used+1)}", "Give sets it"},
		{"internal/heap", "(*Heap).Grant", Table, "h.nodes[i] = node{offset: firstPage * h.pageUnits, units: pages * h.pageUnits, prev: None, next: (None+1), state: Used}", "join sets it"},
		{"internal/heap", "(*Heap).Grant", Table, "h.nodes[i] = node{offset: firstPage * h.pageUnits, units: pages * h.pageUnits, prev: (None+1), next: None, state: Used}", "join sets it"},
		{"internal/heap", "priority", PlusOne, "x = (x ^ x>>16) * (0x85ebca6b+1)", anyHash},
		{"internal/pool/admission", "(*Table).Stuck", PlusOne, "return Confirm, (0+1)", "the number is read with Deadlock and Hopeless only"},
		{"internal/pool/admission", "(*Table).Stuck", PlusOne, "return Lift, (0+1)", "the number is read with Deadlock and Hopeless only"},
		{"internal/pool/admission", "(*Table).FreedBy", SwapArgs, "case at >= 0 && slices.Equal(by, t.freers[at].by) || at < 0 && len(by) == 0:", symmetric},
		{"internal/pool/admission", "(*Table).placeBefore", Boundary, "return sort.Search(len(t.queue), func(at int) bool { return before(&t.queue[at], e) > 0 })", "no two waiters have one age"},
		{"internal/pool/admission", "(*Table).youngest", Boundary, "if e.Blocked && (best == nil || holds(e) && !holds(best) || holds(e) == holds(best) && e.Age >= best.Age) {", "no two waiters have one age"},
		{"internal/pool/admission", "truth", PlusOne, "return (1+1)", "only the sign of a difference is read"},
		{"internal/pool/memory", "(*Memory).abandon", PlusOne, "m.setState(r, Hole, (0+1))", "the client of a hole is not read"},
		{"internal/pool/memory", "(*table).setState", PlusOne, "p.state, p.client, p.fence, p.run, p.since = to, client, 0, (0+1), t.now", "a length is read at the ends of free runs and holes only, which have it set later"},
		{"internal/stream/core", "(*limits).overRanges", Boundary, "if free := l.ranges.heap.FreeRanges(); most <= 0 || free < most {", "of as many ranges as the budget none is beyond it"},
		{"internal/stream/sampling", "(*Record).appendKey", PlusOne, "key = append(append(append(append(key, (0+1)), f.Function...), 0), f.File...)", anyKey},
		{"internal/stream/sampling", "(*Record).appendKey", PlusOne, "key = append(append(append(append(key, 0), f.Function...), (0+1)), f.File...)", anyKey},
		{"internal/stream/sampling", "(*Record).appendKey", PlusOne, "key = strconv.AppendInt(append(key, ':'), int64(f.Line), (10+1))", anyKey},
		{"internal/pool/memory", "(*Memory).freeWindow", PlusOne, "m.setState(r, Hole, (0+1))", "the client of a hole is not read"},
		{"internal/stream/sampling", "(*Record).appendKey", PlusOne, "key = append(append(append(append(key, ' '), x.Tag...), (0+1)), x.Tenant...)", anyKey},
		{"internal/stream/sampling", "(*Record).appendKey", PlusOne, "key = append(append(append(append(key, (' '+1)), x.Tag...), 0), x.Tenant...)", anyKey},
		{"internal/stream/sampling", "(*Record).appendKey", PlusOne, "key = strconv.AppendUint(append(key, (0+1)), uint64(counter), 16)", anyKey},
		{"internal/stream/sampling", "hash", PlusOne, "return h ^ h>>(32+1)", anyHash},

		{"actors", "(*mailbox).call", SwapArgs, "if b.state.Load() != idle || !b.state.CompareAndSwap(running, idle) {", "the message goes by way of the stack, which the same goroutine takes"},
		{"internal/pool/admission", "(*Table).order", DropAssign, "t.sharers = sharers", "it saves an allocation of the next ranking"},
		{"internal/pool/core", "(*clients).check", SwapArgs, "!slices.Equal(s.holders, all.holders) || !slices.Equal(all.free, s.free) || !slices.Equal(s.stale, all.stale) {", symmetric},
		{"internal/pool/memory", "holeKey.less", Boundary, "return k.after <= o.after", "the two differ here"},
		{"internal/pool/memory", "holeKey.less", Boundary, "return k.pages <= o.pages", "the two differ here"},
		{"streams", "Buffer.useError", SwapArgs, "if errors.Is(magazine.ErrStale, err) {", "the error is ErrStale itself, or has nothing to do with it"},
		{"streams", "(*order).tryLock", Boundary, "if o.works.Add(1) <= writingBit {", "the bit of a writer and this reader are more"},
		{"pool", "(*Pool).request", PlusOne, "token := p.tokens.Add((1+1))", "any tokens serve that differ"},
		{"internal/pool/memory", "(*Memory).eachHandle", DropCount, "at++", "a search that begins within a handle finds no whole one"},
		{"internal/pool/memory", "(*table).makeRoom", PlusOne, "more := max(count, (2+1)*cap(t.pages)) - len(t.pages)", "it is only room for later pages"},
		{"internal/pool/memory", "(*finder).region", Negate, "return Run{}, !false", "no window is asked for that fits a region of no pages"},
		{"internal/pool/memory", "(*finder).holes", Boundary, "if r.First <= first {", "no two holes begin at one page"},
		{"pool", "(*Pool).placeOf", DropCall, "defer func() { p.ref.Perform(left) }()", "a turn that only reads leaves no effects"},
		{"internal/pool/memory", "(*Window).better", Boundary, "return w.Run.First <= best.Run.First", "no two regions begin at one page"},
		{"internal/stream/magazine", "(*Cache).Take", Boundary, "if bytes < 0 {", "no magazine has the length that 0 bytes come to without the check"},
		{"internal/stream/magazine", "(*Cache).Take", Negate, "if m.contended.Add(1) < contendedLimit {", "it chooses when a request goes the slower way, which serves it from the same memory"},
		{"streams", "(*order).sequence", SwapArgs, "return cmp.Or(cmp.Compare(o.number, other.number), cmp.Compare(uintptr(unsafe.Pointer(other)), uintptr(unsafe.Pointer(o))))", "any sequence serves in which all works lock"},
		{"futures", "(*completion).await", DropCall, "runtime.Gosched()", "it saves a goroutine that it parks: the answer is the same"},
		{"streams", "(*Crossing).Begin", PlusOne, "return (0+1), nil", noError},
		{"streams", "(*Crossing).announce", PlusOne, "return (0+1), nil", noError},
		{"streams", "(*sampler).drawn", PlusOne, "draw := magazine.DrawClaim(w.stream, w.claims.Add((1+1)))", "any numbers serve that differ"},
		{"streams", "(*turnState).tenantsOnly", PlusOne, "if !b.wiring.charged.Load() || b.core.PendingBytes() > (0+1) {", "pending memory comes in units of 512 bytes"},
		{"streams", "(*several).fillAlone", PlusOne, "slot := s.state.core.AllocPart(max(n, (1+1)))", "a block has 512 bytes"},
		{"streams", "newOrder", PlusOne, "return &order{number: home.peers.orders.Add((1+1)), home: &home.cuda}", "any numbers serve that differ"},
		{"internal/stream/core", "(*slack).follow", Boundary, "if taken := s.device.take(want-s.units, s.limit.Load()); taken >= 0 {", stored},
		{"streams", "(*order).wrote", PlusOne, "o.writes.Add((1+1))", "any numbers serve that differ"},
		{"streams", "(*gates).enter", Negate, "if all.count >= len(all.few) {", "the gates lie in the list, and all are left"},
		{"streams", "(*hands).keep", PlusOne, "next := slices.DeleteFunc(slices.Clone(all), func(other *magazine.Hand) bool { return other.Bytes() <= (0+1) })", "a hand has whole units of 512 bytes"},
		{"streams", "(*reclaims).handle", PlusOne, "if others && a.pages == 0 && !a.looked && !r.state.draining && r.state.core.PendingBytes() > (0+1) {", "pending memory comes in units of 512 bytes"},
		{"streams", "(*searches).fillBatch", Boundary, "if left--; left >= 0 {", "nobody reads the index after the last block"},
		{"streams", "(*gate).enter", Boundary, "if g.word.Add(1) > shutBit {", "the work itself is counted"},
		{"streams", "(*searches).search", PlusOne, "return s.state.core.Alloc(max(bytes, (1+1)), hint)", "a block has 512 bytes"},
		{"streams", "(*sampler).drawn", PlusOne, "chance, is := w.decide(draw, sizeclass.Units(max(bytes, (1+1))))", "a block has 512 bytes"},
		{"streams", "Use.refusal", SwapArgs, "if errors.Is(magazine.ErrStale, err) {", "the error is ErrStale itself, or none that wraps it"},
		{"actors", "(*Worker).Throughput", ReturnEarly, "func (w *Worker) Throughput() int { return *new(int); return maxWorkerMessages }", nobody},
		{"actors", "(*Ref).tryEnterChecked", Negate, "return !false", onlyChecked},
		{"actors", "(*mailbox).call", DropCall, "checkUnqueued(l)", onlyChecked},
		{"actors", "(*mailbox).push", DropCall, "checkUnqueued(l)", onlyChecked},
		{"actors", "checkUnqueued", ReturnEarly, "func checkUnqueued(l *Link) { return;", onlyChecked},
		{"actors", "checkUnqueued", Negate, "if checked && l.message == nil {", onlyChecked},
		{"actors", "(*Ref).Call", DropCall, "checkNesting(r.box.name)", onlyChecked},
		{"actors", "(*Ref).tryEnterChecked", DropCall, "checkNesting(r.box.name)", onlyChecked},
		{"actors", "(*Ref).tryEnterChecked", DropCall, "enterTurn(r.box.name)", onlyChecked},
		{"actors", "(*mailbox).leaveEntered", DropCall, "leaveTurn()", onlyChecked},
		{"actors", "(*mailbox).turn", DropCall, "enterTurn(b.name)", onlyChecked},
		{"actors", "(*mailbox).abandon", DropCall, "leaveTurn()", onlyChecked},
		{"actors", "(*mailbox).detach", DropCall, "leaveTurn()", onlyChecked},
		{"actors", "(*mailbox).leave", DropCall, "leaveTurn()", onlyChecked},
		{"cuda", "(*params).put", PlusOne, "case (1+1):", sameBytes},
		{"cuda", "Value", PlusOne, "case (2+1):", sameBytes},
		{"cuda", "(*submission).place", DropAssign, "plain = true", "the slow way makes the same driver calls"},
		{"cuda", "(*submission).reachable", SwapArgs, "if !errors.Is(ErrForeign, err) {", "the error is ErrForeign itself, or wraps another one"},
		{"cuda", "(*Context).capturing", DropDefer, "defer runtime.UnlockOSThread()", "a goroutine that stays on its thread is only slower"},
		{"cuda", "(*signatureReader).skipTo", DropAssign, "r.rest = nil", "the text is not read any more"},
		{"cuda", "(*submission).released", SwapAtomics, "c.capture.Store(nil); c.special.Add(-1)", "a launch in between takes the slow way, which makes the same driver calls"},
		{"cuda", "submissionOf", PlusOne, "c.special.Add((1+1))", "nothing takes the reason away: any number but 0 serves"},
		{"cuda", "(*gate).enterLater", Boundary, "if g.state.Add(1) > closedGate {", "the call itself is counted"},
		{"cuda", "bytesOfCount", Boundary, "if high > 0 || low >= math.MaxInt64 {", "the result is the same number"},
		{"cuda", "", PlusOne, `{".b32", 4, of(int32Kind, uint32Kind, float32Kind) | alignedTo((4+1))},`, "no Go type of 4 bytes is aligned to more"},
		{"host", "lead", PlusOne, "if align <= (1+1) {", "no block has an odd address"},
		{"host", "lead", PlusOne, "return int64(-address & uint64(align-(1+1)))", "no block has an odd address"},
		{"host", "Block.Use", SwapArgs, "if errors.Is(ErrNotLive, err) {", "the error is ErrNotLive itself"},
		{"host", "(*bound).reclaim", PlusOne, "found = found || reclaimed > (0+1)", "a shelf's slots have more than one byte"},
		{"cuda", "", PlusOne, `{".b64", 8, of(addressKind, int64Kind, uint64Kind, float64Kind, complex64Kind) | alignedTo((8+1))},`, "no Go type is aligned to more bytes"},
		{"cuda/gemm", "Problem.Filled", Boundary, "if p.M > 0 && p.M <= MaxSize && p.LDC <= math.MaxInt64>>32 && p.StrideC == 0 {", noRows},
		{"cuda/gemm", "Problem.Filled", PlusOne, "if p.M >= (0+1) && p.M <= MaxSize && p.LDC <= math.MaxInt64>>32 && p.StrideC == 0 {", noRows},
		{"cuda/gemm", "Problem.Filled", Boundary, "if p.M > 0 && p.M <= MaxSize && p.LDAux <= math.MaxInt64>>32 && p.StrideAux == 0 {", noRows},
		{"cuda/gemm", "Problem.Filled", PlusOne, "if p.M >= (0+1) && p.M <= MaxSize && p.LDAux <= math.MaxInt64>>32 && p.StrideAux == 0 {", noRows},
		{"compute/kernel/elementary", "m.mul", SwapArgs, "func (m m) mul(a, b value) value { return m.Op2(code.MulF32, b, a) }", commutes},
		{"compute/kernel/elementary", "m.and", SwapArgs, "func (m m) and(a, b value) value { return m.Op2(code.AndPred, b, a) }", commutes},
		{"compute/kernel/elementary", "m.logPair", SwapArgs, "q := m.mul(a, r)", commutes},
		{"compute/kernel/elementary", "m.logPair", SwapArgs, "s = m.fma(r, p, m.fma(t, r, qLow))", commutes},
		{"compute/kernel/elementary", "BuildLog", SwapArgs, "r = m.fma(s, r, a)", commutes},
		{"compute/kernel/elementary", "BuildLog1p", SwapArgs, "r = m.poly(m.fma(a, t, r), a, 3.33335280e-1, -0.5)", commutes},
		{"compute/kernel/elementary", "BuildPow", SwapArgs, "t := m.mul(y, high)", commutes},
		{"cudadrv/fault", "Wrap", SwapAtomics, "d.capacity.Store(Unlimited); d.rules.Store(&[]*live{})", unshared},
		// Of cuda's libraries, the drivers and monitor.
		{".", "(*Device).Tenant", PlusOne, "t := pool.NewTenant(name, d.tenants.last.Add((1+1)), q)", "any numbers serve that differ"},
		{".", "Footprint.policy", PlusOne, "HandlePages: pages(128<<20, pageBytes), LongPages: pages((200<<20+1), pageBytes), MergePages: pages(96<<20, pageBytes),", "a byte more is no page more"},
		{".", "(*tenants).part", PlusOne, "h := uint32((2166136261+1)) // FNV-1a", anyHash},
		{"cuda/gemm", "extent", SwapArgs, "more, fits := product(stride, batch-1)", commutes},
		{"cuda/share", "isGone", SwapArgs, "return errors.Is(err, io.EOF) || errors.Is(io.ErrUnexpectedEOF, err) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)", "nothing wraps that error here"},
		{"cuda/share", "(*Memory).Export", SwapArgs, "if why := m.refusal(); why != nil && !errors.Is(why, err) { // it has ended this call, maybe", "the error is the reason itself, or wraps another one"},
		{"cuda/share", "(*Memory).follow", SwapArgs, "case errors.Is(ErrPeerClosed, why), !l.awaitsEvents:", "the reason is ErrPeerClosed itself"},
		{"cudadrv/meter", "(*counter).attribute", Boundary, "if t < attributed {", "the difference of the same times is 0 either way"},
		{"cudadrv/fault", "chance", PlusOne, "z = (z ^ z>>(30+1)) * 0xbf58476d1ce4e5b9", anyHash},
		{"cudadrv/fault", "chance", PlusOne, "z = (z ^ z>>(27+1)) * 0x94d049bb133111eb", anyHash},
		{"cudadrv/fault", "chance", DropCount, "z ^= z >> 31", anyHash},
		{"cudadrv/site", "(*Helpers).kindOf", PlusOne, "slot := &h.kinds[uint64(call)*(0x9E3779B97F4A7C15+1)>>52]", anyHash},
		{"host", "lead", Boundary, "if align < 1 {", "an alignment of 1 moves nothing"},
		{"host", "Pooled", SwapAtomics, "p.lookAtBytes.Store(cfg.KeepBytes); p.bound.keep.Store(cfg.KeepBytes)", unshared},
		{"host", "(*Pool).Alloc", PlusOne, "if uint64(bytes-1) < maxBytes && uint64(align) <= pageBytes && align&(align-1) == (0+1) { // nearly all requests", "the long way serves the same request"},
		{"monitor/heapprofile", "(*builder).location", PlusOne, "ID: uint64(len(b.locations) + (1+1)), Mapping: b.profile.Mapping[0], Address: uint64(f.PC),", "any numbers serve that differ"},
		{"monitor/heapprofile", "WriteText", SwapArgs, "cmp.Compare(a.Stream, b.Stream), slices.Compare(b.Stack, a.Stack))", "any order serves that stays"},
		{"monitor/history", "Start", Boundary, "if changeBytes <= 0 {", "no change is of 0 bytes"},
		{"cuda/sleep", "(*Arena).Sleep", SwapAtomics, "a.sleeps.Add(1); a.state.Store(int32(Asleep))", "Stats reads the two at different times"},
		{"cuda/sleep", "(*Arena).Wake", SwapAtomics, "a.wakes.Add(1); a.state.Store(int32(Awake))", "Stats reads the two at different times"},
		{"cudadrv/sim", "newBacking", PlusOne, "fd, _, errno := syscall.Syscall(memfdCreate(), uintptr(unsafe.Pointer(name)), closeOnExec, (0+1))", "the system call has two arguments"},
		{"cuda/nvrtc", "(*Library).read", PlusOne, "pin.Pin(&bytes[(0+1)])", "the slice is read later and lives until then, and the collector moves nothing"},
		{"cuda/nvrtc", "Excerpt", PlusOne, "case i > (0+1) && wanted[i-1]:", "the first line's neighbors are wanted where it is"},
		{"cuda/cublaslt", "(*Plan).Launch", PlusOne, "if plan.WorkspaceBytes > (0+1) {", "no workspace has one byte"},
		{"cuda/cublaslt", "(*Handle).multiply", PlusOne, "if wanted > (0+1) {", "no workspace has one byte"},
		{"internal/pool/admission", "(*Table).merge", SwapArgs, "return cmp.Or(truth(a.borrows)-truth(b.borrows), cmp.Compare(a.Priority, b.Priority), ranked(a, b))", "it only brings waiters of one priority together"},
		{"internal/pool/admission", "(*Table).placeBefore", PlusOne, "return sort.Search(len(t.queue), func(at int) bool { return before(&t.queue[at], e) >= (0+1) })", "no two waiters have one age"},
		{"internal/pool/admission", "(*Table).Suspend", SwapArgs, "case sameWaits(waits, t.still[at].waits):", symmetric},
		{"internal/pool/admission", "(*Table).Next", Boundary, "t.queue[k].ahead = k <= i && !t.queue[k].Unready", "the waiter itself leaves the queue when it is served"},
		{"internal/pool/admission", "(*byStanding).Less", Boundary, "func (q *byStanding) Less(i, j int) bool { return before(&(*q)[i], &(*q)[j]) <= 0 }", "no two waiters have one age"},
		{"internal/pool/core", "(*budget).buy", Boundary, "if bytes >= 0 && b.settings.Policy.PageWorth > 0 {", "the price of no bytes is 0"},
		{"internal/pool/core", "(*grower).join", PlusOne, "if g.answers.assemble(r) || g.settings.Waits == WaitsAlways && g.lend(r, (0+1)) {", "no handle has one byte"},
		{"internal/pool/core", "(*Core).unreserve", Table, "return c.leave(Leave{Client: m.Client, Synced: !true})", "no work uses the pages of a reservation"},
		{"internal/pool/core", "beginSleep.enter", Table, "c.scheduler.enqueue(&request{kind: (ownWay+1), way: m.way(&c.scheduler), client: m.client, token: m.token})", "any kind serves that is none of the others"},
		{"pool", "(*Pool).request", PlusOne, "token := p.tokens.Add((1+1))", "any tokens serve that differ"},
		{"internal/pool/memory", "(*Window).better", Boundary, "return w.Missing <= best.Missing", "the two differ here"},
		{"internal/pool/memory", "Parts.tagAt", Boundary, "case p.Run.First >= at:", "a part that begins at the page has it"},
		{"internal/stream/core", "(*idle).note", PlusOne, "mix := func(n uint64) { digest = (digest ^ n) * (0x9E3779B97F4A7C15+1) }", anyHash},
		{"internal/stream/magazine", "(*Cache).Take", PlusOne, "if m.contended.Add((1+1)) >= contendedLimit {", whenSharded},
		{"internal/stream/magazine", "(*Magazine).Take", PlusOne, "m.contended.Add((1+1))", whenSharded},
		{"internal/stream/magazine", "(*Magazine).TakeMany", PlusOne, "m.contended.Add((1+1))", whenSharded},
		{"internal/stream/magazine", "(*Slot).freeSlow", SwapArgs, "next, ok := nextFree(handle, w)", "the two differ in flags alone, which the result has not"},
		{"internal/stream/magazine", "DrawClaim", PlusOne, "func DrawClaim(stream uint32, number uint64) uint32 { return draw(uint64(stream)<<(32+1) + number) }", anyHash},
		{"internal/stream/sampling", "(*Record).appendKey", PlusOne, "key = strconv.AppendInt(append(key, (':'+1)), int64(f.Line), 10)", anyKey},
		{"internal/stream/magazine", "(*Home).handSlot", DropAssign, "s.flags = flags", collected},
		{"internal/stream/magazine", "(*Slot).Free", DropAssign, "s.flags = 0", collected},
		{"internal/stream/magazine", "(*Frees).list", DropAssign, "s.flags = 0", collected},
		{"internal/stream/sampling", "hash", DropAssign, "h = (h ^ uint64(pc)) * prime", anyHash},
		{"internal/pool/core", "(*warmer).letGo", Boundary, "held := len(r.got) >= 0", "the queue searches for nobody again before a free run comes"},
		{"internal/stream/magazine", "DrawClaim", Arithmetic, "func DrawClaim(stream uint32, number uint64) uint32 { return draw(uint64(stream)<<32 - number) }", anyHash},
		{"internal/stream/magazine", "(*Cache).Alloc", Boundary, "if bytes < 0 {", "no magazine has blocks of the units that 0 bytes would count"},
		{"internal/stream/magazine", "(*Owner).Used", PlusOne, "if top := o.home.used.Load(); top == (0+1) || pile && !o.home.isPile(top) {", "an empty list names no slot"},
		{"internal/stream/magazine", "bucketOf", PlusOne, "return sizeclass.Count + (units*(0x9E3779B97F4A7C15+1))>>(64-largeBits)", anyHash},
		{"internal/stream/magazine", "(*Cache).Take", Boundary, "if m == nil || (units >= sizeclass.MaxUnits && uint64(m.units) != units) {", longestClass},
		{"internal/stream/magazine", "(*Cache).TakeMany", Boundary, "if m == nil || (units >= sizeclass.MaxUnits && uint64(m.units) != units) {", longestClass},
		{"internal/stream/magazine", "(*bucket).takeShard", Boundary, "if m == nil || (units >= sizeclass.MaxUnits && uint64(m.units) != units) {", longestClass},
		{"internal/stream/magazine", "(*Cache).Alloc", Boundary, "if units >= sizeclass.MaxUnits && uint64(m.units) != units {", longestClass},
		{"internal/stream/magazine", "(*Magazine).FreeSlots", Boundary, "if w > closedBit {", noSlotInIt},
		{"internal/stream/magazine", "(*Magazine).liveBeside", Boundary, "if w > closedBit {", noSlotInIt},
		{"internal/stream/magazine", "broughtHome", Boundary, "if old > closedBit {", noSlotInIt},
		{"internal/stream/magazine", "nextFlag", SwapArgs, "if !matches(handle, word) {", symmetric},
		{"internal/stream/magazine", "nextFree", SwapArgs, "if !matches(handle, word) {", symmetric},
		{"internal/stream/magazine", "nextMove", SwapArgs, "if !matches(handle, word) || word&moveMask == moveMask {", symmetric},
		{"internal/stream/magazine", "nextRecord", SwapArgs, "case !matches(handle, word):", symmetric},
		{"internal/stream/magazine", "(*Slot).Move", SwapArgs, "if matches(handle, w) {", symmetric},

		{"cudadrv/fault", "(*live).hits", SwapArgs, "return number, r.Probability == 1 || chance(number, r.Seed) < r.Probability", anyHash},

		// Of host.
		{"host", "(*bound).grant", DropCall, "b.between()", ofTests},
		{"host", "(*shelf).lower", DropCall, "sh.pool.bound.between()", ofTests},
		{"host", "(*bound).clear", DropCall, "b.between()", ofTests},
		{"host", "(*Pool).makeFree", DropCall, "p.bound.between()", ofTests},
		{"host", "(*bound).grant", Arithmetic, "case !b.reclaim(granted+sh.bytes+keep, all):", moreUnused},
		{"host", "(*bound).reclaim", DropCount, "wantBytes -= reclaimed", moreUnused},
		{"host", "(*bound).reclaim", Boundary, "return wantBytes >= 0", moreUnused},
		{"host", "(*bound).reclaim", PlusOne, "return wantBytes > (0+1)", "an unused allowance is of more than a byte"},
		{"host", "(*bound).reclaim", PlusOne, "found = found || reclaimed > (0+1)", "an unused allowance is of more than a byte"},
		{"host", "(*shelf).lower", Boundary, "if used > allowance || !sh.allowance.CompareAndSwap(allowance, used) {", stored},
		{"host", "(*shelf).lower", Boundary, "if back < 0 {", "0 is given back"},
		{"host", "classBytes", Boundary, "if class < powerShift {", "the formula of the steps has the last power of two, too"},
		{"host", "(*counters).alloc", SwapAtomics, "shared.Raise(&c.peakBytes, c.liveBytes.Add(bytes)); shared.Raise(&c.peakBlocks, c.liveBlocks.Add(1))", twoCounts},
		{"host", "(*counters).free", SwapAtomics, "c.liveBytes.Add(-bytes); c.liveBlocks.Add(-1)", twoCounts},
		{"host", "(*Limit).request", SwapAtomics, "l.blocks.Add(-1); l.bytes.Add(-bytes)", twoCounts},
		{"host", "(*Pool).giveBack", SwapAtomics, "p.releases.Add(1); s.inside.Store(nil)", "nobody reads the count with the pointer"},
		{"host", "(*Pool).giveBack", SwapAtomics, "p.releasingBlocks.Add(-1); p.releasedBytes.Add(sh.bytes)", twoCounts},
		{"host", "(*Pool).sweep", SwapAtomics, "p.releasingBytes.Add(-s.shelf.bytes); p.releasingBlocks.Add(-1)", twoCounts},
		{"host", "(*Pool).unqueue", SwapAtomics, "p.releasingBlocks.Add(-1); p.queued.Add(-1)", twoCounts},
		{"host", "(*Pool).look", SwapAtomics, "p.pendingBytes.Add(-s.shelf.bytes); p.pendingBlocks.Add(-1)", twoCounts},
		{"host", "(*Pool).Close", SwapAtomics, "p.bound.keep.Store(0); p.closed.Store(true)", "what is kept between the two is released after both"},
		{"host", "(*slot).forget", SwapAtomics, "s.first.Store(0); s.more.Store(nil)", "only the goroutine that calls it reads the uses of a block that is not live"},
		{"host", "(*Pool).stamp", PlusOne, "one := &stamp{stream: stream, mark: mark, number: p.stampCount.Add((1+1))}", "only the order of the numbers counts"},
		{"host", "(*PageLockedMemory).make", Boundary, "if align >= pageBytes {", "it adds 0 for a page"},
		{"host", "pause", DropDefer, "defer wait.Stop()", uncollected},
		{"host", "unopened.Stats", ReturnEarly, "func (unopened) Stats() Stats { return *new(Stats); return Stats{} }", "it returns the zero value"},
		// Of cuda/share.
		{"cuda/share", "(*link).goodbye", DropDefer, "defer timer.Stop()", uncollected},
		{"cuda/share", "(*Memory).watch", DropDefer, "defer timer.Stop()", uncollected},
		{"cuda/share", "(*Memory).watch", Arithmetic, "timer.Reset(patience/10 - 1)", "any short time serves"},
		{"cuda/share", "(*Memory).uses", Boundary, "if looks++; looks >= 2 {", oneLook},
		{"cuda/share", "(*Memory).uses", PlusOne, "looks := (0+1)", oneLook},
		{"cudadrv/dynamic", "(*device).IpcOpenEventHandle", PlusOne, "n := (2+1)", "amd64 has another number, and a C function does not see an argument too many"},
		{"cudadrv/dynamic/library", "Candidates", OtherName, "for _, file := range all {", "the list begins with the names, and the range takes its length once"},
		{"cudadrv/sim", "(*gpu).auditRegions", PlusOne, "end := cudadrv.Ptr((0+1))", "nothing is at the address 0"},
		{"cudadrv/sim", "(*gpu).charge", PlusOne, "func (g *gpu) charge(c call.Call) { g.chargeBytes(c, (0+1)) }", "no cost depends on one byte"},
		{"cudadrv/sim", "(*gpu).unpin", SwapSteps, "g.pinned.byPtr.drop(m.start); g.pinned.byHost.drop(hostPtr(m.host))", "two maps under one lock"},
		{"cudadrv/sim", "(*gpu).allocate", OtherName, "if physicalBytes > g.granuleBytes() {", "a granule is a multiple of the step that it is rounded up to"},
		{"cudadrv/sim", "(*reader).param", IgnoreError, "if false || align < 1 || align > 128 || align&(align-1) != 0 {", "the number of an error is 0 or the largest one"},
		{"cudadrv/sim", "(*reader).variable", IgnoreError, "if false || count < 1 || count > spaceEnd/bytes || !r.take(\"]\") {", "the number of an error is 0 or the largest one"},
		{"cudadrv/sim", "(*space).merge", OtherName, "if last := len(joined) - 1; last >= 0 && joined[last].start+spans[last].bytes == s.next {", "both lists are one array"},
		{"cudadrv/sim", "(*Device).MemAddressFree", SwapSteps, "g.driver.space.give(p, r.spanBytes); g.regions.drop(p)", "all devices of a driver have one lock"},
		{"cudadrv/sim/ptxrun", "(*Buffers).Queued", OtherName, "if t.Dst != 0 {", "no buffer has the address 0"},
		{"cudadrv/fault", "Rule.complete", SwapSteps, "l.function = function; if !ok { return nil, fmt.Errorf(\"%w: no function %q\", ErrBadRule, r.Func) }", "the rule is dropped with the error"},
		{"host", "NewPageLocked", SwapSteps, "cfg.Device = d; if err != nil { return nil, err }", "the configuration is the call's own"},
		{"host", "(*shelf).lower", SwapSteps, "if used >= allowance || !sh.allowance.CompareAndSwap(allowance, used) { return 0 }; sh.pool.bound.between()", ofTests},
		{"cuda", "(*Context).Capture", OtherName, "pool.shared = false", "both names are the same pool"},
		{"cuda", "bytesOf", PlusOne, "return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[(0+1)])))", "Sizeof looks at the type alone"},
		{"cuda", "(*Context).quicklyOn", IgnoreError, "return false, err", "the slower way checks again, and finds the error"},
		{"cuda", "(*Graph).replace", SwapSteps, "to.name = k.name; if err != nil { return &LaunchError{k.Function.name, to.Geometry, err} }", "nobody has the other node after an error"},
		{"cuda", "(*Graph).launchInTurn", CallNow, "g.pool.mu.Unlock()", "each launch writes the memory of the hold, whose order has launches wait for each other"},
		{"cuda", "(*submission).declared", DropAssign, "plain = true", "the slow way makes the same driver calls"},
		{"cuda", "(*submission).place", SwapSteps, "end = at + size; p.put(at, a, value)", "put does not have the end"},
		{"cuda", "submissionOf", SplitAdd, "c.special.Store(c.special.Load() + (1))", unshared},
		{"cuda/cublaslt", "", SwapSteps, "s.on = on; if !ok { return &cudadrv.CallError{Func: \"cuCtxPushCurrent\", Result: cudadrv.NotSupported} }", "multiply alone reads the stream"},
		{"cuda/gemm", "Problem.Filled", SwapSteps, "fill(&p.LDB, p.columnsB()); fill(&p.LDA, p.columnsA())", "neither reads the field of the other"},
		{"cuda/gemm", "Problem.Filled", SwapSteps, "fill(&p.LDAux, p.N); fill(&p.LDC, p.N)", "neither reads the field of the other"},
		{"cuda/share", "(*link).close", CallNow, "use.Unlock()", "the memory is closed and the reader has ended: nobody else has the event"},
		{"cuda/share", "(*Memory).settle", CallNow, "m.using.Unlock() // no other user is left", "no call uses a memory that is closed, and one Close runs at a time"},
		{"cuda/share", "(*Memory).wait", SwapSteps, "q = &waits{}; m.forgetPassed()", "the new list is in no map yet"},
		{"cuda/sleep", "(*Arena).Close", SwapSteps, "a.state.Store(int32(Closed)); a.dropSaved()", "calls that look at the state have their turn before or after, and others only report it"},
		{"cuda/share", "(*Memory).forgetPassed", PlusOne, "looks := (0+1)", oneLook},
		{"cuda/share", "(*Memory).forgetPassed", Boundary, "if looks++; looks >= 2 {", oneLook},
		{"cuda/sleep", "(*Arena).save", PlusOne, "if c.block, err = a.options.Host.Alloc(c.bytes, (0+1)); err != nil {", "both are any alignment"},
		// Of cuda.
		{"cuda", "", PlusOne, "{\".b128\", 16, of(complex128Kind) | alignedTo((16+1))},", "no argument is aligned to more than 16 bytes"},
		{"cuda", "(*imageReader).readFatBinary", Boundary, "if len(image) <= fatHeaderBytes {", "a header alone has no kernels either way"},
		{"cuda", "(*Context).NewQueue", Table, "func (c *Context) NewQueue() *Queue { return &Queue{c: c, pruneAt: (leastPruned+1)} }", "it is when a list is searched for freed buffers"},
		// Of the checker of hazards.
		{"cudadrv/hazard/internal/core", "(*Core).Allocated", DropAssign, "r.Kind = Unmapped", "it is the zero value"},
		{"cudadrv/hazard/internal/core", "(*Core).touch", DropAssign, "r.Kind = Unmapped", "it is the zero value"},
		{"cudadrv/hazard/internal/core", "(*Core).Freed", Boundary, "if start > b.Ptr+cudadrv.Ptr(b.Bytes) {", "cells after the buffer are not its"},
		{"cudadrv/hazard/internal/core", "(*Core).Freed", Negate, "return !false", "cells after the buffer are not its"},
		{"cudadrv/hazard/internal/core", "(*Clock).join", Boundary, "for len(*c) <= len(other) {", "a zero at the end stands for no work"},
		{"cudadrv/hazard/internal/core", "(*Clock).join", Boundary, "if (*c)[i] <= count {", "joining the same point again changes nothing"},
		{"cudadrv/hazard/internal/core", "endOf", Boundary, "return end, a.Bytes >= 0 && end > a.Ptr", "no bytes end where they begin"},
		{"cudadrv/hazard/internal/core", "endOf", Boundary, "return end, a.Bytes > 0 && end >= a.Ptr", "only no bytes end where they begin"},
		{"cudadrv/hazard/internal/core", "(*memory).cut", Negate, "return !false", "it only ends the search early"},
		{"cudadrv/hazard/internal/core", "(*memory).merge", Negate, "return !false", "it only ends the search early"},
		{"cudadrv/hazard/internal/core", "(*memory).merge", Boundary, "if begin >= 0 {", "no cell ends at the address 0"},
		{"cudadrv/hazard/internal/core", "(*memory).merge", PlusOne, "if begin > (0+1) {", "no memory is at the address 0"},
		{"cudadrv/hazard/internal/core", "(*cell).alike", SwapArgs, "return c.buffer == d.buffer && c.managed == d.managed && c.write == d.write && slices.Equal(d.reads, c.reads)", symmetric},
		{"cudadrv/hazard/internal/core", "(*cell).forget", DropAssign, "c.reads = nil", "it lets the list be collected"},
		{"cudadrv/hazard/internal/core", "(*order).begin", PlusOne, "o.places = append(o.places, (0+1))", "only whether one count is above another is read"},
		{"cudadrv/hazard/internal/core", "(*order).reach", DropAssign, "st.known = o.version", "joining the same point again changes nothing"},
		// Of cudadrv/site.
		{"cudadrv/site", "exported", PlusOne, "if name == \"\" || name[0] < 'A' || name[0] > ('Z'+1) {", "no name begins with a bracket"},
		{"cudadrv/site", "(*Helpers).kindOf", PlusOne, "slot := &h.kinds[uint64(call)*0x9E3779B97F4A7C15>>(52+1)]", "any slot serves"},
		{"cudadrv/site", "(*Helpers).kindOf", PlusOne, "slot := &h.kinds[uint64(call)*(0x9E3779B97F4A7C15+1)>>52]", "any slot serves"},
		{"cudadrv/site", "(*Helpers).kindOf", DropCall, "slot.Store(uint64(call)<<kindBits | uint64(k))", "it saves looking the call up again"},
		{"cuda/gemm", "product", Boundary, "if a != 0 && b >= math.MaxInt64/a {", "such a product is beyond the limit of all types"},
		{"cuda/gemm", "Problem.CheckOperands", Table, "{\"Bias\", o.Bias, e.Bias, out, p.N * out, p.N * out, (0+1)},", "its row takes the whole distance of rows"},
		{"internal/trace", "(*parser).next", SwapArgs, "case errors.Is(io.EOF, err) && len(line) == 0:", "bufio returns io.EOF itself"},
		{"internal/trace", "parseRow", DropAssign, "r.op = Alloc", "it is the zero value"},
		{"internal/trace", "(*ledger).free", PlusOne, "case held < (0+1):", "no buffer has no bytes"},
		{"internal/trace", "(*ledger).free", Boundary, "case held <= 0:", "no buffer has no bytes"},
		{"monitor/gpus", "Find", SwapArgs, "if strings.EqualFold(gpu.PCI, d.PCI) {", symmetric},
		{"cuda", "(*Function).askParams", Table, "f.params = append(f.params, param{int(offset), int(bytes), (anyKind+1)})", "arguments without a kind are refused before"},
		{"cudadrv/dynamic", "", Table, "{cudadrv.WideFills, \"wide fills\", (0+1), []symbol{", "every driver has a version"},
		// Of cudadrv/sim.
		{"cudadrv/sim", "(*gpu).auditMappings", PlusOne, "for p, m := range g.mappings.from((0+1)) {", "nothing is at the address 0"},
		{"cudadrv/sim", "(*gpu).auditMappings", PlusOne, "for p, r := range g.regions.from((0+1)) {", "nothing is at the address 0"},
		{"cudadrv/sim", "(*gpu).auditRegions", PlusOne, "for p, r := range g.regions.from((0+1)) {", "nothing is at the address 0"},
		{"cudadrv/sim", "(*Driver).id", Arithmetic, "func (d *Driver) id(kind uint64, count *atomic.Uint64) uint64 { return d.number + kind - count.Add(1) }", "any numbers serve that differ"},
		{"cudadrv/sim", "queue.Less", Boundary, "return q[i].number <= q[j].number", "no two works have one number"},
		{"cudadrv/sim", "(*gpu).beginCapture", PlusOne, "begun := &capture{gpu: g, number: g.driver.captures.Add((1+1)), mode: mode, graph: &Graph{}, origin: st}", "any numbers serve that rise"},
	}
}
