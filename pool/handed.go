package pool

// Handed is the memory of one stream's live buffers that were handed over to another for good.
type Handed struct {
	From, To uint32
	Bytes    int64
}

// ChargeHolders charges the streams that have handed buffers with them, and not the streams of their memory.
func ChargeHolders(all []Holder, handed []Handed) []Holder {
	for _, h := range handed {
		charge(&all, h, func(x *Holder) (stream uint32, held *int64) { return x.Stream, &x.HeldBytes }, Holder{Stream: h.To})
	}
	return all
}

// chargeHoldings is like ChargeHolders, for a refusal.
func chargeHoldings(all []Holding, handed []Handed) []Holding {
	for _, h := range handed {
		from, to, bytes := charge(&all, h, func(x *Holding) (stream uint32, held *int64) { return x.Stream, &x.HeldBytes }, Holding{Stream: h.To})
		if bytes > 0 {
			all[from].LiveBytes = max(0, all[from].LiveBytes-bytes)
			all[to].LiveBytes += bytes
		}
	}
	return all
}

// charge moves the bytes of one Handed, as far as the stream of the memory is known to hold them. It adds
// the stream that has them if it is not in the list, and returns the places of both, and the bytes.
func charge[T any](all *[]T, h Handed, of func(*T) (stream uint32, held *int64), added T) (from, to int, bytes int64) {
	from, to = -1, -1
	for i := range *all {
		switch stream, _ := of(&(*all)[i]); stream {
		case h.From:
			from = i
		case h.To:
			to = i
		}
	}
	if from < 0 {
		return from, to, 0
	}
	_, held := of(&(*all)[from])
	if bytes = min(h.Bytes, *held); bytes <= 0 {
		return from, to, 0
	}
	*held -= bytes
	if to < 0 {
		*all = append(*all, added)
		to = len(*all) - 1
	}
	_, held = of(&(*all)[to])
	*held += bytes
	return from, to, bytes
}

// charged charges the streams that have handed buffers in errors of denials.
func (p *Pool) charged(err error) error {
	switch e := err.(type) { //nolint:errorlint // errors of denialError
	case *OutOfMemoryError:
		e.Streams = chargeHoldings(e.Streams, p.handedOver())
	case *DeadlockError:
		e.Holders = ChargeHolders(e.Holders, p.handedOver())
	}
	return err
}

func (p *Pool) handedOver() []Handed {
	if p.handed == nil {
		return nil
	}
	return p.handed()
}
