package planted

func orderedLaunches() Promise {
	return Promise{"a launch is ordered with other streams, devices and processes, and waits for nothing else", []Bug{
		{
			Name:    "work does not follow the work of the buffer's own stream",
			Package: "cuda", Run: "^TestWorkOnBuffersOfOtherStreams$",
			Edits: []Edit{
				{
					"streams.(*Crossing).Before",
					"if err := c.waitHome(home); err != nil {",
					"if err := error(nil); err != nil {",
				},
			},
		},
		{
			Name:    "work of other streams on a buffer is not counted",
			Package: "cuda", Run: "^TestWorkOnBuffersOfOtherStreams$",
			Edits: []Edit{{"streams.(*Crossing).After", "Add(1)", "Add(0)"}},
		},
		{
			Name:    "the source's stream does not wait for a copy between devices",
			Package: "cuda", Run: "^TestCopyPeerIsOrderedOnBothDevices$",
			Edits: []Edit{{"streams.Submitter.Between", "return o.afterWork(h)", "return nil"}},
		},
		{
			Name:    "a launch on a buffer of another device is made without access",
			Package: "cuda", Run: "^TestForeignBuffersAreRefused$",
			Edits: []Edit{{"streams.Submitter.Reach", "|| !x.s.peers.reaches(s.peers) ||", "||"}},
		},
		{
			Name: "a context does not wait for the peer's event", Package: "cuda/share", Run: "^TestAwaitOrdersTheDevice$",
			Edits: []Edit{{"cuda/share.(*Memory).follow", "return m.wait(c, l)", "return nil"}},
		},
		{
			Name:    "a fence does not follow the earlier ones of its process",
			Package: "cuda/share", Run: "^TestAFenceCoversEarlierOnes$",
			Edits: []Edit{{"cuda/share.(*Memory).fence", "l.last != nil && l.last != stream", "false"}},
		},
		{
			Name: "a fence of a peer that died counts", Package: "cuda/share", Run: "^TestFencesOfADeadPeerAreLost$",
			Edits: []Edit{{"cuda/share.(*Memory).follow", "case why != nil:", "case false:"}},
		},
	}}
}
